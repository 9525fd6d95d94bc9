//! What a simple command may become while its line runs, and whether a pattern can fit any of it.
//!
//! A rule that refuses must hold whatever an argument turns out to be. So a command is an automaton over bytes: a hole stands for every
//! text it may become, and an option before other words may be omitted, since it may be the program's own. Patterns are automata too (`regex-automata`, which the other expressions use as well), and the
//! question is whether the two have a text in common.

use std::collections::HashSet;

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::look::Look;
use regex_automata::util::syntax;

use crate::command::{Becomes, Hole, SimpleCommand};

/// Most pairs of states that are looked at. What takes more is taken to fit.
const PAIRS_MAX: usize = 100_000;

/// An automaton over the texts a command may have. It starts at its first place and ends at its last.
#[derive(Debug)]
pub(super) struct Possible {
    places: Vec<AutomatonState>,
}

#[derive(Debug, Default)]
struct AutomatonState {
    /// Places that are reached without any text.
    moves: Vec<usize>,
    steps: Vec<(Class, usize)>,
}

/// Which bytes a step takes.
#[derive(Debug, Clone, Copy)]
enum Class {
    Byte(u8),
    Any,
    NoSpace,
    NoDash,
}

/// How an expression is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// A glob that was made into an expression: `.` is any byte.
    Glob,
    /// As it is written.
    Plain,
    /// Without regard to case.
    AnyCase,
}

/// Compiles an expression for [`Possible::may_fit`]; `None` when it is too large.
pub(super) fn automaton(expression: &str, reading: Reading) -> Option<NFA> {
    let syntax = syntax::Config::new()
        .utf8(false)
        .dot_matches_new_line(reading == Reading::Glob)
        .case_insensitive(reading == Reading::AnyCase);
    NFA::compiler().syntax(syntax).build(expression).ok()
}

impl Possible {
    /// Makes the automaton of `command`, whose texts are in lower case if `is_lower`; `None` when it can have no other text than its own.
    pub(super) fn new(command: &SimpleCommand, is_lower: bool) -> Option<Self> {
        Self::with_holes(command, &command.holes, is_lower)
    }

    /// Makes the automaton for rules that ask, in lower case: only a hole that may become an option is expanded, because values of
    /// options and names of files are common.
    pub(super) fn options(command: &SimpleCommand) -> Option<Self> {
        let may_be_option = |hole: &&Hole| {
            let before = hole.argument.checked_sub(1);
            let before = before.and_then(|at| command.arguments.get(at));
            let is_value = before.is_some_and(|word| word.starts_with('-'));
            let is_free = matches!(hole.becomes, Becomes::Text | Becomes::Words);
            is_free && hole.start == 0 && (!is_value || hole.becomes == Becomes::Words)
        };
        let holes = command.holes.iter().filter(may_be_option);
        let option = |hole: &Hole| Hole {
            becomes: Becomes::Text,
            ..*hole
        };
        let holes: Vec<Hole> = holes.map(option).collect();
        let mut this = Self::with_holes(command, &holes, true)?;
        // What it becomes instead of an option does not matter.
        for place in &mut this.places {
            place
                .steps
                .retain(|(class, _)| !matches!(class, Class::NoDash));
        }
        Some(this)
    }

    fn with_holes(command: &SimpleCommand, holes: &[Hole], is_lower: bool) -> Option<Self> {
        let has_option = || command.arguments.iter().any(|word| word.starts_with('-'));
        if holes.is_empty() && !has_option() {
            return None;
        }
        let case = |text: &str| match is_lower {
            true => text.to_lowercase(),
            false => text.to_owned(),
        };
        let mut this = Self {
            places: vec![AutomatonState::default(), AutomatonState::default()],
        };
        for name in [case(&command.name), case(command.base_name())] {
            let start = this.push();
            this.places[0].moves.push(start);
            this.text(&name);
            let end = this.last();
            this.places[end].moves.push(1);
        }
        let joined = this.push();
        this.places[1].moves.push(joined);
        let n_words = n_words(command, holes);
        let mut before = Vec::new();
        for at in 0..n_words {
            before.push(this.last());
            let empty = String::new();
            let word = command.arguments.get(at).unwrap_or(&empty);
            let holes = holes.iter().filter(|hole| hole.argument == at);
            this.word(word, &holes.copied().collect::<Vec<_>>(), &case);
        }
        this.leave_out(command, &before);
        Some(this)
    }

    /// Lets options be missing that stand before other words, with the next word as their value or without.
    fn leave_out(&mut self, command: &SimpleCommand, before: &[usize]) {
        for (at, word) in command.arguments.iter().enumerate() {
            if word == "--" {
                return;
            }
            if !word.starts_with('-') || word.len() == 1 {
                continue;
            }
            let from = before[at];
            let without = before.get(at + 1);
            let with_value = before.get(at + 2).filter(|_| !word.contains('='));
            self.places[from]
                .moves
                .extend(without.into_iter().chain(with_value));
        }
    }

    fn last(&self) -> usize {
        self.places.len() - 1
    }

    fn push(&mut self) -> usize {
        self.places.push(AutomatonState::default());
        self.last()
    }

    fn step(&mut self, class: Class) {
        let from = self.last();
        let to = self.push();
        self.places[from].steps.push((class, to));
    }

    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            self.step(Class::Byte(byte));
        }
    }

    /// Any number of bytes of a class.
    fn any(&mut self, class: Class) {
        let from = self.last();
        let here = self.push();
        self.places[from].moves.push(here);
        self.places[here].steps.push((class, here));
    }

    /// A space and a word.
    fn word(&mut self, word: &str, holes: &[Hole], case: &impl Fn(&str) -> String) {
        let before = self.last();
        self.step(Class::Byte(b' '));
        let mut done = 0;
        for hole in holes {
            self.text(&case(word.get(done..hole.start).unwrap_or_default()));
            self.hole(hole.becomes, hole.start == 0);
            done = hole.end;
        }
        self.text(&case(word.get(done..).unwrap_or_default()));
        let end = self.push();
        self.places[end - 1].moves.push(end);
        let has = |becomes: Becomes| holes.iter().any(|hole| hole.becomes == becomes);
        if has(Becomes::Names) {
            self.places[end].moves.push(before);
        }
        // Without a word, its space is missing too.
        if has(Becomes::Words) {
            self.places[before].moves.push(end);
        }
    }

    fn hole(&mut self, becomes: Becomes, is_first: bool) {
        if becomes == Becomes::Words || !is_first {
            return self.any(Class::Any);
        }
        let head = self.last();
        let end = self.push();
        // What begins with a dash is an option, and an option holds no space.
        for (class, rest) in [
            (Class::Byte(b'-'), Class::NoSpace),
            (Class::NoDash, Class::Any),
        ] {
            if becomes == Becomes::Operand && matches!(class, Class::Byte(_)) {
                continue;
            }
            let body = self.push();
            self.places[head].steps.push((class, body));
            self.places[body].steps.push((rest, body));
            self.places[body].moves.push(end);
        }
        self.places[head].moves.push(end);
        let after = self.push();
        self.places[end].moves.push(after);
    }

    /// Whether a text that `pattern` finds is among those the command may have. A pattern that is too large may find any.
    pub(super) fn may_fit(&self, pattern: Option<&NFA>) -> bool {
        let Some(pattern) = pattern else { return true };
        let mut seen = HashSet::new();
        let mut open = vec![(pattern.start_unanchored(), 0)];
        while let Some((state, place)) = open.pop() {
            if !seen.insert((state, place)) {
                continue;
            }
            if seen.len() > PAIRS_MAX {
                return true;
            }
            let here = &self.places[place];
            open.extend(here.moves.iter().map(|to| (state, *to)));
            match pattern.state(state) {
                State::Match { .. } => return true,
                State::Fail => {}
                State::Look { look, next } => {
                    let passes = match look {
                        Look::Start => place == 0,
                        Look::End => place == self.last(),
                        _ => true,
                    };
                    open.extend(passes.then_some((*next, place)));
                }
                State::Union { alternates } => {
                    open.extend(alternates.iter().map(|next| (*next, place)));
                }
                State::BinaryUnion { alt1, alt2 } => open.extend([(*alt1, place), (*alt2, place)]),
                State::Capture { next, .. } => open.push((*next, place)),
                State::ByteRange { trans } => {
                    open.extend(here.over(trans.start, trans.end).map(|to| (trans.next, to)));
                }
                State::Sparse(sparse) => {
                    for trans in &sparse.transitions {
                        open.extend(here.over(trans.start, trans.end).map(|to| (trans.next, to)));
                    }
                }
                State::Dense(dense) => {
                    for byte in 0..=u8::MAX {
                        if let Some(next) = dense.matches_byte(byte) {
                            open.extend(here.over(byte, byte).map(|to| (next, to)));
                        }
                    }
                }
            }
        }
        false
    }
}

impl AutomatonState {
    /// Where a byte between `first` and `last` may lead.
    fn over(&self, first: u8, last: u8) -> impl Iterator<Item = usize> {
        let steps = self.steps.iter();
        steps.filter_map(move |(class, to)| class.meets(first, last).then_some(*to))
    }
}

impl Class {
    /// Whether one of the bytes between `first` and `last` is of it.
    fn meets(self, first: u8, last: u8) -> bool {
        let is_only = |byte: u8| first == byte && last == byte;
        match self {
            Self::Any => true,
            Self::Byte(byte) => (first..=last).contains(&byte),
            Self::NoSpace => !is_only(b' '),
            Self::NoDash => !is_only(b'-'),
        }
    }
}

/// How many words the command has, those that are added counted as one.
fn n_words(command: &SimpleCommand, holes: &[Hole]) -> usize {
    let ends = holes.iter().map(|hole| hole.argument + 1);
    ends.max().unwrap_or(0).max(command.arguments.len())
}
