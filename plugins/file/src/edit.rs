//! `edit`: one exact piece of a file's text for another. The piece must occur exactly once; else nothing is written.
//!
//! Works on bytes, so whatever else the file holds (a byte order mark, CRLF, a stray byte) stays as it is.

use std::io::ErrorKind;

use memchr::memmem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Output, ToolError};

use crate::area::{Area, AreaPath};
use crate::refusal::{existing_file, explain};
use crate::replace::{Slot, behind_links, changed, parted};
use crate::sys::Stat;
use crate::text::{bytes, counted, grouped};
use crate::{diff, magic};

/// Bytes of a file that can be edited. The guest holds the file, its new version and their difference at once.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Line numbers listed when the text occurs several times.
const LISTED_MAX: usize = 10;

/// The arguments of `edit`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The file, absolute or relative to the working directory.
    pub path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers. It must occur exactly once: take in
    /// as many lines around it as that needs.
    pub old_string: String,
    /// The text to put in its place; empty removes it.
    pub new_string: String,
}

/// The structured result of `edit`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EditResult {
    /// The file.
    path: String,
    /// The line, from 1, where the change starts.
    line: u64,
    /// Lines that are new.
    added: usize,
    /// Lines that are gone.
    removed: usize,
    /// The change as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

/// Runs `edit`.
///
/// Errors: the file cannot be read or written, or the text to replace is not found, or not once.
pub fn run(area: &Area, args: &Args) -> Result<Output, ToolError> {
    if args.old_string.is_empty() {
        return Err(ToolError::invalid_parameters(
            "`old_string` is empty; `write` makes a new file",
        ));
    }
    if args.old_string == args.new_string {
        return Err(ToolError::invalid_parameters(
            "`old_string` and `new_string` are the same",
        ));
    }
    let place = area.place(&args.path)?;
    let (old, new, at, links) = changed(&place, || {
        let (slot, old, links) = editable(&place)?;
        let change = EditChange::find(&place, &old, args)?;
        let new = change.of(&old);
        let written = slot.replace(&new, true);
        Ok(written.map(|()| (old, new, change.at, links)))
    })?;

    let path = place.shown();
    let line = line_of(&old, at);
    let diff = diff::unified(&path, &old, &new);
    let (added, removed) = diff.as_ref().map_or_else(
        || diff::counts(&old, &new),
        |diff| (diff.added, diff.removed),
    );
    let mut text = format!(
        "Edited {path} (line {}, +{added} -{removed} lines)",
        grouped(line)
    );
    text.extend(parted(links));
    if let Some(diff) = &diff {
        text.push_str("\n\n");
        text.push_str(&diff.text);
    }
    let diff = diff.map(|diff| diff.text);
    Ok(Output::text(text)
        .structured(&EditResult {
            path: place.spelled(),
            line,
            added,
            removed,
            diff,
        })
        .location(place.absolute(), u32::try_from(line).ok()))
}

/// The file that is to be edited, what it holds, and how many names it has.
fn editable<'a>(place: &AreaPath<'a>) -> Result<(Slot<'a>, Vec<u8>, u64), ToolError> {
    let Stat { size, links, .. } = existing_file(place, "read")?;
    let path = place.shown();
    let failed = |error| explain(place, "read", &error);
    let slot = Slot::open(behind_links(place)?).map_err(failed)?;
    let Some(old) = slot.content(FILE_BYTES_MAX).map_err(failed)? else {
        let (size, limit) = (bytes(size), bytes(FILE_BYTES_MAX));
        return Err(ToolError::io(
            ErrorKind::FileTooLarge,
            format!("`{path}` is too large to edit: {size}, the limit is {limit}"),
        ));
    };
    match magic::binary_kind(&old) {
        Some(kind) => {
            let size = bytes(size);
            Err(ToolError::permanent(format!(
                "`{path}` is not text: {kind}, {size}"
            )))
        }
        None => Ok((slot, old, links)),
    }
}

/// Where the change goes and what is written there.
struct EditChange {
    at: usize,
    len: usize,
    new: Vec<u8>,
}

impl EditChange {
    fn of(&self, old: &[u8]) -> Vec<u8> {
        [&old[..self.at], &self.new, &old[self.at + self.len..]].concat()
    }

    fn find(place: &AreaPath<'_>, text: &[u8], args: &Args) -> Result<Self, ToolError> {
        let (old, new) = (args.old_string.as_bytes(), args.new_string.as_bytes());
        let found = Occurrences::find(text, old);
        if found.total > 0 {
            // Lines added to a file of CRLF lines get the same ends.
            let new = if all_crlf(text) {
                with_crlf(new)
            } else {
                new.to_vec()
            };
            return Self::unique(place, text, &found, old.len(), new);
        }
        // Models see and write plain line ends; in the file they may be CRLF.
        let old_crlf = with_crlf(old);
        let found = Occurrences::find(text, &old_crlf);
        if found.total > 0 {
            return Self::unique(place, text, &found, old_crlf.len(), with_crlf(new));
        }
        Err(not_found(place, text, &args.old_string))
    }

    fn unique(
        place: &AreaPath<'_>,
        text: &[u8],
        found: &Occurrences,
        len: usize,
        new: Vec<u8>,
    ) -> Result<Self, ToolError> {
        if let ([at], 1) = (&found.first[..], found.total) {
            return Ok(Self { at: *at, len, new });
        }
        let mut lines: Vec<String> = found
            .first
            .iter()
            .map(|at| grouped(line_of(text, *at)))
            .collect();
        if found.total > found.first.len() as u64 {
            lines.push("…".to_owned());
        }
        Err(ToolError::invalid_parameters(format!(
            "`old_string` occurs {} in `{}`, at lines {}; make it longer so that it occurs once",
            counted(found.total, "time", "times"),
            place.shown(),
            lines.join(", ")
        )))
    }
}

/// Where a text stands in another, overlapping places included: each of them could be meant.
struct Occurrences {
    first: Vec<usize>,
    total: u64,
}

impl Occurrences {
    fn find(text: &[u8], needle: &[u8]) -> Self {
        let finder = memmem::Finder::new(needle);
        let (mut first, mut total) = (Vec::new(), 0);
        let mut from = 0;
        while let Some(at) = finder.find(&text[from..]) {
            if first.len() < LISTED_MAX {
                first.push(from + at);
            }
            total += 1;
            from += at + 1;
        }
        Self { first, total }
    }
}

fn not_found(place: &AreaPath<'_>, text: &[u8], wanted: &str) -> ToolError {
    let path = place.shown();
    ToolError::not_found(match similar_line(text, wanted) {
        Some(line) => format!(
            "`old_string` not found in `{path}`; the text at line {} differs only in white space",
            grouped(line)
        ),
        None => format!("`old_string` not found in `{path}`; it must match the file exactly"),
    })
}

/// The line, from 1, where `wanted` would be found if all white space were alike.
fn similar_line(text: &[u8], wanted: &str) -> Option<u64> {
    let wanted = collapsed(wanted.as_bytes());
    if wanted.is_empty() {
        return None;
    }
    let found = memmem::find(&collapsed(text), &wanted)?;
    // The word it begins in, here and there.
    let (mut at, mut at_collapsed) = (0, 0);
    for word in text.split(u8::is_ascii_whitespace) {
        if found < at_collapsed + word.len() {
            return Some(line_of(text, at));
        }
        at += word.len() + 1;
        at_collapsed += word.len() + usize::from(!word.is_empty());
    }
    None
}

/// `text` with one blank for each piece of white space, and none at its ends.
fn collapsed(text: &[u8]) -> Vec<u8> {
    let words = text.split(u8::is_ascii_whitespace);
    let mut made = Vec::with_capacity(text.len());
    for word in words.filter(|word| !word.is_empty()) {
        if !made.is_empty() {
            made.push(b' ');
        }
        made.extend_from_slice(word);
    }
    made
}

/// The line, from 1, that holds the byte at `at`.
fn line_of(text: &[u8], at: usize) -> u64 {
    memchr::memchr_iter(b'\n', &text[..at]).count() as u64 + 1
}

/// Whether the text has lines and each ends in CRLF.
fn all_crlf(text: &[u8]) -> bool {
    let mut ends = memchr::memchr_iter(b'\n', text).peekable();
    ends.peek().is_some() && ends.all(|at| at > 0 && text[at - 1] == b'\r')
}

/// `text` with each plain line end made CRLF.
fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len() + 16);
    for byte in text {
        if *byte == b'\n' && made.last() != Some(&b'\r') {
            made.push(b'\r');
        }
        made.push(*byte);
    }
    made
}

#[cfg(test)]
mod tests;
