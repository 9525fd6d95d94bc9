//! Which variables the line has set for certain, where it looks at them.
//!
//! Another variable may still have the value that it came with from outside. What runs in a branch, a loop or a shell of its own sets nothing
//! for certain behind it, and `a && b` runs `b` with what `a` set. An assignment of arithmetic
//! that fails with the values it finds (a division by zero) counts as made.

use std::collections::BTreeMap;

use super::super::syntax::{Joint, Pipeline};

/// Most variables that are told apart; another one never counts as set. The type of [`NameSet`] has a bit for each.
const NAMES_MAX: u32 = u128::BITS;

/// A set of variables, each with the number that [`NameIds`] gives it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct NameSet(u128);

impl NameSet {
    pub(in super::super) const EMPTY: Self = Self(0);
    /// What is set where a walk never comes, behind `exit`.
    pub(in super::super) const ALL: Self = Self(u128::MAX);

    pub(in super::super) fn either(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(in super::super) fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(in super::super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    fn holds(self, other: Self) -> bool {
        other.0 != 0 && self.0 & other.0 == other.0
    }
}

/// The numbers of variables.
#[derive(Debug, Default)]
pub(super) struct NameIds(BTreeMap<String, u32>);

impl NameIds {
    /// The set of one variable; an empty one when there are too many.
    pub(super) fn only(&mut self, name: &str) -> NameSet {
        let next = u32::try_from(self.0.len()).unwrap_or(NAMES_MAX);
        let id = match self.0.get(name) {
            Some(id) => *id,
            None if next < NAMES_MAX => {
                self.0.insert(name.to_owned(), next);
                next
            }
            None => return NameSet::EMPTY,
        };
        NameSet(1 << id)
    }

    /// Whether a variable is in a set.
    pub(super) fn is_in(&self, name: &str, set: NameSet) -> bool {
        let id = self.0.get(name);
        id.is_some_and(|id| set.holds(NameSet(1 << id)))
    }
}

/// What is set for certain at a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Certain {
    /// Whatever the command before did.
    pub(in super::super) always: NameSet,
    /// If that command succeeded; more than `always`.
    pub(in super::super) on_success: NameSet,
}

impl Certain {
    pub(in super::super) fn at(set: NameSet) -> Self {
        Self {
            always: set,
            on_success: set,
        }
    }

    pub(super) fn add(&mut self, set: NameSet) {
        self.always = self.always.either(set);
        self.on_success = self.on_success.either(set);
    }

    pub(super) fn remove(&mut self, set: NameSet) {
        self.always = self.always.without(set);
        self.on_success = self.on_success.without(set);
    }

    /// What is set behind a command: `words` says what its words left, `ran` what it did to `before` itself.
    pub(in super::super) fn merged(before: Self, words: Self, ran: Self) -> Self {
        let merge = |before: NameSet, words: NameSet, ran: NameSet| {
            words.either(ran).without(before.without(ran))
        };
        Self {
            always: merge(before.always, words.always, ran.always),
            on_success: merge(before.on_success, words.on_success, ran.on_success),
        }
    }
}

/// A chain of `&&` and `||`, up to where the walk is.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Chain {
    before: NameSet,
    on_success: NameSet,
    on_failure: NameSet,
    is_background: bool,
}

impl Chain {
    /// A chain that begins with `before` set.
    pub(in super::super) fn new(before: NameSet) -> Self {
        Self {
            before,
            on_success: before,
            on_failure: before,
            is_background: false,
        }
    }

    /// What is set where the next pipeline begins.
    pub(in super::super) fn start(&self, pipeline: &Pipeline) -> Certain {
        Certain::at(match pipeline.joint {
            Joint::Always => self.before,
            Joint::And => self.on_success,
            Joint::Or => self.on_failure,
        })
    }

    /// Adds a pipeline, which left `end`.
    pub(in super::super) fn add(&mut self, pipeline: &Pipeline, end: Certain) {
        let on_success = match pipeline.is_negated {
            true => end.always,
            false => end.on_success,
        };
        self.is_background |= pipeline.is_background;
        match pipeline.joint {
            Joint::Always => {
                self.on_success = on_success;
                self.on_failure = end.always;
            }
            Joint::And => {
                self.on_success = on_success;
                self.on_failure = self.on_failure.both(end.always);
            }
            Joint::Or => {
                self.on_success = self.on_success.both(on_success);
                self.on_failure = end.always;
            }
        }
    }

    /// What is set behind the chain.
    pub(in super::super) fn end(&self) -> Certain {
        match self.is_background {
            true => Certain::at(self.before),
            false => Certain {
                always: self.on_success.both(self.on_failure),
                on_success: self.on_success,
            },
        }
    }
}
