//! A rule: which outputs, and what is done with them.

mod read;
mod starts;

use std::sync::OnceLock;

use regex::Regex;
use zeph_strategies::{Automaton, Coverage, Definition, Strategy};

use crate::apply::Foreign;
use crate::command::{Spoken, flag};
pub(crate) use read::{File, RawCase, read, read_builtin};

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It came with the program.
    Builtin,
    /// It stands in the user's file of this name.
    User(String),
}

/// One rule in force.
pub struct Rule {
    /// Its name, unique among all rules.
    pub name: String,
    /// Where it stands.
    pub origin: Origin,
    pub(crate) matcher: Matcher,
    pub(crate) unless_flags: Vec<String>,
    pub(crate) action: Action,
}

/// Which commands a rule is for.
#[derive(Debug)]
pub(crate) enum Matcher {
    Exact(String),
    Prefix(String),
    Regex(Pattern),
}

/// An expression, compiled when it is first needed: every process would pay for thirty of them to use one.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: String,
    /// What commands it is for begin with, if that is known.
    starts: Option<Vec<String>>,
    made: OnceLock<Expression>,
}

/// An expression that only whole commands are compared with.
#[derive(Debug)]
enum Expression {
    /// Of a built-in rule: what compiles fastest, because every process that filters does it anew.
    Builtin(Box<Automaton>),
    /// Of a user's rule, in the notation that the manual describes.
    User(Regex),
}

/// What a rule does.
pub(crate) enum Action {
    /// A strategy of this program, made when it is first needed.
    Native {
        definition: &'static Definition,
        options: String,
        made: OnceLock<Option<Box<dyn Strategy>>>,
    },
    /// A strategy of a component.
    Foreign { name: String, options: String },
}

/// Why a rule does not act on a command.
pub(crate) enum Miss {
    /// It is for other commands.
    Other,
    /// It is for this command, but something switches it off.
    Off(String),
}

impl Rule {
    /// The strategy as rules name it.
    pub fn strategy(&self) -> String {
        match &self.action {
            Action::Native { definition, .. } => definition.name.to_owned(),
            Action::Foreign { name, .. } => format!("{FOREIGN}{name}"),
        }
    }

    /// The strategy's name when a component offers it, without the `wasm:` before it.
    pub fn foreign(&self) -> Option<&str> {
        match &self.action {
            Action::Foreign { name, .. } => Some(name),
            Action::Native { .. } => None,
        }
    }

    /// Why its strategy cannot be used; `None` when it can. The host's own strategies were made when the rule was read.
    pub fn problem(&self, foreign: &dyn Foreign) -> Option<String> {
        match &self.action {
            Action::Foreign { name, options } => foreign.problem(name, options),
            Action::Native { .. } => None,
        }
    }

    /// How it selects commands, for people: `regex ^git status`.
    pub fn matches(&self) -> String {
        match &self.matcher {
            Matcher::Exact(text) => format!("exact {text}"),
            Matcher::Prefix(text) => format!("prefix {text}"),
            Matcher::Regex(pattern) => format!("regex {}", pattern.text),
        }
    }

    /// The options of its strategy, as JSON.
    pub fn options(&self) -> &str {
        match &self.action {
            Action::Native { options, .. } | Action::Foreign { options, .. } => options,
        }
    }

    pub(crate) fn check(&self, spoken: &Spoken<'_>) -> Result<(), Miss> {
        if !self.matcher.is_match(&spoken.written) && !self.matcher.is_match(&spoken.plain) {
            return Err(Miss::Other);
        }
        if let Some(flag) = flag(spoken.arguments, &self.unless_flags) {
            return Err(Miss::Off(format!("`{flag}` asks for another format")));
        }
        if spoken.is_one_of_several && self.coverage() == Coverage::Unrecognised {
            let strategy = self.strategy();
            return Err(Miss::Off(format!(
                "several commands print, and `{strategy}` would drop what the others printed"
            )));
        }
        Ok(())
    }

    /// Whether the output is made of what people wrote, patches or messages, which may speak of errors.
    pub(crate) fn shows_content(&self) -> bool {
        match self.strategy().as_str() {
            "git_diff" => true,
            "truncate" => self.options().contains("\"record\":"),
            _ => false,
        }
    }

    pub(crate) fn coverage(&self) -> Coverage {
        match &self.action {
            Action::Native { definition, .. } => definition.coverage,
            Action::Foreign { .. } => Coverage::Unrecognised,
        }
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rule")
            .field("name", &self.name)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl Matcher {
    fn is_match(&self, command: &str) -> bool {
        match self {
            Self::Exact(text) => command == text,
            Self::Prefix(text) => command.starts_with(text),
            Self::Regex(pattern) => pattern.is_match(command),
        }
    }
}

impl Pattern {
    /// An expression; `regex` is what was made of it, or `None` when it is a built-in one and known to be right.
    fn new(text: &str, regex: Option<Regex>) -> Self {
        let made = regex.map(Expression::User);
        Self {
            text: text.to_owned(),
            starts: starts::starts(text),
            made: made.map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    /// What commands it is for begin with, if that is known.
    #[cfg(test)]
    pub(crate) fn starts(&self) -> Option<&[String]> {
        self.starts.as_deref()
    }

    fn is_match(&self, command: &str) -> bool {
        let begins = |start: &String| command.starts_with(start.as_str());
        if let Some(starts) = &self.starts
            && !starts.iter().any(begins)
        {
            return false;
        }
        let builtin = || Expression::Builtin(Box::new(Automaton::new(&self.text)));
        match self.made.get_or_init(builtin) {
            Expression::Builtin(automaton) => automaton.is_match(command),
            Expression::User(regex) => regex.is_match(command),
        }
    }
}

/// How rules name a strategy that a component offers.
pub(crate) const FOREIGN: &str = "wasm:";
