//! A text as lines, and which of them are shown.

use std::ops::Range;

use zeph_strategies::{Lines, is_blank, n_line_ends};

use crate::apply::Loss;
use crate::mark::MARK;

/// A part of what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part<'s> {
    /// These lines of the text, counted from 0; never none.
    Lines(Range<usize>),
    /// A line of ours, without its mark.
    Note(&'s str),
}

/// A part as it is stored: a long output has very many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StoredPart {
    /// The first line, or [`NOTE`].
    start: u32,
    /// The line after the last, or the number of the note.
    end: u32,
}

/// What stands for the first line of a note. No text has so many lines: see [`TEXT_BYTES_MAX`](zeph_strategies::TEXT_BYTES_MAX).
const NOTE: u32 = u32::MAX;

impl StoredPart {
    fn of_lines(lines: &Range<usize>) -> Self {
        Self {
            start: stored(lines.start),
            end: stored(lines.end),
        }
    }

    fn of_note(note_idx: usize) -> Self {
        Self {
            start: NOTE,
            end: stored(note_idx),
        }
    }

    /// The lines of the text; `None` for a note.
    fn lines(self) -> Option<Range<usize>> {
        (self.start != NOTE).then_some(self.start as usize..self.end as usize)
    }

    /// How many lines are shown of it.
    fn n_lines(self) -> usize {
        self.lines().map_or(1, |lines| lines.len())
    }
}

fn stored(line_idx: usize) -> u32 {
    u32::try_from(line_idx).unwrap_or(NOTE - 1)
}

/// What is shown of a text: lines of it, and lines of ours between them. Lines that follow each other are one part, so that
/// what is equal looks equal and a long text costs little. The lines keep their order, but for those a strategy put first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shown {
    parts: Vec<StoredPart>,
    notes: Vec<Box<str>>,
    n_lines: usize,
}

impl Shown {
    /// A text of so many lines, whole.
    pub(crate) fn all(n_lines: usize) -> Self {
        let mut shown = Self::default();
        shown.push_lines(0..n_lines);
        shown
    }

    /// Nothing yet, with room for so many parts, and so many notes among them: long outputs have many, and growing step by step takes
    /// twice as much.
    pub(crate) fn with_room(n_parts: usize, n_notes: usize) -> Self {
        Self {
            parts: Vec::with_capacity(n_parts),
            notes: Vec::with_capacity(n_notes),
            n_lines: 0,
        }
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.parts.iter().map(|part| match part.lines() {
            Some(lines) => Part::Lines(lines),
            None => Part::Note(self.note(*part)),
        })
    }

    fn note(&self, part: StoredPart) -> &str {
        self.notes.get(part.end as usize).map_or("", |note| note)
    }

    /// The lines of the text that are shown, in the order in which they are shown.
    fn lines(&self) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().filter_map(|part| part.lines())
    }

    /// Adds lines of the text, which come after those that are there.
    pub(crate) fn push_lines(&mut self, lines: Range<usize>) {
        if lines.is_empty() {
            return;
        }
        self.n_lines += lines.len();
        let lines = StoredPart::of_lines(&lines);
        match self.parts.last_mut() {
            Some(last) if last.start != NOTE && last.end == lines.start => last.end = lines.end,
            _ => self.parts.push(lines),
        }
    }

    /// Adds a line of ours, given without its mark.
    pub(crate) fn push_note(&mut self, note: String) {
        self.parts.push(StoredPart::of_note(self.notes.len()));
        self.notes.push(note.into_boxed_str());
        self.n_lines += 1;
    }

    /// Finds lines by how they are counted where they are shown.
    pub(crate) fn index(&self) -> ShownIndex<'_> {
        let mut next = 0;
        let starts = self.parts.iter().map(|part| {
            let start = next;
            next += part.n_lines();
            start
        });
        ShownIndex {
            starts: starts.collect(),
            shown: self,
        }
    }

    /// The lines of a text of `n_lines` that are not shown.
    pub(crate) fn gaps(&self, n_lines: usize) -> impl Iterator<Item = Range<usize>> {
        let is_ordered = self.lines().is_sorted_by_key(|lines| lines.start);
        let in_order = is_ordered.then(|| self.lines()).into_iter().flatten();
        let sorted = (!is_ordered).then(|| {
            let mut sorted: Vec<_> = self.lines().collect();
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
        let mut merged = Self::with_room(self.parts.len() + 2 * back.len(), 0);
        let mut back = back.iter().copied().peekable();
        let n_first = self.n_first();
        for (part_idx, part) in std::mem::take(&mut self.parts).into_iter().enumerate() {
            let Some(lines) = part.lines() else {
                merged.parts.push(part);
                merged.n_lines += 1;
                continue;
            };
            if part_idx >= n_first {
                while let Some(before) = back.next_if(|before| *before < lines.start) {
                    merged.push_lines(before..before + 1);
                }
            }
            merged.push_lines(lines);
        }
        back.for_each(|line_idx| merged.push_lines(line_idx..line_idx + 1));
        merged.notes = std::mem::take(&mut self.notes);
        *self = merged;
    }

    /// Whether any line of ours is shown.
    pub(crate) fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    /// Leaves out the lines of ours that are not to be kept.
    pub(crate) fn retain_notes(&mut self, is_kept: impl Fn(&str) -> bool) {
        let mut kept = Self::with_room(self.parts.len(), self.notes.len());
        for part in self.parts() {
            match part {
                Part::Lines(lines) => kept.push_lines(lines),
                Part::Note(note) if is_kept(note) => kept.push_note(note.to_owned()),
                Part::Note(_) => {}
            }
        }
        *self = kept;
    }

    /// Adds a line of ours behind the lines of the text that stand before one that is not shown.
    pub(crate) fn insert_note(&mut self, note: String, line_idx: usize) {
        let is_before = |part: &StoredPart| part.lines().is_some_and(|lines| lines.end <= line_idx);
        let before = self.parts.iter().rposition(is_before);
        let at = before
            .map_or(0, |part_idx| part_idx + 1)
            .max(self.n_first());
        let note_idx = self.notes.len();
        self.parts.insert(at, StoredPart::of_note(note_idx));
        self.notes.push(note.into_boxed_str());
        self.n_lines += 1;
    }

    /// How many parts stand before those that keep the order of the text.
    fn n_first(&self) -> usize {
        let mut next = usize::MAX;
        for (part_idx, part) in self.parts.iter().enumerate().rev() {
            if let Some(lines) = part.lines() {
                if lines.start > next {
                    return part_idx + 1;
                }
                next = lines.start;
            }
        }
        0
    }
}

/// Where each part stands among the lines that are shown.
#[derive(Debug)]
pub(crate) struct ShownIndex<'s> {
    shown: &'s Shown,
    /// How many lines are shown before each part.
    starts: Vec<usize>,
}

impl ShownIndex<'_> {
    /// What is shown.
    pub(crate) fn shown(&self) -> &Shown {
        self.shown
    }

    /// How many lines are shown, those of ours among them.
    pub(crate) fn n_lines(&self) -> usize {
        self.shown.n_lines
    }

    /// Adds to `next` some of the lines, counted as they are shown.
    pub(crate) fn push_to(&self, next: &mut Shown, shown: Range<usize>) {
        for (part, skipped, n) in self.parts_of(shown) {
            match part.lines() {
                Some(lines) => next.push_lines(lines.start + skipped..lines.start + n),
                None => next.push_note(self.shown.note(part).to_owned()),
            }
        }
    }

    /// The lines of the text among some that are shown, counted as they are shown.
    pub(crate) fn raw(&self, shown: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        self.parts_of(shown).filter_map(|(part, skipped, n)| {
            let lines = part.lines()?;
            (skipped < n).then_some(lines.start + skipped..lines.start + n)
        })
    }

    /// The parts in which some lines are shown: of each, how many lines come before those, and how many up to their end.
    fn parts_of(&self, shown: Range<usize>) -> impl Iterator<Item = (StoredPart, usize, usize)> {
        let after = self.starts.partition_point(|start| *start <= shown.start);
        let first = after.saturating_sub(1);
        let starts = self.starts.get(first..).unwrap_or_default().iter();
        let parts = self.shown.parts.get(first..).unwrap_or_default().iter();
        let (from, to) = (shown.start, shown.end);
        let parts = starts.zip(parts);
        let parts = parts.take_while(move |(start, _)| from < to && **start < to);
        parts.map(move |(start, part)| {
            let skipped = from.saturating_sub(*start);
            (*part, skipped, part.n_lines().min(to - start))
        })
    }
}

/// A text and its lines.
#[derive(Debug)]
pub(crate) struct Text<'l, 'a> {
    pub(crate) lines: &'l Lines<'a>,
    /// Whether it is made of what people wrote, which may speak of errors.
    pub(crate) is_content: bool,
    /// Whether blank lines count, as in content and in what is not told from it.
    pub(crate) keeps_blanks: bool,
    /// Whether the lines of the text, those that are left out among them, are those of the output.
    pub(crate) is_numbered: bool,
}

impl Text<'_, '_> {
    pub(crate) fn all(&self) -> Shown {
        Shown::all(self.lines.len())
    }

    /// The lines that are shown, without a copy of them; `None` where there are lines of ours among them, or another order.
    pub(crate) fn only(&self, shown: &Shown) -> Option<Lines<'_>> {
        let is_ordered = shown.lines().is_sorted_by_key(|lines| lines.start);
        let is_plain = shown.notes.is_empty() && is_ordered;
        is_plain.then(|| self.lines.only(shown.lines()))?
    }

    /// The lines that are shown, as a text.
    pub(crate) fn text_of(&self, shown: &Shown) -> String {
        let mut text = String::with_capacity(self.n_bytes(shown));
        for part in shown.parts() {
            match part {
                Part::Lines(lines) => self.lines.push_block(lines, &mut text),
                Part::Note(note) => push_note(note, &mut text),
            }
        }
        text
    }

    /// Bytes of what is shown, at most.
    fn n_bytes(&self, shown: &Shown) -> usize {
        let n_bytes = shown.parts().map(|part| match part {
            Part::Lines(lines) => self.lines.n_bytes_of(lines),
            Part::Note(note) => MARK.len() + note.len() + 1,
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
                    push_note(note, &mut text);
                    has_note = true;
                    was_blank = false;
                }
                Part::Lines(lines) => {
                    was_blank = self.push_block(lines, was_blank, &mut text);
                }
            }
        }
        if !has_note {
            let n_lines = self.lines.n_before(self.lines.len());
            let n_lost = n_lines.saturating_sub(n_line_ends(text.as_bytes()));
            let note = match (self.is_numbered, n_lost) {
                (false, _) => "lines omitted".to_owned(),
                (true, 1) => "1 line omitted".to_owned(),
                (true, _) => format!("{n_lost} lines omitted"),
            };
            push_note(&note, &mut text);
        }
        if !self.lines.is_ended() {
            text.pop();
        }
        text
    }

    /// Writes lines that follow each other, without a blank one that would be the second; whether the last is blank. Lines that follow
    /// each other are blank twice only where blank lines count.
    fn push_block(&self, lines: Range<usize>, was_blank: bool, out: &mut String) -> bool {
        let is_blank = |line_idx: usize| is_blank(self.lines.at(line_idx));
        let is_second = was_blank && !self.keeps_blanks && is_blank(lines.start);
        let first = lines.start + usize::from(is_second);
        self.lines.push_block(first..lines.end, out);
        is_blank(lines.end - 1)
    }
}

fn push_note(note: &str, out: &mut String) {
    out.push_str(MARK);
    out.push_str(note);
    out.push('\n');
}

/// What the line that tells of lines omitted comes to.
const NOTE_BYTES: usize = MARK.len() + 40;
