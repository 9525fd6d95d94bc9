//! Telling a user's stack frames from those of a language and its libraries.

use std::sync::LazyLock;

use super::Mark;
use crate::text::{trim_end, trim_start};
use crate::words::{Case, Words};

/// Parts of paths and symbols that no frame of a user's own code has.
const LIBRARIES: [&str; 28] = [
    "/rustc/",
    "/.cargo/registry/",
    "/library/std/",
    "/library/core/",
    "/rustlib/src/",
    "rust_begin_unwind",
    "core::ops::function::",
    "core::panicking::",
    "std::panicking::",
    "std::sys::",
    "/usr/local/go/src/",
    "/go/src/runtime/",
    "/usr/lib/go",
    "/pkg/mod/",
    "testing.tRunner",
    "created by testing.",
    "/site-packages/",
    "/dist-packages/",
    "\\site-packages\\",
    "/lib/python3.",
    "<frozen ",
    "/node_modules/",
    "(node_modules/",
    "(node:",
    " node:internal/",
    "/lib/ruby/",
    "/gems/",
    "/rubygems/",
];

static WORDS: LazyLock<Words> =
    LazyLock::new(|| Words::new(LIBRARIES.map(|part| (part, Case::Exact))));

/// Whether a frame's line belongs to a library.
pub(super) fn is_library(line: &str) -> bool {
    WORDS.is_any_in(line)
}

/// `    ~~~~^^^^`, below a line of source.
pub(super) fn is_carets(line: &str) -> bool {
    let text = trim_start(line);
    !text.is_empty()
        && line.starts_with(' ')
        && text.bytes().all(|byte| matches!(byte, b'^' | b'~'))
}

/// A traceback of Python, line by line.
#[derive(Debug)]
pub(super) struct Traceback {
    /// Of a user's frame only the place is shown, not the source.
    is_brief: bool,
    is_inside: bool,
    /// The frame belongs to a library, or was there before.
    is_hidden: bool,
    last: String,
}

impl Traceback {
    pub(super) fn new(is_brief: bool) -> Self {
        Self {
            is_brief,
            is_inside: false,
            is_hidden: false,
            last: String::new(),
        }
    }

    /// `None` for a line outside, `Some(None)` for one inside that is shown.
    pub(super) fn mark(&mut self, line: &str) -> Option<Option<Mark>> {
        self.mark_trimmed(line, trim_start(line))
    }

    /// As [`mark`](Self::mark); `text` is the line without the blanks that it begins with.
    pub(super) fn mark_trimmed(&mut self, line: &str, text: &str) -> Option<Option<Mark>> {
        if text.starts_with("Traceback") && trim_end(text) == "Traceback (most recent call last):" {
            self.is_inside = true;
            return Some(Some(Mark::Told));
        }
        if !self.is_inside || !(line.starts_with("  ") || line.is_empty()) {
            self.is_inside = false;
            return None;
        }
        if text.starts_with("File \"") {
            self.is_hidden = is_library(line) || self.last == line;
            self.last.clear();
            self.last.push_str(line);
            return Some(self.is_hidden.then_some(Mark::Detail));
        }
        let is_dropped = self.is_hidden || self.is_brief || is_carets(line);
        Some(is_dropped.then_some(Mark::Detail))
    }
}
