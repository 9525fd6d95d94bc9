//! Some lines of a text, a bit for each.

use std::ops::Range;

/// Numbers of lines.
#[derive(Debug, Clone, Default)]
pub struct LineSet(Vec<u64>);

const BITS: usize = u64::BITS as usize;

impl LineSet {
    /// Adds a line.
    pub fn insert(&mut self, line_idx: usize) {
        let word_idx = line_idx / BITS;
        if word_idx >= self.0.len() {
            self.0.resize(word_idx + 1, 0);
        }
        self.0[word_idx] |= 1 << (line_idx % BITS);
    }

    /// Whether a line is one of them.
    pub fn contains(&self, line_idx: usize) -> bool {
        let word = self.0.get(line_idx / BITS);
        word.is_some_and(|word| word >> (line_idx % BITS) & 1 == 1)
    }

    /// Those that lie in a range, ascending.
    pub fn within(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        // Not skipped over one by one: of a long text many short ranges are asked for.
        let first_word = range.start / BITS;
        let words = self.0.get(first_word..).unwrap_or_default().iter();
        let words = words.zip((first_word * BITS..).step_by(BITS));
        let words = words.take_while(move |(_, first)| *first < range.end);
        let numbers = words.flat_map(|(word, first)| bits(*word).map(move |bit| first + bit));
        numbers.filter(move |line_idx| range.contains(line_idx))
    }
}

/// The places of the bits that are set, ascending.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    let mut left = word;
    std::iter::from_fn(move || {
        let bit = left.trailing_zeros();
        (left != 0).then(|| {
            left &= left - 1;
            bit as usize
        })
    })
}
