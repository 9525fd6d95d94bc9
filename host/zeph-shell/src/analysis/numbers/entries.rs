//! Which uses of variables as numbers are known, once all of a line is.

use std::collections::BTreeSet;

use super::bodies::{self, Place};
use super::certain::NameSet;
use super::{NumberOrigin, Numbers, Use, map_name};

/// Variables that the shell makes numbers of. `UID` and `EUID` it takes over from outside, but they do not carry on from command to command.
const NUMERIC: [&str; 13] = [
    "BASHPID",
    "BASH_SUBSHELL",
    "EPOCHSECONDS",
    "EUID",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHLVL",
    "SRANDOM",
    "UID",
];

/// What is set at the places of a line, once all of it is known.
pub(super) struct Entries<'n> {
    numbers: &'n Numbers,
    of_bodies: Vec<NameSet>,
}

impl<'n> Entries<'n> {
    pub(super) fn new(numbers: &'n Numbers) -> Self {
        Self {
            numbers,
            of_bodies: numbers.bodies.entries(),
        }
    }

    pub(super) fn set(&self, place: Place) -> NameSet {
        let set = bodies::at(place, &self.of_bodies).without(self.numbers.doubted);
        match place.is_inner {
            true => set.without(self.numbers.bare),
            false => set,
        }
    }

    pub(super) fn is_doubtful(&self, used: &Use) -> bool {
        let set = self.set(used.place);
        let array = used.array.as_deref();
        let is_text = array.is_some_and(|array| self.is_map(array, set));
        let is_harmless = |origin| {
            let mut seen = BTreeSet::new();
            self.is_number(origin, set, &mut seen)
                || used.is_word && !self.may_hold_subscript(origin, set, &mut BTreeSet::new())
        };
        !is_text && !is_harmless(&used.origin)
    }

    fn is_map(&self, name: &str, set: NameSet) -> bool {
        !self.numbers.unstable.contains(name) && self.numbers.ids.is_in(&map_name(name), set)
    }

    pub(super) fn is_number<'o>(
        &self,
        origin: &'o NumberOrigin,
        set: NameSet,
        seen: &mut BTreeSet<&'o str>,
    ) -> bool
    where
        'n: 'o,
    {
        // What came from outside is one value. In a map it has the key `0`, which others do not look at.
        let mut names = origin.names.iter().map(|name| (name, false)).chain(
            origin
                .elements
                .iter()
                .map(|name| (name, self.is_map(name, set))),
        );
        let mut is_known = |(name, is_set): (&'o String, bool)| {
            let is_set =
                is_set || self.numbers.ids.is_in(name, set) || NUMERIC.contains(&name.as_str());
            match self.numbers.values.get(name) {
                _ if !is_set => false,
                _ if !seen.insert(name) => true,
                Some(value) if value.is_joined && !self.is_joinable(name, value) => false,
                Some(value) => self.is_number(value, set, seen),
                None => true,
            }
        };
        !origin.is_outside && names.all(&mut is_known)
    }

    /// Whether a value to which another one is added stays a number: `b` and `1` are the name `b1`.
    fn is_joinable(&self, name: &str, value: &NumberOrigin) -> bool {
        let mut names = value.names.iter().chain(&value.elements);
        self.numbers.integers.contains(name) || names.all(|other| other == name)
    }

    fn may_hold_subscript<'o>(
        &self,
        origin: &'o NumberOrigin,
        set: NameSet,
        seen: &mut BTreeSet<&'o str>,
    ) -> bool
    where
        'n: 'o,
    {
        let mut may_hold = |name: &'o String| match self.numbers.values.get(name) {
            _ if !self.numbers.ids.is_in(name, set) => true,
            _ if !seen.insert(name) => false,
            Some(value) => self.may_hold_subscript(value, set, seen),
            None => false,
        };
        origin.may_hold_subscript || origin.parts.iter().any(&mut may_hold)
    }
}
