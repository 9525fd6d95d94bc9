//! Finding any of many words in a text.
//!
//! Nearly every line of every output is searched in vain for some hundred words. So a text is not read byte by byte: three
//! bytes at every second or third place, as the shortest word allows, are looked up in a table, and only where they are part
//! of a word is the word compared. What a word means is the caller's business.

/// Bytes looked up at once.
const GRAM_BYTES: usize = 3;

/// Entries of the table, as a power of two: it fits the fastest cache, and few of some hundred grams share an entry.
const TABLE_BITS: u32 = 14;

/// Whether upper and lower case differ. Only ASCII letters have a case here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// `Error` is `error`.
    Any,
    /// It is not.
    Exact,
}

/// Words that a text is searched for. Made once.
#[derive(Debug)]
pub struct Words {
    words: Vec<(Vec<u8>, Case)>,
    /// Bytes from one place that is looked at to the next: no word is short enough to lie between them.
    step: usize,
    /// The bucket of each hash of a gram; the first bucket is empty.
    table: Box<[u16; 1 << TABLE_BITS]>,
    buckets: Vec<Vec<Entry>>,
}

/// A gram of a word.
#[derive(Debug, Clone, Copy)]
struct Entry {
    word_idx: usize,
    /// Where in the word the gram stands.
    offset: usize,
    /// What the word begins with, as [`lower`] tells it: most words of a bucket are ruled out by it.
    head: u64,
    /// The bytes of `head` that are the word's.
    mask: u64,
}

impl Entry {
    fn of(word_idx: usize, word: &[u8], offset: usize) -> Self {
        let mut head = [0; HEAD_BYTES];
        let mut mask = [0; HEAD_BYTES];
        for (idx, byte) in word.iter().take(HEAD_BYTES).enumerate() {
            head[idx] = *byte;
            mask[idx] = 0xff;
        }
        let mask = u64::from_le_bytes(mask);
        Self {
            word_idx,
            offset,
            head: lower(u64::from_le_bytes(head)) & mask,
            mask,
        }
    }

    /// Whether the word may begin at `start`.
    fn may_begin(&self, text: &[u8], start: usize) -> bool {
        let Some(there) = text.get(start..).and_then(<[u8]>::first_chunk) else {
            return true;
        };
        lower(u64::from_le_bytes(*there)) & self.mask == self.head
    }
}

/// Bytes of a word that are compared at once.
const HEAD_BYTES: usize = 8;

/// A word found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Which word, counted from 0.
    pub word_idx: usize,
    /// Its first byte.
    pub start: usize,
    /// The byte after it.
    pub end: usize,
}

impl Words {
    /// Words of at least three bytes each; shorter ones are never found. The shortest decides how fast a search is.
    pub fn new<'w>(words: impl IntoIterator<Item = (&'w str, Case)>) -> Self {
        let words: Vec<(Vec<u8>, Case)> = (words.into_iter())
            .map(|(word, case)| (word.as_bytes().to_vec(), case))
            .collect();
        let lengths = words.iter().map(|(word, _)| word.len());
        let shortest = lengths.filter(|n| *n >= GRAM_BYTES).min();
        let mut made = Self {
            words: Vec::new(),
            step: shortest.map_or(1, |n| n - GRAM_BYTES + 1),
            table: Box::new([0; 1 << TABLE_BITS]),
            buckets: vec![Vec::new()],
        };
        for (word_idx, (word, _)) in words.iter().enumerate() {
            made.add(word_idx, word);
        }
        made.words = words;
        made
    }

    /// Of a word, as many grams that follow each other as lie within a step, so that one of them is at a place that is looked at:
    /// those that are rarest in other words.
    fn add(&mut self, word_idx: usize, word: &[u8]) {
        let window = |first: &usize| *first..*first + self.step;
        let n_grams = (word.len() + 1).saturating_sub(GRAM_BYTES);
        let firsts = 0..(n_grams + 1).saturating_sub(self.step);
        let cost = |first: &usize| window(first).map(|at| commonness(&word[at..])).sum::<u32>();
        let Some(first) = firsts.min_by_key(cost) else {
            return;
        };
        for offset in window(&first) {
            let Some(gram) = gram(word, offset) else {
                continue;
            };
            let n_buckets = self.buckets.len();
            let bucket_idx = &mut self.table[hash(gram)];
            if *bucket_idx == 0 {
                let Ok(next) = u16::try_from(n_buckets) else {
                    continue;
                };
                *bucket_idx = next;
                self.buckets.push(Vec::new());
            }
            self.buckets[usize::from(*bucket_idx)].push(Entry::of(word_idx, word, offset));
        }
    }

    /// The places of all words in `text`, a word inside another one too.
    ///
    /// Shape:  in no strict order: of two words that overlap, either may come first.
    /// Limits: linear, no allocation.
    pub fn hits<'a>(&'a self, text: &'a [u8]) -> Hits<'a> {
        Hits {
            words: self,
            text,
            from: 0,
            at: 0,
            found_at: 0,
            bucket: &[],
        }
    }

    fn at(&self, text: &[u8], start: usize, word_idx: usize) -> Option<Hit> {
        let (word, case) = &self.words[word_idx];
        let end = start + word.len();
        let there = text.get(start..end)?;
        let is_same = match case {
            Case::Any => there.eq_ignore_ascii_case(word),
            Case::Exact => there == word,
        };
        is_same.then_some(Hit {
            word_idx,
            start,
            end,
        })
    }
}

/// A search on its way through a text.
#[derive(Debug)]
pub struct Hits<'a> {
    words: &'a Words,
    text: &'a [u8],
    /// Words that begin before it are not told.
    from: usize,
    /// The next place to look at.
    at: usize,
    /// The place that was looked at last, and what may stand there.
    found_at: usize,
    bucket: &'a [Entry],
}

impl Hits<'_> {
    /// Goes on at `from`, which lies ahead.
    pub fn skip_to(&mut self, from: usize) {
        self.from = from;
        self.at = from;
        self.bucket = &[];
    }

    /// The next place with a gram of a word.
    fn look(&mut self) -> Option<()> {
        match self.words.step {
            1 => self.skip::<1>(),
            2 => self.skip::<2>(),
            3 => self.skip::<3>(),
            4 => self.skip::<4>(),
            _ => {}
        }
        let words = self.words;
        let mut at = self.at;
        loop {
            let gram = gram(self.text, at)?;
            let bucket_idx = words.table[hash(gram)];
            if bucket_idx != 0 {
                self.found_at = at;
                self.at = at + words.step;
                self.bucket = &words.buckets[usize::from(bucket_idx)];
                return Some(());
            }
            at += words.step;
        }
    }

    /// Goes on while no place in the next eight bytes has a gram of a word. Nearly all of a text is passed over here.
    fn skip<const STEP: usize>(&mut self) {
        const WINDOW_BYTES: usize = 8;
        let table = &self.words.table;
        let n_places = (WINDOW_BYTES - GRAM_BYTES) / STEP + 1;
        let mut rest = self.text.get(self.at..).unwrap_or_default();
        let before = rest.len();
        while let Some(window) = rest.first_chunk::<WINDOW_BYTES>() {
            let window = lower(u64::from_le_bytes(*window));
            let found = (0..n_places).fold(0, |found, place| {
                found | table[hash(low(window >> (place * STEP * 8)))]
            });
            if found != 0 {
                break;
            }
            rest = &rest[n_places * STEP..];
        }
        self.at += before - rest.len();
    }
}

impl Iterator for Hits<'_> {
    type Item = Hit;

    fn next(&mut self) -> Option<Hit> {
        loop {
            while let Some((entry, others)) = self.bucket.split_first() {
                self.bucket = others;
                let start = self.found_at.checked_sub(entry.offset);
                let hit = start
                    .filter(|start| *start >= self.from && entry.may_begin(self.text, *start))
                    .and_then(|start| self.words.at(self.text, start, entry.word_idx));
                if hit.is_some() {
                    return hit;
                }
            }
            self.look()?;
        }
    }
}

/// The bytes of a gram in a number that begins with them.
const GRAM_MASK: u64 = 0x00ff_ffff;

/// Three bytes of a text as one number, upper and lower case alike.
fn gram(text: &[u8], at: usize) -> Option<u32> {
    let [a, b, c, ..] = text.get(at..)? else {
        return None;
    };
    Some(low(lower(u64::from_le_bytes([*a, *b, *c, 0, 0, 0, 0, 0]))))
}

/// The gram that some bytes begin with.
fn low(bytes: u64) -> u32 {
    u32::try_from(bytes & GRAM_MASK).unwrap_or_default()
}

/// Upper and lower case alike; so are some other signs.
fn lower(bytes: u64) -> u64 {
    bytes | u64::from_le_bytes([0x20; 8])
}

/// Multiplicative hashing with the golden ratio (Knuth, The Art of Computer Programming, 6.4).
fn hash(gram: u32) -> usize {
    (gram.wrapping_mul(0x9e37_79b1) >> (u32::BITS - TABLE_BITS)) as usize
}

/// How often the gram a text begins with is met in outputs, roughly: what is more common makes a search slower, not wrong.
fn commonness(text: &[u8]) -> u32 {
    const LETTERS: &[u8] = b"zqxjkvbywgpfhumdclonrisate";
    let of_byte = |byte: &u8| {
        let lower = byte.to_ascii_lowercase();
        match LETTERS.iter().zip(0_u32..).find(|(c, _)| **c == lower) {
            Some((_, n)) => n,
            None if *byte == b' ' => 26,
            None if byte.is_ascii() => 12,
            None => 6,
        }
    };
    text.iter().take(GRAM_BYTES).map(of_byte).sum()
}

#[cfg(test)]
mod tests;
