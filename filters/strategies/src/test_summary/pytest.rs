//! The output of pytest, in its long, short and verbose forms.

mod block;
mod ids;

use std::collections::HashSet;
use std::ops::Range;

use self::block::{is_separator, mark_block};
use self::ids::Ids;
use super::{Limits, Mark, Marks};
use crate::Lines;
use crate::text::{has, trim_end, unframed};

/// Which part of the report a line stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    Session,
    Failures,
    Other,
}

/// The line with which a session begins, or ends; with `-qq` it has neither, but a list of failures.
pub(super) fn is_sign(line: &str) -> bool {
    matches!(heading(line), Some("test session starts" | SUMMARY)) || is_totals(line)
}

/// Marks what passed, the session's header, and the source that is printed around failures.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let outline = Outline::of(lines);
    if outline.has_workers {
        mark_workers(lines, marks);
    }
    let mut ids = Ids::of(lines, &outline);
    let mut part = Part::Before;
    let mut failure_idx = 0;
    let ends = outline.points.iter().map(|(line_idx, _)| *line_idx);
    let mut ends = ends.chain([lines.len()]);
    mark_plain(lines, 0..ends.next().unwrap_or(0), part, marks);
    for ((at, point), end) in outline.points.iter().zip(ends) {
        let body = at + 1..end;
        match point {
            Point::Heading(title) => {
                part = part_of(title);
                match part {
                    Part::Session => marks[*at] = Mark::Passing,
                    Part::Failures => marks.say(*at, format!("{title}:")),
                    Part::Before | Part::Other => {}
                }
            }
            Point::Name(name) if part == Part::Failures => {
                if let Some(said) = ids.take(name) {
                    marks.say(*at, said);
                }
                mark_block(lines, body, limits.lines_of(failure_idx), marks);
                failure_idx += 1;
                continue;
            }
            Point::Name(_) => {}
            Point::Totals => part = Part::Other,
        }
        mark_plain(lines, body, part, marks);
    }
    mark_summary(lines, &outline, &ids, marks);
    keep_rows(lines, &ids, marks);
}

/// Marks lines that are not of a failure.
fn mark_plain(lines: &Lines<'_>, range: Range<usize>, part: Part, marks: &mut Marks) {
    for (line_idx, line) in range.clone().zip(lines.range(range)) {
        if is_progress(line) || (part == Part::Session && is_session(line)) {
            marks[line_idx] = Mark::Passing;
        }
    }
}

/// By what a report is taken apart, found in one pass.
struct Outline<'a> {
    /// Headings and names of failures with their lines, in order.
    points: Vec<(usize, Point<'a>)>,
    /// Lines that begin with `FAILED` or `ERROR`.
    listed: Vec<usize>,
    /// Whether workers of pytest-xdist say anything.
    has_workers: bool,
}

/// A line between the parts of a report.
enum Point<'a> {
    /// `==== title ====`.
    Heading(&'a str),
    /// `____ test_name ____`.
    Name(&'a str),
    /// What follows the totals is no part of a failure.
    Totals,
}

impl<'a> Outline<'a> {
    fn of(lines: &Lines<'a>) -> Self {
        let mut outline = Self {
            points: Vec::new(),
            listed: Vec::new(),
            has_workers: false,
        };
        for (line_idx, beginning) in lines.beginnings().enumerate() {
            let line = || lines.at(line_idx);
            let point = match beginning.first() {
                Some(b'=') => heading(line()).map(Point::Heading),
                Some(b'_') => failure_name(line()).map(Point::Name),
                // With `-q` they have no frame.
                Some(b'0'..=b'9') => is_totals(line()).then_some(Point::Totals),
                Some(b'F' | b'E') => {
                    let line = line();
                    if line.starts_with("FAILED ") || line.starts_with("ERROR ") {
                        outline.listed.push(line_idx);
                    }
                    continue;
                }
                Some(b'[') => {
                    outline.has_workers |= line().starts_with("[gw");
                    continue;
                }
                _ => continue,
            };
            outline.points.extend(point.map(|point| (line_idx, point)));
        }
        outline
    }

    /// The names of failures in the order of their headers.
    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.points.iter().filter_map(|(_, point)| match point {
            Point::Name(name) => Some(*name),
            Point::Heading(_) | Point::Totals => None,
        })
    }

    /// Where the list of failures begins.
    fn summary_idx(&self) -> Option<usize> {
        let is_summary = |point: &Point<'_>| matches!(point, Point::Heading(SUMMARY));
        let mut points = self.points.iter();
        points.find_map(|(line_idx, point)| is_summary(point).then_some(*line_idx))
    }
}

/// The heading of the list of failures.
const SUMMARY: &str = "short test summary info";

/// Rows of signs whose file no other line names for a failure in it: the row is the only place that does.
fn keep_rows(lines: &Lines<'_>, ids: &Ids<'_>, marks: &mut Marks) {
    let mut row_idx = None;
    for line_idx in 0..lines.len() {
        if marks[line_idx] != Mark::Passing {
            continue;
        }
        let line = lines.at(line_idx);
        if has(line, b"::") {
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
fn mark_summary(lines: &Lines<'_>, outline: &Outline<'_>, ids: &Ids<'_>, marks: &mut Marks) {
    let Some(first) = outline.summary_idx() else {
        return;
    };
    let mut heading_idx = first;
    let mut n_left = 0;
    for (line_idx, line) in (first..).zip(lines.range(first..lines.len())) {
        match heading(line) {
            Some(SUMMARY) => heading_idx = line_idx,
            _ if is_totals(line) => break,
            Some(_) => {}
            None if ids.is_told(line_idx) => marks[line_idx] = Mark::Told,
            None => n_left += usize::from(marks[line_idx] == Mark::Unknown),
        }
    }
    if n_left == 0 {
        marks[heading_idx] = Mark::Passing;
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
    let text = trim_end(line);
    let last = text.as_bytes().last();
    if !last.is_some_and(|last| b".sxFEDL]".contains(last)) {
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

fn is_passing_sign(sign: char) -> bool {
    matches!(sign, '.' | 's' | 'x' | 'F' | 'E')
}

/// The name in `____ test_name ____`.
fn failure_name(line: &str) -> Option<&str> {
    let is_framed = line.starts_with('_') && line.ends_with('_');
    if !is_framed || is_separator(line) {
        return None;
    }
    let name = unframed(line, b'_');
    let name = name.strip_prefix(' ')?.strip_suffix(' ')?;
    (!name.trim().is_empty()).then_some(name)
}
