//! What a strategy is given and what it answers.

use std::ops::Range;

use crate::block::{controls, padded};
use crate::{LineSet, Lines};

/// One finished command.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The simple command whose output this is, name and arguments joined by spaces, without the segments before it.
    pub command: &'a str,
    /// `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// The output without control sequences and without line ends.
    pub lines: &'a Lines<'a>,
}

/// How sure a strategy is that it understood the output. Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It handled this kind of output as designed.
    Full,
    /// A heuristic matched; something may be missing.
    Partial,
    /// The output was not what it expected: its selection is not used.
    Fallback,
}

impl Confidence {
    /// The word shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::Fallback => "fallback",
        }
    }
}

/// A part of what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These lines of the input, counted from 0, as they are.
    Keep(Range<usize>),
    /// A line of the strategy's own. The host puts its marker before it.
    Note(String),
}

/// The answer of a strategy: pieces in the order of the input, no line twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// What is shown; lines in no piece are omitted.
    pub pieces: Vec<Piece>,
    /// How sure the strategy is.
    pub confidence: Confidence,
    /// Errors among the lines omitted whose content is shown all the same, in ascending ranges. The host believes this of its own
    /// strategies only; it puts every other error back.
    pub told: Vec<Range<usize>>,
}

impl Selection {
    /// Everything, as it is.
    pub fn all(input: &Input<'_>, confidence: Confidence) -> Self {
        Self {
            pieces: vec![Piece::Keep(0..input.lines.len())],
            confidence,
            told: Vec::new(),
        }
    }

    /// These lines.
    pub fn of(kept: &LineSet, confidence: Confidence) -> Self {
        let mut pieces = Vec::new();
        for line_idx in kept.within(0..usize::MAX) {
            keep(&mut pieces, line_idx);
        }
        Self::from_pieces(pieces, confidence)
    }

    /// These pieces.
    pub fn from_pieces(pieces: Vec<Piece>, confidence: Confidence) -> Self {
        Self {
            pieces,
            confidence,
            told: Vec::new(),
        }
    }
}

/// Adds one line, which comes after all that are there already.
pub(crate) fn keep(pieces: &mut Vec<Piece>, line_idx: usize) {
    if let Some(Piece::Keep(range)) = pieces.last_mut()
        && range.end == line_idx
    {
        range.end += 1;
        return;
    }
    pieces.push(Piece::Keep(line_idx..line_idx + 1));
}

/// Adds one line to ascending ranges, after all that are in them.
pub fn push_line(ranges: &mut Vec<Range<usize>>, line_idx: usize) {
    push_lines(ranges, line_idx..line_idx + 1);
}

/// Adds lines to ascending ranges, after all that are in them.
pub(crate) fn push_lines(ranges: &mut Vec<Range<usize>>, lines: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == lines.start => last.end = lines.end,
        _ => ranges.push(lines),
    }
}

/// Whether a text holds control characters, which no note may.
pub fn has_control(text: &str) -> bool {
    if !text.is_ascii() {
        return text.contains(char::is_control);
    }
    let (blocks, rest) = text.as_bytes().as_chunks();
    blocks.iter().any(|block| controls(block) != 0) || controls(&padded(rest, b' ')) != 0
}

/// `1 line`, `2 lines`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        _ => format!("{n} {noun}s"),
    }
}
