//! The output of cargo-nextest. The captured output inside it is marked by `libtest`.

use std::collections::HashSet;
use std::ops::Range;

use super::libtest::mark_body;
use super::{Limits, Mark, Marks};
use crate::Lines;
use crate::text::{is_blank, trim_start};

/// Marks what passed, and what repeats.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let mut seen = HashSet::new();
    let mut at = 0;
    while at < lines.len() {
        let text = trim_start(lines.at(at));
        if is_passing(text) {
            marks[at] = Mark::Passing;
        } else if text.starts_with("FAIL [") && !seen.insert(text) {
            marks[at] = Mark::Told;
        } else if is_section(lines.at(at)) {
            let end = section_end(lines, at + 1);
            // Two sections per failure, mostly.
            mark_section(
                lines,
                at..end,
                limits.lines_of(seen.len().saturating_sub(1)),
                marks,
            );
            at = end;
            continue;
        }
        at += 1;
    }
}

/// `  stdout ───`, before what a failed test printed.
fn is_section(line: &str) -> bool {
    line.starts_with("  stdout ─") || line.starts_with("  stderr ─")
}

/// What a test printed is indented by four.
fn section_end(lines: &Lines<'_>, start: usize) -> usize {
    let is_inside = |line: &str| is_blank(line) || (line.starts_with("    ") && !is_status(line));
    lines
        .range(start..lines.len())
        .position(|line| !is_inside(line))
        .map_or(lines.len(), |n| start + n)
}

/// `        PASS [   0.009s] …`.
fn is_status(line: &str) -> bool {
    let is_word = |word: &str| {
        word.chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '-' | ' '))
    };
    trim_start(line)
        .split_once(" [ ")
        .is_some_and(|(word, rest)| !word.is_empty() && is_word(word) && rest.contains("s] "))
}

fn mark_section(lines: &Lines<'_>, section: Range<usize>, budget: usize, marks: &mut Marks) {
    let body = section.start + 1..section.end;
    mark_body(lines, body.clone(), budget, marks);
    for line_idx in body.clone() {
        if is_around(lines, line_idx) {
            marks[line_idx] = Mark::Told;
        }
    }
    if body
        .into_iter()
        .all(|line_idx| marks[line_idx] != Mark::Unknown)
    {
        marks[section.start] = Mark::Detail;
    }
}

/// `     Summary [   0.012s] 4 tests run: 3 passed, 1 failed, 0 skipped`.
pub(super) fn is_sign(line: &str) -> bool {
    let text = trim_start(line);
    text.starts_with("Summary [") && text.contains(" run: ")
}

fn is_passing(text: &str) -> bool {
    text.starts_with("Finished `test` profile")
        || text.starts_with("PASS [")
        || text.starts_with("SKIP [")
        || text.starts_with("Nextest run ID ")
        || (text.starts_with("Starting ") && text.contains(" tests across "))
        || (!text.is_empty() && text.chars().all(|c| c == '─' || c == '-'))
}

/// What the runner inside says of the one test it was given: the line of the failure says it already.
fn is_around(lines: &Lines<'_>, line_idx: usize) -> bool {
    let text = trim_start(lines.at(line_idx));
    text == "running 1 test"
        || text == "failures:"
        || (text.starts_with("test ") && text.ends_with(" ... FAILED"))
        || text.starts_with("test result: FAILED. 0 passed; 1 failed;")
        || trim_start(lines.at(line_idx - 1)) == "failures:"
}
