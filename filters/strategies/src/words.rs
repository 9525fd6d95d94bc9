//! Finding any of many words in a text.
//!
//! Nearly every line of every output is searched in vain for some hundred words. So a text is not read byte by byte: three
//! bytes at every second or third place, as the shortest word allows, are looked up in a table, and only where they are part
//! of a word is the word compared. What a word means is the caller's business.
//!
//! There are two tables. The first one only says whether some word holds three bytes nearly as they stand in the text; it
//! takes three instructions to ask and says no at nearly every place. The second one has the words. A process that filters one
//! output makes both for it, so a word costs an entry for each place of it that is looked up, and no memory of its own.

use crate::block::places;

/// Bytes looked up at once.
const GRAM_BYTES: usize = 3;

/// Entries of the first table, as a power of two: one for two bytes and the lowest bits of the third. A smaller table of hashes takes
/// longer, though it fits the fastest cache: hundreds of words, each in upper and lower case, fill an eighth of it, and each place that
/// shares an entry with a gram of one is a branch that is not foreseen. Of this one a text of a language touches little.
const MAY_BITS: u32 = 19;

/// Entries of the second table, as a power of two.
const TABLE_BITS: u32 = 14;

/// Entries of the table of pairs, as a power of two: few words have three bytes.
const PAIR_BITS: u32 = 8;

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
    /// For each [`prefix`] of a gram, whether it is one of a word.
    may: Box<[u8; 1 << MAY_BITS]>,
    /// The first entry of each hash of a gram in lower case, counted from 1; 0 where there is none.
    table: Box<[u16; 1 << TABLE_BITS]>,
    /// The same of the last two bytes of words of three, whatever follows them.
    pairs: [u16; 1 << PAIR_BITS],
    /// Whether there are any: many searches have none.
    has_pairs: bool,
    entries: Vec<Entry>,
}

/// A gram of a word.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// What the word has of the bytes around the gram, letters without a case in lower case.
    around: u64,
    /// The bytes of `around` that are the word's.
    mask: u64,
    /// What makes letters without a case lower-case ones.
    fold: u64,
    word_idx: u32,
    /// Where in the word the gram stands.
    offset: u32,
    n_bytes: u32,
    /// Whether all of the word is in `around`.
    is_whole: bool,
    /// The next entry of the same hash, counted from 1; 0 after the last.
    next: u16,
}

impl Entry {
    /// `None` for words of gigabytes.
    fn of(word_idx: usize, word: &[u8], case: Case, offset: usize) -> Option<Self> {
        let mut around = [0; AROUND_BYTES];
        let mut mask = [0; AROUND_BYTES];
        let mut fold = [0; AROUND_BYTES];
        let mut n_inside = 0;
        for (idx, byte) in word.iter().enumerate() {
            let place = (BEFORE_BYTES + idx).checked_sub(offset);
            let Some(place) = place.filter(|place| *place < AROUND_BYTES) else {
                continue;
            };
            mask[place] = 0xff;
            if case == Case::Any && byte.is_ascii_alphabetic() {
                fold[place] = 0x20;
            }
            around[place] = byte | fold[place];
            n_inside += 1;
        }
        Some(Self {
            around: u64::from_le_bytes(around),
            mask: u64::from_le_bytes(mask),
            fold: u64::from_le_bytes(fold),
            word_idx: u32::try_from(word_idx).ok()?,
            offset: u32::try_from(offset).ok()?,
            n_bytes: u32::try_from(word.len()).ok()?,
            is_whole: n_inside == word.len(),
            next: 0,
        })
    }
}

/// Bytes of a text that are compared at once: those around a gram.
const AROUND_BYTES: usize = 8;

/// How many of them stand before the gram.
const BEFORE_BYTES: usize = 3;

/// The bytes around the gram at a place; zeros where the text has none, which no word holds.
#[inline(always)]
fn around(text: &[u8], place: usize) -> u64 {
    let start = place.checked_sub(BEFORE_BYTES);
    let there = start.and_then(|start| text.get(start..)?.first_chunk());
    there.map_or_else(
        || around_edge(text, place),
        |there| u64::from_le_bytes(*there),
    )
}

#[cold]
fn around_edge(text: &[u8], place: usize) -> u64 {
    let mut there = [0; AROUND_BYTES];
    for (idx, byte) in there.iter_mut().enumerate() {
        let at = (place + idx).checked_sub(BEFORE_BYTES);
        *byte = at.and_then(|at| text.get(at)).copied().unwrap_or(0);
    }
    u64::from_le_bytes(there)
}

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
    ///
    /// Limits: some 16,000 words; those beyond are never found.
    pub fn new<'w>(words: impl IntoIterator<Item = (&'w str, Case)>) -> Self {
        const NONE: &[u8] = &[];
        Self::with_next(words.into_iter().map(|(word, case)| (word, case, NONE)))
    }

    /// As [`new`](Self::new), where it is known of words of three bytes which bytes follow those that matter: they are searched for
    /// as fast as if they had four. What another byte follows may be found or not. None are known where there are none.
    pub fn with_next<'w>(words: impl IntoIterator<Item = (&'w str, Case, &'w [u8])>) -> Self {
        let given: Vec<(&str, Case, &[u8])> = words.into_iter().collect();
        let words: Vec<(Vec<u8>, Case)> = (given.iter())
            .map(|(word, case, _)| (word.as_bytes().to_vec(), *case))
            .collect();
        let length = |(word, _, next): &(&str, Case, &[u8])| {
            let is_longer = word.len() == GRAM_BYTES && !next.is_empty();
            word.len() + usize::from(is_longer)
        };
        let lengths = given.iter().map(length);
        let shortest = lengths.filter(|n| *n >= GRAM_BYTES).min();
        let mut made = Self {
            words: Vec::new(),
            step: shortest.map_or(1, |n| (n - GRAM_BYTES + 1).min(STEP_MAX)),
            // Not made on the stack and moved: most of it is never touched.
            may: (vec![0; 1 << MAY_BITS].try_into()).expect("bug: the length is that of the type"),
            table: Box::new([0; 1 << TABLE_BITS]),
            pairs: [0; 1 << PAIR_BITS],
            has_pairs: false,
            entries: Vec::new(),
        };
        for (word_idx, ((word, case), (_, _, next))) in words.iter().zip(&given).enumerate() {
            match (made.step > 1 && word.len() == GRAM_BYTES, word.as_slice()) {
                (true, [a, b, c]) => {
                    made.add_gram([*a, *b, *c], Entry::of(word_idx, word, *case, 0), *case);
                    made.has_pairs = true;
                    let entry = Entry::of(word_idx, word, *case, 1);
                    let first = &mut made.pairs[pair_hash([*b, *c, 0, 0])];
                    enter(first, &mut made.entries, entry);
                    for behind in *next {
                        made.allow([*b, *c, *behind], *case);
                    }
                }
                _ => made.add(word_idx, word, *case),
            }
        }
        made.words = words;
        made
    }

    /// Of a word, as many grams that follow each other as lie within a step, so that one of them is at a place that is looked at:
    /// those that are rarest in other words.
    fn add(&mut self, word_idx: usize, word: &[u8], case: Case) {
        let window = |first: &usize| *first..*first + self.step;
        let n_grams = (word.len() + 1).saturating_sub(GRAM_BYTES);
        let firsts = 0..(n_grams + 1).saturating_sub(self.step);
        let cost = |first: &usize| window(first).map(|at| commonness(&word[at..])).sum::<u32>();
        let Some(first) = firsts.min_by_key(cost) else {
            return;
        };
        for offset in window(&first) {
            let Some(gram) = word[offset..].first_chunk() else {
                continue;
            };
            self.add_gram(*gram, Entry::of(word_idx, word, case, offset), case);
        }
    }

    fn add_gram(&mut self, gram: [u8; GRAM_BYTES], entry: Option<Entry>, case: Case) {
        let [a, b, c] = gram;
        let first = &mut self.table[lower_hash([a, b, c, 0])];
        enter(first, &mut self.entries, entry);
        self.allow(gram, case);
    }

    /// Puts every spelling of a gram into the first table.
    fn allow(&mut self, gram: [u8; GRAM_BYTES], case: Case) {
        let spellings = |byte: u8| match case {
            Case::Any => [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()],
            Case::Exact => [byte, byte],
        };
        for a in spellings(gram[0]) {
            for b in spellings(gram[1]) {
                for c in spellings(gram[2]) {
                    self.may[prefix([a, b, c, 0])] = 1;
                }
            }
        }
    }

    /// Tells `found` of all words in `text`, a word inside another one too, but for those before the place it says.
    ///
    /// Shape:  in no strict order: of two words that overlap, either may come first.
    /// Limits: linear, no allocation.
    #[inline]
    pub fn each(&self, text: &[u8], found: impl FnMut(Hit) -> usize) {
        // The window of each step is as long as the places in it: 32 where long texts are searched, and 8 or 16 for single lines.
        match self.step {
            1 => self.each_in_steps::<1, 19>(text, found),
            2 => self.each_in_steps::<2, 66>(text, found),
            3 => self.each_in_steps::<3, 25>(text, found),
            _ => self.each_in_steps::<STEP_MAX, 32>(text, found),
        }
    }

    /// Whether a text holds any of the words.
    pub fn is_any_in(&self, text: &str) -> bool {
        let mut is_found = false;
        self.each(text.as_bytes(), |_| {
            is_found = true;
            text.len()
        });
        is_found
    }

    #[inline]
    fn each_in_steps<const STEP: usize, const WINDOW: usize>(
        &self,
        text: &[u8],
        mut found: impl FnMut(Hit) -> usize,
    ) {
        let (mut at, mut from) = (0, 0);
        while let Some(window) = text.get(at..).and_then(<[u8]>::first_chunk) {
            from = self.each_in::<STEP, WINDOW>(window, (text, at, from), &mut found);
            at += n_places(STEP, WINDOW) * STEP;
            if from > at {
                at += (from - at) / STEP * STEP;
            }
        }
        // The end of the text, with bytes behind it that no word has.
        let rest = text.get(at..).unwrap_or_default();
        if rest.len() >= GRAM_BYTES {
            let mut window = [0; WINDOW];
            window[..rest.len()].copy_from_slice(rest);
            self.each_in::<STEP, WINDOW>(&window, (text, at, from), &mut found);
        }
    }

    /// Tells `found` of the words around the places of a window of `text` that begins at `at`, and from where on words are wanted.
    #[inline(always)]
    fn each_in<const STEP: usize, const WINDOW: usize>(
        &self,
        window: &[u8; WINDOW],
        (text, at, mut from): (&[u8], usize, usize),
        found: &mut impl FnMut(Hit) -> usize,
    ) -> usize {
        // Nearly all of a text is passed over here, and most of the rest by the second table.
        for place in places(self.grams::<STEP, WINDOW>(window)) {
            let there = window[place * STEP..].first_chunk();
            let place = at + place * STEP;
            if let Some(there) = there
                && place >= from
            {
                from = self.each_at(*there, (text, place, from), found);
            }
        }
        from
    }

    /// A bit for each place of a window that may hold a gram of a word; without a branch for each.
    #[inline(always)]
    fn grams<const STEP: usize, const WINDOW: usize>(&self, window: &[u8; WINDOW]) -> u64 {
        // The last one first: each is then put before those behind it.
        let places = (0..n_places(STEP, WINDOW)).rev();
        places.fold(0, |found: u64, place| {
            let there = window[place * STEP..].first_chunk();
            let may = there.map_or(0, |there| u64::from(self.may[prefix(*there)]));
            found * 2 + may
        })
    }

    /// Tells `found` of the words around a place at which `there` stands, and from where on words are wanted.
    #[inline(always)]
    fn each_at(
        &self,
        there: [u8; LOADED_BYTES],
        (text, place, mut from): (&[u8], usize, usize),
        found: &mut impl FnMut(Hit) -> usize,
    ) -> usize {
        let firsts = [self.table[lower_hash(there)], self.first_of_pair(there)];
        if firsts == [0; 2] {
            return from;
        }
        let around = around(text, place);
        for mut number in firsts {
            while let Some(entry) = self.entry(number) {
                number = entry.next;
                if (around | entry.fold) & entry.mask == entry.around
                    && let Some(hit) = self.hit(text, place, entry)
                    && hit.start >= from
                {
                    from = from.max(found(hit));
                }
            }
        }
        from
    }

    /// The first entry of what some bytes begin with, of words of three bytes.
    #[inline(always)]
    fn first_of_pair(&self, there: [u8; LOADED_BYTES]) -> u16 {
        match self.has_pairs {
            true => self.pairs[pair_hash(there)],
            false => 0,
        }
    }

    /// An entry by its number, from 1.
    #[inline(always)]
    fn entry(&self, number: u16) -> Option<&Entry> {
        self.entries.get(usize::from(number).checked_sub(1)?)
    }

    /// The word of an entry, if what is not around the place is there too.
    #[inline(always)]
    fn hit(&self, text: &[u8], place: usize, entry: &Entry) -> Option<Hit> {
        let start = place.checked_sub(entry.offset as usize)?;
        let hit = Hit {
            word_idx: entry.word_idx as usize,
            start,
            end: start + entry.n_bytes as usize,
        };
        (entry.is_whole || self.is_at(text, &hit)).then_some(hit)
    }

    #[inline(never)]
    fn is_at(&self, text: &[u8], hit: &Hit) -> bool {
        let (word, case) = &self.words[hit.word_idx];
        let there = text.get(hit.start..hit.end);
        there.is_some_and(|there| match case {
            Case::Any => there.eq_ignore_ascii_case(word),
            Case::Exact => there == word,
        })
    }
}

/// Places that are looked at together: those of which all bytes are in a window.
const fn n_places(step: usize, window: usize) -> usize {
    (window - LOADED_BYTES) / step + 1
}

/// Bytes that are loaded for each.
const LOADED_BYTES: usize = 4;

/// Longest step.
const STEP_MAX: usize = 4;

/// Upper and lower case alike; so are some other signs.
fn lower(bytes: u64) -> u64 {
    bytes | u64::from_le_bytes([0x20; 8])
}

/// The golden ratio, for multiplicative hashing (Knuth, The Art of Computer Programming, 6.4).
const RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bits of a gram.
const GRAM_BITS: u32 = 24;

/// Bits of two bytes.
const PAIR_BYTES_BITS: u32 = 16;

/// Where the gram that some bytes begin with stands in the first table.
#[inline]
fn prefix(bytes: [u8; LOADED_BYTES]) -> usize {
    (u32::from_le_bytes(bytes) & ((1 << MAY_BITS) - 1)) as usize
}

/// Where a gram stands in the second table, upper and lower case alike.
#[inline]
fn lower_hash(bytes: [u8; LOADED_BYTES]) -> usize {
    let gram = lower(u64::from(u32::from_le_bytes(bytes)));
    let product = gram.wrapping_mul(RATIO << (u64::BITS - GRAM_BITS));
    (product >> (u64::BITS - TABLE_BITS)) as usize
}

/// Where the first two bytes stand in the table of pairs, upper and lower case alike.
#[inline]
fn pair_hash(bytes: [u8; LOADED_BYTES]) -> usize {
    let pair = lower(u64::from(u32::from_le_bytes(bytes)));
    let product = pair.wrapping_mul(RATIO << (u64::BITS - PAIR_BYTES_BITS));
    (product >> (u64::BITS - PAIR_BITS)) as usize
}

/// Adds an entry to those of one hash, of which `first` is the number of the first, unless the same place of its word is there: grams
/// that differ in case, or in nothing the hash tells apart, share a hash.
fn enter(first: &mut u16, entries: &mut Vec<Entry>, entry: Option<Entry>) {
    let (Some(entry), Ok(number)) = (entry, u16::try_from(entries.len() + 1)) else {
        return;
    };
    let (mut at, mut last) = (*first, None);
    while let Some(idx) = usize::from(at).checked_sub(1) {
        let known = &entries[idx];
        if (known.word_idx, known.offset) == (entry.word_idx, entry.offset) {
            return;
        }
        (last, at) = (Some(idx), known.next);
    }
    entries.push(entry);
    match last {
        Some(last) => entries[last].next = number,
        None => *first = number,
    }
}

/// How often the gram a text begins with is met in outputs, roughly: what is more common makes a search slower, not wrong.
fn commonness(text: &[u8]) -> u32 {
    // More than any three bytes differ in: those that are met most are taken where there are no others.
    const AMONG_COMMON: u32 = 80;
    let of_byte = |byte: &u8| u32::from(COMMONNESS[usize::from(*byte)]);
    let of_bytes: u32 = text.iter().take(GRAM_BYTES).map(of_byte).sum();
    let is_common = text.first_chunk().is_some_and(|[a, b, c]| {
        let (row, bit) = common_place(*a, *b, *c);
        IS_COMMON[row] >> bit & 1 == 1
    });
    of_bytes + if is_common { AMONG_COMMON } else { 0 }
}

/// Grams that are met far more often than their bytes are.
const COMMON: [&[u8; GRAM_BYTES]; 89] = [
    b"the", b"and", b"ing", b"ion", b"tio", b"ent", b"ati", b"for", b"her", b"ter", b"ate", b"con",
    b"res", b"ver", b"all", b"ted", b"ers", b"pro", b"ess", b"not", b"ive", b"ect", b"com", b"per",
    b"int", b"est", b"sta", b"str", b"ist", b"ain", b"one", b"err", b"ror", b"rro", b"ert", b"ind",
    b"ack", b"ick", b"ock", b"ile", b"fil", b"pac", b"age", b"ong", b"ord", b"tes", b"ser", b"ass",
    b"exe", b"out", b"ctl", b"tem", b"use", b"sed", b"lin", b"ine", b"run", b"cas", b"par", b"led",
    b"ite", b"ble", b"tur", b"ave", b"und", b"han", b"ndl", b"dle", b"num", b"umb", b"mbe", b"ber",
    b"tin", b"put", b"ime", b"mpt", b"pty", b"ign", b"sig", b"ng ", b"on ", b"er ", b"ed ", b"es ",
    b"in ", b"ly ", b"he ", b"re ", b"\":\"",
];

/// Whether a gram is one of them, by its bytes without their highest bits.
static IS_COMMON: [u32; 1 << 10] = {
    let mut table = [0; 1 << 10];
    let mut idx = 0;
    while idx < COMMON.len() {
        let [a, b, c] = *COMMON[idx];
        let (row, bit) = common_place(a, b, c);
        table[row] |= 1 << bit;
        idx += 1;
    }
    table
};

const fn common_place(a: u8, b: u8, c: u8) -> (usize, u32) {
    (((a as usize % 32) << 5) | (b as usize % 32), c as u32 % 32)
}

/// How often each byte is met: the words of a program that is started for one output are made with it.
static COMMONNESS: [u8; 256] = {
    const LETTERS: &[u8; 26] = b"zqxjkvbywgpfhumdclonrisate";
    let mut all = [6; 256];
    let mut byte = 0;
    while byte < 128 {
        all[byte] = 12;
        byte += 1;
    }
    let mut rank: u8 = 0;
    while rank < 26 {
        let letter = LETTERS[rank as usize];
        all[letter as usize] = rank;
        all[letter.to_ascii_uppercase() as usize] = rank;
        rank += 1;
    }
    all[b' ' as usize] = 26;
    all
};

#[cfg(test)]
mod tests;
