//! Recognising lines that say what went wrong, in whatever tool's words.
//!
//! It looks at single lines. It is meant to be generous with real errors and silent about names that merely contain the word:
//! `test parse_error ... ok` is none. What it finds is never dropped, so a false alarm costs a line and a miss costs a fact.

mod location;
mod signs;

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

pub use self::location::is_location;
pub(crate) use self::location::{is_diagnostic, is_placed};
use self::signs::{Near, PROOFS, SIGNS};
use crate::Lines;
use crate::automaton::{Automaton, Search};
use crate::block::places;
use crate::line_set::LineSet;
use crate::words::{Case, Hit, Words};

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

/// What may be missing of so many because no character is cut, in bytes.
const LONGEST_CHAR_BYTES: usize = 4;

/// What words in a line say of it.
#[derive(Debug, Clone, Copy, Default)]
struct Clue {
    /// The signs that the line may match: bit by bit, the first sign is the lowest.
    signs: u32,
    /// The signs that it matches.
    proven: u32,
}

impl Clue {
    fn and(self, other: Self) -> Self {
        Self {
            signs: self.signs | other.signs,
            proven: self.proven | other.proven,
        }
    }
}

/// What a word says of a line that has it.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    clue: Clue,
    /// Of the signs, those for which something has to stand around the word.
    gaps: u32,
    colon: u32,
    numbers: u32,
}

impl Word {
    fn and(self, other: Self) -> Self {
        Self {
            clue: self.clue.and(other.clue),
            gaps: self.gaps | other.gaps,
            colon: self.colon | other.colon,
            numbers: self.numbers | other.numbers,
        }
    }

    /// What it says where it stands.
    fn at(self, text: &[u8], start: usize, end: usize) -> Clue {
        let mut clue = self.clue;
        if self.gaps != 0 && !Near::Gaps.fits(text, start, end) {
            clue.signs &= !self.gaps;
        }
        if self.colon != 0 && !Near::Colon.fits(text, start, end) {
            clue.signs &= !self.colon;
        }
        if self.numbers != 0 && !Near::Numbers.fits(text, start, end) {
            clue.signs &= !self.numbers;
        }
        clue
    }
}

/// The words of all signs.
struct Hints {
    words: Vec<(&'static str, Case)>,
    /// What each word says.
    said: Vec<Word>,
    /// As above, of words that begin with a line end, by what follows it.
    at_start: Vec<(&'static str, Clue)>,
}

static HINTS: LazyLock<Hints> = LazyLock::new(|| {
    let mut words: Vec<(&'static str, Case, Word)> = Vec::new();
    for (sign_idx, sign) in SIGNS.iter().enumerate() {
        for word in sign.words {
            let is_proof = PROOFS.contains(&(sign_idx, *word));
            let bit = |is_set: bool| u32::from(is_set) << sign_idx;
            let said = Word {
                clue: Clue {
                    signs: bit(true),
                    proven: bit(is_proof),
                },
                gaps: bit(sign.near == Near::Gaps),
                colon: bit(sign.near == Near::Colon),
                numbers: bit(sign.near == Near::Numbers),
            };
            let is_known = |(known, case, _): &&mut (_, _, _)| known == word && *case == sign.case;
            match words.iter_mut().find(is_known) {
                Some((_, _, known)) => *known = known.and(said),
                None => words.push((word, sign.case, said)),
            }
        }
    }
    let after_line_end = words
        .iter()
        .filter_map(|(word, _, said)| Some((word.strip_prefix('\n')?, said.clue)));
    Hints {
        words: words.iter().map(|(word, case, _)| (*word, *case)).collect(),
        at_start: after_line_end.collect(),
        said: words.iter().map(|(_, _, said)| *said).collect(),
    }
});

/// The search for them alone.
static WORDS: LazyLock<Words> = LazyLock::new(|| Words::new(HINTS.words.iter().copied()));

/// The words of all signs with those of another search: looking for all of them takes little longer than looking for some.
#[derive(Debug)]
pub struct SharedWords {
    words: Words,
    /// How many of them are those of the signs.
    n_signs: usize,
}

impl SharedWords {
    /// `others` are as for [`Words::with_next`].
    pub fn of<'w>(others: impl IntoIterator<Item = (&'w str, Case, &'w [u8])>) -> Self {
        const NONE: &[u8] = &[];
        let signs = HINTS.words.iter().map(|(word, case)| (*word, *case, NONE));
        let others: Vec<_> = others.into_iter().collect();
        Self {
            words: Words::with_next(signs.chain(others)),
            n_signs: HINTS.words.len(),
        }
    }
}

impl Hints {
    /// What words say that would be found at the beginning of a text if a line ended before it.
    fn at_start_of(&self, text: &str) -> Clue {
        let first = text.as_bytes().first();
        let found = self.at_start.iter().filter(|(start, _)| {
            // Nearly always another one: comparing more is a call.
            start.as_bytes().first() == first && text.starts_with(start)
        });
        found.fold(Clue::default(), |all, (_, clue)| all.and(*clue))
    }
}

/// The expressions of the signs, each compiled when it is first needed.
static EXPRESSIONS: [OnceLock<Automaton>; SIGNS.len()] = [const { OnceLock::new() }; SIGNS.len()];

fn expression(sign_idx: usize) -> &'static Automaton {
    EXPRESSIONS[sign_idx].get_or_init(|| Automaton::new(SIGNS[sign_idx].pattern))
}

/// Searches of many lines for the signs, each begun when it is first needed.
#[derive(Default)]
struct Searches([Option<Search<'static>>; SIGNS.len()]);

impl Searches {
    fn is_match(&mut self, sign_idx: usize, line: &str) -> bool {
        let search = self.0[sign_idx].get_or_insert_with(|| expression(sign_idx).search());
        search.is_match(line)
    }
}

/// How bad `line` says things are; `None` for an ordinary line.
///
/// Limits: looks at the first 2048 bytes; an ordinary line costs a search for words.
pub fn severity(line: &str) -> Option<Severity> {
    let hints = &*HINTS;
    let line = head(line);
    let mut clue = hints.at_start_of(line);
    let bytes = line.as_bytes();
    WORDS.each(bytes, |hit| {
        clue = clue.and(hints.said[hit.word_idx].at(bytes, hit.start, hit.end));
        0
    });
    worst(clue, |sign_idx| expression(sign_idx).is_match(line))
}

/// What the worst of some signs says of a line that matches it.
fn worst(clue: Clue, mut is_match: impl FnMut(usize) -> bool) -> Option<Severity> {
    // What is proven is an error: there is nothing worse.
    if clue.proven != 0 {
        return Some(Severity::Error);
    }
    let sign_idx = places(clue.signs.into()).find(|sign_idx| is_match(*sign_idx))?;
    Some(SIGNS[sign_idx].severity)
}

/// The byte ranges of all lines of `text` that are errors, without their line ends.
///
/// Limits: linear; lines without a telling word are passed over quickly.
pub fn error_lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let lines = Lines::of(text);
    let errors: Vec<usize> = lines.severities().errors().within(0..lines.len()).collect();
    errors
        .into_iter()
        .map(move |line_idx| lines.place(line_idx))
}

/// How bad each line of a text says things are.
#[derive(Debug, Clone, Default)]
pub struct Severities {
    errors: LineSet,
    warnings: LineSet,
}

impl Severities {
    pub(crate) fn of_lines(lines: &Lines<'_>) -> Self {
        let mut looking = Looking::at(lines);
        WORDS.each(lines.text().as_bytes(), |hit| looking.take(hit));
        looking.close();
        looking.severities
    }

    /// As above; tells `found` of the other words in the text.
    pub(crate) fn of_shared(
        lines: &Lines<'_>,
        shared: &SharedWords,
        mut found: impl FnMut(Hit),
    ) -> Self {
        let mut looking = Looking::at(lines);
        // From where on words of signs are wanted.
        let mut from = 0;
        shared.words.each(lines.text().as_bytes(), |hit| {
            match hit.word_idx.checked_sub(shared.n_signs) {
                Some(word_idx) => found(Hit { word_idx, ..hit }),
                None if hit.start >= from => from = from.max(looking.take(hit)),
                None => {}
            }
            0
        });
        looking.close();
        looking.severities
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

/// A text whose words are looked at from its beginning to its end.
struct Looking<'l, 'a> {
    lines: &'l Lines<'a>,
    hints: &'static Hints,
    severities: Severities,
    searches: Searches,
    /// The line of the last word.
    line_idx: usize,
    line: Range<usize>,
    /// What its words say so far.
    clue: Clue,
}

impl<'l, 'a> Looking<'l, 'a> {
    fn at(lines: &'l Lines<'a>) -> Self {
        let line = lines.place(0);
        let hints = &*HINTS;
        let clue = match line.start {
            0 => hints.at_start_of(lines.text()),
            // The text has another line before it, which is left out: words that begin with a line end are found.
            _ => Clue::default(),
        };
        Self {
            lines,
            hints,
            severities: Severities::default(),
            searches: Searches::default(),
            line_idx: 0,
            line,
            clue,
        }
    }

    /// Takes note of the next word; from where on words are wanted.
    // A call: what is around it is done at many more places than have a word.
    #[inline(never)]
    fn take(&mut self, hit: Hit) -> usize {
        let bytes = self.lines.text().as_bytes();
        // Some words begin with the end of the line before.
        let at = hit.start + usize::from(bytes[hit.start] == b'\n');
        if at > self.line.end {
            self.close();
            self.line_idx = self.lines.line_of(at, self.line_idx);
            self.line = self.lines.place(self.line_idx);
        }
        if at > self.line.end || at < self.line.start {
            // It stands in a line that is left out.
            return 0;
        }
        let said = &self.hints.said[hit.word_idx];
        if said.clue.proven | (said.clue.signs & !self.clue.signs) != 0 {
            // Where the line is cut, it ends for expressions.
            let is_whole = hit.end + LONGEST_CHAR_BYTES <= self.line.start + LOOKED_AT_BYTES;
            self.clue = self.clue.and(match is_whole {
                true => said.at(bytes, hit.start, hit.end),
                false => Clue {
                    proven: 0,
                    ..said.clue
                },
            });
        }
        // Nothing is worse than what is proven: the rest of the line is passed over.
        match self.clue.proven {
            0 => 0,
            _ => self.line.end,
        }
    }

    /// Looks closer at a line whose words say something.
    fn close(&mut self) {
        let clue = std::mem::take(&mut self.clue);
        if clue.proven != 0 {
            self.severities.errors.insert(self.line_idx);
            return;
        }
        if clue.signs == 0 {
            return;
        }
        let line = head(&self.lines.text()[self.line.clone()]);
        let severity = row(line).filter(|severity| {
            // What says of an error besides is one.
            *severity == Severity::Error || clue.signs & ERROR_SIGNS == 0
        });
        let is_match = |sign_idx| self.searches.is_match(sign_idx, line);
        match severity.or_else(|| worst(clue, is_match)) {
            Some(Severity::Error) => self.severities.errors.insert(self.line_idx),
            Some(Severity::Warning) => self.severities.warnings.insert(self.line_idx),
            None => {}
        }
    }
}

/// The signs of errors, bit by bit: they stand before those of warnings.
const ERROR_SIGNS: u32 = {
    let (mut signs, mut sign_idx) = (0, 0);
    while sign_idx < SIGNS.len() {
        if matches!(SIGNS[sign_idx].severity, Severity::Error) {
            signs |= 1 << sign_idx;
        }
        sign_idx += 1;
    }
    signs
};

/// What `  12:5  error  message  rule` says, in the words of most linters: an output of theirs has such a line for every finding, and the
/// expressions that match it would be tried for each.
fn row(line: &str) -> Option<Severity> {
    let text = after_number(line.as_bytes().trim_ascii_start())?;
    let text = after_number(text.strip_prefix(b":")?)?;
    let word = text.trim_ascii_start();
    let severity = match word.first().filter(|_| word.len() < text.len())? {
        b'e' => word
            .strip_prefix(b"error")
            .map(|rest| (rest, Severity::Error)),
        b'w' => word
            .strip_prefix(b"warning")
            .map(|rest| (rest, Severity::Warning)),
        _ => None,
    };
    let (rest, severity) = severity?;
    let is_whole = rest.first().is_some_and(u8::is_ascii_whitespace);
    is_whole.then_some(severity)
}

fn after_number(text: &[u8]) -> Option<&[u8]> {
    let n_digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (n_digits > 0).then(|| &text[n_digits..])
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
