//! Lines of bounded length from pieces of any length.
//!
//! It knows nothing of JSON. A line that is too long is thrown away while it is read, so that no input can make the
//! process hold more than the limit.

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

/// Puts lines together from the pieces that a reader gives.
#[derive(Debug)]
pub(crate) struct InputLines {
    bytes_max: usize,
    number: u64,
    piece: Piece,
}

/// A text that begins with it was written by a program that marks UTF-8; it is no part of the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl InputLines {
    /// Lines of at most `bytes_max` bytes each.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            number: 0,
            piece: Piece::new(),
        }
    }

    /// Takes what comes next, up to the end of a line. Returns how many bytes it took, and the line unless it is blank or goes on.
    ///
    /// Shape: a line ends at a line feed or at the end of the input; a carriage return before it is white space.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> (usize, Option<InputLine>) {
        match chunk.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                self.piece.add(&chunk[..end], self.bytes_max);
                (end + 1, self.cut())
            }
            None => {
                self.piece.add(chunk, self.bytes_max);
                (chunk.len(), None)
            }
        }
    }

    /// The line that the end of the input ends, unless it is blank.
    pub(crate) fn end(&mut self) -> Option<InputLine> {
        self.cut()
    }

    fn cut(&mut self) -> Option<InputLine> {
        let mut piece = std::mem::replace(&mut self.piece, Piece::new());
        if self.number == 0 {
            piece.drop_mark();
        }
        self.number += 1;
        if piece.is_blank {
            return None;
        }
        let content = match piece.is_too_long {
            true => Err(TooLong {
                n_bytes: piece.n_bytes,
            }),
            false => Ok(piece.bytes),
        };
        Some(InputLine {
            number: self.number,
            content,
        })
    }
}

/// A line while it is being read.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    n_bytes: u64,
    is_blank: bool,
    is_too_long: bool,
}

impl Piece {
    fn new() -> Self {
        Self {
            bytes: Vec::new(),
            n_bytes: 0,
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
