//! Lines of bounded length from any reader.
//!
//! It knows nothing of JSON. A line that is too long is thrown away while it is read, so that no input can make the
//! process hold more than the limit.

use std::io::{self, BufRead};

/// A line that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InputLine {
    /// Counted from 1, blank lines included.
    pub(crate) number: u64,
    /// Its bytes without the line feed, or how long it was when it was too long.
    pub(crate) content: Result<Vec<u8>, TooLong>,
}

/// A line beyond the limit; nothing of it was kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong {
    /// Its length in bytes.
    pub(crate) n_bytes: u64,
}

/// Reads lines one by one.
#[derive(Debug)]
pub(crate) struct InputLines<R> {
    reader: R,
    bytes_max: usize,
    number: u64,
}

/// A text that begins with it was written by a program that marks UTF-8; it is no part of the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl<R: BufRead> InputLines<R> {
    /// Lines of at most `bytes_max` bytes each.
    pub(crate) fn new(reader: R, bytes_max: usize) -> Self {
        Self {
            reader,
            bytes_max,
            number: 0,
        }
    }

    /// The next line that is not blank; `None` at the end.
    ///
    /// Shape: a line ends at a line feed or at the end of the input; a carriage return before it is white space.
    /// Errors: what the reader says; interrupted reads are made again.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let Some(piece) = self.any_line()? else {
                return Ok(None);
            };
            self.number += 1;
            if piece.is_blank {
                continue;
            }
            let content = match piece.is_too_long {
                true => Err(TooLong {
                    n_bytes: piece.n_bytes,
                }),
                false => Ok(piece.bytes),
            };
            return Ok(Some(InputLine {
                number: self.number,
                content,
            }));
        }
    }

    fn any_line(&mut self) -> io::Result<Option<Piece>> {
        let mut piece = Piece::new();
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok([]) if piece.n_consumed == 0 => return Ok(None),
                Ok([]) => break,
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = chunk.iter().position(|byte| *byte == b'\n');
            piece.add(&chunk[..end.unwrap_or(chunk.len())], self.bytes_max);
            let n_used = end.map_or(chunk.len(), |end| end + 1);
            piece.n_consumed += n_used;
            self.reader.consume(n_used);
            if end.is_some() {
                break;
            }
        }
        if self.number == 0 {
            piece.drop_mark();
        }
        Ok(Some(piece))
    }
}

/// A line while it is being read.
struct Piece {
    bytes: Vec<u8>,
    n_bytes: u64,
    n_consumed: usize,
    is_blank: bool,
    is_too_long: bool,
}

impl Piece {
    fn new() -> Self {
        Self {
            bytes: Vec::new(),
            n_bytes: 0,
            n_consumed: 0,
            is_blank: true,
            is_too_long: false,
        }
    }

    fn add(&mut self, part: &[u8], bytes_max: usize) {
        self.n_bytes += part.len() as u64;
        self.is_blank &= part.iter().all(u8::is_ascii_whitespace);
        if self.is_too_long {
            return;
        }
        if self.bytes.len() + part.len() > bytes_max {
            self.is_too_long = true;
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(part);
        }
    }

    fn drop_mark(&mut self) {
        if self.bytes.starts_with(BYTE_ORDER_MARK) {
            self.bytes.drain(..BYTE_ORDER_MARK.len());
            self.is_blank = self.bytes.iter().all(u8::is_ascii_whitespace);
        }
    }
}

#[cfg(test)]
mod tests;
