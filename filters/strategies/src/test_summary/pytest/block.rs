//! One failure of pytest: the failing line, what pytest says of it and the places stay; the source around them goes.

use std::collections::HashSet;
use std::ops::Range;

use crate::test_summary::frames::{Traceback, is_carets, is_library};
use crate::test_summary::{BRIEF_LINES, Mark, Marks};
use crate::{Lines, is_location};

/// Lines shown of what a failed test printed, its heading among them.
const CAPTURED_LINES: usize = 12;

/// What is known of a block so far.
struct Block<'a> {
    is_brief: bool,
    has_verdict: bool,
    budget: usize,
    n_shown: usize,
    /// Lines since the heading of what the test printed.
    n_captured: Option<usize>,
    /// Frames that are shown: of a recursion each once.
    frames: HashSet<&'a str>,
    /// The source that follows is of a frame that was there before.
    is_repeated: bool,
}

pub(super) fn mark_block(lines: &Lines<'_>, block: Range<usize>, budget: usize, marks: &mut Marks) {
    let mut state = Block {
        is_brief: budget <= BRIEF_LINES,
        has_verdict: lines.range(block.clone()).any(is_verdict),
        budget,
        n_shown: 0,
        n_captured: None,
        frames: HashSet::new(),
        is_repeated: false,
    };
    let mut traceback = Traceback::new(state.is_brief);
    let mut before = lines.at(block.start - 1);
    for line_idx in block {
        // `--tb=native`; pytest's own lines are not indented, or marked.
        let line = lines.at(line_idx);
        if let Some(mark) = traceback.mark(line) {
            if let Some(mark) = mark {
                marks[line_idx] = mark;
            }
            before = line;
            continue;
        }
        if let Some(mark) = state.mark(lines, line_idx, line, before) {
            marks[line_idx] = mark;
        }
        before = line;
    }
}

impl<'a> Block<'a> {
    /// Why a line is not shown, if so.
    fn mark(
        &mut self,
        lines: &Lines<'a>,
        line_idx: usize,
        line: &'a str,
        before: &str,
    ) -> Option<Mark> {
        let is_place = is_place(line);
        if line.starts_with("-----") {
            self.n_captured = Some(0);
        }
        if line.starts_with('E') && is_empty_verdict(line) {
            return Some(Mark::Told);
        }
        if is_place {
            // The long form has a place below its source, the short one above.
            let is_seen = is_frame(line) && !self.frames.insert(line);
            self.is_repeated = is_seen && line.contains(": in ");
            if is_seen {
                return Some(Mark::Detail);
            }
        }
        if self.is_repeated && !is_verdict(line) && self.n_captured.is_none() {
            return Some(Mark::Detail);
        }
        if self.is_noise(line, is_place, before) {
            return Some(Mark::Detail);
        }
        if is_verdict(line) || is_place || lines.severity(line_idx).is_some() {
            return None;
        }
        self.n_shown += 1;
        let is_over = match &mut self.n_captured {
            Some(n) => {
                *n += 1;
                *n > CAPTURED_LINES.min(self.budget)
            }
            None => self.n_shown > self.budget,
        };
        is_over.then_some(Mark::Detail)
    }

    fn is_noise(&self, line: &str, is_place: bool, before: &str) -> bool {
        let is_code = self.has_verdict && self.n_captured.is_none();
        let is_called = || !self.is_brief && self::is_place(before);
        let is_source = is_code && line.starts_with("    ") && !is_called();
        let is_extra = line.starts_with("self = <") || (self.is_brief && is_cause(line));
        is_source
            || is_extra
            || (is_code && is_carets(line))
            || line.trim().is_empty()
            || is_separator(line)
            || (!is_place && is_library(line))
    }
}

/// The line of source that failed; of many failures only the message and the place are shown.
fn is_cause(line: &str) -> bool {
    line.starts_with(">  ") || (line.contains(" = ") && !line.starts_with('E'))
}

fn is_verdict(line: &str) -> bool {
    line.starts_with("E  ") || line.starts_with(">  ") || line == "E"
}

/// A marked line without words, or with advice on how to see more.
fn is_empty_verdict(line: &str) -> bool {
    let text = line[1..].trim();
    text.is_empty()
        || text.starts_with("Use -v to get ")
        || (text.starts_with("Omitting ") && text.ends_with(", use -vv to show"))
}

/// `tests/a.py:12: AssertionError`.
fn is_place(line: &str) -> bool {
    !line.starts_with(' ') && is_location(line)
}

/// A place without an error: `tests/a.py:12: in test_b`, or nothing behind it.
fn is_frame(line: &str) -> bool {
    line.contains(": in ") || line.trim_end().ends_with(':')
}

/// `_ _ _ _`, between the frames of one failure.
pub(super) fn is_separator(line: &str) -> bool {
    line.starts_with("_ _ ") && line.chars().all(|c| matches!(c, '_' | ' '))
}
