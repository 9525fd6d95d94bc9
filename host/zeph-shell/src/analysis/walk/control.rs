//! Branches and loops: which of their lists run, and what is set when they do.

use super::super::numbers::{Certain, NameSet};
use super::super::syntax::{ControlKind, List, Word};
use super::super::value::Value;
use super::{ScriptWalk, WalkPosition, braced, uncertain};

/// Commands that leave a loop, or its condition, before its end.
const LEAVING: [&str; 3] = ["break", "continue", "return"];

impl ScriptWalk {
    /// Everything with branches or rounds but a loop over words.
    pub(super) fn control(
        &mut self,
        at: WalkPosition<'_>,
        kind: ControlKind,
        words: &[Word],
        lists: &[List],
    ) {
        match kind {
            ControlKind::If => self.branches(at, lists),
            ControlKind::While | ControlKind::Until => {
                self.looked_at(at, words);
                self.repeated(at, kind, lists);
            }
            ControlKind::Case { is_exhaustive } => {
                self.aside(|this| this.looked_at(at, words));
                self.cases(at, is_exhaustive, lists);
            }
            ControlKind::Arithmetic | ControlKind::ArithmeticFor => {
                self.looked_at(at, words);
                for list in lists {
                    self.aside(|this| this.list(uncertain(at), list));
                }
            }
        }
    }

    /// Words that a command looks at.
    pub(super) fn looked_at(&mut self, at: WalkPosition<'_>, words: &[Word]) {
        if words.iter().any(|word| Value::of(word).is_stream) {
            self.unknown("a process substitution runs beside it", "<(");
        }
        self.words(at, words);
    }

    fn branches(&mut self, at: WalkPosition<'_>, lists: &[List]) {
        let mut ends = NameSet::ALL;
        for branch in lists.chunks(2) {
            let (condition, body) = match branch {
                [condition, body] => (Some(condition), body),
                [body, ..] => (None, body),
                [] => continue,
            };
            let mut otherwise = NameSet::ALL;
            if let Some(condition) = condition {
                self.list(uncertain(at), condition);
                otherwise = self.numbers.certain.always;
                self.numbers.certain = Certain::at(self.numbers.certain.on_success);
            }
            self.list(uncertain(at), body);
            ends = ends.both(self.numbers.certain.always);
            self.numbers.certain = Certain::at(otherwise);
        }
        let ends = ends.both(self.numbers.certain.always);
        self.numbers.certain = Certain::at(ends);
    }

    fn repeated(&mut self, at: WalkPosition<'_>, kind: ControlKind, lists: &[List]) {
        let before = self.numbers.certain.always;
        let mut after = before;
        if let [condition, ..] = lists {
            let first = self.line.commands.len();
            self.list(uncertain(at), condition);
            let certain = self.numbers.certain;
            if !self.may_leave(first) {
                after = certain.always;
            }
            self.numbers.certain = Certain::at(match kind {
                ControlKind::While => certain.on_success,
                _ => certain.always,
            });
        }
        for body in lists.iter().skip(1) {
            self.list(uncertain(at), body);
        }
        self.numbers.certain = Certain::at(after);
    }

    /// Whether a command from the one with the number `first` on may leave a loop.
    fn may_leave(&self, first: usize) -> bool {
        LEAVING.iter().any(|name| self.runs(name, first))
    }

    fn cases(&mut self, at: WalkPosition<'_>, is_exhaustive: bool, lists: &[List]) {
        let before = self.numbers.certain.always;
        let mut ends = match is_exhaustive {
            true => NameSet::ALL,
            false => before,
        };
        for list in lists {
            self.numbers.certain = Certain::at(before);
            self.list(uncertain(at), list);
            ends = ends.both(self.numbers.certain.always);
        }
        self.numbers.certain = Certain::at(ends);
    }

    /// A loop over words.
    pub(super) fn rounds(
        &mut self,
        at: WalkPosition<'_>,
        variable: &str,
        words: &[Word],
        body: &List,
    ) {
        self.looked_at(at, words);
        let before = self.numbers.certain;
        self.round(variable, words);
        let first = self.line.commands.len();
        self.list(uncertain(at), body);
        let is_one_word = |word: &Word| Value::of(word).is_one_word;
        let has_rounds = braced(at, words).iter().any(is_one_word);
        if !has_rounds || self.may_leave(first) {
            self.numbers.certain = before;
        }
    }
}
