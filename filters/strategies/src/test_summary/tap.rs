//! The Test Anything Protocol, which Node's runner writes into a pipe, and with it many others.

use std::collections::HashSet;

use super::frames::is_library;
use super::{Limits, Mark, Marks};
use crate::text::{trim, trim_start};
use crate::{Lines, Severity};

/// What is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Plain,
    /// Details of a test that passed.
    Passed,
    /// Details of one that failed.
    Failed,
}

/// `TAP version 13`.
pub(super) fn is_sign(line: &str) -> bool {
    trim_start(line).starts_with("TAP version ")
}

/// Marks what passed, and details that add nothing.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let mut part = Part::Plain;
    let (mut n_failures, mut n_lines) = (0, 0);
    let mut frames = HashSet::new();
    let start = lines.iter().position(is_sign).unwrap_or(lines.len());
    for (line_idx, line) in (start..).zip(lines.range(start..lines.len())) {
        let text = trim(line);
        if is_result(text, "ok ") {
            marks[line_idx] = Mark::Passing;
            let has_details = lines
                .get(line_idx + 1)
                .is_some_and(|next| trim(next) == "---");
            part = if has_details {
                Part::Passed
            } else {
                Part::Plain
            };
            continue;
        } else if is_result(text, "not ok ") {
            part = Part::Failed;
            n_failures += 1;
            n_lines = 0;
            frames.clear();
            continue;
        } else if text.starts_with("# ") || is_plan(text) || is_sign(text) {
            part = Part::Plain;
        }
        let is_hidden = match part {
            Part::Passed => lines.severity(line_idx) != Some(Severity::Error),
            Part::Plain => text.starts_with("# Subtest: ") || is_plan(text) || text.is_empty(),
            Part::Failed => {
                let is_noise = is_noise(text) || (text.contains(":") && !frames.insert(text));
                n_lines += usize::from(!is_noise && !is_diff_header(text));
                let n_more = if is_difference(text) {
                    DIFFERENCE_LINES
                } else {
                    0
                };
                is_noise || n_lines > limits.lines_of(n_failures - 1) + n_more
            }
        };
        if is_hidden {
            marks[line_idx] = if part == Part::Failed {
                Mark::Detail
            } else {
                Mark::Passing
            };
        }
        if text == "..." {
            part = Part::Plain;
        }
    }
}

/// `ok 3 - name`.
fn is_result(text: &str, verdict: &str) -> bool {
    let rest = text.strip_prefix(verdict).unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// `1..3`.
fn is_plan(text: &str) -> bool {
    let n = text.strip_prefix("1..").unwrap_or_default();
    !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit())
}

/// Lines that more are shown of a failure when they are what differs.
const DIFFERENCE_LINES: usize = 8;

/// `+ 'a'`, `- 'b'`.
fn is_difference(text: &str) -> bool {
    text.starts_with("+ ") || text.starts_with("- ")
}

/// What stands above a difference. Of many failures few lines are shown, and these are not worth any of them.
fn is_diff_header(text: &str) -> bool {
    text == "+ actual - expected" || text.starts_with("Expected values to be ")
}

/// Details that the name, the place and the error tell already.
fn is_noise(text: &str) -> bool {
    const KEYS: [&str; 7] = [
        "duration_ms: ",
        "type: ",
        "failureType: ",
        "name: ",
        "operator: ",
        "generatedMessage: ",
        "stack: ",
    ];
    text.is_empty()
        || text == "---"
        || text == "..."
        || KEYS.iter().any(|key| text.starts_with(key))
        || (is_library(text) || text.contains("(node:"))
}
