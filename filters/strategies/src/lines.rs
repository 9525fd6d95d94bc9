//! Taking a text apart into lines.
//!
//! Every output is, several times, and its lines are short: what the standard library pays for each line is more than reading
//! it costs.

mod fold;

use std::cell::OnceCell;
use std::ops::Range;

use crate::block::{BLOCK_BYTES, equal, padded};
use crate::diagnostic::{Severities, Severity, SharedWords};
use crate::line_set::LineSet;
use crate::words::Hit;

/// A text as lines: where they are, and how bad each says things are.
///
/// Where lines are short, the place of some is found from that of one before: the table of places stays small beside the text.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    text: &'a str,
    n_lines: usize,
    /// Where every line begins whose number is a multiple of two to the power of `shift`.
    /// Where every line is there, what follows the last one is the place after its end.
    starts: Vec<u32>,
    shift: u32,
    has_returns: bool,
    /// Whether a line is all that stands between its place and the next.
    is_simple: bool,
    /// Bytes of lines that are left out: they stand in the text behind lines of the table.
    n_folded_bytes: usize,
    /// Lines of the table that have lines behind them which are left out.
    holes: LineSet,
    /// Whether others than blank lines are left out.
    is_cut: bool,
    severities: OnceCell<Severities>,
}

/// Bytes of text for each place in the table, at least.
const BYTES_PER_PLACE: usize = 16;

/// Longest text of which lines are told, in bytes: the places of longer ones do not fit the table.
pub const TEXT_BYTES_MAX: usize = u32::MAX as usize - 1;

impl<'a> Lines<'a> {
    /// The lines of a text without their ends, as [`str::lines`] tells them.
    ///
    /// Limits: linear; takes up to a quarter of the text. Of a text of more than 4 GiB there are no lines.
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
        let mut starts = Vec::with_capacity((n_lines >> shift) + 2);
        starts.push(0);
        let mask = (1 << shift) - 1;
        let place = |end: usize| u32::try_from(end + 1).unwrap_or(u32::MAX);
        if shift == 0 {
            // Into places that are there: whether there is room is not asked for each.
            starts.resize(1 + n_lines - usize::from(is_open), 0);
            let ends = line_ends(bytes).map(place);
            starts[1..]
                .iter_mut()
                .zip(ends)
                .for_each(|(start, end)| *start = end);
        } else {
            let ends = line_ends(bytes).zip(1..).filter(|(_, n)| n & mask == 0);
            starts.extend(ends.map(|(end, _)| place(end)));
        }
        if is_open && shift == 0 {
            // As if a line end followed.
            starts.push(u32::try_from(text.len() + 1).unwrap_or(u32::MAX));
        }
        let has_returns = memchr::memchr(b'\r', bytes).is_some();
        Self {
            text,
            n_lines,
            starts,
            shift,
            has_returns,
            is_simple: !has_returns,
            n_folded_bytes: 0,
            holes: LineSet::default(),
            is_cut: false,
            severities: OnceCell::new(),
        }
    }

    /// The text, in which lines that are left out still stand.
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
        match self.known(line_idx) {
            Some(known) => self.between(line_idx, known),
            None => self.unknown_from(self.start(line_idx)).0,
        }
    }

    /// Where a line stands, without the `\n` that ends it, if the table has every line.
    #[inline]
    fn known(&self, line_idx: usize) -> Option<Range<usize>> {
        let [start, next] = *self.starts.get(line_idx..)?.first_chunk()?;
        (self.shift == 0).then_some(start as usize..next as usize - 1)
    }

    /// A line without the `\r` before its `\n`.
    #[inline(always)]
    fn between(&self, line_idx: usize, place: Range<usize>) -> &'a str {
        if self.is_simple || !(self.has_returns || self.holes.contains(line_idx)) {
            return self.text.get(place).unwrap_or_default();
        }
        self.bare(self.first_of(line_idx, place))
    }

    #[inline(never)]
    fn bare(&self, Range { start, end }: Range<usize>) -> &'a str {
        let is_ended = end > start && end < self.text.len();
        let is_return = self.has_returns && is_ended && self.text.as_bytes()[end - 1] == b'\r';
        let line = self.text.get(start..end - usize::from(is_return));
        line.unwrap_or_default()
    }

    /// The line that begins at `start`, looked for in the text, and where the next one begins.
    #[inline(never)]
    fn unknown_from(&self, start: usize) -> (&'a str, usize) {
        let end = memchr::memchr(b'\n', &self.text.as_bytes()[start..]);
        let end = end.map_or(self.text.len(), |n| start + n);
        (self.bare(start..end), self.text.len().min(end + 1))
    }

    /// The line with this number; `None` beyond the last.
    pub fn get(&self, line_idx: usize) -> Option<&'a str> {
        (line_idx < self.n_lines).then(|| self.at(line_idx))
    }

    /// What each line begins with, for passing over most of them at little cost: the line, its end, and mostly what follows it.
    pub(crate) fn beginnings(&self) -> impl Iterator<Item = &'a [u8]> {
        let known = self.starts.get(..self.n_lines).unwrap_or_default();
        let known = if self.shift == 0 { known } else { &[] };
        let bytes = self.text.as_bytes();
        let of_place = |start: &u32| bytes.get(*start as usize..).unwrap_or_default();
        let others = self.range(known.len()..self.n_lines).map(str::as_bytes);
        known.iter().map(of_place).chain(others)
    }

    /// All lines in order.
    pub fn iter(&self) -> Iter<'_, 'a> {
        self.range(0..self.n_lines)
    }

    /// Lines that follow each other, in order.
    pub fn range(&self, lines: Range<usize>) -> Iter<'_, 'a> {
        let end = lines.end.min(self.n_lines);
        let start = lines.start.min(end);
        let nexts = self.starts.get(start + 1..=end);
        Iter {
            at: self.start(start),
            lines: self,
            nexts: nexts.filter(|_| self.shift == 0).unwrap_or_default().iter(),
            line_idx: start,
            end,
        }
    }

    /// How bad a line says things are. All lines are looked at together when the first one is asked for.
    pub fn severity(&self, line_idx: usize) -> Option<Severity> {
        self.severities().of(line_idx)
    }

    /// How bad all lines say things are.
    pub fn severities(&self) -> &Severities {
        self.severities.get_or_init(|| Severities::of_lines(self))
    }

    /// Looks how bad all lines say things are, and tells `found` of the other words of `shared` that stand in the text, those in lines
    /// that are left out among them.
    pub fn look(&self, shared: &SharedWords, found: impl FnMut(Hit)) {
        let severities = Severities::of_shared(self, shared, found);
        self.severities.get_or_init(|| severities);
    }

    /// Where a line stands in the text, without the `\n` that ends it; the end of the text beyond the last.
    pub(crate) fn place(&self, line_idx: usize) -> Range<usize> {
        if let Some(known) = self.known(line_idx) {
            return self.first_of(line_idx, known);
        }
        let start = self.start(line_idx);
        let next = self.start(line_idx + 1);
        let ends = next > start && self.text.as_bytes()[next - 1] == b'\n';
        start..next - usize::from(ends)
    }

    /// The number of the line in which a byte stands; `from` is the number of one before it, or of the line itself.
    pub(crate) fn line_of(&self, at: usize, from: usize) -> usize {
        let first = from >> self.shift;
        let later = self.starts.get(first + 1..).unwrap_or_default().iter();
        let n_later = later.take_while(|start| **start as usize <= at).count();
        let known = first + n_later;
        let line_idx = known << self.shift;
        match self.starts.get(known) {
            Some(start) if self.shift > 0 => {
                line_idx + n_line_ends(&self.text.as_bytes()[*start as usize..at])
            }
            _ => line_idx,
        }
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

/// Lines that follow each other.
#[derive(Debug, Clone)]
pub struct Iter<'l, 'a> {
    lines: &'l Lines<'a>,
    /// Where the lines begin that follow each, where the table has them.
    nexts: std::slice::Iter<'l, u32>,
    line_idx: usize,
    end: usize,
    /// Where the next one begins.
    at: usize,
}

impl<'a> Iterator for Iter<'_, 'a> {
    type Item = &'a str;

    #[inline(always)]
    fn next(&mut self) -> Option<&'a str> {
        if self.line_idx == self.end {
            return None;
        }
        let (line_idx, start) = (self.line_idx, self.at);
        self.line_idx += 1;
        let Some(next) = self.nexts.next() else {
            let (line, next) = self.lines.unknown_from(start);
            self.at = next;
            return Some(line);
        };
        self.at = *next as usize;
        Some(self.lines.between(line_idx, start..self.at - 1))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n_left = self.end - self.line_idx;
        (n_left, Some(n_left))
    }
}

/// How many `\n` there are.
pub fn n_line_ends(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// The places of all `\n`.
///
/// Lines are short: what a search for one byte costs before it begins is more than what it saves. So the ends in a block are all
/// looked for together.
pub fn line_ends(bytes: &[u8]) -> impl Iterator<Item = usize> + Clone {
    let (blocks, rest) = bytes.as_chunks();
    let in_rest = equal(&padded(rest, 0), b'\n');
    let mut in_rest = Some((in_rest, bytes.len() - rest.len()));
    let mut blocks = blocks.iter().zip((0..).step_by(BLOCK_BYTES));
    let (mut ends, mut at) = (0, 0);
    std::iter::from_fn(move || {
        while ends == 0 {
            (ends, at) = match blocks.next() {
                Some((block, at)) => (equal(block, b'\n'), at),
                None => in_rest.take()?,
            };
        }
        let end = at + ends.trailing_zeros() as usize;
        ends &= ends - 1;
        Some(end)
    })
}

#[cfg(test)]
mod tests;
