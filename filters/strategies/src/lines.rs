//! Taking a text apart into lines.
//!
//! Every output is, several times, and its lines are short: what the standard library pays for each line is more than reading
//! it costs. Eight bytes are looked at together.

use std::cell::OnceCell;
use std::ops::Range;

use crate::diagnostic::{Severities, Severity};

/// A text as lines: where they are, and how bad each says things are.
///
/// Where lines are short, the place of some is found from that of one before: the table of places stays small beside the text.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    text: &'a str,
    n_lines: usize,
    /// Where every line begins whose number is a multiple of two to the power of `shift`.
    starts: Vec<u32>,
    shift: u32,
    severities: OnceCell<Severities>,
}

/// Bytes of text for each place in the table, at least.
const BYTES_PER_PLACE: usize = 32;

/// Longest text of which lines are told, in bytes: the places of longer ones do not fit the table.
pub const TEXT_BYTES_MAX: usize = u32::MAX as usize;

impl<'a> Lines<'a> {
    /// The lines of a text without their ends, as [`str::lines`] tells them.
    ///
    /// Limits: linear; takes up to an eighth of the text. Of a text of more than 4 GiB there are no lines.
    pub fn of(text: &'a str) -> Self {
        let text = if text.len() > TEXT_BYTES_MAX {
            ""
        } else {
            text
        };
        let bytes = text.as_bytes();
        let is_open = !text.is_empty() && !text.ends_with('\n');
        let n_lines = n_line_ends(bytes) + usize::from(is_open);
        let places_max = (text.len() / BYTES_PER_PLACE).max(1);
        let mut shift = 0;
        while n_lines >> shift > places_max {
            shift += 1;
        }
        let mut starts = Vec::with_capacity((n_lines >> shift) + 1);
        let mask = (1 << shift) - 1;
        let begins = std::iter::once(0).chain(line_ends(bytes).map(|end| end + 1));
        for (line_idx, start) in begins.take(n_lines).enumerate() {
            if line_idx & mask == 0 {
                starts.extend(u32::try_from(start).ok());
            }
        }
        Self {
            text,
            n_lines,
            starts,
            shift,
            severities: OnceCell::new(),
        }
    }

    /// The text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.n_lines
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.n_lines == 0
    }

    /// The line with this number, from 0. Beyond the last there are empty ones.
    #[inline]
    pub fn at(&self, line_idx: usize) -> &'a str {
        let start = match self.starts.get(line_idx) {
            Some(start) if self.shift == 0 => *start as usize,
            _ => self.start(line_idx),
        };
        self.line_from(line_idx, start).0
    }

    /// The line with this number, which begins at `start`, and where the next one begins.
    #[inline]
    fn line_from(&self, line_idx: usize, start: usize) -> (&'a str, usize) {
        let next = match self.starts.get(line_idx + 1) {
            Some(next) if self.shift == 0 => *next as usize,
            _ => next_start(self.text, start),
        };
        let bytes = self.text.as_bytes();
        let is_at = |end: usize, byte: u8| end > start && bytes[end - 1] == byte;
        let end = next - usize::from(is_at(next, b'\n'));
        let end = end - usize::from(end < next && is_at(end, b'\r'));
        (&self.text[start..end], next)
    }

    /// The line with this number; `None` beyond the last.
    pub fn get(&self, line_idx: usize) -> Option<&'a str> {
        (line_idx < self.n_lines).then(|| self.at(line_idx))
    }

    /// All lines in order.
    pub fn iter(&self) -> Iter<'_, 'a> {
        self.range(0..self.n_lines)
    }

    /// Lines that follow each other, in order.
    pub fn range(&self, lines: Range<usize>) -> Iter<'_, 'a> {
        Iter {
            at: self.start(lines.start),
            lines: self,
            line_idx: lines.start,
            end: lines.end.min(self.n_lines),
        }
    }

    /// The text of lines that follow each other, without the last line end.
    pub fn block(&self, lines: Range<usize>) -> &'a str {
        if lines.is_empty() {
            return "";
        }
        let end = match lines.end < self.n_lines {
            true => self.start(lines.end) - 1,
            false => self.text.strip_suffix('\n').unwrap_or(self.text).len(),
        };
        &self.text[self.start(lines.start)..end]
    }

    /// How bad a line says things are. All lines are looked at together when the first one is asked for.
    pub fn severity(&self, line_idx: usize) -> Option<Severity> {
        self.severities().of(line_idx)
    }

    /// How bad all lines say things are.
    pub fn severities(&self) -> &Severities {
        self.severities
            .get_or_init(|| Severities::of_text(self.text))
    }

    /// Where a line begins; the end of the text beyond the last.
    fn start(&self, line_idx: usize) -> usize {
        if line_idx >= self.n_lines {
            return self.text.len();
        }
        let known = self.starts[line_idx >> self.shift] as usize;
        match line_idx & ((1 << self.shift) - 1) {
            0 => known,
            n_more => {
                let mut ends = line_ends(&self.text.as_bytes()[known..]);
                ends.nth(n_more - 1)
                    .map_or(self.text.len(), |end| known + end + 1)
            }
        }
    }
}

/// Where the line after the one at `start` begins; the end of the text after the last.
fn next_start(text: &str, start: usize) -> usize {
    let mut ends = line_ends(&text.as_bytes()[start..]);
    ends.next().map_or(text.len(), |end| start + end + 1)
}

/// Lines that follow each other.
#[derive(Debug, Clone)]
pub struct Iter<'l, 'a> {
    lines: &'l Lines<'a>,
    line_idx: usize,
    end: usize,
    /// Where the next one begins.
    at: usize,
}

impl<'a> Iterator for Iter<'_, 'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.line_idx >= self.end {
            return None;
        }
        let (line, next) = self.lines.line_from(self.line_idx, self.at);
        self.line_idx += 1;
        self.at = next;
        Some(line)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n_left = self.end.saturating_sub(self.line_idx);
        (n_left, Some(n_left))
    }
}

/// How many `\n` there are.
pub fn n_line_ends(bytes: &[u8]) -> usize {
    // So few that their number fits a byte: then the compiler counts many at once.
    const TOGETHER: usize = 192;
    let (blocks, rest) = bytes.as_chunks::<TOGETHER>();
    let in_block = |block: &[u8]| {
        block
            .iter()
            .map(|byte| u8::from(*byte == b'\n'))
            .sum::<u8>()
    };
    let in_blocks = blocks.iter().map(|block| usize::from(in_block(block)));
    in_blocks.sum::<usize>() + usize::from(in_block(rest))
}

/// The places of all `\n`.
pub fn line_ends(bytes: &[u8]) -> impl Iterator<Item = usize> + Clone {
    let (words, rest) = bytes.as_chunks();
    let rest_at = bytes.len() - rest.len();
    let mut words = words.iter().zip((0..).step_by(WORD_BYTES));
    let (mut ends, mut at) = (0, 0);
    let in_words = std::iter::from_fn(move || {
        while ends == 0 {
            let (word, word_at) = words.next()?;
            (ends, at) = (ends_in(*word), word_at);
        }
        let end = at + (ends.trailing_zeros() / u8::BITS) as usize;
        ends &= ends - 1;
        Some(end)
    });
    let in_rest = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    in_words.chain(in_rest.map(move |(idx, _)| rest_at + idx))
}

const WORD_BYTES: usize = 8;

/// One bit, the highest, of each byte that is a line end; the first byte is the lowest.
fn ends_in(word: [u8; WORD_BYTES]) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x7f; WORD_BYTES]);
    const ENDS: u64 = u64::from_le_bytes([b'\n'; WORD_BYTES]);
    let other = u64::from_le_bytes(word) ^ ENDS;
    // Adding to seven bits carries into the eighth unless all are zero, and never beyond it.
    !(((other & LOW) + LOW) | other | LOW)
}

#[cfg(test)]
mod tests;
