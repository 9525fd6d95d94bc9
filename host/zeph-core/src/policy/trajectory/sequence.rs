//! Sequences of words that calls must not have in order, compiled for one look at a window of calls.
//!
//! The next word of a sequence is looked for in the same simple command; the name of a program also in a later command, and the name of a
//! tool in a later call. After the name of a tool any word of that call may follow. So `bash rm -rf /` is not found in
//! `rm -rf build; ls /`, and `read .env curl` is found in two calls.

use std::collections::HashMap;
use std::sync::Arc;

use super::origin::SequenceOrigin;
use super::words::{CallWords, WordKind, of_sequence};
use crate::policy::Mode;

/// Most words of a sequence.
pub const SEQUENCE_WORDS_MAX: usize = 63;

/// A word that no sequence has.
const UNKNOWN: u32 = u32::MAX;

/// A sequence that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSequence {
    /// It has no word.
    #[error("a sequence needs at least one word: without one it would block every call")]
    Empty,
    /// It has too many words.
    #[error("{0} words exceed the limit of {SEQUENCE_WORDS_MAX} words in a sequence")]
    TooLong(usize),
}

/// Words that calls must not have in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    pub(super) words: Vec<String>,
    pub(super) mode: Mode,
    pub(super) origin: SequenceOrigin,
}

impl Sequence {
    /// A sequence of `words`; one with spaces counts as several.
    ///
    /// Errors: [`BadSequence`].
    pub fn new(words: &[String], mode: Mode, origin: SequenceOrigin) -> Result<Self, BadSequence> {
        let words = of_sequence(words);
        match words.len() {
            0 => Err(BadSequence::Empty),
            1..=SEQUENCE_WORDS_MAX => Ok(Self {
                words,
                mode,
                origin,
            }),
            n_words => Err(BadSequence::TooLong(n_words)),
        }
    }

    /// Its words, in the spelling in which they are compared.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Where it comes from.
    pub fn origin(&self) -> &SequenceOrigin {
        &self.origin
    }

    /// What becomes of a call that completes it.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether a person who types a call is held to it, too.
    pub(super) fn binds_operator(&self) -> bool {
        matches!(self.origin, SequenceOrigin::Configured(_))
    }
}

/// The words of a call as numbers of the words that a set knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappedCall {
    steps: Vec<Step>,
    /// The plain words, sorted, for similarity; with those that no sequence has.
    pub(super) plain: Vec<u32>,
    /// The name of the tool.
    pub(super) tool: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    kind: WordKind,
    word: u32,
    is_alias: bool,
}

/// Sequences that are looked for together.
#[derive(Debug, Default)]
pub struct SequenceSet {
    pub(super) sequences: Vec<Sequence>,
    /// The words of each, as numbers.
    compiled: Vec<Vec<u32>>,
    /// The words of each, sorted, for similarity.
    pub(super) sorted: Vec<Vec<u32>>,
    vocabulary: HashMap<String, u32>,
    /// The sequences that end with a word.
    by_last: Vec<Vec<usize>>,
}

/// A sequence that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct SequenceMatch<'a> {
    pub(super) sequence: &'a Sequence,
    /// Whether it is found only if something that is not known yet turns out to be a word of it.
    pub(super) is_doubtful: bool,
}

impl SequenceSet {
    /// Compiles `sequences`.
    pub fn new(sequences: Vec<Sequence>) -> Self {
        let mut set = Self::default();
        for sequence in &sequences {
            let words: Vec<u32> = sequence.words.iter().map(|word| set.number(word)).collect();
            let mut sorted = words.clone();
            sorted.sort_unstable();
            sorted.dedup();
            set.compiled.push(words);
            set.sorted.push(sorted);
        }
        set.by_last = vec![Vec::new(); set.vocabulary.len()];
        for (idx, words) in set.compiled.iter().enumerate() {
            if let Some(last) = words.last() {
                set.by_last[*last as usize].push(idx);
            }
        }
        set.sequences = sequences;
        set
    }

    /// Its sequences.
    pub fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// Whether a sequence has this word, in lower case.
    pub fn knows(&self, word: &str) -> bool {
        self.vocabulary.contains_key(word)
    }

    fn number(&mut self, word: &str) -> u32 {
        let next = u32::try_from(self.vocabulary.len()).unwrap_or(UNKNOWN);
        *self.vocabulary.entry(word.to_owned()).or_insert(next)
    }

    /// The words of a call as this set knows them.
    pub fn map(&self, words: &CallWords) -> MappedCall {
        let known = |word: &str| self.vocabulary.get(word).copied().unwrap_or(UNKNOWN);
        let steps = words.words().iter().map(|word| Step {
            kind: word.kind,
            word: known(&word.text),
            is_alias: word.is_alias,
        });
        let says = |step: &Step| step.word != UNKNOWN || step.kind != WordKind::Word;
        let mut plain: Vec<u32> = match self.is_empty() {
            true => Vec::new(),
            false => words.pattern().iter().map(|word| known(word)).collect(),
        };
        plain.sort_unstable();
        MappedCall {
            steps: steps.filter(says).collect(),
            plain,
            tool: known(words.tool()),
        }
    }

    /// The sequences that `call` completes after the calls of `window`, oldest first.
    pub(super) fn found<'a>(
        &'a self,
        window: &[Arc<MappedCall>],
        call: &MappedCall,
    ) -> Vec<SequenceMatch<'a>> {
        let has_hole =
            |call: &MappedCall| call.steps.iter().any(|step| step.kind == WordKind::Hole);
        let may_guess = has_hole(call) || window.iter().any(|call| has_hole(call));
        let places = Places::of(window, call);
        let mut found = Vec::new();
        for idx in self.candidates(call, has_hole(call)) {
            let words = &self.compiled[idx];
            let is_there = places.have(words);
            let sequence = &self.sequences[idx];
            if is_there && completes(words, window, call, false) {
                found.push(SequenceMatch {
                    sequence,
                    is_doubtful: false,
                });
            } else if may_guess && sequence.binds_operator() && completes(words, window, call, true)
            {
                found.push(SequenceMatch {
                    sequence,
                    is_doubtful: true,
                });
            }
        }
        found
    }

    /// The sequences that may end in `call`, each once.
    fn candidates(&self, call: &MappedCall, has_hole: bool) -> Vec<usize> {
        if has_hole {
            return (0..self.sequences.len()).collect();
        }
        let mut ends: Vec<u32> = call.steps.iter().map(|step| step.word).collect();
        ends.sort_unstable();
        ends.dedup();
        let of_word = |word: &u32| self.by_last.get(*word as usize);
        ends.iter().filter_map(of_word).flatten().copied().collect()
    }
}

/// Where each word stands in a window and the call after it, sorted: most sequences are ruled out by the order of their words alone.
struct Places {
    of_words: Vec<(u32, usize)>,
    /// The first place of the call.
    of_call: usize,
}

impl Places {
    fn of(window: &[Arc<MappedCall>], call: &MappedCall) -> Self {
        let of_call = window.iter().map(|call| call.steps.len()).sum();
        let calls = window.iter().map(Arc::as_ref).chain([call]);
        let steps = calls.flat_map(|call| &call.steps).enumerate();
        let mut of_words: Vec<(u32, usize)> =
            steps.map(|(place, step)| (step.word, place)).collect();
        of_words.sort_unstable();
        Self { of_words, of_call }
    }

    /// Whether the words stand there in this order, the last of them in the call.
    fn have(&self, words: &[u32]) -> bool {
        let mut from = 0;
        for (at, word) in words.iter().enumerate() {
            if at + 1 == words.len() {
                from = from.max(self.of_call);
            }
            let next = self
                .of_words
                .partition_point(|place| *place < (*word, from));
            match self.of_words.get(next) {
                Some((found, place)) if found == word => from = place + 1,
                _ => return false,
            }
        }
        true
    }
}

/// How far a sequence has got, a bit for each number of words.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    /// In earlier commands and calls.
    before: u64,
    /// By the name of the tool of this call.
    call: u64,
    /// In this command.
    here: u64,
    /// What the name of the tool or of the program may go on from.
    tool_from: u64,
    head_from: u64,
}

impl Reached {
    fn take(&mut self, step: Step, mask: u64) {
        let next = |from: u64| ((from | 1) & mask) << 1;
        match step.kind {
            WordKind::Tool => {
                if !step.is_alias {
                    self.tool_from = self.before;
                }
                self.call |= next(self.tool_from);
            }
            WordKind::Head => {
                if !step.is_alias {
                    self.before |= self.here;
                    self.here = 0;
                    self.head_from = self.before | self.call;
                }
                self.here |= next(self.head_from);
            }
            WordKind::Word => self.here |= next(self.here | self.call),
            // It is taken for a word of its command, and never for the command itself.
            WordKind::Hole => self.here |= (self.here & mask) << 1,
        }
    }

    fn end_call(&mut self) {
        self.before |= self.here | self.call;
        (self.here, self.call) = (0, 0);
    }
}

/// Whether `call` has the last word of a sequence whose other words are before it. With `guesses`, what is not known is any word.
fn completes(words: &[u32], window: &[Arc<MappedCall>], call: &MappedCall, guesses: bool) -> bool {
    let mask = |step: &Step| {
        if guesses && step.kind == WordKind::Hole {
            return u64::MAX >> 1;
        }
        let bits = words.iter().enumerate();
        bits.filter(|(_, word)| **word == step.word)
            .fold(0_u64, |mask, (at, _)| mask | 1 << at)
    };
    let whole = 1_u64 << words.len();
    let mut reached = Reached::default();
    for step in window.iter().map(|call| &call.steps) {
        step.iter().for_each(|step| reached.take(*step, mask(step)));
        reached.end_call();
    }
    // One that an earlier call completed is not completed by this one.
    reached.before &= !whole;
    call.steps
        .iter()
        .for_each(|step| reached.take(*step, mask(step)));
    (reached.here | reached.call | reached.before) & whole != 0
}
