//! Arithmetic: which texts bash reads as numbers, and which of them may hold a command.
//!
//! A name in arithmetic stands for its value, which is read as arithmetic again, and a subscript in it is expanded: `$((b))` runs the command in
//! `b='a[$(command)]'`. So every name that is looked at must get all its values in this very line, and all of them must be numbers or such
//! names. What comes from outside (the environment, a file, an argument, another command's output) may be anything.

use std::collections::{BTreeMap, BTreeSet};

use super::brace;
use super::literals::Literals;
use super::reader;
use super::syntax::{CommandShape, Dialect, Expansion, ExpansionKind, List, Word, WordPart};
use super::value::Value;
use super::variables::decides_what_runs;

mod scan;

pub(super) use self::scan::{Scan, is_name};

/// Variables that the shell makes numbers of.
const NUMERIC: [&str; 16] = [
    "BASHPID",
    "BASH_SUBSHELL",
    "COLUMNS",
    "EPOCHSECONDS",
    "EUID",
    "HISTCMD",
    "LINENO",
    "LINES",
    "OPTIND",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHLVL",
    "SRANDOM",
    "UID",
];

/// Those that read whatever they are given as a number, some of them in some versions of bash.
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
}

/// What is known of the variables of a line, and where arithmetic looks at them.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The values that the line itself gives, where the walk is.
    pub(super) literals: Literals,
    values: BTreeMap<String, NumberOrigin>,
    /// Variables that the shell itself sets; others may still have what they had.
    set: BTreeSet<String>,
    /// Arrays whose subscripts are no arithmetic.
    maps: BTreeSet<String>,
    uses: Vec<Use>,
    /// Arrays of any kind.
    arrays: BTreeSet<String>,
    /// Variables that a builtin gives a value which is not known, each with its word.
    declared: Vec<(String, String)>,
    /// Variables that arithmetic and `${name:=value}` set although they decide what is run.
    decisive: Vec<String>,
}

#[derive(Debug)]
struct Use {
    origin: NumberOrigin,
    /// The array it is a subscript of.
    array: Option<String>,
    part: String,
}

impl NumberOrigin {
    pub(super) fn outside() -> Self {
        Self {
            is_outside: true,
            ..Self::default()
        }
    }

    fn of_name(name: &str) -> Self {
        Self {
            names: BTreeSet::from([name.to_owned()]),
            is_outside: false,
        }
    }

    fn add(&mut self, other: Self) {
        self.names.extend(other.names);
        self.is_outside |= other.is_outside;
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
        scan.origin
    }

    /// Where the value of an expansion comes from.
    pub(super) fn of_expansion(expansion: &Expansion) -> Self {
        let source = expansion.source.as_str();
        match expansion.kind {
            ExpansionKind::Arithmetic => Self::default(),
            ExpansionKind::Prompt | ExpansionKind::Process => Self::outside(),
            ExpansionKind::Value => match (source.strip_prefix("${"), source.strip_prefix('$')) {
                (Some(inside), _) => scan::parameter(inside.strip_suffix('}').unwrap_or(inside)),
                (None, Some(name)) if scan::is_name(name) => Self::of_name(name),
                (None, Some("#" | "?" | "$" | "!")) => Self::default(),
                _ if prints_number(&expansion.lists) => Self::default(),
                _ => Self::outside(),
            },
        }
    }
}

impl Numbers {
    /// Notes a value that the shell gives a variable, of which only the origin is known.
    pub(super) fn assign(&mut self, name: &str, origin: NumberOrigin) {
        self.set.insert(name.to_owned());
        self.may_assign(name, origin);
    }

    /// Notes a value that a variable may have, at least for a program.
    pub(super) fn may_assign(&mut self, name: &str, origin: NumberOrigin) {
        self.literals.forget(name);
        if READING.contains(&name) {
            self.reads(origin.clone(), name);
        }
        self.values.entry(name.to_owned()).or_default().add(origin);
    }

    /// Notes an array whose subscripts are texts.
    pub(super) fn map(&mut self, name: &str) {
        self.maps.insert(name.to_owned());
    }

    /// Notes an array.
    pub(super) fn array(&mut self, name: &str) {
        self.arrays.insert(name.to_owned());
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
        self.uses.push(Use {
            origin,
            array: None,
            part: part.to_owned(),
        });
    }

    /// Takes over what a scan of arithmetic found.
    pub(super) fn take(&mut self, mut scan: Scan, part: &str) {
        self.reads(std::mem::take(&mut scan.origin), part);
        self.take_inside(scan, part);
    }

    /// Takes over what a scan found inside a text that is not read as a number itself.
    pub(super) fn take_inside(&mut self, scan: Scan, part: &str) {
        let names = scan.assigned.iter().map(|(name, _)| name);
        let decisive = names.chain(&scan.changed);
        let decisive = decisive.filter(|name| decides_what_runs(name));
        self.decisive.extend(decisive.cloned());
        for name in &scan.changed {
            self.literals.forget(name);
        }
        for (name, origin) in scan.assigned {
            self.assign(&name, origin);
        }
        for (array, origin) in scan.subscripts {
            self.arrays.insert(array.clone());
            self.uses.push(Use {
                origin,
                array: Some(array),
                part: part.to_owned(),
            });
        }
    }

    /// The variables that are set on the way although they decide what is run.
    pub(super) fn decisive(&self) -> &[String] {
        &self.decisive
    }

    /// The texts of arithmetic that may hold a command.
    pub(super) fn doubtful(&self) -> Vec<&str> {
        let is_text = |used: &&Use| {
            used.array
                .as_ref()
                .is_some_and(|array| self.maps.contains(array))
        };
        let uses = self.uses.iter().filter(|used| !is_text(used));
        let doubtful = uses.filter(|used| !self.is_number(&used.origin, &mut BTreeSet::new()));
        doubtful.map(|used| used.part.as_str()).collect()
    }

    fn is_number<'a>(&'a self, origin: &'a NumberOrigin, seen: &mut BTreeSet<&'a str>) -> bool {
        let mut is_known = |name: &'a String| match self.values.get(name) {
            _ if !seen.insert(name) => true,
            Some(origin) => self.set.contains(name) && self.is_number(origin, seen),
            None => NUMERIC.contains(&name.as_str()),
        };
        !origin.is_outside && origin.names.iter().all(&mut is_known)
    }
}

/// Whether a substitution prints nothing but numbers.
fn prints_number(lists: &[List]) -> bool {
    let [list] = lists else { return false };
    let [pipeline] = list.pipelines.as_slice() else {
        return false;
    };
    let Some(CommandShape::Simple { words, assignments }) =
        pipeline.commands.last().map(|c| &c.shape)
    else {
        return false;
    };
    let words = words.iter().flat_map(brace::expand);
    let values: Vec<Value> = words.map(|word| Value::of(&word)).collect();
    let texts: Option<Vec<&str>> = values.iter().map(Value::as_literal).collect();
    assignments.is_empty() && texts.is_some_and(|texts| is_counter(&texts))
}

/// Whether a command prints nothing but numbers, whatever it reads.
fn is_counter(words: &[&str]) -> bool {
    let is_count = |option: &&str| {
        option
            .strip_prefix('-')
            .is_some_and(|o| !o.is_empty() && "clmwLi".contains(o))
    };
    match words {
        ["nproc", ..] | ["true" | ":"] => true,
        ["wc", options @ ..] => !options.is_empty() && options.iter().all(is_count),
        ["seq", numbers @ ..] => numbers.iter().all(|number| is_decimal(number)),
        ["date", options @ ..] => {
            let formats = options.iter().filter_map(|option| option.strip_prefix('+'));
            let mut formats = formats.peekable();
            let numeric = |format: &str| {
                let mut letters = format.split('%').skip(1);
                format.starts_with('%')
                    && letters.all(|l| {
                        [
                            "s", "N", "Y", "m", "d", "H", "M", "S", "j", "u", "w", "V", "y", "3N",
                        ]
                        .contains(&l)
                    })
            };
            formats.peek().is_some() && formats.all(numeric)
        }
        ["id", "-u" | "-g"] => true,
        [
            "stat",
            "-c",
            "%s" | "%Y" | "%X" | "%Z" | "%a" | "%h" | "%i",
            ..,
        ] => true,
        ["echo", numbers @ ..] => numbers.iter().all(|number| is_decimal(number)),
        ["grep", options @ ..] => {
            // With several files their names are printed too.
            let operands = options
                .iter()
                .filter(|option| !option.starts_with('-'))
                .count();
            options
                .first()
                .is_some_and(|o| is_count(o) && o.contains('c'))
                && operands <= 2
                && options
                    .iter()
                    .skip(1)
                    .all(|option| !option.starts_with('-'))
        }
        _ => false,
    }
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// Where what a substitution prints comes from, given its text without `$(` and `)`.
fn of_substitution(text: &str) -> NumberOrigin {
    match reader::read(text, Dialect::Bash, reader::DEPTH_MAX / 2) {
        Ok(script) if prints_number(std::slice::from_ref(&script.list)) => NumberOrigin::default(),
        _ => NumberOrigin::outside(),
    }
}
