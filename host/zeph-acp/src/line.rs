//! Lines of a bounded length.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// A line that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The whole of it, without its end.
    Whole(Vec<u8>),
    /// It is longer than the bound: its beginning; the rest of its bytes is gone.
    TooLong(Vec<u8>),
    /// There are no more.
    End,
}

/// Reads lines.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    bytes_max: usize,
    /// Whether the rest of a line that is too long is skipped.
    is_skipping: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `bytes_max` bytes.
    pub fn new(reader: R, bytes_max: usize) -> Self {
        Self {
            reader: BufReader::new(reader),
            line: Vec::new(),
            bytes_max,
            is_skipping: false,
        }
    }

    /// The next line. Dropping the future loses nothing.
    ///
    /// Errors: those of the stream.
    pub async fn next(&mut self) -> io::Result<Line> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                // What an end cuts off is a line too.
                let rest = std::mem::take(&mut self.line);
                let is_rest = !self.is_skipping && !rest.is_empty();
                return Ok(if is_rest {
                    Line::Whole(rest)
                } else {
                    Line::End
                });
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let n_bytes = end.unwrap_or(available.len());
            let n_kept = n_bytes.min(self.bytes_max - self.line.len());
            let fits = n_kept == n_bytes;
            if !self.is_skipping {
                self.line.extend_from_slice(&available[..n_kept]);
            }
            self.reader.consume(end.map_or(n_bytes, |end| end + 1));
            let was_skipping = std::mem::replace(&mut self.is_skipping, false);
            self.is_skipping = (was_skipping || !fits) && end.is_none();
            if !fits && !was_skipping {
                return Ok(Line::TooLong(std::mem::take(&mut self.line)));
            }
            if end.is_some() && !was_skipping {
                return Ok(Line::Whole(std::mem::take(&mut self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, LineReader};

    async fn lines(text: &[u8], bytes_max: usize) -> Vec<Line> {
        let mut reader = LineReader::new(text, bytes_max);
        let mut lines = Vec::new();
        loop {
            match reader.next().await.unwrap() {
                Line::End => return lines,
                line => lines.push(line),
            }
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn a_line_too_long_is_told_once_and_the_next_one_is_read() {
        let long = "x".repeat(20_000);
        let text = format!("one\n{long}\n\ntwo");
        let lines = lines(text.as_bytes(), 10).await;
        let beginning = Line::TooLong(b"xxxxxxxxxx".to_vec());
        assert_eq!(lines, [whole("one"), beginning, whole(""), whole("two")]);
    }

    #[tokio::test]
    async fn a_long_line_that_never_ends_is_told_too() {
        let endless = lines(&[b'x'; 20_000], 10).await;
        assert!(matches!(endless[..], [Line::TooLong(_)]), "{endless:?}");
        assert_eq!(lines(b"0123456789\n", 10).await, [whole("0123456789")]);
    }
}
