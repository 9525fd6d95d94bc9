//! The rules in force: the built-in ones with the user's file over them.

use std::sync::OnceLock;

use zeph_core::nearest::nearest;

use crate::builtin::starts;
use crate::rule::{File, Origin, Rule, read, read_builtin};

/// Something in a rule file that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file's name as it was given.
    pub file: String,
    /// The rule it is about; `None` when it is about the file.
    pub rule: Option<String>,
    /// What is wrong, in one line.
    pub reason: String,
}

impl Warning {
    pub(crate) fn of_file(file: &str, reason: String) -> Self {
        Self {
            file: file.to_owned(),
            rule: None,
            reason,
        }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.rule {
            Some(rule) => write!(
                f,
                "{}: rule `{rule}` is not used: {}",
                self.file, self.reason
            ),
            None => write!(f, "{}: {}", self.file, self.reason),
        }
    }
}

/// Every rule in force, in the order they act. Immutable; shared by all sessions.
///
/// A built-in one is read when a command may be one it is for: most runs of the program need few of them, or none.
#[derive(Debug)]
pub struct Filters {
    /// The user's new rules.
    own: Vec<Rule>,
    places: Vec<Place>,
    disabled: Vec<String>,
}

/// The place of a built-in rule.
#[derive(Debug)]
pub(crate) struct Place {
    file: (&'static str, &'static str),
    /// What the commands begin with that it is for.
    starts: Option<&'static [&'static str]>,
    builtin: OnceLock<Option<Rule>>,
    /// The user's rule of its name.
    over: Option<Rule>,
}

/// Rule files by name.
type Files = &'static [(&'static str, &'static str)];

impl Filters {
    /// Puts the rules together.
    ///
    /// Shape:  `builtin` are files by name, each of one rule of that name, mostly [`BUILTIN`](crate::BUILTIN), which are known to
    ///         be right; `user` is the name and text of the user's file. A user's rule takes the place of the built-in rule of its
    ///         name; the user's other rules come first, and a command that one of them is for is left alone by the built-in ones. A
    ///         rule whose strategy cannot be used is as good as absent. A disabled name switches a built-in rule off.
    /// Errors: as warnings, each about what of the user's file is not used.
    pub fn load(builtin: Files, user: Option<(&str, &str)>) -> (Self, Vec<Warning>) {
        let File {
            rules: mut own,
            disabled,
            disabled_elsewhere,
            mut warnings,
            ..
        } = user.map_or_else(File::default, |(name, text)| {
            read(name, text, &Origin::User(name.to_owned()))
        });
        let user_file = user.map_or("", |(name, _)| name);
        let names = || builtin.iter().map(|file| rule_name(file.0));
        let unknown = disabled_elsewhere.into_iter();
        let unknown = unknown.filter(|off| names().all(|name| name != off));
        warnings.extend(unknown.map(|off| nothing_to_disable(user_file, off, names())));
        let mut places = Vec::with_capacity(builtin.len());
        for file in builtin {
            let name = rule_name(file.0);
            let over = own.iter().position(|rule| rule.name == name);
            let over = over.map(|rule_idx| own.remove(rule_idx));
            if over.is_some() || !disabled.iter().any(|off| off == name) {
                places.push(Place::of(*file, over));
            }
        }
        let filters = Self {
            own,
            places,
            disabled,
        };
        (filters, warnings)
    }

    /// Every rule, in the order they act.
    pub fn rules(&self) -> Vec<&Rule> {
        let in_place = self.places.iter().filter_map(Place::rule);
        self.own.iter().chain(in_place).collect()
    }

    /// The user's rules. No other names a strategy of a component.
    pub fn of_user(&self) -> impl Iterator<Item = &Rule> {
        let over = self.places.iter().filter_map(|place| place.over.as_ref());
        self.own.iter().chain(over)
    }

    /// The user's rules that take no built-in one's place.
    pub(crate) fn own(&self) -> &[Rule] {
        &self.own
    }

    /// The places of the built-in rules, in the order they act.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The names that the user's file switches off.
    pub fn disabled(&self) -> &[String] {
        &self.disabled
    }
}

impl Place {
    fn of(file: (&'static str, &'static str), over: Option<Rule>) -> Self {
        Self {
            file,
            starts: starts(rule_name(file.0)),
            builtin: OnceLock::new(),
            over,
        }
    }

    /// The rule that has it.
    fn rule(&self) -> Option<&Rule> {
        self.over.as_ref().or_else(|| self.builtin())
    }

    /// The user's rule that has it.
    pub(crate) fn over(&self) -> Option<&Rule> {
        self.over.as_ref()
    }

    /// The built-in rule.
    pub(crate) fn builtin(&self) -> Option<&Rule> {
        let read = || read_builtin(self.file.0, self.file.1).into_iter().next();
        self.builtin.get_or_init(read).as_ref()
    }

    /// The built-in rule, when a command that is spelled in one of these ways may be one it is for.
    pub(crate) fn builtin_for(&self, spellings: &[&str]) -> Option<&Rule> {
        let may_be = |start: &&str| spellings.iter().any(|text| text.starts_with(start));
        let is_other = self.starts.is_some_and(|starts| !starts.iter().any(may_be));
        if is_other { None } else { self.builtin() }
    }
}

/// A name that is switched off and is no rule's.
fn nothing_to_disable(
    file: &str,
    name: String,
    builtin: impl Iterator<Item = &'static str>,
) -> Warning {
    let near = nearest(&name, builtin);
    let near = near.map(|near| format!(" (did you mean `{near}`?)"));
    Warning {
        file: file.to_owned(),
        reason: format!(
            "no built-in rule of this name is there to be switched off{}",
            near.unwrap_or_default()
        ),
        rule: Some(name),
    }
}

/// The rule that a built-in file is named after: of `filters/rules/ls.toml`, `ls`.
fn rule_name(file_name: &str) -> &str {
    let name = file_name.rsplit('/').next().unwrap_or(file_name);
    name.strip_suffix(".toml").unwrap_or(name)
}

#[cfg(test)]
mod tests;
