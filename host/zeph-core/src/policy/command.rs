//! Patterns over simple commands, for the lists of `tools.shell` and the constraints of `tools.scoped`.
//!
//! `git push -f` means the command `git`, the words `push` and the flag `-f` wherever it stands, not these characters in this order.
//! These patterns only refuse or ask, so they match generously.

use regex::{Regex, RegexBuilder};

use super::bad::BadRule;
use super::globals;
use super::pattern::Pattern;
use super::permission::{Action, PermissionFit, PermissionRule};
use super::possible::{Possible, Reading, automaton};
use super::subject::{LinePart, LineTexts, SHELL};
use crate::command::{Becomes, SimpleCommand};

/// Marks a pattern that is a regular expression.
const REGEX_MARK: &str = "re:";

/// Most bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 1024;

/// Most bytes a compiled expression takes.
const REGEX_SIZE_MAX: usize = 1024 * 1024;

/// Characters of the shell's own grammar. A pattern that holds one is about the text of the line.
const STRUCTURE: [char; 11] = ['|', '&', ';', '<', '>', '(', ')', '{', '}', '$', '`'];

/// Characters that make a pattern a glob as well.
const WILDCARDS: [char; 2] = ['*', '?'];

/// Programs whose arguments and input are statements of SQL.
const SQL_CLIENTS: [&str; 8] = [
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "duckdb",
    "sqlcmd",
    "clickhouse-client",
    "cockroach",
];

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct CommandPattern {
    text: String,
    kind: CommandPatternKind,
    /// It as a glob, if it holds a wildcard. What it says literally counts besides.
    glob: Option<Box<CommandGlob>>,
}

/// A pattern with wildcards, which means what it would in `tools.permissions`.
#[derive(Debug, Clone)]
struct CommandGlob {
    rule: PermissionRule,
    /// The whole of an argument.
    argument: Pattern,
    /// The last names of a path or an address.
    end: Pattern,
}

#[derive(Debug, Clone)]
enum CommandPatternKind {
    /// A name, in lower case, and words and flags as given.
    Words {
        name: String,
        rest: Vec<String>,
    },
    /// Characters of the line, in lower case, without any white space.
    Structure(String),
    Regex(Regex),
}

impl CommandPattern {
    /// Reads a pattern.
    ///
    /// Shape: a command with the words and flags it must have; a piece of the line when it holds characters such as `|` or `$`; with `*` or
    /// `?` a glob over each simple command, as in `tools.permissions`; or `re:` and a regular expression over the line and each simple
    /// command. Case does not matter.
    /// Errors: an empty pattern, more than 1024 bytes, a glob or an expression that does not compile.
    pub fn new(text: &str) -> Result<Self, BadRule> {
        if text.trim().is_empty() {
            return Err(BadRule::new(
                text,
                "an empty pattern would match every command",
            ));
        }
        if text.len() > PATTERN_BYTES_MAX {
            let reason = format!("a pattern has at most {PATTERN_BYTES_MAX} bytes");
            return Err(BadRule::new(text, reason));
        }
        Ok(Self {
            text: text.trim().to_owned(),
            kind: kind(text)?,
            glob: glob(text.trim())?,
        })
    }

    /// As it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether an argument of a tool without a command holds it.
    pub(super) fn fits_text(&self, given: &str, lower: &str) -> bool {
        match &self.kind {
            CommandPatternKind::Regex(regex) => regex.is_match(given),
            _ => {
                let fits = |glob: &CommandGlob| glob.argument.fits(lower) || glob.end.fits(lower);
                lower.contains(&self.text.to_lowercase()) || self.glob.as_deref().is_some_and(fits)
            }
        }
    }

    /// How a part of `line` fits it as a glob.
    fn glob_fit(&self, line: &LineTexts<'_>, part: &LinePart<'_>) -> PermissionFit {
        let glob = self.glob.as_deref();
        glob.map_or(PermissionFit::No, |glob| glob.rule.fit_part(line, part))
    }

    /// Whether this part is what the pattern means.
    pub(super) fn fits_part(&self, line: &LineTexts<'_>, part: &LinePart<'_>) -> bool {
        let fits = match &self.kind {
            CommandPatternKind::Words { name, rest } => command_fits(name, rest, part.command),
            CommandPatternKind::Structure(_) => false,
            CommandPatternKind::Regex(regex) => {
                regex.is_match(&part.text.given)
                    || part.bare.as_ref().is_some_and(|bare| regex.is_match(bare))
            }
        };
        fits || self.glob_fit(line, part) == PermissionFit::Yes
    }

    /// Whether this part may become what the pattern means, by arguments that are not known.
    pub(super) fn may_fit_part(&self, line: &LineTexts<'_>, part: &LinePart<'_>) -> bool {
        let may_fit = match &self.kind {
            CommandPatternKind::Words { name, rest } => command_may_fit(name, rest, part.command),
            CommandPatternKind::Structure(_) => false,
            CommandPatternKind::Regex(regex) => {
                let possible = Possible::new(part.command, false);
                let pattern = || automaton(regex.as_str(), Reading::AnyCase);
                possible.is_some_and(|possible| possible.may_fit(pattern().as_ref()))
            }
        };
        may_fit || self.glob_fit(line, part) == PermissionFit::Maybe
    }

    /// Whether the line as a whole holds it, where its parts do not show it: structure, statements of SQL, and everything when not all
    /// parts are known.
    pub(super) fn fits_whole(&self, line: &LineTexts<'_>) -> bool {
        let fits = match &self.kind {
            CommandPatternKind::Structure(piece) => {
                let squeezed: String = line.whole.lower.split_whitespace().collect();
                squeezed.contains(piece)
            }
            CommandPatternKind::Regex(regex) => regex.is_match(&line.whole.given),
            CommandPatternKind::Words { rest, .. } => {
                let is_prose = !rest.is_empty() && rest.iter().all(|word| !word.starts_with('-'));
                let is_hidden = line.parts.is_empty() || !line.unknown.is_empty();
                (is_prose && !self.text.contains('=') || is_hidden || has_sql_client(line))
                    && holds_phrase(&line.whole.lower, &self.text.to_lowercase())
            }
        };
        let glob = self.glob.as_deref();
        fits || glob.is_some_and(|glob| glob.rule.fits_whole(line))
    }
}

/// `text` as a glob, if it holds a wildcard. One that is about the shell's own grammar need not be a glob.
fn glob(text: &str) -> Result<Option<Box<CommandGlob>>, BadRule> {
    if text.starts_with(REGEX_MARK) || !text.contains(WILDCARDS) {
        return Ok(None);
    }
    let glob = || {
        Ok(Box::new(CommandGlob {
            rule: PermissionRule::new(SHELL, text, Action::Deny, "/")?,
            argument: Pattern::new(text)?,
            end: Pattern::new(&format!("*/{text}"))?,
        }))
    };
    match glob() {
        Err(_) if text.contains(STRUCTURE) => Ok(None),
        glob => glob.map(Some),
    }
}

fn kind(text: &str) -> Result<CommandPatternKind, BadRule> {
    if let Some(expression) = text.strip_prefix(REGEX_MARK) {
        let regex = RegexBuilder::new(expression)
            .case_insensitive(true)
            .size_limit(REGEX_SIZE_MAX)
            .build()
            .map_err(|error| {
                BadRule::new(text, crate::failure::one_line(&error.to_string(), 300))
            })?;
        return Ok(CommandPatternKind::Regex(regex));
    }
    if text.contains(STRUCTURE) {
        let lower = text.to_lowercase();
        return Ok(CommandPatternKind::Structure(
            lower.split_whitespace().collect(),
        ));
    }
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default().to_lowercase();
    Ok(CommandPatternKind::Words {
        name,
        rest: words.map(str::to_owned).collect(),
    })
}

fn has_sql_client(line: &LineTexts<'_>) -> bool {
    line.parts
        .iter()
        .any(|part| SQL_CLIENTS.contains(&part.command.base_name()))
}

/// Whether `phrase` stands in `lower` as whole words at its start, whatever white space is between its words.
fn holds_phrase(lower: &str, phrase: &str) -> bool {
    let lower: Vec<&str> = lower.split_whitespace().collect();
    let lower = lower.join(" ");
    let starts_word = |at: usize| {
        let before = lower[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !matches!(before, '-' | '_' | '.'))
    };
    lower
        .match_indices(phrase)
        .any(|(at, _)| starts_word(at) && ends_word(&lower[at..], phrase))
}

fn ends_word(rest: &str, phrase: &str) -> bool {
    let after = rest[phrase.len()..].chars().next();
    phrase.ends_with('=')
        || after.is_none_or(|after| !after.is_alphanumeric() && !matches!(after, '-' | '_'))
}

/// The name of `command` in lower case, when it is what a pattern means by `name`.
fn named(name: &str, command: &SimpleCommand) -> Option<String> {
    let given = if name.contains('/') {
        &command.name
    } else {
        command.base_name()
    };
    let given = given.to_lowercase();
    // `mkfs.ext4` is mkfs.
    let is_named = given == name
        || given
            .strip_prefix(name)
            .is_some_and(|tail| tail.starts_with('.'));
    is_named.then_some(given)
}

/// Whether arguments that are not known can be the words and flags that are missing.
fn command_may_fit(name: &str, rest: &[String], command: &SimpleCommand) -> bool {
    let Some(given) = named(name, command) else {
        return false;
    };
    let is_open = |becomes: Becomes| becomes != Becomes::Operand;
    let holes = || command.holes.iter().filter(|hole| is_open(hole.becomes));
    let text = |hole: &crate::command::Hole| {
        let word = command.arguments.get(hole.argument);
        word.map_or("", |word| word.get(..hole.start).unwrap_or_default())
    };
    let may_be_flag = holes().any(|hole| text(hole).is_empty() || text(hole).starts_with('-'));
    let may_be_operand = |operand: &str| {
        let operand = operand.to_lowercase();
        holes().any(|hole| operand.starts_with(&text(hole).to_lowercase()))
    };
    let may_be_word = holes().any(|hole| !text(hole).starts_with('-'));
    let words: Vec<&String> = rest.iter().filter(|word| !is_special(word)).collect();
    rest.iter().all(|word| match word {
        flag if flag.starts_with('-') => may_be_flag || has_flag(&given, command, flag),
        operand if operand.ends_with('=') => {
            may_be_operand(operand) || has_operand(command, operand)
        }
        _ => true,
    }) && (words_fit(command, &words) || may_be_word && words_may_fit(command, &words))
}

fn is_special(word: &str) -> bool {
    word.starts_with('-') || word.ends_with('=')
}

/// Whether `words` could be the first words of `command`: those that are known before the first that is not agree.
fn words_may_fit(command: &SimpleCommand, words: &[&String]) -> bool {
    let known = command.holes.iter().map(|hole| hole.argument).min();
    let known = command.arguments.iter().take(known.unwrap_or_default());
    let known = known.filter(|word| !word.starts_with('-'));
    // Behind an option a word may be its value.
    let has_option = command
        .arguments
        .first()
        .is_some_and(|word| word.starts_with('-'));
    has_option
        || known
            .zip(words)
            .all(|(given, word)| given.eq_ignore_ascii_case(word))
}

fn command_fits(name: &str, rest: &[String], command: &SimpleCommand) -> bool {
    let Some(given) = named(name, command) else {
        return false;
    };
    let (flags, words): (Vec<&String>, Vec<&String>) =
        rest.iter().partition(|word| word.starts_with('-'));
    let (operands, words): (Vec<&String>, Vec<&String>) =
        words.into_iter().partition(|word| word.ends_with('='));
    flags.iter().all(|flag| has_flag(&given, command, flag))
        && operands.iter().all(|operand| has_operand(command, operand))
        && words_fit(command, &words)
}

/// Whether an argument begins with `operand`, such as `if=`, wherever it stands.
fn has_operand(command: &SimpleCommand, operand: &str) -> bool {
    let operand = operand.to_lowercase();
    let mut given = command.arguments.iter();
    given.any(|argument| argument.to_lowercase().starts_with(&operand))
}

/// Whether the first words of `command` are `words`.
fn words_fit(command: &SimpleCommand, words: &[&String]) -> bool {
    let start = globals::end(command).unwrap_or_default();
    let given = command.arguments.iter().skip(start).map(String::as_str);
    let mut given = given.filter(|word| !word.starts_with('-'));
    words.iter().all(|word| {
        let given = given.next().map(str::to_lowercase);
        given.is_some_and(|given| given == word.to_lowercase())
    })
}

fn has_flag(name: &str, command: &SimpleCommand, flag: &str) -> bool {
    if name == "rm"
        && let Some(letters) = rm_letters(flag)
    {
        let given = RmFlags::of(command);
        return letters.chars().all(|letter| match letter {
            'r' | 'R' => given.is_recursive,
            'f' => given.is_forced,
            _ => true,
        });
    }
    let is_long = flag.starts_with("--");
    let letters = flag.trim_start_matches('-');
    command.arguments.iter().any(|argument| {
        if is_long {
            // Programs take the beginning of a long option for all of it.
            let name = argument.split('=').next().unwrap_or_default();
            return name.len() > 2 && flag.starts_with(name);
        }
        argument == flag
            || letters.chars().count() == 1 && is_cluster(argument) && argument.contains(letters)
    })
}

fn is_cluster(argument: &str) -> bool {
    argument.len() > 1 && argument.starts_with('-') && !argument.starts_with("--")
}

/// A flag of rm as letters.
fn rm_letters(flag: &str) -> Option<String> {
    match flag {
        "--recursive" => Some("r".to_owned()),
        "--force" => Some("f".to_owned()),
        _ if flag.starts_with("--") => None,
        _ => Some(flag.trim_start_matches('-').to_owned()),
    }
}

/// What the flags of an `rm` come to, in whatever way they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RmFlags {
    pub(super) is_recursive: bool,
    pub(super) is_forced: bool,
}

impl RmFlags {
    pub(super) fn of(command: &SimpleCommand) -> Self {
        let mut flags = Self {
            is_recursive: false,
            is_forced: false,
        };
        for argument in &command.arguments {
            if argument == "--" {
                break;
            }
            if is_cluster(argument) {
                flags.is_recursive |= argument.contains(['r', 'R']);
                flags.is_forced |= argument.contains('f');
            } else if argument.len() > 2 && argument.starts_with("--") {
                // Any beginning of a long option is that option.
                flags.is_recursive |= "--recursive".starts_with(argument.as_str());
                flags.is_forced |= "--force".starts_with(argument.as_str());
            }
        }
        flags
    }
}
