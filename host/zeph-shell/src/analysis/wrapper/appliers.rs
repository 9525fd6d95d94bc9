//! Programs that run a command for each of many things: `find`, `xargs`, `parallel`.

use zeph_core::command::{Becomes, Wraps};

use super::super::value::Value;
use super::builtins::joined;
use super::carriers::values;
use super::options::ProgramOptions;
use super::table::guesses;
use super::{Look, UNREADABLE, WrappedCommand};

pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    match name {
        "find" | "gfind" | "bfs" => Some(find(arguments)),
        "fd" | "fdfind" => fd(arguments),
        "xargs" | "gxargs" => Some(xargs(arguments)),
        "parallel" => Some(parallel(arguments)),
        "concurrently" => Some(concurrently(arguments)),
        "cargo" => watch(arguments),
        _ => None,
    }
}

/// The commands of `-exec` and its like, each up to `;` or `{} +`.
fn find(arguments: &[Value]) -> Look {
    if arguments.iter().any(|argument| argument.is_added) {
        return Look::unknown(
            Wraps::WithEffect,
            "arguments that are added may name a command",
        );
    }
    // Paths begin with the starting point, which is no option; names from a file may.
    let path = match arguments
        .iter()
        .any(|word| word.text.starts_with("-files0"))
    {
        true => Becomes::Text,
        false => Becomes::Operand,
    };
    let mut inner = Vec::new();
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if !matches!(first.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let is_end = |at: usize| match after.get(at).map(|value| value.text.as_str()) {
            Some(";") => true,
            Some("+") => at > 0 && after.get(at - 1).is_some_and(|before| before.text == "{}"),
            _ => false,
        };
        let end = (0..after.len())
            .find(|at| is_end(*at))
            .unwrap_or(after.len());
        let command = after.get(..end).unwrap_or_default();
        inner.push(WrappedCommand::Words(with_marker(command, "{}", path)));
        rest = after.get(end + 1..).unwrap_or_default();
    }
    applied(inner)
}

/// `fd … -x COMMAND…`; `None` when it runs nothing.
fn fd(arguments: &[Value]) -> Option<Look> {
    let (at, first) = arguments
        .iter()
        .enumerate()
        .find_map(|(at, argument)| Some((at, executes(argument)?)))?;
    let rest = arguments.get(at + 1..).unwrap_or_default();
    let command: Vec<Value> = first.into_iter().chain(rest.iter().cloned()).collect();
    let mut command = with_marker(&command, "{", Becomes::Words);
    command.push(Value::added());
    Some(applied(vec![WrappedCommand::Words(command)]))
}

/// Whether an option of `fd` begins a command, whose first word may stand in it: `-x`, `-HX`, `-xrm`, `--exec=rm`.
fn executes(argument: &Value) -> Option<Option<Value>> {
    const VALUED: &str = "dEteSocj";
    let of = |text: &str| (!text.is_empty()).then(|| argument.part(text));
    if let Some(long) = argument.text.strip_prefix("--") {
        let (name, value) = long.split_once('=').unwrap_or((long, ""));
        let is_exec = matches!(name, "exec" | "exec-batch");
        return is_exec.then(|| of(value));
    }
    let letters = argument.text.strip_prefix('-')?;
    let at = letters.find(|c| VALUED.contains(c) || matches!(c, 'x' | 'X'))?;
    let (_, rest) = letters.split_at(at);
    let is_exec = rest.starts_with(['x', 'X']);
    is_exec.then(|| of(rest.get(1..).unwrap_or_default()))
}

fn xargs(arguments: &[Value]) -> Look {
    const OPTIONS: ProgramOptions = ProgramOptions {
        flags: "0prtxo",
        valued: "adEILnPsSRJ",
        long_flags: &[
            "null",
            "interactive",
            "no-run-if-empty",
            "verbose",
            "exit",
            "open-tty",
            "show-limits",
            "help",
            "version",
            "eof",
            "replace",
            "max-lines",
        ],
        long_valued: &[
            "arg-file",
            "delimiter",
            "max-args",
            "max-procs",
            "max-chars",
            "process-slot-var",
        ],
    };
    // `-e`, `-i` and `-l` take a value only in the same word, which no table says: they are left to be unknown.
    let Some(read) = OPTIONS.read(arguments) else {
        return Look {
            inner: guesses(arguments),
            ..Look::unknown(Wraps::WithEffect, UNREADABLE)
        };
    };
    let rest = arguments.get(read.next..).unwrap_or_default();
    if rest.is_empty() {
        return Look::nothing();
    }
    let marker = match read.value(&["I", "J", "replace"]) {
        Some(marker) => Some(marker.text.as_str()),
        None => read.has(&["replace"]).then_some("{}"),
    };
    let command = match marker.filter(|marker| !marker.is_empty()) {
        Some(marker) => with_marker(rest, marker, Becomes::Text),
        None => {
            let mut command = rest.to_vec();
            command.push(Value::added());
            command
        }
    };
    match Look::words(Wraps::WithEffect, &command) {
        look if look.unknown.is_none() => applied(look.inner),
        look => look,
    }
}

/// `parallel [options] COMMAND… [::: argument…]`, joined and given to a shell with what it reads.
fn parallel(arguments: &[Value]) -> Look {
    const REASON: &str = "it runs text that is put together while it runs";
    let is_separator = |value: &&Value| value.text.starts_with(":::");
    let end = arguments
        .iter()
        .position(|value| is_separator(&value))
        .unwrap_or(arguments.len());
    let command = arguments.get(..end).unwrap_or_default();
    let inputs = arguments.get(end + 1..).unwrap_or_default();
    let mut inner: Vec<WrappedCommand> = guesses(command)
        .into_iter()
        .filter_map(|guess| match guess {
            WrappedCommand::Words(words)
            | WrappedCommand::Within(words)
            | WrappedCommand::Guess(words) => Some(WrappedCommand::Text(joined(&words))),
            WrappedCommand::Text(_)
            | WrappedCommand::Bash(_)
            | WrappedCommand::Same(_)
            | WrappedCommand::Input
            | WrappedCommand::Statements => None,
        })
        .collect();
    inner.extend(inputs.iter().cloned().map(WrappedCommand::Text));
    Look {
        inner,
        ..Look::unknown(Wraps::WithEffect, REASON)
    }
}

/// `concurrently [options] TEXT…`, each given to a shell.
fn concurrently(arguments: &[Value]) -> Look {
    const OPTIONS: ProgramOptions = ProgramOptions {
        flags: "kgrhvVC",
        valued: "ncpslmtPH",
        long_flags: &[
            "kill-others",
            "kill-others-on-fail",
            "group",
            "raw",
            "no-color",
            "timings",
            "passthrough-arguments",
            "handle-input",
            "help",
            "version",
        ],
        long_valued: &[
            "names",
            "name-separator",
            "prefix",
            "prefix-colors",
            "prefix-length",
            "pad-prefix",
            "success",
            "hide",
            "max-processes",
            "restart-tries",
            "restart-after",
            "kill-signal",
            "timestamp-format",
        ],
    };
    let mut texts = Vec::new();
    let mut rest = arguments;
    while !rest.is_empty() {
        let Some(read) = OPTIONS.read(rest) else {
            return Look::unknown(Wraps::WithEffect, UNREADABLE);
        };
        rest = rest.get(read.next..).unwrap_or_default();
        if let Some((text, after)) = rest.split_first() {
            texts.push(WrappedCommand::Text(text.clone()));
            rest = after;
        }
    }
    applied(texts)
}

/// `cargo watch`: `-x` names subcommands, `-s` texts for a shell, and a command may stand behind `--`.
fn watch(arguments: &[Value]) -> Option<Look> {
    let at = arguments.iter().position(|word| word.text == "watch")?;
    let rest = arguments.get(at + 1..)?;
    let is_end = |word: &Value| word.text == "--";
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    let own = rest.get(..end).unwrap_or_default();
    let of_cargo = |value: Value| Value {
        text: format!("cargo {}", value.text),
        ..value
    };
    let subcommands = ["-x", "--exec"]
        .iter()
        .flat_map(|option| values(own, option));
    let texts = ["-s", "--shell"]
        .iter()
        .flat_map(|option| values(own, option));
    let texts = subcommands.map(of_cargo).chain(texts);
    let mut inner: Vec<WrappedCommand> = texts.map(WrappedCommand::Text).collect();
    let command = rest.get(end + 1..).unwrap_or_default();
    inner.extend((!command.is_empty()).then(|| WrappedCommand::Words(command.to_vec())));
    Some(applied(inner))
}

fn with_marker(command: &[Value], marker: &str, becomes: Becomes) -> Vec<Value> {
    command
        .iter()
        .cloned()
        .map(|value| value.replaced(marker, becomes))
        .collect()
}

/// A program is only what it looks like when it is given no command.
fn applied(inner: Vec<WrappedCommand>) -> Look {
    match inner.is_empty() {
        true => Look::nothing(),
        false => Look {
            wraps: Wraps::WithEffect,
            inner,
            unknown: None,
        },
    }
}
