//! Looks for the pattern in one file: in one piece when it is small, as a stream when it is large.

use std::io::{self, Read};

use grep_matcher::LineTerminator;
use grep_regex::RegexMatcherBuilder;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use zeph_plugin::ToolError;

use super::Args;
use super::found::{GrepLimits, GrepMatches, Writer};
use super::prefilter::Prefiltered;
use crate::sys::{File, Root};

/// Bytes of a file that is searched in one piece: what the host returns for one read.
const WHOLE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Least bytes asked for, since a file may have grown since it was listed.
const READ_BYTES_MIN: u64 = 4 * 1024;
/// Memory for lines of a stream. A longer line ends the search of its file.
const STREAM_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How a file begins that the searcher translates first: UTF-16 in either order, and UTF-8 that says so.
const MARKS: [&[u8]; 3] = [b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"];

/// A pattern made ready, and what searches with it.
#[derive(Debug)]
pub(super) struct Search {
    matcher: Prefiltered,
    /// Numbers lines and gives context.
    detailed: Searcher,
    /// Only counts, which is faster: for when enough is shown.
    counting: Searcher,
}

impl Search {
    pub(super) fn new(args: &Args, limits: &GrepLimits) -> Result<Self, ToolError> {
        if args.pattern.is_empty() {
            return Err(ToolError::invalid_parameters("`pattern` is empty"));
        }
        // Only an anchored pattern can tell the two kinds of line ends apart, and minding both costs time.
        let ends = match args.pattern.contains('$') {
            true => LineTerminator::crlf(),
            false => LineTerminator::byte(b'\n'),
        };
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(!args.case_sensitive)
            .multi_line(true);
        match ends.is_crlf() {
            true => builder.crlf(true),
            false => builder.line_terminator(Some(b'\n')),
        };
        let matcher = builder
            .build(&args.pattern)
            .map_err(|error| invalid(&args.pattern, &error.to_string()))?;
        let matcher = Prefiltered::new(matcher, &args.pattern, args.case_sensitive);
        let searcher = |is_detailed: bool| {
            SearcherBuilder::new()
                .line_terminator(ends)
                .line_number(is_detailed)
                .before_context(if is_detailed { limits.before } else { 0 })
                .after_context(if is_detailed { limits.after } else { 0 })
                .binary_detection(BinaryDetection::quit(0))
                .heap_limit(Some(STREAM_BYTES_MAX))
                .build()
        };
        Ok(Self {
            matcher,
            detailed: searcher(true),
            counting: searcher(false),
        })
    }

    /// Searches the file at `path`, of about `size` bytes.
    pub(super) fn file(
        &mut self,
        root: &Root,
        path: &str,
        size: u64,
        found: &mut GrepMatches<'_>,
    ) -> io::Result<()> {
        let file = root.open(path)?;
        let asked = (size + 1).clamp(READ_BYTES_MIN, WHOLE_BYTES_MAX);
        let head = file.read_at(0, asked)?;
        // What listing said is what came, so this is all.
        let is_whole = head.len() as u64 == size || head.is_empty();
        // Most files of a tree end here: whether they are binary makes no difference, and the searcher would look for that first.
        let is_marked = MARKS.iter().any(|mark| head.starts_with(mark));
        if is_whole && !is_marked && self.matcher.has_none(&head) {
            return Ok(());
        }
        let searcher = match found.is_full() {
            true => &mut self.counting,
            false => &mut self.detailed,
        };
        let mark = found.mark();
        let mut writer = Writer {
            found,
            matcher: &self.matcher,
            is_binary: false,
        };
        let searched = match is_whole {
            true => searcher.search_slice(&self.matcher, &head, &mut writer),
            false => searcher
                .search_reader(&self.matcher, Stream::new(file, &head), &mut writer)
                .map_err(too_long),
        };
        let mut is_binary = writer.is_binary;
        // What is translated has a NUL beside each letter.
        let is_wide = MARKS[..2].iter().any(|mark| head.starts_with(mark));
        if is_whole && !is_wide && found.has_since(&mark) {
            // The searcher looks for a NUL only near the start and around matches.
            is_binary |= memchr::memchr(0, &head).is_some();
        }
        found.leave(&mark, is_binary);
        searched
    }
}

fn invalid(pattern: &str, error: &str) -> ToolError {
    // The whole text draws the place with a caret on lines of its own; the reason stands in the last one.
    let reason = error.lines().last().unwrap_or_default();
    let reason = reason.trim().trim_start_matches("error: ");
    ToolError::invalid_parameters(format!(
        "`pattern` {pattern:?} is not a valid regular expression: {reason}; a `\\` before a special character makes it literal"
    ))
}

/// Says in our words what the searcher says about its memory: only a line that does not fit makes an error of this kind.
fn too_long(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Other => io::Error::other("a line in it is longer than 64 MiB"),
        _ => error,
    }
}

/// A file from its start, of which the first bytes have been read.
struct Stream<'a> {
    file: File,
    head: &'a [u8],
    position: usize,
}

impl<'a> Stream<'a> {
    fn new(file: File, head: &'a [u8]) -> Self {
        Self {
            file,
            head,
            position: 0,
        }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.head.get(self.position..).unwrap_or_default();
        let n_read = match rest.is_empty() {
            false => {
                let n_read = rest.len().min(buffer.len());
                buffer[..n_read].copy_from_slice(&rest[..n_read]);
                n_read
            }
            true => {
                let bytes = self
                    .file
                    .read_at(self.position as u64, buffer.len() as u64)?;
                buffer[..bytes.len()].copy_from_slice(&bytes);
                bytes.len()
            }
        };
        self.position += n_read;
        Ok(n_read)
    }
}
