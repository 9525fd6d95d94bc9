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

    /// Adds lines that follow each other.
    pub fn insert_all(&mut self, lines: Range<usize>) {
        let mut at = lines.start;
        while at < lines.end {
            let (word_idx, first) = (at / BITS, at % BITS);
            let n = (BITS - first).min(lines.end - at);
            if word_idx >= self.0.len() {
                self.0.resize(word_idx + 1, 0);
            }
            self.0[word_idx] |= (u64::MAX >> (BITS - n)) << first;
            at += n;
        }
    }

    /// Whether a line is one of them.
    pub fn contains(&self, line_idx: usize) -> bool {
        let word = self.0.get(line_idx / BITS);
        word.is_some_and(|word| word >> (line_idx % BITS) & 1 == 1)
    }

    /// Those that lie in a range, ascending.
    pub fn within(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let words = self.words_within(range);
        words.flat_map(|(first, word)| bits(word).map(move |bit| first + bit))
    }

    /// How many lie in a range.
    pub fn n_within(&self, range: Range<usize>) -> usize {
        let words = self.words_within(range);
        words.map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// The bits of a range, in words with the number of their first one.
    fn words_within(&self, range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        // Not skipped over one by one: of a long text many short ranges are asked for.
        let first_word = range.start / BITS;
        let end_word = range.end.div_ceil(BITS).min(self.0.len());
        let words = self.0.get(first_word..end_word).unwrap_or_default().iter();
        words
            .zip((first_word * BITS..).step_by(BITS))
            .map(move |(word, first)| {
                let n_before = range.start.saturating_sub(first);
                let n_behind = (first + BITS).saturating_sub(range.end);
                let mask = (u64::MAX << n_before) & (u64::MAX >> n_behind);
                (first, word & mask)
            })
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

#[cfg(test)]
mod tests;
