//! Words of a `make` that run more than the makefile says: variables of its own, and values in its language or that of the shell.
//!
//! A makefile is code of the project, as a rule for `make` allows it; what the words of the line make of it is not.

use super::super::super::value::Value;
use crate::leading;

/// Variables whose value is a command or decides how make runs one, whatever it is.
const RUN: &[&str] = &[
    ".SHELLFLAGS",
    "GNUMAKEFLAGS",
    "MAKE",
    "MAKEFILES",
    "MAKEFLAGS",
    "MAKESHELL",
    "MFLAGS",
    "SHELL",
];

/// Characters of a value with which a recipe that it stands in runs another command.
const ENDS_COMMAND: [char; 5] = ['`', ';', '|', '&', '\n'];

/// Whether an argument runs a command that the makefile does not name.
pub(in super::super) fn acts(arguments: &[Value]) -> bool {
    let is_given = |option: &str| !super::super::carriers::values(arguments, option).is_empty();
    is_given("--eval") || is_given("-E") || arguments.iter().any(sets)
}

/// Whether `NAME=value`, or one of its other forms, leads make elsewhere.
fn sets(word: &Value) -> bool {
    let Some((name, value)) = word.text.split_once('=') else {
        return false;
    };
    if name.starts_with('-') {
        return false;
    }
    let bare = name.trim_end_matches([':', '+', '?', ' ']);
    // `NAME!=command`.
    let is_command = bare.ends_with('!');
    let is_led = RUN.contains(&bare) || !is_tame_tool(bare, word, value);
    is_command || is_led || calls(word, name.len()) || ends_command(word, name.len())
}

/// Whether the value of the variable for a compiler or its options is one that it may have in the environment too.
fn is_tame_tool(name: &str, word: &Value, value: &str) -> bool {
    !leading::is_tool(name) || !word.is_literal || leading::is_tame(name, value)
}

/// Whether a value holds more of make's language than the names of variables: `$(shell …)`, `${file …}`.
fn calls(word: &Value, start: usize) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.@<^*%?".contains(c);
    let is_call = |(at, _): (usize, &str)| {
        let inside = &word.text[at + 2..];
        let end = inside.find([')', '}']).unwrap_or(inside.len());
        at > start && is_quoted(word, at) && !inside[..end].chars().all(is_name)
    };
    let mut starts = ["$(", "${"]
        .iter()
        .flat_map(|mark| word.text.match_indices(mark));
    starts.any(is_call)
}

/// Whether a recipe with the value in it would run another command.
fn ends_command(word: &Value, start: usize) -> bool {
    let mut places = word.text.match_indices(ENDS_COMMAND);
    places.any(|(at, _)| at > start && is_quoted(word, at))
}

/// Whether the line itself holds the character, rather than what it makes while it runs.
fn is_quoted(word: &Value, at: usize) -> bool {
    let mut holes = word.holes.iter();
    !holes.any(|hole| (hole.start..hole.end).contains(&at))
}
