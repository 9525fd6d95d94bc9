//! Which lines of a text may hold which credentials.

use std::sync::LazyLock;

use zeph_strategies::{BLOCK_BYTES, Words, equal, padded, places};

use super::hint::{Hint, is_token};
use super::shape::{DOTTED, SHAPES};

/// A line that holds the hint of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Suspect {
    /// Its first byte.
    pub(super) line_start: usize,
    /// Which shape it may be.
    pub(super) shape_idx: usize,
}

/// The words of all hints.
struct Hints {
    words: Words,
    /// What each word says, and for which shape.
    hints: Vec<(Hint, usize)>,
    dotted: Vec<usize>,
}

static HINTS: LazyLock<Hints> = LazyLock::new(|| {
    let of_shape = |(shape_idx, hint)| {
        let all = Hint::all(hint).into_iter();
        all.map(move |hint| (hint, shape_idx))
    };
    let written = SHAPES.iter().map(|shape| shape.hint).enumerate();
    let hints: Vec<(Hint, usize)> = written.clone().flat_map(of_shape).collect();
    let words = hints
        .iter()
        .map(|(hint, _)| (hint.word.as_str(), hint.case, hint.next()));
    Hints {
        words: Words::with_next(words),
        dotted: written
            .filter(|(_, hint)| *hint == DOTTED)
            .map(|(shape_idx, _)| shape_idx)
            .collect(),
        hints,
    }
});

/// Every line of a text with every hint it holds, in order.
///
/// Limits: linear; at most one entry for each line and shape.
pub(super) fn suspects(text: &str) -> Vec<Suspect> {
    let hints = &*HINTS;
    let bytes = text.as_bytes();
    let mut suspects = Suspects::of(text);
    let first = hints.hints.iter().filter(|(hint, _)| hint.begins(bytes));
    first.for_each(|(_, shape_idx)| suspects.add(0, *shape_idx));
    hints.words.each(bytes, |hit| {
        let (hint, shape_idx) = &hints.hints[hit.word_idx];
        if hint.fits(bytes, hit.start, hit.end) {
            suspects.add(hint.place(hit.start), *shape_idx);
        }
        0
    });
    let mut found = suspects.found;
    let mut suspects = Suspects::of(text);
    for at in dotted(text) {
        hints.dotted.iter().for_each(|idx| suspects.add(at, *idx));
    }
    found.append(&mut suspects.found);
    found.sort_unstable();
    found
}

/// Full stops that end 23 characters of a token, at least, and begin six more and another full stop.
fn dotted(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    pairs(bytes).filter(move |at| {
        let before = at.checked_sub(23).map(|start| &bytes[start..*at]);
        let is_whole = |part: &[u8]| part.iter().all(is_token);
        before.is_some_and(is_whole) && is_whole(&bytes[at + 1..at + 7])
    })
}

/// Bytes from one full stop to the other.
const BETWEEN_BYTES: usize = 7;

/// Full stops that have another one at the distance looked for.
fn pairs(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let (blocks, rest) = bytes.as_chunks();
    let points = move |block_idx: usize| match blocks.get(block_idx) {
        Some(block) => equal(block, b'.'),
        None if block_idx == blocks.len() => equal(&padded(rest, 0), b'.'),
        None => 0,
    };
    let mut next = points(0);
    let pairs = (0..=blocks.len()).map(move |block_idx| {
        let here = std::mem::replace(&mut next, points(block_idx + 1));
        let later = here >> BETWEEN_BYTES | next << (BLOCK_BYTES - BETWEEN_BYTES);
        (block_idx * BLOCK_BYTES, here & later)
    });
    let pairs = pairs.filter(|(_, pairs)| *pairs != 0);
    pairs.flat_map(|(start, pairs)| places(pairs).map(move |place| start + place))
}

/// Suspects of one text, found from its beginning to its end.
struct Suspects<'a> {
    text: &'a str,
    found: Vec<Suspect>,
    /// The line looked at last, and whether each shape was found in it.
    start: usize,
    end: usize,
    is_found: Vec<bool>,
}

impl<'a> Suspects<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text,
            found: Vec::new(),
            start: 0,
            end: text.find('\n').unwrap_or(text.len()),
            is_found: vec![false; SHAPES.len()],
        }
    }

    fn add(&mut self, at: usize, shape_idx: usize) {
        if at > self.end {
            let before = &self.text.as_bytes()[..at];
            let line_end = before.iter().rposition(|byte| *byte == b'\n');
            self.start = line_end.map_or(0, |end| end + 1);
            self.end = self.text[at..]
                .find('\n')
                .map_or(self.text.len(), |n| at + n);
            self.is_found.fill(false);
        }
        if !std::mem::replace(&mut self.is_found[shape_idx], true) {
            self.found.push(Suspect {
                line_start: self.start,
                shape_idx,
            });
        }
    }
}
