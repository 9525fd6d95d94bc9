//! Lines left out without a copy of the text: blank ones that follow blank ones, or whatever a rule has omitted.
//!
//! Only the table of places forgets them: a line that is kept seems to have them behind it, and where it is asked for it ends at its
//! first line end.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use super::{Lines, n_line_ends};
use crate::line_set::LineSet;
use crate::text::is_blank;

impl<'a> Lines<'a> {
    /// Whether there are two lines in a row that have nothing but white space.
    pub fn has_blank_run(&self) -> bool {
        let mut was_blank = false;
        (0..self.n_lines).any(|line_idx| {
            let is_blank = self.is_blank(line_idx);
            std::mem::replace(&mut was_blank, is_blank) && is_blank
        })
    }

    /// Leaves out every blank line that follows a blank one; `false` where lines are so short that the table has not all of them.
    pub fn fold(&mut self) -> bool {
        if self.shift > 0 {
            return false;
        }
        let (mut n_kept, mut was_blank) = (0, false);
        for line_idx in 0..self.n_lines {
            let is_blank = self.is_blank(line_idx);
            if std::mem::replace(&mut was_blank, is_blank) && is_blank {
                let [start, next] = [line_idx, line_idx + 1].map(|idx| self.starts[idx] as usize);
                self.n_folded_bytes += next.min(self.text.len()) - start;
                self.holes.insert(n_kept - 1);
                continue;
            }
            self.starts[n_kept] = self.starts[line_idx];
            n_kept += 1;
        }
        self.is_simple &= n_kept == self.n_lines;
        self.starts[n_kept] = self.starts[self.n_lines];
        self.starts.truncate(n_kept + 1);
        self.n_lines = n_kept;
        true
    }

    /// Some of the lines, ascending, over the same text; `None` where lines are so short that the table has not all of them.
    ///
    /// Shape:  as if the text had no others and a line end followed the last one.
    /// Limits: four bytes for each line that is kept.
    pub fn only(&self, kept: impl Iterator<Item = Range<usize>>) -> Option<Self> {
        if self.shift > 0 {
            return None;
        }
        let mut starts = Vec::with_capacity(self.n_lines + 1);
        let mut holes = LineSet::default();
        let (mut n_bytes, mut next) = (0, 0);
        for line_idx in kept.flatten() {
            if next < line_idx && !starts.is_empty() {
                holes.insert(starts.len() - 1);
            }
            next = line_idx + 1;
            if self.holes.contains(line_idx) {
                holes.insert(starts.len());
            }
            let place = self.first_of(line_idx, self.known(line_idx)?);
            // The last line of the text may have no end.
            n_bytes += self.text.len().min(place.end + 1) - place.start;
            starts.push(*self.starts.get(line_idx)?);
        }
        let n_lines = starts.len();
        if next < self.n_lines && n_lines > 0 {
            holes.insert(n_lines - 1);
        }
        starts.push(*self.starts.last()?);
        Some(Self {
            n_lines,
            starts,
            is_simple: false,
            n_folded_bytes: self.text.len().saturating_sub(n_bytes),
            holes,
            is_cut: true,
            severities: OnceCell::new(),
            ..*self
        })
    }

    /// Whether the text has other lines than the table, blank ones aside.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// How many lines of the text stand before one, those that are left out among them; beyond the last, how many there are.
    ///
    /// Limits: linear where lines are left out.
    pub fn n_before(&self, line_idx: usize) -> usize {
        let is_beyond = line_idx >= self.n_lines;
        if !self.is_cut && self.n_folded_bytes == 0 {
            return line_idx.min(self.n_lines);
        }
        let is_open = !self.text.is_empty() && !self.text.ends_with('\n');
        let before = &self.text.as_bytes()[..self.start(line_idx)];
        n_line_ends(before) + usize::from(is_beyond && is_open)
    }

    /// Bytes of the text without lines that are left out.
    pub fn n_bytes(&self) -> usize {
        self.text.len() - self.n_folded_bytes
    }

    /// Whether a line end follows the last line.
    pub fn is_ended(&self) -> bool {
        let last = self.n_lines.checked_sub(1);
        let is_hole = |last: usize| {
            let known = self.known(last);
            known.is_some_and(|known| self.first_of(last, known.clone()) != known)
        };
        self.text.ends_with('\n') || last.is_some_and(is_hole)
    }

    /// The text without lines that are left out.
    ///
    /// Limits: a copy, unless there are none.
    pub fn to_text(&self) -> Cow<'a, str> {
        if self.n_folded_bytes == 0 {
            return Cow::Borrowed(self.text);
        }
        let mut text = String::with_capacity(self.n_bytes() + 1);
        self.push_block(0..self.n_lines, &mut text);
        if !self.is_ended() {
            text.pop();
        }
        Cow::Owned(text)
    }

    /// Writes lines that follow each other, each with its line end.
    pub fn push_block(&self, lines: Range<usize>, out: &mut String) {
        if lines.is_empty() {
            return;
        }
        let mut copied = self.start(lines.start);
        if self.n_folded_bytes > 0 {
            for line_idx in self.holes.within(lines.clone()) {
                let Some(place) = self.known(line_idx) else {
                    continue;
                };
                let first = self.first_of(line_idx, place.clone());
                if first != place {
                    out.push_str(&self.text[copied..=first.end]);
                    copied = self.text.len().min(place.end + 1);
                }
            }
        }
        let end = match lines.end < self.n_lines {
            true => self.start(lines.end),
            false => self.text.len(),
        };
        out.push_str(&self.text[copied..end]);
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }

    /// Bytes that [`push_block`](Self::push_block) writes, at most.
    pub fn n_bytes_of(&self, lines: Range<usize>) -> usize {
        // The last line may have no end of its own.
        self.start(lines.end)
            .saturating_sub(self.start(lines.start))
            + 1
    }

    /// Where a line stands, of those that stand behind each other at a place: all but the first are left out.
    #[inline]
    pub(super) fn first_of(&self, line_idx: usize, place: Range<usize>) -> Range<usize> {
        if !self.holes.contains(line_idx) {
            return place;
        }
        let text = self.text.as_bytes().get(place.clone()).unwrap_or_default();
        let end = memchr::memchr(b'\n', text);
        place.start..end.map_or(place.end, |n| place.start + n)
    }

    /// Whether a line has nothing but white space.
    fn is_blank(&self, line_idx: usize) -> bool {
        let start = self.starts.get(line_idx).filter(|_| self.shift == 0);
        let first = start.and_then(|start| self.text.as_bytes().get(*start as usize));
        // The first byte tells of most lines.
        !first.is_some_and(u8::is_ascii_graphic) && is_blank(self.at(line_idx))
    }
}
