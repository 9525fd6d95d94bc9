//! Paths as guests write them. Pure: nothing here touches the disk.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use super::error::Code;

/// Longest path a guest may hand over, in bytes: what Linux takes, less its closing NUL.
pub(super) const PATH_BYTES_MAX: usize = 4095;

/// A relative path that does not lexically leave the directory it starts from.
///
/// "Lexically" counts `..` against the names before it. Links are the resolver's business.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuestPath<'a> {
    text: &'a str,
}

/// A path cut before its last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split<'a> {
    /// Everything before the last name; `.` when there is nothing.
    pub(super) parent: &'a str,
    /// The last name, never empty and without a slash; may be `.` or `..`.
    pub(super) leaf: &'a str,
    /// The path ended in a slash, so the leaf must be a directory.
    pub(super) slash: bool,
}

impl<'a> GuestPath<'a> {
    /// Checks the form of `text`.
    ///
    /// Errors: empty is no-entry, NUL is invalid, absolute or leaving is not-permitted, too long is name-too-long.
    pub(super) fn parse(text: &'a str) -> Result<Self, Code> {
        if text.is_empty() {
            return Err(Code::NoEntry);
        }
        if text.contains('\0') {
            return Err(Code::Invalid);
        }
        if text.len() > PATH_BYTES_MAX {
            return Err(Code::NameTooLong);
        }
        if text.starts_with('/') || leaves(text, 0) {
            return Err(Code::NotPermitted);
        }
        Ok(Self { text })
    }

    /// The path as written.
    pub(super) fn as_str(self) -> &'a str {
        self.text
    }

    /// Whether the path is one plain name, so that no link in its middle can lead anywhere.
    pub(super) fn is_plain_name(self) -> bool {
        !self.text.contains('/') && self.text != "." && self.text != ".."
    }

    /// Whether `..` follows a name: such a path passes through a directory that it does not end in.
    pub(super) fn passes_through(self) -> bool {
        passes_through(self.text)
    }

    /// Cuts off the last name.
    pub(super) fn split(self) -> Split<'a> {
        let trimmed = self.text.trim_end_matches('/');
        let (parent, leaf) = match trimmed.rfind('/') {
            Some(cut) => (&trimmed[..=cut], &trimmed[cut + 1..]),
            None => (".", trimmed),
        };
        Split {
            parent,
            leaf,
            slash: trimmed.len() < self.text.len(),
        }
    }
}

impl Split<'_> {
    /// Whether the leaf names an entry of its parent rather than the parent itself or its parent.
    pub(super) fn names_entry(&self) -> bool {
        self.leaf != "." && self.leaf != ".."
    }
}

/// A name that is not UTF-8, for people: `\xNN` for each byte that is no text. A guest is told of it and cannot open it.
pub(super) fn escaped(name: &OsStr) -> String {
    let mut text = String::with_capacity(name.len() + 8);
    for chunk in name.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
}

/// Whether `path`, followed from `depth` names below a top, climbs above that top at any point.
pub(super) fn leaves(path: &str, depth: usize) -> bool {
    let mut depth = depth;
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

/// Whether `..` follows a name in `path`.
pub(super) fn passes_through(path: &str) -> bool {
    path.split('/')
        .skip_while(|name| matches!(*name, "" | "." | ".."))
        .any(|name| name == "..")
}
