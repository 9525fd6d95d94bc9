//! Notes that say which lines are missing. A strategy counts the lines it was given; a reader looks for them in the stored output,
//! where `read_overflow` counts from 0.

use std::ops::Range;

use zeph_strategies::Piece;

use crate::apply::{ShownIndex, Text};

/// Makes the notes of `pieces`, which are about what is shown, tell of lines of the output.
pub(super) fn renumber(pieces: &mut [Piece], shown: &ShownIndex<'_>, source: &Text<'_, '_>) {
    for piece in pieces {
        if let Piece::Note(note) = piece
            && let Some(told) = Told::read(note)
        {
            let gap = source_gap(&told.lines, shown, source.lines.len());
            *note = format!("{}{}", told.before, omitted(source, &gap, told.after));
        }
    }
}

/// `lines 61-180 omitted (offset=60)`, of lines of the text; `after` stands behind the word. Without numbers where the lines are not
/// those of the output.
pub(super) fn omitted(source: &Text<'_, '_>, gap: &Range<usize>, after: &str) -> String {
    let [from, to] = [gap.start, gap.end].map(|line_idx| source.lines.n_before(line_idx));
    match source.is_numbered && from < to {
        true => format!("lines {}-{to} omitted{after} (offset={from})", from + 1),
        false => format!("lines omitted{after}"),
    }
}

/// Whether a note says which lines are missing.
pub(super) fn is_of_gap(note: &str) -> bool {
    Told::read(note).is_some() || note.contains("lines omitted")
}

/// A note that tells of a gap: `more of it: lines 2-7 omitted except for that`.
struct Told<'n> {
    before: &'n str,
    /// Counted from 0, as they are shown.
    lines: Range<usize>,
    after: &'n str,
}

impl<'n> Told<'n> {
    fn read(note: &'n str) -> Option<Self> {
        const WORD: &str = "lines ";
        let (before, rest) = note.split_at(note.rfind(WORD)?);
        let (numbers, rest) = rest.strip_prefix(WORD)?.split_once(' ')?;
        let (first, last) = numbers.split_once('-')?;
        let first: usize = first.parse().ok()?;
        Some(Self {
            before,
            lines: first.checked_sub(1)?..last.parse().ok()?,
            after: rest.strip_prefix("omitted")?,
        })
    }
}

/// The lines of the text between those that are shown around a gap: what an earlier rule left out of it is missing as well.
fn source_gap(gap: &Range<usize>, shown: &ShownIndex<'_>, n_lines: usize) -> Range<usize> {
    let mut within = shown.raw(gap.clone());
    let first = within.next();
    let last = within.last().or_else(|| first.clone());
    let start = match gap.start.checked_sub(1) {
        None => Some(0),
        Some(before) => shown.raw(before..gap.start).last().map(|lines| lines.end),
    };
    let end = match gap.end < shown.n_lines() {
        false => Some(n_lines),
        true => shown
            .raw(gap.end..gap.end + 1)
            .next()
            .map(|lines| lines.start),
    };
    // Beside a note, what the gap itself has.
    let start = start.or(first.map(|lines| lines.start)).unwrap_or_default();
    start..end.or(last.map(|lines| lines.end)).unwrap_or_default()
}
