//! A text as lines, and which of them are shown.

use std::ops::Range;

use zeph_strategies::{Lines, is_blank};

use crate::apply::Loss;
use crate::mark::MARK;

/// A part of what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// These lines of the text, counted from 0; never none.
    Lines(Range<usize>),
    /// A line of ours, with its mark.
    Note(String),
}

/// What is shown of a text: lines of it, and lines of ours between them. Lines that follow each other are one part, so that
/// what is equal looks equal and a long text costs little. The lines keep their order, but for those a strategy put first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shown {
    /// Each with the number of lines shown before it.
    parts: Vec<(usize, Part)>,
    n_lines: usize,
}

impl Shown {
    /// A text of so many lines, whole.
    pub(crate) fn all(n_lines: usize) -> Self {
        let mut shown = Self::default();
        shown.push_lines(0..n_lines);
        shown
    }

    /// Nothing yet, with room for so many parts: long outputs have many, and growing step by step takes twice as much.
    pub(crate) fn with_room(n_parts: usize) -> Self {
        Self {
            parts: Vec::with_capacity(n_parts),
            n_lines: 0,
        }
    }

    /// How many lines are shown, those of ours among them.
    pub(crate) fn n_lines(&self) -> usize {
        self.n_lines
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().map(|(_, part)| part)
    }

    /// Adds lines of the text, which come after those that are there.
    pub(crate) fn push_lines(&mut self, lines: Range<usize>) {
        if lines.is_empty() {
            return;
        }
        let before = self.n_lines;
        self.n_lines += lines.len();
        if let Some((_, Part::Lines(last))) = self.parts.last_mut()
            && last.end == lines.start
        {
            last.end = lines.end;
            return;
        }
        self.parts.push((before, Part::Lines(lines)));
    }

    /// Adds a line of ours.
    pub(crate) fn push_note(&mut self, note: String) {
        self.parts.push((self.n_lines, Part::Note(note)));
        self.n_lines += 1;
    }

    /// Adds some of the lines that `other` shows, counted as they are shown there.
    pub(crate) fn push_from(&mut self, other: &Self, shown: Range<usize>) {
        if shown.is_empty() {
            return;
        }
        let first = other.part_of(shown.start);
        for (start, part) in other.parts.get(first..).unwrap_or_default() {
            if *start >= shown.end {
                return;
            }
            match part {
                Part::Note(note) => self.push_note(note.clone()),
                Part::Lines(lines) => {
                    let skipped = shown.start.saturating_sub(*start);
                    let n = lines.len().min(shown.end - start);
                    self.push_lines(lines.start + skipped..lines.start + n);
                }
            }
        }
    }

    /// The lines of the text among some that are shown, counted as they are shown.
    pub(crate) fn raw(&self, shown: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let first = self.part_of(shown.start);
        let parts = self.parts.get(first..).unwrap_or_default().iter();
        let parts = parts.take_while(move |(start, _)| *start < shown.end);
        parts.filter_map(move |(start, part)| match part {
            Part::Lines(lines) => {
                let skipped = shown.start.saturating_sub(*start);
                let n = lines.len().min(shown.end - start);
                (skipped < n).then_some(lines.start + skipped..lines.start + n)
            }
            Part::Note(_) => None,
        })
    }

    /// The part in which a line is shown, or the last one.
    fn part_of(&self, shown_idx: usize) -> usize {
        let after = self.parts.partition_point(|(start, _)| *start <= shown_idx);
        after.saturating_sub(1)
    }

    /// The lines of a text of `n_lines` that are not shown.
    pub(crate) fn gaps(&self, n_lines: usize) -> impl Iterator<Item = Range<usize>> {
        let lines = || {
            self.parts().filter_map(|part| match part {
                Part::Lines(lines) => Some(lines.clone()),
                Part::Note(_) => None,
            })
        };
        let is_ordered = lines().is_sorted_by_key(|lines| lines.start);
        let in_order = is_ordered.then(lines).into_iter().flatten();
        let sorted = (!is_ordered).then(|| {
            let mut sorted: Vec<_> = lines().collect();
            sorted.sort_unstable_by_key(|lines| lines.start);
            sorted
        });
        let lines = in_order.chain(sorted.into_iter().flatten());
        let end = n_lines..n_lines;
        let mut at = 0;
        lines.chain([end]).filter_map(move |lines| {
            let gap = at..lines.start;
            at = lines.end;
            (!gap.is_empty()).then_some(gap)
        })
    }

    /// Puts lines back where they were; `back` is ascending, and none of them is shown.
    pub(crate) fn insert(&mut self, back: &[usize]) {
        if back.is_empty() {
            return;
        }
        let mut merged = Self::with_room(self.parts.len() + 2 * back.len());
        let mut back = back.iter().copied().peekable();
        let n_first = self.n_first();
        for (part_idx, (_, part)) in std::mem::take(&mut self.parts).into_iter().enumerate() {
            match part {
                Part::Note(note) => merged.push_note(note),
                Part::Lines(lines) if part_idx < n_first => merged.push_lines(lines),
                Part::Lines(lines) => {
                    while let Some(before) = back.next_if(|before| *before < lines.start) {
                        merged.push_lines(before..before + 1);
                    }
                    merged.push_lines(lines);
                }
            }
        }
        back.for_each(|line_idx| merged.push_lines(line_idx..line_idx + 1));
        *self = merged;
    }
}

impl Shown {
    /// How many parts stand before those that keep the order of the text.
    fn n_first(&self) -> usize {
        let mut next = usize::MAX;
        for (part_idx, (_, part)) in self.parts.iter().enumerate().rev() {
            if let Part::Lines(lines) = part {
                if lines.start > next {
                    return part_idx + 1;
                }
                next = lines.start;
            }
        }
        0
    }
}

/// A text and its lines.
#[derive(Debug)]
pub(crate) struct Text<'l, 'a> {
    pub(crate) lines: &'l Lines<'a>,
}

impl Text<'_, '_> {
    pub(crate) fn all(&self) -> Shown {
        Shown::all(self.lines.len())
    }

    /// The lines that are shown, as a text.
    pub(crate) fn text_of(&self, shown: &Shown) -> String {
        let mut text = String::with_capacity(self.n_bytes(shown));
        for part in shown.parts() {
            match part {
                Part::Lines(lines) => self.lines.push_block(lines.clone(), &mut text),
                Part::Note(note) => {
                    text.push_str(note);
                    text.push('\n');
                }
            }
        }
        text
    }

    /// Bytes of what is shown, at most.
    fn n_bytes(&self, shown: &Shown) -> usize {
        let n_bytes = shown.parts().map(|part| match part {
            Part::Lines(lines) => self.lines.n_bytes_of(lines.clone()),
            Part::Note(note) => note.len() + 1,
        });
        n_bytes.sum()
    }

    /// What the shown lines lack: blank lines between others are not counted.
    pub(crate) fn loss(&self, shown: &Shown) -> Loss {
        let n_lines = self.lines.len();
        let is_lost = |line_idx: &usize| !is_blank(self.lines.at(*line_idx));
        let lost = shown
            .gaps(n_lines)
            .find(|gap| gap.clone().any(|line_idx| is_lost(&line_idx)));
        match lost {
            None => Loss::None,
            Some(gap) if gap.end == n_lines => Loss::Tail,
            Some(_) => Loss::Whole,
        }
    }

    /// The result as text. One line says how much is missing when no other does: a text with a line of ours is never filtered
    /// again, and a reader sees that there was more.
    pub(crate) fn write(&self, shown: &Shown) -> String {
        let mut text = String::with_capacity(self.n_bytes(shown) + NOTE_BYTES);
        let mut was_blank = false;
        let mut has_note = false;
        for part in shown.parts() {
            match part {
                Part::Note(note) => {
                    text.push_str(note);
                    text.push('\n');
                    has_note = true;
                    was_blank = false;
                }
                Part::Lines(lines) => {
                    was_blank = self.push_block(lines.clone(), was_blank, &mut text);
                }
            }
        }
        if !has_note {
            let n_lost: usize = shown.gaps(self.lines.len()).map(|gap| gap.len()).sum();
            let noun = if n_lost == 1 { "line" } else { "lines" };
            text.push_str(&format!("{MARK}{n_lost} {noun} omitted\n"));
        }
        if !self.lines.is_ended() {
            text.pop();
        }
        text
    }

    /// Writes lines that follow each other, without a blank one that would be the second; whether the last is blank. A clean text has
    /// no two blank lines in a row.
    fn push_block(&self, lines: Range<usize>, was_blank: bool, out: &mut String) -> bool {
        let is_blank = |line_idx: usize| is_blank(self.lines.at(line_idx));
        let first = lines.start + usize::from(was_blank && is_blank(lines.start));
        self.lines.push_block(first..lines.end, out);
        is_blank(lines.end - 1)
    }
}

/// What the line that tells of lines omitted comes to.
const NOTE_BYTES: usize = MARK.len() + 40;
