//! Builtins that run text, or that change what a name means.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::options::ProgramOptions;
use super::{Look, WrappedCommand};

pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    match name {
        "eval" => Some(eval(arguments)),
        "trap" => Some(trap(arguments)),
        "alias" => Some(alias(arguments)),
        "source" | "." => Some(source(arguments)),
        "mapfile" | "readarray" => Some(with_option(arguments, "C", "`mapfile -C` runs text")),
        "hash" => Some(with_option(
            arguments,
            "p",
            "`hash -p` changes what a name runs",
        )),
        "enable" => Some(with_option(
            arguments,
            "fn",
            "`enable` loads code into the shell, or makes a program of a builtin",
        )),
        "bind" => Some(with_option(
            arguments,
            "xfrpsv",
            "`bind` runs text at a key",
        )),
        "compgen" | "complete" => Some(with_option(arguments, "CFW", "a completion runs text")),
        "set" => Some(set(arguments)),
        "shopt" if arguments.iter().any(changes_reading) => {
            Some(Look::unknown(Wraps::Nothing, READING))
        }
        "jobs" => Some(with_option(arguments, "x", "`jobs -x` runs a command")),
        "fc" => Some(Look::unknown(
            Wraps::Nothing,
            "`fc` runs what was run before",
        )),
        "history" => Some(with_option(
            arguments,
            "anrw",
            "`history` reads or writes a file",
        )),
        _ => None,
    }
}

/// `eval` runs its arguments, joined by spaces.
fn eval(arguments: &[Value]) -> Look {
    let arguments = match arguments.first() {
        Some(first) if first.text == "--" => arguments.get(1..).unwrap_or_default(),
        _ => arguments,
    };
    if arguments.is_empty() {
        return Look::nothing();
    }
    Look {
        inner: vec![WrappedCommand::Same(joined(arguments))],
        ..Look::unknown(
            Wraps::Transparently,
            "`eval` runs text that is made while it runs",
        )
    }
}

/// `trap TEXT SIGNAL…`; `-` and the empty text run nothing.
fn trap(arguments: &[Value]) -> Look {
    let arguments = match arguments.first() {
        Some(first) if first.text == "--" => arguments.get(1..).unwrap_or_default(),
        _ => arguments,
    };
    match arguments {
        [] | [_] => Look::nothing(),
        [text, ..] if matches!(text.text.as_str(), "" | "-" | "-p" | "-l") && text.is_literal => {
            Look::nothing()
        }
        [text, ..] => Look::one(Wraps::Transparently, WrappedCommand::Same(text.clone())),
    }
}

const READING: &str = "it changes how commands are read";

/// `set -k` makes variables of arguments, `set -H` runs what was run before, `set +B` leaves braces as they are.
fn set(arguments: &[Value]) -> Look {
    let options = arguments.iter().take_while(|word| word.text != "--");
    let is_meant = |word: &Value| {
        let is_cluster = word.text.starts_with('-') && word.text.contains(['k', 'H']);
        let may_be_option = word.holes.first().is_some_and(|hole| hole.start == 0);
        is_cluster || leaves_braces(&word.text) || may_be_option || changes_reading(word)
    };
    match options.into_iter().any(is_meant) {
        true => Look::unknown(Wraps::Nothing, READING),
        false => Look::nothing(),
    }
}

/// Whether letters of options turn the expansion of braces off.
pub(super) fn leaves_braces(text: &str) -> bool {
    text.starts_with('+') && text.contains('B')
}

/// Whether a word is the name of an option of the shell that changes how it reads commands, where `cd` goes or what `local` sets, or may be one.
pub(super) fn changes_reading(word: &Value) -> bool {
    const NAMES: [&str; 7] = [
        "braceexpand",
        "cdable_vars",
        "expand_aliases",
        "histexpand",
        "history",
        "keyword",
        "localvar_inherit",
    ];
    !word.is_literal || NAMES.contains(&word.text.as_str())
}

fn alias(arguments: &[Value]) -> Look {
    let texts = arguments.iter().filter_map(|argument| {
        let (_, text) = argument.text.split_once('=')?;
        Some(WrappedCommand::Same(argument.part(text)))
    });
    let inner: Vec<WrappedCommand> = texts.collect();
    match inner.is_empty() && arguments.iter().all(|word| word.is_literal) {
        true => Look::nothing(),
        false => Look {
            inner,
            ..Look::unknown(Wraps::Nothing, "an alias changes what a name runs")
        },
    }
}

/// `source FILE` counts as known, like a script, unless the file is being written at the same time.
fn source(arguments: &[Value]) -> Look {
    let arguments = match arguments.first() {
        Some(first) if first.text == "--" => arguments.get(1..).unwrap_or_default(),
        _ => arguments,
    };
    match arguments.first() {
        None => Look::nothing(),
        Some(file) if is_input(&file.text) => Look::one(Wraps::Nothing, WrappedCommand::Input),
        Some(file) if !is_file(file) => {
            Look::unknown(Wraps::Nothing, "it runs a file that is named while it runs")
        }
        Some(_) => Look::nothing(),
    }
}

/// Whether a path is the standard input or another open descriptor.
pub(in super::super) fn is_input(path: &str) -> bool {
    path == "-" || path.ends_with("/stdin") || path.contains("/fd/")
}

/// Whether a word names one file: a literal, or an expansion with a name after it (`"$HOME/.cargo/env"`).
pub(super) fn is_file(value: &Value) -> bool {
    let is_below = || {
        let (folder, name) = value.text.rsplit_once('/').unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        !folder.is_empty() && !name.is_empty() && name.chars().all(is_plain)
    };
    !value.is_stream && (value.is_literal || value.is_one_word && is_below())
        || (value.is_name && value.is_one_word)
}

/// Letters of options with which a builtin runs something.
fn with_option(arguments: &[Value], letters: &str, reason: &'static str) -> Look {
    let is_used = arguments.iter().any(|argument| {
        argument.text.starts_with('-') && argument.text.contains(|c| letters.contains(c))
    });
    let is_unknown = arguments.iter().any(|argument| !argument.is_one_word);
    match is_used || is_unknown {
        true => Look::unknown(Wraps::Nothing, reason),
        false => Look::nothing(),
    }
}

/// The words as one text, as `eval`, `ssh` and `watch` make it.
pub(super) fn joined(arguments: &[Value]) -> Value {
    let texts: Vec<&str> = arguments.iter().map(|a| a.text.as_str()).collect();
    Value {
        is_literal: arguments.iter().all(|a| a.is_literal),
        is_name: false,
        ..Value::literal(texts.join(" ").trim_end())
    }
}

/// No option at all.
pub(super) const NONE: ProgramOptions = ProgramOptions {
    flags: "",
    valued: "",
    long_flags: &[],
    long_valued: &[],
};
