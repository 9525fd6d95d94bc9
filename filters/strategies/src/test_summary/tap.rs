//! The Test Anything Protocol, which Node's runner writes into a pipe, and with it many others.

use std::collections::HashSet;

use super::frames::is_library;
use super::{Limits, Mark, Marks};
use crate::text::{depth, is_number, trim, trim_start};
use crate::{Lines, Severity};

/// `TAP version 13`.
pub(super) fn is_sign(line: &str) -> bool {
    trim_start(line).starts_with("TAP version ")
}

/// Marks what passed, and details that add nothing.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let start = lines.iter().position(is_sign).unwrap_or(lines.len());
    let mut n_failures = 0;
    let mut line_idx = start;
    while line_idx < lines.len() {
        let text = trim(lines.at(line_idx));
        let is_passed = is_result(text, "ok ");
        if is_passed || is_ignored(text) {
            marks[line_idx] = Mark::Passing;
        }
        let is_failed = is_result(text, "not ok ");
        n_failures += usize::from(is_failed);
        line_idx += 1;
        if is_passed || is_failed {
            let mut details = Details::below(lines, line_idx - 1);
            while let Some(line) = details.as_mut().and_then(|details| details.next(lines)) {
                marks[line_idx] = match line {
                    _ if is_passed => passed(lines, line_idx),
                    Detail::Noise => Mark::Detail,
                    Detail::Shown(n_before) => {
                        let most = limits.lines_of(n_failures - 1);
                        shown(trim(lines.at(line_idx)), n_before, most)
                    }
                };
                line_idx += 1;
            }
        }
    }
}

/// Of the details of a test that passed only errors are shown.
fn passed(lines: &Lines<'_>, line_idx: usize) -> Mark {
    match lines.severity(line_idx) {
        Some(Severity::Error) => Mark::Unknown,
        _ => Mark::Passing,
    }
}

/// A detail of a failure, of which `n_before` are shown before it.
fn shown(text: &str, n_before: usize, most: usize) -> Mark {
    let more = if is_difference(text) {
        DIFFERENCE_LINES
    } else {
        0
    };
    match n_before < most + more {
        true => Mark::Unknown,
        false => Mark::Detail,
    }
}

/// The block of details below a result, line by line. What belongs to what is told by how far in it stands:
///
/// ```text
/// not ok 1 - total
///   ---
///   error: 'expected 12'
///   expected:
///     name: 'Ada'
///   stack: |-
///     total (/w/cart.js:17:7)
///   ...
/// ```
struct Details<'a> {
    /// The line that comes next.
    line_idx: usize,
    /// How far in the block begins.
    depth: usize,
    /// How far in its keys stand.
    key_depth: usize,
    is_stack: bool,
    is_over: bool,
    /// Lines of the stack that were there before.
    frames: HashSet<&'a str>,
    /// Lines that tell something, what differs aside.
    n_lines: usize,
    n_differences: usize,
}

/// What a line of details is.
enum Detail {
    Noise,
    /// It tells something, and so many lines of its kind before it did: what differs is a kind of its own, and the first frame, which is
    /// the place of the failure, has none before it.
    Shown(usize),
}

impl<'a> Details<'a> {
    fn below(lines: &Lines<'a>, result_idx: usize) -> Option<Self> {
        let line = lines.get(result_idx + 1)?;
        let depth = depth(line);
        let is_block = trim(line) == "---" && depth > self::depth(lines.at(result_idx));
        is_block.then(|| Self {
            line_idx: result_idx + 1,
            depth,
            key_depth: lines.get(result_idx + 2).map_or(0, self::depth).max(depth),
            is_stack: false,
            is_over: false,
            frames: HashSet::new(),
            n_lines: 0,
            n_differences: 0,
        })
    }

    /// The next line; `None` behind the end of the block, or where something stands that is less far in than it.
    fn next(&mut self, lines: &Lines<'a>) -> Option<Detail> {
        let line = lines.get(self.line_idx).filter(|_| !self.is_over)?;
        let (text, depth) = (trim(line), depth(line));
        if depth < self.depth && !text.is_empty() {
            return None;
        }
        self.line_idx += 1;
        self.is_over = depth == self.depth && text == "...";
        let is_noise = self.is_over || self.is_noise(text, depth);
        if is_noise {
            return Some(Detail::Noise);
        }
        let is_place = self.is_stack && self.frames.len() == 1 && depth > self.key_depth;
        if is_place {
            return Some(Detail::Shown(0));
        }
        let n_alike = match is_difference(text) {
            true => &mut self.n_differences,
            false => &mut self.n_lines,
        };
        let n_before = *n_alike;
        *n_alike += usize::from(!text.is_empty() && !is_diff_header(text));
        Some(Detail::Shown(n_before))
    }

    /// What is less far in than a key belongs to the block, what is further in to the key.
    fn is_noise(&mut self, text: &'a str, depth: usize) -> bool {
        if text.is_empty() {
            return self.is_stack || self.n_lines == 0;
        }
        if depth <= self.key_depth && !text.starts_with("- ") {
            self.is_stack = text.starts_with("stack:");
            return text == "---" || is_noise(text);
        }
        self.is_stack && (is_library(text) || !self.frames.insert(text))
    }
}

/// Lines between tests that say nothing of them.
fn is_ignored(text: &str) -> bool {
    text.starts_with("# Subtest: ") || is_plan(text) || text.is_empty()
}

/// `ok 3 - name`.
fn is_result(text: &str, verdict: &str) -> bool {
    let rest = text.strip_prefix(verdict).unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// `1..3`.
fn is_plan(text: &str) -> bool {
    is_number(text.strip_prefix("1..").unwrap_or_default())
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

/// Keys of a block that the name, the place and the error tell already. The type of an exception is none of them.
fn is_noise(text: &str) -> bool {
    const KEYS: [&str; 9] = [
        "duration_ms: ",
        "type: ",
        "failureType: ",
        "code: 'ERR_TEST_FAILURE'",
        "name: 'AssertionError'",
        "name: AssertionError",
        "operator: ",
        "generatedMessage: ",
        "stack: ",
    ];
    KEYS.iter().any(|key| text.starts_with(key))
}
