//! The output of pytest, in its long, short and verbose forms.

use super::frames::is_library;
use super::{Limits, Mark};
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
    let mut part = Part::Before;
    let mut failure_idx = 0;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(title) = heading(line) {
            part = part_of(title);
            if part == Part::Session {
                marks[at] = Mark::Passing;
            }
        } else if is_progress(line) || (part == Part::Session && is_session(line)) {
            marks[at] = Mark::Passing;
        } else if part == Part::Failures && is_failure_header(line) {
            let end = block_end(lines, at + 1);
            mark_block(lines, at + 1..end, limits.lines_of(failure_idx), marks);
            failure_idx += 1;
            at = end;
            continue;
        }
        at += 1;
    }
    true
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
        None if line.contains("::") || line.contains(".py") => text,
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

/// `____ test_name ____`.
fn is_failure_header(line: &str) -> bool {
    line.starts_with("___") && line.ends_with('_') && line.contains(' ')
}

fn block_end(lines: &[&str], start: usize) -> usize {
    let is_end = |line: &str| is_failure_header(line) || heading(line).is_some();
    lines[start..]
        .iter()
        .position(|line| is_end(line))
        .map_or(lines.len(), |n| start + n)
}

/// In one failure: the failing line, what pytest says of it and the places stay; the source around them goes.
fn mark_block(lines: &[&str], block: std::ops::Range<usize>, budget: usize, marks: &mut [Mark]) {
    let has_verdict = lines[block.clone()].iter().any(|line| is_verdict(line));
    let mut n_shown = 0;
    let mut n_captured = None;
    for line_idx in block {
        let line = lines[line_idx];
        if line.starts_with("-----") {
            n_captured = Some(0);
        }
        let is_source = has_verdict && n_captured.is_none() && is_source(line);
        if is_source
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
