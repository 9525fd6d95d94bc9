//! The lines of a file as a stream: memory stays flat whatever the size of the file or of a line.

use std::borrow::Cow;
use std::io;

use memchr::{memchr, memchr_iter};

use crate::sys::File;

/// Bytes asked for in one crossing.
const CHUNK_BYTES: u64 = 1024 * 1024;
/// Bytes kept of one line: more than is ever shown of it.
const LINE_BYTES_KEPT: usize = 64 * 1024;

/// A file being read from its start.
#[derive(Debug)]
pub(super) struct PageLines {
    file: File,
    /// Its size when it was opened: a hint for how much to ask for.
    size: u64,
    chunk: Vec<u8>,
    /// Where in `chunk` the next line starts.
    start: usize,
    /// Where in the file `chunk` ends.
    position: u64,
}

/// One line without its end.
#[derive(Debug)]
pub(super) struct PageLine<'a> {
    /// Its first bytes, all of them unless it is enormous.
    pub(super) head: Cow<'a, [u8]>,
    /// Its length in bytes.
    pub(super) len: u64,
    /// Whether it has an end: the last line may have none.
    pub(super) is_ended: bool,
}

/// What follows behind a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// So many lines.
    Exactly(u64),
    /// More than so many lines; the rest was not looked at.
    MoreThan(u64),
}

impl PageLines {
    pub(super) fn new(file: File, size: u64) -> Self {
        Self {
            file,
            size,
            chunk: Vec::new(),
            start: 0,
            position: 0,
        }
    }

    /// The first bytes, for a look at what the file is. Call it before anything is taken.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        self.fill()?;
        Ok(&self.chunk)
    }

    /// How far the file has been read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next line; none at the end. What stands behind the last line end is a line if it is not empty.
    pub(super) fn take(&mut self) -> io::Result<Option<PageLine<'_>>> {
        if !self.fill()? {
            return Ok(None);
        }
        let start = self.start;
        if let Some(end) = memchr(b'\n', &self.chunk[start..]) {
            self.start += end + 1;
            return Ok(Some(PageLine::whole(&self.chunk[start..start + end])));
        }
        self.take_across().map(Some)
    }

    /// The next line, which does not end in this chunk.
    fn take_across(&mut self) -> io::Result<PageLine<'_>> {
        let (mut head, mut len, mut is_ended) = (Vec::new(), 0, false);
        while self.fill()? {
            let rest = &self.chunk[self.start..];
            let end = memchr(b'\n', rest);
            let of_line = &rest[..end.unwrap_or(rest.len())];
            let room = LINE_BYTES_KEPT.saturating_sub(head.len());
            head.extend_from_slice(&of_line[..of_line.len().min(room)]);
            len += of_line.len() as u64;
            self.start += of_line.len() + usize::from(end.is_some());
            if end.is_some() {
                is_ended = true;
                break;
            }
        }
        Ok(PageLine {
            head: head.into(),
            len,
            is_ended,
        })
    }

    /// Passes over `n` lines; the result is smaller when the file ends before.
    pub(super) fn skip(&mut self, n: u64) -> io::Result<u64> {
        let mut n_skipped = 0;
        let mut open_line = false;
        while n_skipped < n {
            if !self.fill()? {
                n_skipped += u64::from(open_line);
                break;
            }
            let rest = &self.chunk[self.start..];
            let n_ends = memchr_iter(b'\n', rest).count() as u64;
            if n_skipped + n_ends < n {
                n_skipped += n_ends;
                open_line = rest.last() != Some(&b'\n');
                self.start = self.chunk.len();
                continue;
            }
            let nth = usize::try_from(n - n_skipped - 1).unwrap_or(usize::MAX);
            let end = memchr_iter(b'\n', rest).nth(nth).unwrap_or(rest.len() - 1);
            self.start += end + 1;
            n_skipped = n;
        }
        Ok(n_skipped)
    }

    /// Counts what is left, giving up after about `bytes_max` bytes.
    pub(super) fn rest(&mut self, bytes_max: u64) -> io::Result<Rest> {
        let enough = self.position.saturating_add(bytes_max);
        let mut n_lines = 0;
        let mut open_line = false;
        while self.fill()? {
            let rest = &self.chunk[self.start..];
            n_lines += memchr_iter(b'\n', rest).count() as u64;
            open_line = rest.last() != Some(&b'\n');
            self.start = self.chunk.len();
            if self.position > enough {
                return Ok(Rest::MoreThan(n_lines));
            }
        }
        Ok(Rest::Exactly(n_lines + u64::from(open_line)))
    }

    /// Makes sure something is left in the chunk. False at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        if self.start < self.chunk.len() {
            return Ok(true);
        }
        // One byte more than is expected, so that a small file is read and known to end in one crossing.
        let expected = self.size.saturating_sub(self.position) + 1;
        let wanted = expected.clamp(4 * 1024, CHUNK_BYTES);
        self.chunk = self.file.read_at(self.position, wanted)?;
        self.start = 0;
        self.position += self.chunk.len() as u64;
        Ok(!self.chunk.is_empty())
    }
}

impl<'a> PageLine<'a> {
    fn whole(bytes: &'a [u8]) -> Self {
        let head = &bytes[..bytes.len().min(LINE_BYTES_KEPT)];
        Self {
            head: head.into(),
            len: bytes.len() as u64,
            is_ended: true,
        }
    }
}
