//! The output of pytest, in its long, short and verbose forms.

use std::collections::{HashMap, HashSet};

use super::frames::is_library;
use super::{BRIEF_LINES, Limits, Mark};
use crate::{is_location, severity};

/// Which part of the report a line stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    Session,
    Failures,
    Other,
}

/// Marks what passed, the session's header, and the source that is printed around failures.
pub(super) fn mark(lines: &[&str], limits: Limits, marks: &mut [Mark]) -> bool {
    let is_recognised = lines
        .iter()
        .any(|line| heading(line).is_some_and(|title| title == "test session starts"))
        || lines.iter().any(|line| is_totals(line));
    if !is_recognised {
        return false;
    }
    mark_workers(lines, marks);
    let mut part = Part::Before;
    let mut failures = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(title) = heading(line) {
            part = part_of(title);
            match part {
                Part::Session => marks[at] = Mark::Passing,
                Part::Failures => marks[at] = Mark::Said(format!("{title}:")),
                Part::Before | Part::Other => {}
            }
        } else if is_progress(line) || (part == Part::Session && is_session(line)) {
            marks[at] = Mark::Passing;
        } else if let Some(name) = failure_name(line).filter(|_| part == Part::Failures) {
            let end = block_end(lines, at + 1);
            // An error outside a test says so in its header; that line is one to keep. A note holds no control characters.
            if !name.starts_with("ERROR ") && !name.contains(char::is_control) {
                marks[at] = Mark::Said(name.to_owned());
            }
            mark_block(lines, at + 1..end, limits.lines_of(failures.len()), marks);
            failures.push(name);
            at = end;
            continue;
        }
        at += 1;
    }
    mark_summary(lines, &failures, marks);
    true
}

/// What the workers of pytest-xdist say: `[gw0] [ 12%] PASSED a.py::test_b`, and the bare name when it starts. A name without a
/// verdict stays: its worker may have died of it.
fn mark_workers(lines: &[&str], marks: &mut [Mark]) {
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
fn mark_summary(lines: &[&str], failures: &[&str], marks: &mut [Mark]) {
    let mut n_shown = HashMap::new();
    for name in failures {
        *n_shown.entry((*name).to_owned()).or_insert(0_usize) += 1;
    }
    let mut heading_idx = None;
    let mut n_left = 0;
    for (line_idx, line) in lines.iter().enumerate() {
        match heading(line) {
            Some("short test summary info") => heading_idx = Some(line_idx),
            _ if heading_idx.is_none() || heading(line).is_some() => {}
            _ => match n_shown.get_mut(&summary_name(line)) {
                Some(n) if *n > 0 => {
                    *n -= 1;
                    marks[line_idx] = Mark::Told;
                }
                _ => n_left += usize::from(marks[line_idx] == Mark::Unknown),
            },
        }
    }
    if let Some(line_idx) = heading_idx.filter(|_| n_left == 0) {
        marks[line_idx] = Mark::Passing;
    }
}

/// `FAILED tests/a.py::TestB::test_c[d] - message`, as the header of its failure has it: `TestB.test_c[d]`.
fn summary_name(line: &str) -> String {
    let Some((_, id)) = line
        .strip_prefix("FAILED ")
        .and_then(|id| id.split_once("::"))
    else {
        return String::new();
    };
    let id = id.split_once(" - ").map_or(id, |(id, _)| id);
    // What stands in brackets is a parameter and may hold anything.
    let (path, parameter) = id.find('[').map_or((id, ""), |at| id.split_at(at));
    format!("{}{parameter}", path.replace("::", "."))
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
    let name = line.trim_start_matches('_').trim_end_matches('_');
    let is_framed = line.starts_with('_') && line.ends_with('_');
    let name = name.strip_prefix(' ')?.strip_suffix(' ')?;
    (is_framed && !name.trim().is_empty() && !is_separator(line)).then_some(name)
}

fn block_end(lines: &[&str], start: usize) -> usize {
    let is_end = |line: &str| failure_name(line).is_some() || heading(line).is_some();
    lines[start..]
        .iter()
        .position(|line| is_end(line))
        .map_or(lines.len(), |n| start + n)
}

/// In one failure: the failing line, what pytest says of it and the places stay; the source around them goes.
fn mark_block(lines: &[&str], block: std::ops::Range<usize>, budget: usize, marks: &mut [Mark]) {
    let is_brief = budget <= BRIEF_LINES;
    let has_verdict = lines[block.clone()].iter().any(|line| is_verdict(line));
    let mut n_shown = 0;
    let mut n_captured = None;
    for line_idx in block {
        let line = lines[line_idx];
        if line.starts_with("-----") {
            n_captured = Some(0);
        }
        let is_called = !is_brief && is_place(lines[line_idx - 1]);
        let is_source = has_verdict && n_captured.is_none() && is_source(line) && !is_called;
        if line.starts_with('E') && line.trim_end() == "E" {
            marks[line_idx] = Mark::Told;
            continue;
        }
        let is_extra = line.starts_with("self = <") || (is_brief && is_cause(line));
        if is_source
            || is_extra
            || line.trim().is_empty()
            || is_separator(line)
            || (is_library(line) && !is_place(line))
        {
            marks[line_idx] = Mark::Detail;
            continue;
        }
        if is_verdict(line) || is_place(line) || severity(line).is_some() {
            continue;
        }
        n_shown += 1;
        let is_over = match &mut n_captured {
            Some(n) => {
                *n += 1;
                *n > CAPTURED_LINES.min(budget)
            }
            None => n_shown > budget,
        };
        if is_over {
            marks[line_idx] = Mark::Detail;
        }
    }
}

/// Lines shown of what a failed test printed, its heading among them.
const CAPTURED_LINES: usize = 12;

/// The line of source that failed; of many failures only the message and the place are shown.
fn is_cause(line: &str) -> bool {
    line.starts_with(">  ") || (line.contains(" = ") && !line.starts_with('E'))
}

fn is_verdict(line: &str) -> bool {
    line.starts_with("E  ") || line.starts_with(">  ") || line == "E"
}

/// `tests/a.py:12: AssertionError`.
fn is_place(line: &str) -> bool {
    !line.starts_with(' ') && is_location(line)
}

/// Source is indented by four; arguments and what a test printed are not.
fn is_source(line: &str) -> bool {
    line.starts_with("    ")
}

/// `_ _ _ _`, between the frames of one failure.
fn is_separator(line: &str) -> bool {
    line.starts_with("_ _ ") && line.chars().all(|c| matches!(c, '_' | ' '))
}
