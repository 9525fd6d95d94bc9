//! Some lines of a text, a bit for each.

/// Numbers of lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineSet(Vec<u64>);

const BITS: usize = u64::BITS as usize;

impl LineSet {
    pub(crate) fn insert(&mut self, line_idx: usize) {
        let word_idx = line_idx / BITS;
        if word_idx >= self.0.len() {
            self.0.resize(word_idx + 1, 0);
        }
        self.0[word_idx] |= 1 << (line_idx % BITS);
    }

    pub(crate) fn contains(&self, line_idx: usize) -> bool {
        let word = self.0.get(line_idx / BITS);
        word.is_some_and(|word| word >> (line_idx % BITS) & 1 == 1)
    }
}
