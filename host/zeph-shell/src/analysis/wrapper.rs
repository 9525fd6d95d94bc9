//! Commands that run other commands: which of their arguments is the command they run.
//!
//! Options are read by tables of what each wrapper knows. An option that is not in its table may or may not take the next
//! word, so the wrapped command is not known then; guessing would let it be hidden.

use zeph_core::command::Wraps;

use super::value::Value;

mod appliers;
mod builtins;
mod carriers;
mod git;
mod languages;
mod options;
mod runners;
mod settings;
mod shells;
mod spoken;
mod synonyms;
mod table;

/// What a command runs besides itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) wraps: Wraps,
    pub(super) inner: Vec<WrappedCommand>,
    /// Why something it runs is not known.
    pub(super) unknown: Option<&'static str>,
}

/// Something that is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WrappedCommand {
    /// A command, word by word.
    Words(Vec<Value>),
    /// A command, word by word, that is covered by the rule of its runner.
    Within(Vec<Value>),
    /// Words that may be such a command: only what rules that deny or ask say of it counts.
    Guess(Vec<Value>),
    /// A text that `sh` reads, or whichever shell a user has.
    Text(Value),
    /// A text that bash reads.
    Bash(Value),
    /// A text that the shell reads that reads the command.
    Same(Value),
    /// What a shell finds on its standard input.
    Input,
    /// What a program with a language of its own finds there.
    Statements,
}

impl WrappedCommand {
    /// Whether it is this value of an option.
    fn is_text(&self, value: &Value) -> bool {
        match self {
            Self::Text(text) | Self::Bash(text) | Self::Same(text) => text == value,
            Self::Words(words) | Self::Within(words) | Self::Guess(words) => {
                words.first() == Some(value)
            }
            Self::Input | Self::Statements => false,
        }
    }
}

impl Look {
    pub(super) fn nothing() -> Self {
        Self {
            wraps: Wraps::Nothing,
            inner: Vec::new(),
            unknown: None,
        }
    }

    fn unknown(wraps: Wraps, reason: &'static str) -> Self {
        Self {
            wraps,
            inner: Vec::new(),
            unknown: Some(reason),
        }
    }

    fn one(wraps: Wraps, inner: WrappedCommand) -> Self {
        Self {
            wraps,
            inner: vec![inner],
            unknown: None,
        }
    }

    /// Merges what two tables say about one command.
    fn and(mut self, other: Self) -> Self {
        if self.wraps == Wraps::Nothing {
            self.wraps = other.wraps;
        }
        self.inner.extend(other.inner);
        self.unknown = self.unknown.or(other.unknown);
        self
    }

    /// The command in `words`; nothing is run when there is none.
    fn words(wraps: Wraps, words: &[Value]) -> Self {
        match words.first() {
            None => Self::nothing(),
            Some(first) if first.text.starts_with('-') => Self::unknown(wraps, UNREADABLE),
            Some(_) => Self::one(wraps, WrappedCommand::Words(words.to_vec())),
        }
    }
}

/// Programs of GNU that have a `g` before their name on other systems.
const GNU: &[&str] = &[
    "chroot", "env", "nice", "nohup", "sort", "split", "stdbuf", "tar",
];

/// The name under which the tables know a program.
fn usual_name(name: &str) -> &str {
    let bare = name.strip_prefix('g').filter(|bare| GNU.contains(bare));
    bare.unwrap_or(name)
}

/// Options that no table knows.
const UNREADABLE: &str = "the command it runs cannot be determined from its options";

pub(super) use builtins::is_input;
pub(super) use languages::statements_act;
pub(super) use synonyms::usual;

/// The arguments of the form `NAME=value` with which a wrapper sets variables for what it runs.
pub(super) fn settings(name: &str, arguments: &[Value]) -> Vec<Value> {
    match name {
        "env" => shells::split_out(arguments),
        "strace" | "ltrace" => ["-E", "--env"]
            .iter()
            .flat_map(|option| carriers::values(arguments, option))
            .collect(),
        // The value is the number of the slot.
        "xargs" => carriers::values(arguments, "--process-slot-var")
            .iter()
            .map(|name| Value::literal(&format!("{}=0", name.text)))
            .collect(),
        _ => arguments.to_vec(),
    }
}

/// Looks whether `name`, a program without folders, runs something named in `arguments`.
pub(super) fn look(name: &str, arguments: &[Value]) -> Look {
    let name = usual_name(name);
    let parts = [
        builtins::look,
        shells::look,
        appliers::look,
        git::look,
        languages::look,
        carriers::look,
        runners::look,
        settings::look,
        settings::programs,
        table::look,
    ];
    let looks = parts.iter().filter_map(|look| look(name, arguments));
    spoken::look(name, arguments, looks.fold(Look::nothing(), Look::and))
}
