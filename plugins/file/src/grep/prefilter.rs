//! Finds lines worth a closer look when a pattern starts with one of a few literals, or with one in any case.
//!
//! The regex engine has SIMD code of its own for such sets, but not for WebAssembly: there it falls back to a byte-by-byte
//! automaton, some four times slower. Looking for each literal by itself is far faster as long as they are few.

use std::ops::Range;

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoError};
use grep_regex::{RegexCaptures, RegexMatcher};
use memchr::memmem::Finder;
use memchr::memrchr;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::Extractor;

/// Most literals looked for one by one. More passes would cost more than the automaton.
const LITERALS_MAX: usize = 8;
/// Shortest literal: a shorter one stands in too many lines to leave any out.
const LITERAL_BYTES_MIN: usize = 3;
/// First piece of text searched for all literals, before the next one. Pieces keep a literal that is nowhere from
/// being looked for through the whole text each time another one is found.
const PIECE_BYTES: usize = 1024;
/// Letters from common to rare in source text; what is not here is rarer still.
const COMMON: &[u8] = b" etrnsiaoldcupfm_h,.()g:byv;wk\"=x/>-1{}qj02z";
/// ASCII letters for which a character beyond ASCII stands when case is ignored: the long s and the Kelvin sign.
const TWINS: [u8; 2] = *b"sk";
/// Places looked at together: four registers of SIMD.
const BLOCK_BYTES: usize = 64;

/// A regular expression with literals to look for first.
#[derive(Debug)]
pub(super) struct Prefiltered {
    regex: RegexMatcher,
    /// Every match starts with one of them; empty when none are known.
    literals: Vec<Literal>,
    /// The same for text that is ASCII, where these are fewer and longer. Empty when they are not.
    ascii: Vec<Literal>,
}

#[derive(Debug)]
enum Literal {
    Exact(Box<Finder<'static>>),
    AnyCase(Folded),
}

/// A literal in lower case, of which ASCII letters are found in either.
#[derive(Debug)]
struct Folded {
    text: Vec<u8>,
    /// Its two rarest bytes. Looked for at their distance, they leave hardly any place for a closer look.
    pair: [FoldedByte; 2],
}

/// A byte of a literal.
#[derive(Debug, Clone, Copy)]
struct FoldedByte {
    at: usize,
    byte: u8,
    /// The bit in which its cases differ; none when it is no letter.
    case: u8,
}

impl Prefiltered {
    /// Takes a `regex` and the pattern it was made from.
    pub(super) fn new(regex: RegexMatcher, pattern: &str, case_sensitive: bool) -> Self {
        let (mut literals, mut ascii) = (literals(pattern, case_sensitive), None);
        if !case_sensitive && let Some(folded) = folded(pattern) {
            let has_twins = folded.iter().flatten().any(|byte| TWINS.contains(byte));
            let known = if has_twins { &mut ascii } else { &mut literals };
            *known = Some(any_case(folded));
        }
        Self {
            regex,
            literals: literals.unwrap_or_default(),
            ascii: ascii.unwrap_or_default(),
        }
    }

    fn has_literals(&self) -> bool {
        !(self.literals.is_empty() && self.ascii.is_empty())
    }

    /// Whether no line of `text` matches; false also when only the searcher can tell.
    pub(super) fn has_none(&self, text: &[u8]) -> bool {
        self.line_terminator().is_some() && matches!(self.find_candidate_line(text), Ok(None))
    }

    /// The first place where a literal stands, or where the expression itself would begin.
    fn candidate(&self, text: &[u8]) -> Option<usize> {
        let literals = self.literals.iter().chain(&self.ascii);
        let longest = literals.map(Literal::len).max()?;
        let (mut start, mut size) = (0, PIECE_BYTES);
        while start < text.len() {
            // A literal may begin in this piece and end in the next.
            let end = text.len().min(start + size + longest);
            let piece = &text[start..end];
            let literals = match !self.ascii.is_empty() && is_ascii(piece) {
                true => &self.ascii,
                false => &self.literals,
            };
            if literals.is_empty() {
                return self.match_from(text, start);
            }
            let first = literals
                .iter()
                .filter_map(|literal| literal.find(piece))
                .min();
            if let Some(at) = first {
                return Some(start + at);
            }
            start += size;
            size *= 2;
        }
        None
    }

    /// A place in the line of the first match from the line of `start` on.
    fn match_from(&self, text: &[u8], start: usize) -> Option<usize> {
        let line = memrchr(b'\n', &text[..start]).map_or(0, |end| end + 1);
        let found = self.regex.find_candidate_line(&text[line..]);
        let (LineMatchKind::Confirmed(at) | LineMatchKind::Candidate(at)) = found.ok()??;
        Some(line + at)
    }
}

impl Literal {
    fn len(&self) -> usize {
        match self {
            Self::Exact(finder) => finder.needle().len(),
            Self::AnyCase(folded) => folded.text.len(),
        }
    }

    fn find(&self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Exact(finder) => finder.find(text),
            Self::AnyCase(folded) => folded.find(text),
        }
    }
}

impl Folded {
    fn new(text: Vec<u8>) -> Self {
        let rank = |at: &usize| {
            let place = COMMON.iter().position(|common| *common == text[*at]);
            place.unwrap_or(COMMON.len())
        };
        let mut places: Vec<usize> = (0..text.len()).collect();
        places.sort_by_key(|at| std::cmp::Reverse(rank(at)));
        let byte = |place: usize| {
            let at = places[place.min(places.len() - 1)];
            FoldedByte {
                at,
                byte: text[at],
                case: u8::from(text[at].is_ascii_lowercase()) << 5,
            }
        };
        Self {
            pair: [byte(0), byte(1)],
            text,
        }
    }

    fn find(&self, text: &[u8]) -> Option<usize> {
        let n_places = (text.len() + 1).checked_sub(self.text.len())?;
        let [one, two] = self.pair.map(|byte| &text[byte.at..][..n_places]);
        let (ones, ones_rest) = one.as_chunks::<BLOCK_BYTES>();
        let (twos, _) = two.as_chunks::<BLOCK_BYTES>();
        for (idx, (one, two)) in ones.iter().zip(twos).enumerate() {
            if self.has_pair(one, two) {
                let start = idx * BLOCK_BYTES;
                let found = self.find_in(text, start..start + BLOCK_BYTES);
                if found.is_some() {
                    return found;
                }
            }
        }
        self.find_in(text, n_places - ones_rest.len()..n_places)
    }

    /// The first of `places` at which the literal stands.
    fn find_in(&self, text: &[u8], mut places: Range<usize>) -> Option<usize> {
        let [one, two] = self.pair;
        places.find(|at| {
            one.is(text[at + one.at])
                && two.is(text[at + two.at])
                && text[*at..][..self.text.len()].eq_ignore_ascii_case(&self.text)
        })
    }

    /// Whether the pair stands at any of these places. Without a branch, so that the compiler makes SIMD code of it.
    fn has_pair(&self, ones: &[u8; BLOCK_BYTES], twos: &[u8; BLOCK_BYTES]) -> bool {
        let [one, two] = self.pair;
        let places = ones.iter().zip(twos);
        places.fold(false, |found, (a, b)| found | (one.is(*a) & two.is(*b)))
    }
}

impl FoldedByte {
    /// Whether `byte` is the same but for case.
    fn is(self, byte: u8) -> bool {
        byte | self.case == self.byte
    }
}

/// The literals one of which every match starts with, when looking for them one by one pays.
///
/// A single literal in one case is left to the regex engine, which does it well.
fn literals(pattern: &str, case_sensitive: bool) -> Option<Vec<Literal>> {
    let exact = beginnings(pattern, case_sensitive)?;
    if exact.len() == 1 {
        return None;
    }
    let folded = worthwhile(exact.clone())?;
    Some(match folded.len() == exact.len() {
        true => exact
            .iter()
            .map(|literal| Literal::Exact(Box::new(Finder::new(literal).into_owned())))
            .collect(),
        false => any_case(folded),
    })
}

/// In lower case, the literals one of which every match in ASCII text starts with when case is ignored.
///
/// Taken from the pattern as it is written: with both cases of every letter only the first few would be known.
fn folded(pattern: &str) -> Option<Vec<Vec<u8>>> {
    let written = beginnings(pattern, true)?;
    match written.iter().all(|literal| literal.is_ascii()) {
        true => worthwhile(written),
        false => None,
    }
}

/// The literals one of which every match starts with, when they are few.
fn beginnings(pattern: &str, case_sensitive: bool) -> Option<Vec<Vec<u8>>> {
    let hir = ParserBuilder::new()
        .case_insensitive(!case_sensitive)
        .multi_line(true)
        .utf8(false)
        .build()
        .parse(pattern)
        .ok()?;
    let found = Extractor::new().extract(&hir);
    let literals = found.literals()?.iter();
    Some(
        literals
            .map(|literal| literal.as_bytes().to_vec())
            .collect(),
    )
}

/// `literals` in lower case, each once, when they are long enough and few enough.
fn worthwhile(mut literals: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    for literal in &mut literals {
        literal.make_ascii_lowercase();
    }
    literals.sort_unstable();
    literals.dedup();
    let shortest = literals.iter().map(Vec::len).min()?;
    (shortest >= LITERAL_BYTES_MIN && literals.len() <= LITERALS_MAX).then_some(literals)
}

fn any_case(folded: Vec<Vec<u8>>) -> Vec<Literal> {
    let folded = folded.into_iter().map(Folded::new);
    folded.map(Literal::AnyCase).collect()
}

/// Whether all of `text` is ASCII. Without a branch, as above.
fn is_ascii(text: &[u8]) -> bool {
    text.iter().fold(0, |all, byte| all | byte).is_ascii()
}

impl Matcher for Prefiltered {
    type Captures = RegexCaptures;
    type Error = NoError;

    fn find_at(&self, text: &[u8], at: usize) -> Result<Option<Match>, NoError> {
        self.regex.find_at(text, at)
    }

    fn new_captures(&self) -> Result<RegexCaptures, NoError> {
        self.regex.new_captures()
    }

    fn shortest_match_at(&self, text: &[u8], at: usize) -> Result<Option<usize>, NoError> {
        self.regex.shortest_match_at(text, at)
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.regex.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.regex.line_terminator()
    }

    fn find_candidate_line(&self, text: &[u8]) -> Result<Option<LineMatchKind>, NoError> {
        if !self.has_literals() {
            return self.regex.find_candidate_line(text);
        }
        Ok(self.candidate(text).map(LineMatchKind::Candidate))
    }
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher as _;
    use grep_regex::RegexMatcherBuilder;

    use super::{Folded, Prefiltered};

    fn check(pattern: &str, case_sensitive: bool, text: &str, expected: Option<usize>) {
        let regex = RegexMatcherBuilder::new().build(pattern).unwrap();
        let matcher = Prefiltered::new(regex, pattern, case_sensitive);
        assert!(matcher.has_literals(), "{pattern} has a prefilter");
        assert_eq!(
            matcher.candidate(text.as_bytes()),
            expected,
            "{pattern} in {} bytes",
            text.len()
        );
    }

    #[test]
    fn candidates_are_the_first_of_all_literals() {
        check("TODO|FIXME", true, "a FIXME b TODO", Some(2));
        check("TODO|FIXME", true, "todo", None);
        check("hashmap", false, "xHashMap", Some(1));
        check("(?i)hashmap", true, "xHashMap", Some(1));
        // The regex engine takes the long s for an s.
        check("hashmap", false, "ha\u{17f}hmap", Some(0));
        check("foo_bar", false, "FOO_BA foo_", None);
    }

    #[test]
    fn pieces_overlap() {
        for at in [1_000, 1_020, 1_022, 1_024, 3_070, 10_000] {
            let text = format!("{}needle", "-".repeat(at));
            check("needle|pins", true, &text, Some(at));
            check("needle", false, &text.to_uppercase(), Some(at));
        }
    }

    #[test]
    fn every_place_of_a_block_is_found_in_any_case() {
        for needle in ["needle", "a-b_c", "zzz", "@[`{"] {
            let folded = Folded::new(needle.as_bytes().to_vec());
            for at in 0..200 {
                let text = format!("{}{}", "e".repeat(at), needle.to_uppercase());
                assert_eq!(folded.find(text.as_bytes()), Some(at), "{text}");
                assert_eq!(
                    folded.find(&text.as_bytes()[..text.len() - 1]),
                    None,
                    "{text}"
                );
            }
        }
        // What differs from `@` and `[` in the bit that parts the cases of letters.
        assert_eq!(Folded::new(b"@[a".to_vec()).find(b"`{a"), None);
    }

    /// The number of the first line that the searcher would find.
    fn first_line(matcher: &Prefiltered, text: &str) -> Option<usize> {
        let mut from = 0;
        loop {
            let at = from + matcher.candidate(&text.as_bytes()[from..])?;
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
            if matcher
                .regex
                .is_match(&text.as_bytes()[start..end])
                .unwrap()
            {
                return Some(text[..start].matches('\n').count());
            }
            from = text.len().min(end + 1);
        }
    }

    #[test]
    fn no_line_is_passed_over_when_case_is_ignored() {
        const PARTS: [&str; 12] = [
            "s", "S", "\u{17f}", "k", "K", "\u{212a}", "a", "_", "\n", "ask_", "kiss", "\u{e9}",
        ];
        let mut dice = 7_u64;
        let mut roll = |n: usize| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(dice >> 33).unwrap() % n
        };
        for pattern in [
            "kiss",
            "ask_s",
            "a_a",
            "kissa|_ask",
            r"\Bask",
            "^ask",
            "skskskaa",
            "(?-i:Ka)ss",
            "[sa]ask",
            "k\u{e9}s",
        ] {
            let regex = RegexMatcherBuilder::new()
                .case_insensitive(true)
                .multi_line(true)
                .line_terminator(Some(b'\n'))
                .build(pattern)
                .unwrap();
            let matcher = Prefiltered::new(regex, pattern, false);
            for n_parts in 0..400 {
                // Long texts begin far from what is looked for, so that it stands in later pieces.
                let mut text = "a\n".repeat(roll(3) * 400);
                (0..n_parts % 40).for_each(|_| text.push_str(PARTS[roll(PARTS.len())]));
                let expected = text
                    .lines()
                    .position(|line| matcher.regex.is_match(line.as_bytes()).unwrap());
                let found = match matcher.has_literals() {
                    true => first_line(&matcher, &text),
                    false => expected,
                };
                assert_eq!(found, expected, "{pattern} in {text:?}");
            }
        }
    }

    #[test]
    fn other_patterns_are_left_alone() {
        for pattern in ["needle", "a|b", r"\w+", "x*", "[a-z]needle"] {
            let regex = RegexMatcherBuilder::new().build(pattern).unwrap();
            assert!(
                !Prefiltered::new(regex, pattern, true).has_literals(),
                "{pattern}"
            );
        }
    }
}
