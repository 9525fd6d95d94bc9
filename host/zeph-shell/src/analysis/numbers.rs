//! Arithmetic: which texts bash reads as numbers, and which of them may hold a command.
//!
//! A name in arithmetic stands for its value, which is read as arithmetic again, and a subscript in it is expanded: `$((b))` runs the command in
//! `b='a[$(command)]'`. So every name that is looked at must get all its values in this very line, and all of them must be numbers or such
//! names. What comes from outside (the environment, a file, an argument, another command's output) may be anything.
//!
//! All values that a variable gets anywhere in the line count wherever it is looked at: loops and functions come back to a place. That it has
//! one of them, and not one from outside, counts only where it is set for certain.

use std::collections::{BTreeMap, BTreeSet};

use super::literals::{self, Literals};
use super::syntax::{Expansion, ExpansionKind, Word, WordPart};
use super::variables::decides_what_runs;

mod bodies;
mod certain;
mod counter;
mod entries;
mod formula;
mod scan;

use self::bodies::{Bodies, Place};
use self::certain::NameIds;
pub(super) use self::certain::{Certain, Chain, NameSet};
use self::counter::prints_number;
use self::entries::Entries;
pub(super) use self::scan::{Scan, is_name, scans};

/// Variables of the shell that read whatever they are given as a number, some of them in some versions of bash.
const READING: [&str; 8] = [
    "BASHPID",
    "EPOCHSECONDS",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
];

/// Everything a text may come to where a number is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NumberOrigin {
    /// The values of these variables.
    pub(super) names: BTreeSet<String>,
    /// Anything at all.
    pub(super) is_outside: bool,
    /// Variables whose values are in the text as they are.
    parts: BTreeSet<String>,
    /// Whether the text, or its expansion, may contain a subscript although it is not a number.
    may_hold_subscript: bool,
    /// Arrays of which it is an element, and not the first.
    elements: BTreeSet<String>,
    /// Whether it is added to what was there.
    pub(super) is_joined: bool,
}

/// What is known of the variables of a line, and where arithmetic looks at them.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The values that the line itself gives, where the walk is.
    pub(super) literals: Literals,
    /// What is set for certain, where the walk is.
    pub(super) certain: Certain,
    ids: NameIds,
    bodies: Bodies,
    /// Variables that are local to the function that the walk is in; `None` outside of functions.
    locals: Option<NameSet>,
    /// Variables that are never certain: they may be read-only with a value from outside, or a function may uncover one.
    doubted: NameSet,
    /// Arrays that may be others by the time a loop or a function comes back to them.
    unstable: BTreeSet<String>,
    /// Variables that are local without a value somewhere: another shell gets the one around the function then.
    bare: NameSet,
    values: BTreeMap<String, NumberOrigin>,
    /// Every value with the place where it is given, for the variables that read theirs as numbers.
    given: Vec<(String, NumberOrigin, Place)>,
    /// These variables.
    integers: BTreeSet<String>,
    uses: Vec<Use>,
    /// Arrays of any kind.
    arrays: BTreeSet<String>,
    /// Variables that a builtin gives a value which is not known, each with its word.
    declared: Vec<(String, String)>,
    /// Variables that arithmetic and `${name:=value}` set although they decide what is run.
    decisive: Vec<String>,
    /// Texts that are no arithmetic to bash.
    refused: Vec<String>,
}

#[derive(Debug)]
struct Use {
    origin: NumberOrigin,
    /// The array it is a subscript of.
    array: Option<String>,
    /// Whether it is only read as a number when it holds a subscript: a word of `[ … ]`.
    is_word: bool,
    part: String,
    place: Place,
}

/// How a variable becomes local.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalKind {
    /// Whether it is an array whose subscripts are texts.
    pub(super) is_map: bool,
    /// Whether it has nothing of the variable around the function.
    pub(super) is_new: bool,
    /// Whether it gets no value.
    pub(super) is_bare: bool,
}

/// What is known around the body of a function.
#[derive(Debug)]
pub(super) struct OuterBody {
    certain: Certain,
    body: Option<usize>,
    locals: Option<NameSet>,
}

/// What is known around the text of another shell.
#[derive(Debug)]
pub(super) struct OuterShell {
    certain: Certain,
    locals: Option<NameSet>,
    is_inner: bool,
}

impl NumberOrigin {
    pub(super) fn outside() -> Self {
        Self {
            is_outside: true,
            may_hold_subscript: true,
            ..Self::default()
        }
    }

    /// The value of a variable.
    pub(super) fn of_name(name: &str) -> Self {
        Self {
            names: BTreeSet::from([name.to_owned()]),
            parts: BTreeSet::from([name.to_owned()]),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.names.extend(other.names);
        self.is_outside |= other.is_outside;
        self.parts.extend(other.parts);
        self.may_hold_subscript |= other.may_hold_subscript;
        self.elements.extend(other.elements);
        self.is_joined |= other.is_joined;
    }

    /// Where the text of a word comes from.
    pub(super) fn of(word: &Word) -> Self {
        let is_empty = |part: &&WordPart| matches!(part, WordPart::Text(t) | WordPart::Quoted(t) if t.is_empty());
        let parts: Vec<&WordPart> = word.parts.iter().filter(|part| !is_empty(part)).collect();
        let mut origin = Self::default();
        for part in &parts {
            origin.add(match part {
                WordPart::Text(text) | WordPart::Quoted(text) => Self::of_text(text),
                WordPart::Expansion(expansion) => Self::of_expansion(expansion),
            });
        }
        // Side by side, two values may be the name of any variable: `b$i`.
        let has_expansion = parts
            .iter()
            .any(|part| matches!(part, WordPart::Expansion(_)));
        origin.is_outside |= parts.len() > 1 && has_expansion && !origin.names.is_empty();
        origin
    }

    fn of_text(text: &str) -> Self {
        let mut scan = Scan::default();
        scan.text(text);
        for (_, subscript) in std::mem::take(&mut scan.subscripts) {
            scan.origin.add(subscript);
        }
        // Read as a number, a value that sets a variable sets it, and nothing has looked at what a substitution in it runs.
        let sets = !scan.assigned.is_empty() || !scan.changed.is_empty();
        scan.origin.is_outside |= sets || text.contains("$(") || text.contains('`');
        scan.origin.parts.clear();
        scan.origin.may_hold_subscript = text.contains(['[', '`']) || text.contains("$(");
        scan.origin
    }

    /// Where the value of an expansion comes from.
    pub(super) fn of_expansion(expansion: &Expansion) -> Self {
        let source = expansion.source.as_str();
        match expansion.kind {
            ExpansionKind::Arithmetic => Self::default(),
            ExpansionKind::Prompt | ExpansionKind::Process => Self::outside(),
            ExpansionKind::Value => match (source.strip_prefix("${"), source.strip_prefix('$')) {
                (Some(inside), _) => Self {
                    parts: literals::variable(expansion)
                        .map(str::to_owned)
                        .into_iter()
                        .collect(),
                    may_hold_subscript: literals::variable(expansion).is_none()
                        || inside.contains('['),
                    ..scan::parameter(inside.strip_suffix('}').unwrap_or(inside))
                },
                (None, Some(name)) if scan::is_name(name) => Self::of_name(name),
                (None, Some("#" | "?" | "$" | "!")) => Self::default(),
                _ if prints_number(&expansion.lists) => Self::default(),
                _ => Self::outside(),
            },
        }
    }
}

impl Numbers {
    /// Notes a value that the shell gives a variable for certain, of which only the origin is known.
    pub(super) fn assign(&mut self, name: &str, origin: NumberOrigin) {
        self.may_assign(name, origin);
        self.set(name);
    }

    /// Notes a value that a variable may have, at least for a program.
    pub(super) fn may_assign(&mut self, name: &str, origin: NumberOrigin) {
        self.literals.forget(name);
        if READING.contains(&name) {
            self.reads(origin.clone(), name);
        }
        let place = self.place();
        self.given.push((name.to_owned(), origin.clone(), place));
        self.values.entry(name.to_owned()).or_default().add(origin);
    }

    /// Notes that a variable has a value of the line from here on.
    pub(super) fn set(&mut self, name: &str) {
        let only = self.ids.only(name);
        self.certain.add(only);
    }

    /// Notes that variables have values of the line from here on; all of them where the walk never comes.
    pub(super) fn set_all(&mut self, names: NameSet) {
        self.certain.add(names);
    }

    /// Notes that a variable has a value of the line from here on, if the command succeeds that the walk is at.
    pub(super) fn set_on_success(&mut self, name: &str) {
        let only = self.ids.only(name);
        self.certain.on_success = self.certain.on_success.either(only);
    }

    /// Notes that a variable loses its value. In a function, one of the same name around it may come to light.
    pub(super) fn unset(&mut self, name: &str) {
        let only = self.ids.only(name);
        self.certain.remove(only);
        self.unstable.insert(name.to_owned());
        if self.bodies.is_inside() {
            self.doubted = self.doubted.either(only);
        }
    }

    /// Notes that a variable keeps the value it has, which may be one from outside.
    pub(super) fn freeze(&mut self, name: &str) {
        if !self.ids.is_in(name, self.certain.always) {
            let only = self.ids.only(name);
            self.doubted = self.doubted.either(only);
        }
    }

    /// Notes that a builtin makes a variable local to the function around it, with the array that it may be.
    pub(super) fn localise(&mut self, name: &str, kind: LocalKind) {
        let only = self.ids.only(name);
        let Some(locals) = &mut self.locals else {
            return;
        };
        *locals = locals.either(only);
        match kind.is_map {
            true => *locals = locals.either(self.ids.only(&map_name(name))),
            false => {
                self.unstable.insert(name.to_owned());
            }
        }
        if kind.is_new {
            self.certain.add(only);
        }
        if kind.is_bare {
            self.bare = self.bare.either(only);
        }
    }

    /// Notes an array whose subscripts are texts.
    ///
    /// Another array does not become one.
    pub(super) fn map(&mut self, name: &str) {
        // No array has this name, and a use whose array is not known does.
        if name.is_empty() {
            return;
        }
        if self.is_in_function() || !self.arrays.contains(name) {
            self.set(&map_name(name));
        }
        self.array(name);
    }

    /// Notes an array.
    pub(super) fn array(&mut self, name: &str) {
        self.arrays.insert(name.to_owned());
    }

    /// Notes that all values of a variable are read as numbers.
    pub(super) fn integer(&mut self, name: &str) {
        self.integers.insert(name.to_owned());
    }

    /// Notes that a builtin such as `declare` gives a variable a value that is not known.
    pub(super) fn declares(&mut self, name: &str, word: &str) {
        self.declared.push((name.to_owned(), word.to_owned()));
    }

    /// The words of such values that an array gets, which bash reads once more.
    pub(super) fn compound(&self) -> Option<&str> {
        let mut declared = self.declared.iter();
        let found = declared.find(|(name, _)| self.arrays.contains(name));
        found.map(|(_, word)| word.as_str())
    }

    /// Notes that a text is read as a number.
    pub(super) fn reads(&mut self, origin: NumberOrigin, part: &str) {
        self.uses(origin, None, part);
    }

    /// Notes a word of `[ … ]`, in which a subscript is read as a number.
    pub(super) fn reads_word(&mut self, origin: NumberOrigin, part: &str) {
        self.uses(origin, None, part);
        if let Some(used) = self.uses.last_mut() {
            used.is_word = true;
        }
    }

    fn uses(&mut self, origin: NumberOrigin, array: Option<String>, part: &str) {
        self.uses.push(Use {
            origin,
            array,
            is_word: false,
            part: part.to_owned(),
            place: self.place(),
        });
    }

    fn place(&self) -> Place {
        self.bodies.place(self.certain.always)
    }

    /// Takes over what a scan of a whole text of arithmetic found; what it sets is set for certain.
    pub(super) fn take(&mut self, mut scan: Scan, part: &str) {
        if scan.is_refused {
            self.refused.push(part.to_owned());
        }
        self.reads(std::mem::take(&mut scan.origin), part);
        let assigned = match scan.is_conditional {
            true => Vec::new(),
            false => scan.assigned.clone(),
        };
        self.take_inside(scan, part);
        for name in assigned {
            self.set(&name);
        }
    }

    /// Takes over what a scan found inside a text that is not read as a number itself, or not in any case.
    pub(super) fn take_inside(&mut self, mut scan: Scan, part: &str) {
        let assigned = scan.take_assigned();
        let names = assigned.iter().map(|(name, _)| name);
        let decisive = names.chain(&scan.changed);
        let decisive = decisive.filter(|name| decides_what_runs(name));
        self.decisive.extend(decisive.cloned());
        for name in &scan.changed {
            self.literals.forget(name);
        }
        for (name, origin) in assigned {
            self.may_assign(&name, origin);
        }
        for (array, origin) in scan.subscripts {
            self.arrays.insert(array.clone());
            self.uses(origin, Some(array), part);
        }
    }

    /// Enters the body of a function, or the text of a trap, of which the name is not known.
    pub(super) fn enter(&mut self, name: Option<&str>, has_locals: bool) -> OuterBody {
        let certain = std::mem::take(&mut self.certain);
        OuterBody {
            certain,
            body: self.bodies.enter(name, certain.always),
            locals: std::mem::replace(&mut self.locals, has_locals.then_some(NameSet::EMPTY)),
        }
    }

    /// Leaves it; what it has set for certain then.
    pub(super) fn leave(&mut self, outer: OuterBody) -> NameSet {
        let set = self.certain.always;
        let locals = std::mem::replace(&mut self.locals, outer.locals);
        self.certain = outer.certain;
        self.bodies.leave(outer.body);
        set.without(locals.unwrap_or_default())
    }

    /// Enters a shell of its own, where nothing is local; what is exported there has the value it has here.
    pub(super) fn enter_shell(&mut self) -> OuterShell {
        OuterShell {
            certain: self.certain,
            locals: self.locals.take(),
            is_inner: std::mem::replace(&mut self.bodies.is_inner, true),
        }
    }

    /// Leaves it.
    pub(super) fn leave_shell(&mut self, outer: OuterShell) {
        self.certain = outer.certain;
        self.locals = outer.locals;
        self.bodies.is_inner = outer.is_inner;
    }

    /// Whether the walk is in the body of a function.
    pub(super) fn is_in_function(&self) -> bool {
        self.locals.is_some()
    }

    /// Notes a command, which may be a call of a function.
    pub(super) fn calls(&mut self, name: &str) {
        self.bodies.call(name, self.certain.always);
    }

    /// Notes that functions are called by what is not in the line.
    pub(super) fn share_functions(&mut self) {
        self.bodies.are_shared = true;
    }

    /// Whether a variable has a value of the line for certain where the walk is, without what is set where a function is called.
    pub(super) fn is_certain(&self, name: &str) -> bool {
        self.ids.is_in(name, self.certain.always)
    }

    /// The variables that are set on the way although they decide what is run.
    pub(super) fn decisive(&self) -> &[String] {
        &self.decisive
    }

    /// The texts where a number is meant, and bash refuses to compute one.
    pub(super) fn refused(&self) -> &[String] {
        &self.refused
    }

    /// The texts of arithmetic that may hold a command.
    pub(super) fn doubtful(&self) -> Vec<&str> {
        let entries = Entries::new(self);
        let uses = self.uses.iter().filter(|used| entries.is_doubtful(used));
        let given = self.given.iter().filter(|(name, origin, place)| {
            let set = entries.set(*place);
            self.integers.contains(name) && !entries.is_number(origin, set, &mut BTreeSet::new())
        });
        let given = given.map(|(name, ..)| name.as_str());
        uses.map(|used| used.part.as_str()).chain(given).collect()
    }
}

/// The name under which it is kept that a variable is an array whose subscripts are texts.
fn map_name(name: &str) -> String {
    format!("{name}[")
}
