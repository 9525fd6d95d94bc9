//! The rules in force: the built-in ones with the user's file over them.

use std::sync::LazyLock;

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
/// The built-in ones are read when a rule is first asked for: most runs of the program filter nothing.
#[derive(Debug)]
pub struct Filters {
    rules: LazyLock<Vec<Rule>, Merge>,
    disabled: Vec<String>,
}

/// Puts the rules together.
type Merge = Box<dyn FnOnce() -> Vec<Rule> + Send + Sync>;

/// Rule files by name.
type Files = &'static [(&'static str, &'static str)];

impl Filters {
    /// Puts the rules together.
    ///
    /// Shape:  `builtin` are files by name, mostly [`BUILTIN`](crate::BUILTIN), which are known to be right; `user` is the name and
    ///         text of the user's file. A user's rule takes the place of the built-in rule of its name; the user's other rules come
    ///         first, and a command that one of them is for is left alone by the built-in ones. A rule whose strategy cannot be
    ///         used is as good as absent. A disabled name switches a built-in rule off.
    /// Errors: as warnings, each about what of the user's file is not used.
    pub fn load(builtin: Files, user: Option<(&str, &str)>) -> (Self, Vec<Warning>) {
        let File {
            rules,
            disabled,
            warnings,
            ..
        } = user.map_or_else(File::default, |(name, text)| {
            read(name, text, &Origin::User(name.to_owned()))
        });
        let of_merge = disabled.clone();
        let merge: Merge = Box::new(move || {
            let defaults = builtin
                .iter()
                .flat_map(|(name, text)| read_builtin(name, text));
            merge(defaults.collect(), rules, &of_merge)
        });
        let filters = Self {
            rules: LazyLock::new(merge),
            disabled,
        };
        (filters, warnings)
    }

    /// Every rule, in the order they act.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The names that the user's file switches off.
    pub fn disabled(&self) -> &[String] {
        &self.disabled
    }
}

/// The user's new rules, then the built-in ones, each as the user has it.
fn merge(defaults: Vec<Rule>, user: Vec<Rule>, disabled: &[String]) -> Vec<Rule> {
    let is_default = |rule: &Rule| defaults.iter().any(|default| default.name == rule.name);
    let (mut over, mut rules): (Vec<_>, Vec<_>) = user.into_iter().partition(is_default);
    for default in defaults {
        match over.iter().position(|rule| rule.name == default.name) {
            Some(rule_idx) => rules.push(Rule {
                replaced: Some(Box::new(default)),
                ..over.swap_remove(rule_idx)
            }),
            None if disabled.contains(&default.name) => {}
            None => rules.push(default),
        }
    }
    rules
}

#[cfg(test)]
mod tests;
