//! The output of pytest, in its long, short and verbose forms.

mod block;
mod ids;

use std::collections::HashSet;

use self::block::{is_separator, mark_block};
use self::ids::Ids;
use super::{Limits, Mark, Marks};
use crate::Lines;

/// Which part of the report a line stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    Session,
    Failures,
    Other,
}

/// The line with which a session begins, or ends.
pub(super) fn is_sign(line: &str) -> bool {
    heading(line) == Some("test session starts") || is_totals(line)
}

/// Marks what passed, the session's header, and the source that is printed around failures.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    mark_workers(lines, marks);
    let mut ids = Ids::of(lines);
    let mut part = Part::Before;
    let mut failure_idx = 0;
    let mut at = 0;
    while at < lines.len() {
        let line = lines.at(at);
        if let Some(title) = heading(line) {
            part = part_of(title);
            match part {
                Part::Session => marks[at] = Mark::Passing,
                Part::Failures => marks.say(at, format!("{title}:")),
                Part::Before | Part::Other => {}
            }
        } else if is_progress(line) || (part == Part::Session && is_session(line)) {
            marks[at] = Mark::Passing;
        } else if let Some(name) = failure_name(line).filter(|_| part == Part::Failures) {
            let end = block_end(lines, at + 1);
            if let Some(said) = ids.take(name) {
                marks.say(at, said);
            }
            mark_block(lines, at + 1..end, limits.lines_of(failure_idx), marks);
            failure_idx += 1;
            at = end;
            continue;
        }
        at += 1;
    }
    mark_summary(lines, &ids, marks);
    keep_rows(lines, &ids, marks);
}

/// Rows of signs whose file no other line names for a failure in it: the row is the only place that does.
fn keep_rows(lines: &Lines<'_>, ids: &Ids<'_>, marks: &mut Marks) {
    let mut row_idx = None;
    for (line_idx, line) in lines.iter().enumerate() {
        if marks[line_idx] != Mark::Passing || line.contains("::") {
            continue;
        }
        let (path, signs) = row(line);
        if let Some(path) = path {
            row_idx = Some((line_idx, path));
        }
        let has_failed = signs.contains(['F', 'E']);
        if let Some((row_idx, path)) = row_idx.filter(|_| has_failed)
            && !ids.has_file(path)
        {
            marks[row_idx] = Mark::Unknown;
            marks[line_idx] = Mark::Unknown;
        }
    }
}

/// The file and the signs of `tests/a.py ..F. [ 10%]`; a row may go on without the file.
fn row(line: &str) -> (Option<&str>, &str) {
    let text = line.split(" [").next().unwrap_or(line).trim_end();
    match text.rsplit_once(' ') {
        Some((path, signs)) if path.ends_with(".py") => (Some(path), signs),
        None if !text.is_empty() && text.chars().all(is_passing_sign) => (None, text),
        _ => (None, ""),
    }
}

/// What the workers of pytest-xdist say: `[gw0] [ 12%] PASSED a.py::test_b`, and the bare name when it starts. A name without a
/// verdict stays: its worker may have died of it.
fn mark_workers(lines: &Lines<'_>, marks: &mut Marks) {
    let ended: HashSet<&str> = (lines.iter())
        .filter_map(|line| Some(verdict_of_worker(line)?.1))
        .collect();
    if ended.is_empty() {
        return;
    }
    for (line_idx, line) in lines.iter().enumerate() {
        let is_passing = match verdict_of_worker(line) {
            Some((verdict, _)) => matches!(verdict, "PASSED" | "SKIPPED" | "XFAIL"),
            None => line.contains("::") && ended.contains(line.trim_end()),
        };
        if is_passing {
            marks[line_idx] = Mark::Passing;
        }
    }
}

/// The verdict and the name in a line of a worker.
fn verdict_of_worker(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.strip_prefix("[gw")?.split_once("] [")?;
    let (verdict, name) = rest.split_once("%] ")?.1.split_once(' ')?;
    Some((verdict, name.trim_end()))
}

/// The list at the end names the failures once more: drops those that are shown under their name.
fn mark_summary(lines: &Lines<'_>, ids: &Ids<'_>, marks: &mut Marks) {
    let mut heading_idx = None;
    let mut n_left = 0;
    for (line_idx, line) in lines.iter().enumerate() {
        match heading(line) {
            Some("short test summary info") => heading_idx = Some(line_idx),
            _ if heading_idx.is_some() && is_totals(line) => break,
            _ if heading_idx.is_none() || heading(line).is_some() => {}
            _ if ids.is_told(line_idx) => marks[line_idx] = Mark::Told,
            _ => n_left += usize::from(marks[line_idx] == Mark::Unknown),
        }
    }
    if let Some(line_idx) = heading_idx.filter(|_| n_left == 0) {
        marks[line_idx] = Mark::Passing;
    }
}

/// `==== title ====`.
fn heading(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("===")?.trim_start_matches('=');
    let title = rest.trim_end_matches('=');
    (title.len() < rest.len()).then(|| title.trim())
}

fn part_of(title: &str) -> Part {
    match title {
        "test session starts" => Part::Session,
        "FAILURES" | "ERRORS" => Part::Failures,
        _ => Part::Other,
    }
}

/// `==== 2 failed, 3 passed in 0.12s ====`, with or without its frame (`-q`).
fn is_totals(line: &str) -> bool {
    let text = line.trim_start_matches(['=', ' ']);
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let text = line.trim_matches(|c| c == '=' || c == ' ');
    let is_counted = text.starts_with(|c: char| c.is_ascii_digit());
    is_counted
        && text.contains(" in ")
        && (text.contains(" passed") || text.contains(" failed") || text.contains(" error"))
}

fn is_session(line: &str) -> bool {
    const HEADERS: [&str; 9] = [
        "platform ",
        "cachedir: ",
        "rootdir: ",
        "plugins: ",
        "configfile: ",
        "testpaths: ",
        "Using --random",
        "asyncio: ",
        "hypothesis profile ",
    ];
    line.is_empty() || HEADERS.iter().any(|header| line.starts_with(header))
}

/// `tests/a.py ..s. [ 10%]` and `tests/a.py::test_b PASSED [ 10%]`.
fn is_progress(line: &str) -> bool {
    let text = line.trim_end();
    if !text.ends_with(['.', 's', 'x', 'F', 'E', 'D', 'L', ']']) {
        return false;
    }
    let text = match text.strip_suffix("%]") {
        Some(rest) => rest
            .trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ')
            .trim_end_matches('[')
            .trim_end(),
        None if has(line, b"::") || has(line, b".py") => text,
        None => return false,
    };
    let Some((path, verdict)) = text.rsplit_once(' ') else {
        // A long row of signs goes on in the next line.
        return !text.is_empty() && text.chars().all(is_passing_sign);
    };
    let is_verbose = path.contains("::") && matches!(verdict, "PASSED" | "SKIPPED" | "XFAIL");
    let is_row =
        path.ends_with(".py") && !path.contains(' ') && verdict.chars().all(is_passing_sign);
    is_verbose || is_row
}

/// Whether a line holds a few bytes. For so few, preparing a proper search takes longer.
fn has<const N: usize>(line: &str, part: &[u8; N]) -> bool {
    line.as_bytes().windows(N).any(|there| there == part)
}

fn is_passing_sign(sign: char) -> bool {
    matches!(sign, '.' | 's' | 'x' | 'F' | 'E')
}

/// The name in `____ test_name ____`.
fn failure_name(line: &str) -> Option<&str> {
    let is_framed = line.starts_with('_') && line.ends_with('_');
    if !is_framed || is_separator(line) {
        return None;
    }
    let name = line.trim_start_matches('_').trim_end_matches('_');
    let name = name.strip_prefix(' ')?.strip_suffix(' ')?;
    (!name.trim().is_empty()).then_some(name)
}

fn block_end(lines: &Lines<'_>, start: usize) -> usize {
    let is_end = |line: &str| failure_name(line).is_some() || heading(line).is_some();
    lines
        .range(start..lines.len())
        .position(is_end)
        .map_or(lines.len(), |n| start + n)
}
