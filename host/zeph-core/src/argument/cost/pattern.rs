//! What matching a text with a pattern takes at most, estimated from the pattern's text.

use std::iter::Peekable;
use std::str::Chars;

/// The most states that are counted. Larger patterns do not compile.
const STATES_MAX: u64 = 1 << 20;

/// States of a class: characters of several bytes take some.
const CLASS_STATES: u64 = 4;

/// What a pattern takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatternCost {
    /// States of its automaton, about. At worst each byte of a text is looked at in each of them.
    pub(super) n_states: u64,
    /// Whether it has look-around, references to groups or the like, for which a matcher takes steps back.
    pub(super) steps_back: bool,
}

/// Of `pattern`. One that is no pattern costs something, too.
pub(super) fn cost(pattern: &str) -> PatternCost {
    let mut scan = Scan {
        rest: pattern.chars().peekable(),
        above: Vec::new(),
        n_states: 0,
        n_last: 0,
        steps_back: false,
    };
    scan.all();
    let open: u64 = scan.above.iter().sum();
    PatternCost {
        n_states: (open + scan.n_states).clamp(1, STATES_MAX),
        steps_back: scan.steps_back,
    }
}

struct Scan<'a> {
    rest: Peekable<Chars<'a>>,
    /// States before each open group.
    above: Vec<u64>,
    /// States of the present group so far.
    n_states: u64,
    /// Of these, those of what a quantifier would repeat.
    n_last: u64,
    steps_back: bool,
}

impl Scan<'_> {
    fn all(&mut self) {
        let mut is_repeated = false;
        while let Some(character) = self.rest.next() {
            // A second `+` forbids steps back into what the first one repeats.
            self.steps_back |= is_repeated && character == '+';
            is_repeated = matches!(character, '*' | '+' | '?' | '{');
            match character {
                '\\' => self.escape(),
                '[' => {
                    self.class();
                    self.piece(CLASS_STATES);
                }
                '.' => self.piece(CLASS_STATES),
                '(' => self.open(),
                ')' => {
                    let inner = self.n_states;
                    self.n_states = self.above.pop().unwrap_or_default();
                    self.piece(inner);
                }
                '{' => self.repeat(),
                '*' | '+' | '?' => {}
                _ => self.piece(1),
            }
        }
    }

    fn piece(&mut self, n_states: u64) {
        self.n_last = n_states;
        self.n_states = (self.n_states + n_states).min(STATES_MAX);
    }

    fn escape(&mut self) {
        let escaped = self.rest.next();
        self.steps_back |= matches!(escaped, Some('1'..='9' | 'k' | 'K' | 'G'));
        self.piece(CLASS_STATES);
    }

    /// Goes behind the class that has begun.
    fn class(&mut self) {
        while let Some(character) = self.rest.next() {
            match character {
                ']' => return,
                '\\' => {
                    self.rest.next();
                }
                _ => {}
            }
        }
    }

    fn open(&mut self) {
        self.above.push(self.n_states);
        self.n_states = 0;
        if self.rest.next_if_eq(&'?').is_none() {
            return;
        }
        // `(?:…)`, `(?<name>…)`, `(?P<name>…)`, and flags. Everything else looks around.
        let is_named = match self.rest.next() {
            Some(':') => return,
            Some('<') => !matches!(self.rest.peek(), Some('=' | '!')),
            Some('P') => self.rest.peek() == Some(&'<'),
            Some(flag) => flag == '-' || flag.is_ascii_lowercase(),
            None => false,
        };
        self.steps_back |= !is_named;
        let is_over = |character: &char| matches!(character, '>' | ':' | ')');
        if is_named {
            while self.rest.next_if(|character| !is_over(character)).is_some() {}
            // A closing bracket ends the group.
            self.rest
                .next_if(|character| matches!(character, '>' | ':'));
        }
    }

    /// `{n}`, `{n,}` or `{n,m}`: so many copies of the last piece.
    fn repeat(&mut self) {
        let mut n_copies = 1;
        let mut number = 0_u64;
        while let Some(character) = self
            .rest
            .next_if(|next| next.is_ascii_digit() || *next == ',')
        {
            number = match character.to_digit(10) {
                Some(digit) => (number * 10 + u64::from(digit)).min(STATES_MAX),
                None => 0,
            };
            n_copies = n_copies.max(number);
        }
        self.rest.next_if_eq(&'}');
        let more = self.n_last.saturating_mul(n_copies - 1);
        self.n_last = self.n_last.saturating_add(more).min(STATES_MAX);
        self.n_states = self.n_states.saturating_add(more).min(STATES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::{PatternCost, cost};

    #[test]
    fn copies_and_look_around_are_seen() {
        for (pattern, n_states, steps_back) in [
            ("", 1, false),
            ("^abc$", 5, false),
            ("a{3}", 3, false),
            ("a{2,7}b", 8, false),
            ("(a{100}){100}", 10_000, false),
            ("((((a{100}){100}){100}){100}){100}", 1 << 20, false),
            ("[a-z*+\\]]{10}", 40, false),
            (r"\d{4}-\d{2}", 25, false),
            ("(?:ab){2}(?<year>c)(?P<n>d)(?i:e)(?i)f", 8, false),
            ("(?=a)b", 2, true),
            ("(?!a)", 1, true),
            ("(?<!a)(?<=b)", 4, true),
            ("(?>a)", 1, true),
            (r"(a)\1", 5, true),
            ("a++b", 2, true),
            ("a{2}+", 2, true),
        ] {
            let expected = PatternCost {
                n_states,
                steps_back,
            };
            assert_eq!(cost(pattern), expected, "{pattern}");
        }
    }
}
