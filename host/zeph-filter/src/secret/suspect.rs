//! Which lines of a text may hold which credentials.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use zeph_strategies::{BLOCK_BYTES, Case, Hit, Lines, SharedWords, Words, equal, padded, places};

use super::hint::{Hint, is_token};
use super::shape::{DOTTED, SHAPES};

/// A line that holds the hint of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Suspect {
    /// Its first byte.
    pub(super) line_start: usize,
    /// Which shape it may be.
    pub(super) shape_idx: usize,
}

/// The words of all hints.
struct Hints {
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
    Hints {
        dotted: written
            .filter(|(_, hint)| *hint == DOTTED)
            .map(|(shape_idx, _)| shape_idx)
            .collect(),
        hints,
    }
});

impl Hints {
    fn words(&self) -> impl Iterator<Item = (&str, Case, &[u8])> {
        let hints = self.hints.iter();
        hints.map(|(hint, _)| (hint.word.as_str(), hint.case, hint.next()))
    }
}

/// The tables of the search for them alone.
static WORDS: OnceLock<Words> = OnceLock::new();

/// Longest text, in bytes, that is searched without tables before they are made. That takes a tenth of the time it takes to make them.
const SHORT_BYTES: usize = 512;

/// How many short texts are searched so. A process that makes one call has no more; in others the tables pay for themselves.
const SHORT_TEXTS_MAX: usize = 8;

/// How many were searched so.
static N_SHORT_TEXTS: AtomicUsize = AtomicUsize::new(0);

/// The search for them while lines are looked at.
static SHARED: LazyLock<SharedWords> = LazyLock::new(|| SharedWords::of(HINTS.words()));

/// Every line of a text with every hint it holds, in order.
///
/// Limits: linear; at most one entry for each line and shape.
pub(super) fn suspects(text: &str) -> Vec<Suspect> {
    let is_short = text.len() <= SHORT_BYTES && WORDS.get().is_none();
    if is_short && N_SHORT_TEXTS.fetch_add(1, Ordering::Relaxed) < SHORT_TEXTS_MAX {
        return suspects_without_tables(text);
    }
    suspects_with_tables(text)
}

/// [`suspects`] in one pass over the text. The first call makes the tables.
fn suspects_with_tables(text: &str) -> Vec<Suspect> {
    let words = WORDS.get_or_init(|| Words::with_next(HINTS.words()));
    let mut suspects = Suspects::begin(text);
    words.each(text.as_bytes(), |hit| {
        suspects.take(hit);
        0
    });
    suspects.close()
}

/// [`suspects`] in one pass over the text for each word.
fn suspects_without_tables(text: &str) -> Vec<Suspect> {
    let bytes = text.as_bytes();
    let mut hits: Vec<Hit> = Vec::new();
    for (word_idx, (word, case, _)) in HINTS.words().enumerate() {
        let word = word.as_bytes();
        let Some(first) = word.first() else {
            continue;
        };
        let spellings = match case {
            Case::Any => (first.to_ascii_lowercase(), first.to_ascii_uppercase()),
            Case::Exact => (*first, *first),
        };
        let starts = memchr::memchr2_iter(spellings.0, spellings.1, bytes);
        hits.extend(starts.filter_map(|start| {
            let end = start + word.len();
            let there = bytes.get(start..end)?;
            let is_it = match case {
                Case::Any => there.eq_ignore_ascii_case(word),
                Case::Exact => there == word,
            };
            is_it.then_some(Hit {
                word_idx,
                start,
                end,
            })
        }));
    }
    hits.sort_unstable_by_key(|hit| (hit.start, hit.word_idx));
    let mut suspects = Suspects::begin(text);
    hits.into_iter().for_each(|hit| suspects.take(hit));
    suspects.close()
}

/// Most suspects that are remembered of a text until they are asked for: nearly all texts have few.
const SUSPECTS_MAX: usize = 32 * 1024;

/// As above, found while the lines of the text are searched for errors, which need not be done again. `None` when there are so many that the
/// text is better searched piece by piece.
pub(crate) fn suspects_of(lines: &Lines<'_>) -> Option<Vec<Suspect>> {
    let mut suspects = Suspects::begin(lines.text());
    lines.look(&SHARED, |hit| {
        if suspects.found.len() <= SUSPECTS_MAX {
            suspects.take(hit);
        }
    });
    let is_few = suspects.found.len() <= SUSPECTS_MAX;
    let found = is_few.then(|| suspects.close());
    // With those of no word there may be more.
    found.filter(|found| found.len() <= SUSPECTS_MAX)
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

    /// With what the first line begins with.
    fn begin(text: &'a str) -> Self {
        let mut suspects = Self::of(text);
        let first = HINTS.hints.iter();
        let first = first.filter(|(hint, _)| hint.begins(text.as_bytes()));
        first.for_each(|(_, shape_idx)| suspects.add(0, *shape_idx));
        suspects
    }

    /// Takes note of the next word of a hint.
    fn take(&mut self, hit: Hit) {
        let (hint, shape_idx) = &HINTS.hints[hit.word_idx];
        if hint.fits(self.text.as_bytes(), hit.start, hit.end) {
            self.add(hint.place(hit.start), *shape_idx);
        }
    }

    /// All of them, with those of no word.
    fn close(self) -> Vec<Suspect> {
        let mut found = self.found;
        let mut suspects = Self::of(self.text);
        for at in dotted(self.text) {
            HINTS.dotted.iter().for_each(|idx| suspects.add(at, *idx));
        }
        found.append(&mut suspects.found);
        found.sort_unstable();
        found
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_are_suspected_of_the_same_without_tables(
            parts in proptest::collection::vec((any::<prop::sample::Index>(), "[ =:.\"'a-zA-Z0-9_\\-\n@/]{0,12}", any::<bool>()), 0..12),
        ) {
            let mut text = String::new();
            for (word, between, is_upper) in parts {
                let word = &HINTS.hints[word.index(HINTS.hints.len())].0.word;
                text.push_str(&between);
                text.push_str(&if is_upper { word.to_ascii_uppercase() } else { word.clone() });
            }
            prop_assert_eq!(suspects_without_tables(&text), suspects_with_tables(&text));
        }
    }
}
