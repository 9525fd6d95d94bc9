//! What would let a call run: rules for `--allow`, ready to be copied.

use std::path::Path;

use super::allow::escape;
use super::redirection::Write;
use super::subject::{LinePart, LineTexts, SHELL, WRITER};

/// Most rules named in one refusal. More is a script, which a person should read.
const RULES_MAX: usize = 4;

/// Longest command line that is offered as a rule of its own.
const EXACT_CHARS_MAX: usize = 200;

/// Programs whose arguments say what is removed, overwritten or ended: a rule for the name would allow them to do that to anything.
const ABOUT_ARGUMENTS: [&str; 20] = [
    "chgrp", "chmod", "chown", "cp", "dd", "install", "kill", "killall", "ln", "mv", "pkill", "rm",
    "rmdir", "rsync", "setfacl", "shred", "tee", "truncate", "unlink", "xargs",
];

/// The rules that would allow the parts and the writes nothing allows, or the very text when it holds what cannot be known.
pub(super) fn rules(
    directory: &Path,
    line: &LineTexts<'_>,
    parts: &[&LinePart<'_>],
    writes: &[&Write<'_>],
) -> Vec<String> {
    if line.unknown.is_empty() && !(parts.is_empty() && writes.is_empty()) {
        let parts = parts.iter().map(|part| of_part(part));
        let writes = writes.iter().flat_map(|write| of_write(directory, write));
        let mut rules = Vec::new();
        for rule in parts.chain(writes) {
            if !rules.contains(&rule) && rules.len() < RULES_MAX {
                rules.push(rule);
            }
        }
        return rules;
    }
    exactly(line)
}

/// The rule that allows the very text.
pub(super) fn exactly(line: &LineTexts<'_>) -> Vec<String> {
    exact_rule(&line.whole.given).into_iter().collect()
}

/// The rule that allows this text alone, if it is short and plain.
fn exact_rule(text: &str) -> Option<String> {
    let is_short = text.chars().count() <= EXACT_CHARS_MAX;
    let is_plain = !text.chars().any(char::is_control);
    (is_short && is_plain && !text.is_empty()).then(|| format!("{SHELL}:{}", escape(text)))
}

/// `cargo build --release` → `bash:cargo build*`, `ls -l` → `bash:ls *`, `make` → `bash:make`. Where options of the program stand before what
/// it is to do, or what it does it to is all that matters, a rule for its name would allow anything: `git -C a push` → `bash:git -C a push`,
/// `rm -r out` → `bash:rm -r out`.
fn of_part(part: &LinePart<'_>) -> String {
    if (part.without_globals.is_some() || is_about_arguments(&part.command.name))
        && let Some(rule) = exact_rule(&part.text.given)
    {
        return rule;
    }
    let name = escape(&plain(&part.command.name));
    match part.command.arguments.first() {
        None => format!("{SHELL}:{name}"),
        Some(word) if is_subcommand(word) => format!("{SHELL}:{name} {word}*"),
        Some(_) => format!("{SHELL}:{name} *"),
    }
}

fn is_about_arguments(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    ABOUT_ARGUMENTS.contains(&name)
}

/// `> src/a` → `write:src/a`. A path in the directory where relative patterns start is written as one of them.
fn of_write(directory: &Path, write: &Write<'_>) -> Vec<String> {
    let [tool, _] = WRITER;
    let places = write.places.iter().flatten();
    let texts = places.map(|place| {
        let path = Path::new(&place.given);
        let below = path.strip_prefix(directory).unwrap_or(path);
        format!("{tool}:{}", escape(&plain(&below.to_string_lossy())))
    });
    texts.collect()
}

fn is_subcommand(word: &str) -> bool {
    let mut letters = word.chars();
    word.len() <= 32
        && letters
            .next()
            .is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|letter| letter.is_ascii_lowercase() || letter == '-')
}

fn plain(name: &str) -> String {
    crate::failure::one_line(name, EXACT_CHARS_MAX)
}

/// `text` as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:,@+=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `--allow A --allow B`.
pub(super) fn flags(rules: &[String]) -> String {
    let flags: Vec<String> = rules
        .iter()
        .map(|rule| format!("--allow {}", quoted(rule)))
        .collect();
    flags.join(" ")
}
