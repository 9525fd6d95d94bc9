//! Bodies of functions: what is set in them depends on where they are called.

use std::collections::BTreeMap;

use super::certain::NameSet;

/// Most rounds until it is clear what is set where functions are called.
const ROUNDS_MAX: usize = 32;

/// Functions that the shell calls by itself.
const HANDLERS: [&str; 1] = ["command_not_found_handle"];

/// Where something stands: what is set there, in addition to what is set where the function around it is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) set: NameSet,
    /// Whether it stands in the text of another shell, which gets only what is exported.
    pub(super) is_inner: bool,
    /// The number of the body.
    pub(super) body: Option<usize>,
}

/// The bodies of a line, and what is called in it.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    bodies: Vec<Body>,
    /// Every command by its name; a function may be defined behind its call.
    calls: BTreeMap<String, Vec<Place>>,
    /// The body that the walk is in.
    current: Option<usize>,
    /// Whether the walk is in the text of another shell.
    pub(super) is_inner: bool,
    /// Whether other programs or files may call functions of the line.
    pub(super) are_shared: bool,
}

#[derive(Debug)]
struct Body {
    /// The name it is called by; none of what a trap runs.
    name: Option<String>,
    /// What was set where it was defined, if it stays set.
    defined: NameSet,
}

impl Bodies {
    pub(super) fn place(&self, set: NameSet) -> Place {
        Place {
            set,
            is_inner: self.is_inner,
            body: self.current,
        }
    }

    /// Enters a body; which one the walk was in.
    pub(super) fn enter(&mut self, name: Option<&str>, set: NameSet) -> Option<usize> {
        let around = self.current.replace(self.bodies.len());
        // Variables of the function around it are gone when that has ended.
        let defined = match around {
            Some(_) => NameSet::EMPTY,
            None => set,
        };
        let name = name.map(str::to_owned);
        self.bodies.push(Body { name, defined });
        around
    }

    pub(super) fn leave(&mut self, around: Option<usize>) {
        self.current = around;
    }

    pub(super) fn is_inside(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn call(&mut self, name: &str, set: NameSet) {
        let place = self.place(set);
        self.calls.entry(name.to_owned()).or_default().push(place);
    }

    /// What is set for certain whenever each body begins.
    pub(super) fn entries(&self) -> Vec<NameSet> {
        let defined: Vec<NameSet> = self.bodies.iter().map(|body| body.defined).collect();
        if self.are_shared {
            return defined;
        }
        let mut entries = vec![NameSet::ALL; self.bodies.len()];
        // A call in a body that is called needs one round more; behind a longer chain, only what is set at the definition counts.
        for _ in 0..ROUNDS_MAX {
            let called = self.called(&entries);
            let entry = |body: &Body| {
                let name = body.name.as_deref().filter(|name| !HANDLERS.contains(name));
                let called = name.and_then(|name| called.get(name).copied());
                called.unwrap_or_default().either(body.defined)
            };
            let next: Vec<NameSet> = self.bodies.iter().map(entry).collect();
            if next == entries {
                return entries;
            }
            entries = next;
        }
        defined
    }

    /// What is set at every call of a name.
    fn called(&self, entries: &[NameSet]) -> BTreeMap<&str, NameSet> {
        let common = |places: &Vec<Place>| {
            let sets = places.iter().map(|place| at(*place, entries));
            sets.fold(NameSet::ALL, NameSet::both)
        };
        let calls = self.calls.iter();
        calls
            .map(|(name, places)| (name.as_str(), common(places)))
            .collect()
    }
}

/// What is set at a place, given what is set where each body begins.
pub(super) fn at(place: Place, entries: &[NameSet]) -> NameSet {
    let around = place.body.and_then(|body| entries.get(body).copied());
    place.set.either(around.unwrap_or_default())
}
