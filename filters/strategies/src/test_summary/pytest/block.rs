//! One failure of pytest: the failing line, what pytest says of it and the places stay; the source around them goes.

use std::ops::Range;

use foldhash::fast::RandomState;

use crate::test_summary::frames::{Traceback, is_carets, is_library};
use crate::test_summary::{BRIEF_LINES, Mark, Marks};
use crate::text::{find, trim, trim_end, trim_start};
use crate::{Lines, is_blank, is_location};

type HashSet<T> = std::collections::HashSet<T, RandomState>;

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

/// One line of a block.
#[derive(Clone, Copy)]
struct Line<'a> {
    text: &'a str,
    /// It without the blanks that it begins with.
    trimmed: &'a str,
    line_idx: usize,
    is_place: bool,
    /// The line before it is a place.
    is_called: bool,
}

pub(super) fn mark_block(lines: &Lines<'_>, block: Range<usize>, budget: usize, marks: &mut Marks) {
    let mut state = Block {
        is_brief: budget <= BRIEF_LINES,
        has_verdict: (lines.range(block.clone()))
            .take_while(|line| !is_captured(line))
            .any(is_verdict),
        budget,
        n_shown: 0,
        n_captured: None,
        frames: HashSet::default(),
        is_repeated: false,
    };
    let mut traceback = Traceback::new(state.is_brief);
    let mut is_called = is_place(lines.at(block.start - 1));
    for (line_idx, text) in block.clone().zip(lines.range(block)) {
        let is_place = is_place(text);
        // `--tb=native`; pytest's own lines are not indented, or marked.
        let trimmed = trim_start(text);
        let mark = traceback.mark_trimmed(text, trimmed).unwrap_or_else(|| {
            let line = Line {
                text,
                trimmed,
                line_idx,
                is_place,
                is_called,
            };
            state.mark(lines, line)
        });
        if let Some(mark) = mark {
            marks[line_idx] = mark;
        }
        is_called = is_place;
    }
}

impl<'a> Block<'a> {
    /// Why a line is not shown, if so.
    fn mark(&mut self, lines: &Lines<'a>, line: Line<'a>) -> Option<Mark> {
        let Line { text, is_place, .. } = line;
        if is_captured(text) {
            self.n_captured = Some(0);
        }
        if text.starts_with('E') && is_empty_verdict(text) {
            return Some(Mark::Told);
        }
        if is_place && self.n_captured.is_none() {
            // The long form has a place below its source, the short one above.
            let is_seen = is_frame(text) && !self.frames.insert(text);
            self.is_repeated = is_seen && text.contains(": in ");
            if is_seen {
                return Some(Mark::Detail);
            }
        }
        let is_verdict = is_verdict(text);
        if self.is_repeated && !is_verdict && self.n_captured.is_none() {
            return Some(Mark::Detail);
        }
        if self.n_captured.is_none() && is_of_group(line.trimmed) {
            return None;
        }
        if self.is_noise(line) {
            return Some(Mark::Detail);
        }
        if is_verdict || is_place || lines.severity(line.line_idx).is_some() {
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

    fn is_noise(&self, line: Line<'_>) -> bool {
        let Line { text, is_place, .. } = line;
        if self.n_captured.is_some() {
            // What a test printed may look like anything.
            return is_blank(text);
        }
        let is_code = self.has_verdict;
        let is_called = !self.is_brief && line.is_called;
        let is_source = is_code && text.starts_with("    ") && !is_called;
        is_source
            || is_blank(text)
            || is_separator(text)
            || (is_code && is_carets(text))
            || text.starts_with("self = <")
            || (self.is_brief && is_cause(text))
            || (!is_place && is_library(text))
    }
}

/// `----- Captured stdout call -----`, above what the test printed.
fn is_captured(line: &str) -> bool {
    line.starts_with("-----")
}

/// The line of source that failed; of many failures only the message and the place are shown.
fn is_cause(line: &str) -> bool {
    line.starts_with(">  ") || (!line.starts_with('E') && find(line, b" = ", 1).is_some())
}

fn is_verdict(line: &str) -> bool {
    line.starts_with("E  ") || line.starts_with(">  ") || line == "E"
}

/// What an exception in a group says, or where it was raised: `  | ValueError: empty`, `  |   File "a.py", line 2, in b`.
fn is_of_group(trimmed: &str) -> bool {
    let Some(text) = trimmed.strip_prefix("| ") else {
        return false;
    };
    let is_message = !text.starts_with(' ') && !text.starts_with("Traceback (");
    is_message || (trim_start(text).starts_with("File \"") && !is_library(text))
}

/// A marked line without words, or with advice on how to see more.
fn is_empty_verdict(line: &str) -> bool {
    let text = trim(&line[1..]);
    text.is_empty()
        || text.starts_with("Use -v to get ")
        || (text.starts_with("Omitting ") && text.ends_with(", use -vv to show"))
}

/// `tests/a.py:12: AssertionError`.
fn is_place(line: &str) -> bool {
    // Nearly all lines are indented, or marked in the first column.
    match line.as_bytes() {
        [] | [b' ', ..] => false,
        [first, b' ', ..] if first.is_ascii_graphic() => false,
        _ => is_location(line),
    }
}

/// A place without an error: `tests/a.py:12: in test_b`, or nothing behind it.
fn is_frame(line: &str) -> bool {
    let mut colons = memchr::memchr_iter(b':', line.as_bytes());
    colons.any(|colon| line.as_bytes()[colon..].starts_with(b": in "))
        || trim_end(line).ends_with(':')
}

/// `_ _ _ _`, between the frames of one failure.
pub(super) fn is_separator(line: &str) -> bool {
    line.starts_with("_ _ ") && line.bytes().all(|byte| matches!(byte, b'_' | b' '))
}
