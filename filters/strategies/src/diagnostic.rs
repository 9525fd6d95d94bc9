//! Recognising lines that say what went wrong, in whatever tool's words.
//!
//! It looks at single lines. It is meant to be generous with real errors and silent about names that merely contain the word:
//! `test parse_error ... ok` is none. What it finds is never dropped, so a false alarm costs a line and a miss costs a fact.

mod location;
mod signs;

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

pub use self::location::is_location;
use self::signs::SIGNS;
use crate::automaton::Automaton;
use crate::line_set::LineSet;
use crate::lines::n_line_ends;
use crate::words::{Case, Hit, Hits, Words};

/// How bad a line says things are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something to look at.
    Warning,
    /// Something went wrong.
    Error,
}

/// A line longer than this is looked at no further, in bytes: what is wrong stands at its beginning.
const LOOKED_AT_BYTES: usize = 2048;

/// The words of all signs.
struct Hints {
    words: Words,
    /// For each word the signs that it is a word of: bit by bit, the first sign is the lowest.
    signs: Vec<u32>,
    /// As above, of words that begin with a line end, by what follows it.
    at_start: Vec<(&'static str, u32)>,
}

static HINTS: LazyLock<Hints> = LazyLock::new(|| {
    let mut words: Vec<(&'static str, Case, u32)> = Vec::new();
    for (sign_idx, sign) in SIGNS.iter().enumerate() {
        for word in sign.words {
            let is_known = |(known, case, _): &&mut (_, _, _)| known == word && *case == sign.case;
            match words.iter_mut().find(is_known) {
                Some((_, _, signs)) => *signs |= 1 << sign_idx,
                None => words.push((word, sign.case, 1 << sign_idx)),
            }
        }
    }
    let after_line_end = words
        .iter()
        .filter_map(|(word, _, signs)| Some((word.strip_prefix('\n')?, *signs)));
    Hints {
        words: Words::new(words.iter().map(|(word, case, _)| (*word, *case))),
        at_start: after_line_end.collect(),
        signs: words.iter().map(|(_, _, signs)| *signs).collect(),
    }
});

impl Hints {
    /// The signs of words that would be found at the beginning of a text if a line ended before it.
    fn at_start_of(&self, text: &str) -> u32 {
        let found = self
            .at_start
            .iter()
            .filter(|(start, _)| text.starts_with(start));
        found.fold(0, |all, (_, signs)| all | signs)
    }
}

/// The expressions of the signs, each compiled when it is first needed.
static EXPRESSIONS: [OnceLock<Automaton>; SIGNS.len()] = [const { OnceLock::new() }; SIGNS.len()];

fn expression(sign_idx: usize) -> &'static Automaton {
    EXPRESSIONS[sign_idx].get_or_init(|| Automaton::new(SIGNS[sign_idx].pattern))
}

/// How bad `line` says things are; `None` for an ordinary line.
///
/// Limits: looks at the first 2048 bytes; an ordinary line costs a search for words.
pub fn severity(line: &str) -> Option<Severity> {
    let hints = &*HINTS;
    let line = head(line);
    let mut signs = hints.at_start_of(line);
    for hit in hints.words.hits(line.as_bytes()) {
        signs |= hints.signs[hit.word_idx];
    }
    worst(line, signs)
}

/// What the worst of some signs says of a line that matches it.
fn worst(line: &str, signs: u32) -> Option<Severity> {
    let mut left = signs;
    while left != 0 {
        let sign_idx = left.trailing_zeros() as usize;
        if expression(sign_idx).is_match(line) {
            return Some(SIGNS[sign_idx].severity);
        }
        left &= left - 1;
    }
    None
}

/// The byte ranges of all lines of `text` that are errors, without their line ends.
///
/// Limits: linear; lines without a telling word are passed over quickly.
pub fn error_lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let told = Told::of(text).filter(|(_, severity)| *severity == Severity::Error);
    told.map(|(range, _)| range)
}

/// The lines of a text that say something of errors or warnings, with their byte ranges, in order.
struct Told<'a> {
    text: &'a str,
    hits: Hits<'a>,
    /// A hit beyond the line that was looked at last.
    next: Option<Hit>,
    /// The signs of words that are not found as such, where the text begins.
    at_start: u32,
}

impl<'a> Told<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text,
            hits: HINTS.words.hits(text.as_bytes()),
            next: None,
            at_start: HINTS.at_start_of(text),
        }
    }

    /// Where the line of a hit is looked at: some words begin with the end of the line before.
    fn place(&self, hit: &Hit) -> usize {
        hit.start + usize::from(self.text.as_bytes()[hit.start] == b'\n')
    }

    /// The signs of all words of a line that ends at `end`, of which one is `signs`.
    fn gather(&mut self, end: usize, mut signs: u32) -> u32 {
        loop {
            self.next = self.hits.next();
            match &self.next {
                Some(hit) if self.place(hit) < end => signs |= HINTS.signs[hit.word_idx],
                _ => return signs,
            }
        }
    }
}

impl Iterator for Told<'_> {
    type Item = (Range<usize>, Severity);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (at, signs) = match std::mem::take(&mut self.at_start) {
                0 => {
                    let hit = self.next.take().or_else(|| self.hits.next())?;
                    (self.place(&hit), HINTS.signs[hit.word_idx])
                }
                signs => (0, signs),
            };
            let start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
            let end = self.text[at..]
                .find('\n')
                .map_or(self.text.len(), |n| at + n);
            let signs = self.gather(end, signs);
            if let Some(severity) = worst(head(&self.text[start..end]), signs) {
                return Some((start..end, severity));
            }
        }
    }
}

/// How bad each line of a text says things are.
#[derive(Debug, Clone, Default)]
pub struct Severities {
    errors: LineSet,
    warnings: LineSet,
}

impl Severities {
    pub(crate) fn of_text(text: &str) -> Self {
        let mut severities = Self::default();
        let (mut counted, mut line_idx) = (0, 0);
        for (range, severity) in Told::of(text) {
            line_idx += n_line_ends(&text.as_bytes()[counted..range.start]);
            counted = range.start;
            match severity {
                Severity::Error => severities.errors.insert(line_idx),
                Severity::Warning => severities.warnings.insert(line_idx),
            }
        }
        severities
    }

    /// Of one line.
    pub(crate) fn of(&self, line_idx: usize) -> Option<Severity> {
        if self.errors.contains(line_idx) {
            return Some(Severity::Error);
        }
        let is_warning = self.warnings.contains(line_idx);
        is_warning.then_some(Severity::Warning)
    }

    /// The lines that are errors.
    pub fn errors(&self) -> &LineSet {
        &self.errors
    }
}

fn head(line: &str) -> &str {
    if line.len() <= LOOKED_AT_BYTES {
        return line;
    }
    let mut end = LOOKED_AT_BYTES;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

#[cfg(test)]
mod tests;
