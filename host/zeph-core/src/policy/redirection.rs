//! Redirections that write, as rules see them: which of them need a rule, and the patterns that spell one.
//!
//! `ls > notes` writes to `notes` whatever is known of `ls`. It needs a rule for the command that spells it (`ls > notes`), or one that
//! lets `write` change the file.

use std::path::{Component, Path};

use super::Policy;
use super::bad::BadRule;
use super::pattern::Pattern;
use super::subject::{LinePart, LineTexts, Text};
use crate::command::{CommandLine, Redirection};

/// Devices that keep nothing.
const SINKS: [&str; 1] = ["/dev/null"];

/// Names of the streams a command was given.
const STREAMS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"];

/// Directories that are made for one command, where the jail makes them.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// A redirection that changes a persistent file.
#[derive(Debug)]
pub(super) struct Write<'a> {
    pub(super) redirection: &'a Redirection,
    /// Every file it may be; `None` when that cannot be known.
    pub(super) places: Option<Vec<Text>>,
}

impl Write<'_> {
    /// The redirection as it would be written: `> notes`.
    pub(super) fn shown(&self) -> String {
        let target = self.redirection.target.as_deref().unwrap_or("…");
        format!("{} {target}", self.redirection.operator)
    }
}

/// The redirections of `line` that need a rule: not those to descriptors, to `/dev/null` and to the private `/tmp`.
pub(super) fn writes<'a>(policy: &Policy, line: &'a CommandLine) -> Vec<Write<'a>> {
    let given = |idx: usize| line.places.redirections.get(idx).cloned().flatten();
    let writing = line.redirections.iter().enumerate();
    let writing = writing.filter(|(_, redirection)| redirection.writes);
    writing
        .filter(|(_, redirection)| !is_free(policy, line, redirection))
        .map(|(idx, redirection)| Write {
            redirection,
            places: given(idx)
                .map(|places| places.iter().map(|path| Text::of_path(path)).collect()),
        })
        .collect()
}

fn is_free(policy: &Policy, line: &CommandLine, redirection: &Redirection) -> bool {
    let Some(target) = redirection.target.as_deref() else {
        return false;
    };
    // A stream that was opened from a file would be that file, opened anew.
    let reads = line.redirections.iter().any(|other| !other.writes);
    let is_stream = STREAMS.contains(&target) && !reads;
    SINKS.contains(&target)
        || is_stream
        || (line.places.has_private_tmp && is_temporary(policy, target))
}

/// Strictly below a temporary directory, and not in one of the operator's that happens to lie there.
fn is_temporary(policy: &Policy, target: &str) -> bool {
    let path = Path::new(target);
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_below = TEMPORARY
        .iter()
        .any(|top| path != Path::new(top) && path.starts_with(top));
    let is_kept = policy
        .roots
        .iter()
        .chain([&policy.directory])
        .any(|root| !root.as_os_str().is_empty() && path.starts_with(root));
    is_plain && is_below && !is_kept
}

/// A pattern that spells a redirection: `cargo doc* > target/doc.log`.
#[derive(Debug, Clone)]
pub(super) struct SpelledRedirection {
    /// Over the command; without any text for a redirection without one.
    command: Pattern,
    operator: String,
    /// Over the resolved path.
    target: Pattern,
}

impl SpelledRedirection {
    /// What `pattern` spells: its last operator with what follows it; `None` when it holds none. A relative path starts in `directory`.
    pub(super) fn read(pattern: &str, directory: &str) -> Result<Option<Self>, BadRule> {
        let Some((command, operator, target)) = split(pattern) else {
            return Ok(None);
        };
        Ok(Some(Self {
            command: Pattern::new(command)?,
            operator: same(operator),
            target: Pattern::path(target, directory)?,
        }))
    }

    /// Whether it is `write`, a redirection of a command it is about.
    pub(super) fn fits(&self, line: &LineTexts<'_>, write: &Write<'_>) -> bool {
        let commands = write.redirection.commands.clone();
        let is_of = match commands.is_empty() {
            true => self.command.text.is_empty(),
            false => commands.into_iter().any(|idx| {
                let part = line.parts.get(idx);
                part.is_some_and(|part| self.command.fits_command(&part.text.lower))
            }),
        };
        is_of && same(&write.redirection.operator) == self.operator && self.leads_to(write)
    }

    /// Whether it spells a redirection of `part`: such a rule is for the command too.
    pub(super) fn fits_part(&self, line: &LineTexts<'_>, part: &LinePart<'_>) -> bool {
        self.command.fits_command(&part.text.lower)
            && line.writes.iter().any(|write| {
                write.redirection.commands.contains(&part.idx) && self.fits(line, write)
            })
    }

    fn leads_to(&self, write: &Write<'_>) -> bool {
        let places = write.places.as_deref().unwrap_or_default();
        !places.is_empty() && places.iter().all(|place| self.target.fits(&place.lower))
    }
}

/// `make > log 2>&1` → `make`, `>`, `log`.
fn split(pattern: &str) -> Option<(&str, &str, &str)> {
    let mut end = pattern.len();
    let mut rest = pattern.trim_end();
    loop {
        let word = rest.rsplit(char::is_whitespace).next().unwrap_or_default();
        let start = rest.len() - word.len();
        if let Some((operator, glued)) = operator(word) {
            let is_duplicate = operator.ends_with('&')
                && glued
                    .trim_end_matches('-')
                    .bytes()
                    .all(|b| b.is_ascii_digit())
                && !glued.is_empty();
            if is_duplicate {
                end = start;
            } else {
                let target = pattern[start + operator.len()..end].trim();
                let command = pattern[..start].trim();
                return (!target.is_empty()).then_some((command, operator, target));
            }
        }
        rest = rest[..start].trim_end();
        if rest.is_empty() {
            return None;
        }
    }
}

/// The operator that `word` begins with, and what follows it.
fn operator(word: &str) -> Option<(&str, &str)> {
    let at = word.find(['>', '<'])?;
    let before = &word[..at];
    let is_descriptor = before.bytes().all(|b| b.is_ascii_digit())
        || before == "&"
        || (before.starts_with('{') && before.ends_with('}'));
    let symbols = [">>", ">|", ">&", "<>", ">"];
    let symbol = symbols
        .iter()
        .find(|symbol| word[at..].starts_with(**symbol))?;
    is_descriptor.then(|| word.split_at(at + symbol.len()))
}

/// A common spelling for equivalent operators.
fn same(operator: &str) -> String {
    match operator {
        "1>" | ">|" | "1>|" => ">".to_owned(),
        "1>>" => ">>".to_owned(),
        ">&" => "&>".to_owned(),
        other => other.trim_end_matches('|').to_owned(),
    }
}
