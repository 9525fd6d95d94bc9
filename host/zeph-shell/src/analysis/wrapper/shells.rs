//! Programs that give a text to a shell.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::builtins::{NONE, changes_reading, is_file, is_input, joined, leaves_braces};
use super::options::{Met, ProgramOptions};
use super::table::{guesses, is_assignment};
use super::{Look, UNREADABLE, WrappedCommand};

pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    // `-bash` is how a login shell is named.
    match name.trim_start_matches('-') {
        "bash" | "rbash" | "bash-static" => Some(shell(arguments, WrappedCommand::Bash)),
        "sh" | "dash" | "ash" | "yash" | "hush" => Some(shell(arguments, WrappedCommand::Text)),
        "zsh" | "ksh" | "ksh93" | "mksh" | "lksh" | "oksh" | "pdksh" | "rksh" | "osh" | "ysh"
        | "es" | "ion" | "sash" | "fish" | "csh" | "tcsh" | "rc" | "elvish" | "nu" | "xonsh"
        | "pwsh" => Some(other_shell(arguments)),
        "env" => Some(env(arguments)),
        "su" | "runuser" => Some(su(arguments)),
        "script" => Some(script(arguments)),
        "flock" => Some(flock(arguments)),
        "watch" => Some(watch(arguments)),
        "ssh" => Some(ssh(arguments)),
        _ => None,
    }
}

/// Long options of a shell that take a value.
const LONG_VALUED: &[&str] = &["rcfile", "init-file"];

/// Long options of a shell that take none.
const LONG: &[&str] = &[
    "norc",
    "noprofile",
    "login",
    "posix",
    "noediting",
    "restricted",
    "verbose",
    "debug",
    "debugger",
    "dump-strings",
    "dump-po-strings",
    "pretty-print",
    "wordexp",
    "protected",
];

/// `sh [options] [-c TEXT | FILE] [argument…]`.
fn shell(arguments: &[Value], text_of: fn(Value) -> WrappedCommand) -> Look {
    let mut has_text = false;
    // A start-up file is run besides what is asked for.
    let mut wraps = Wraps::Transparently;
    let mut next = 0;
    while let Some(argument) = arguments.get(next) {
        let text = argument.text.as_str();
        if !text.starts_with(['-', '+']) {
            break;
        }
        if !argument.is_literal {
            return Look::unknown(Wraps::Transparently, UNREADABLE);
        }
        next += 1;
        match text {
            "--" | "-" => break,
            "--version" | "--help" => return Look::nothing(),
            _ if LONG_VALUED.contains(&text.trim_start_matches('-')) => {
                if arguments.get(next).is_none_or(|file| !is_file(file)) {
                    return Look::unknown(Wraps::Transparently, UNREADABLE);
                }
                wraps = Wraps::WithEffect;
                next += 1;
            }
            // Bash takes its long names with one dash too.
            _ if LONG.contains(&text.trim_start_matches('-')) => {}
            _ if text.starts_with("--") => return Look::unknown(Wraps::Transparently, UNREADABLE),
            // Every `NAME=value` among the words is a variable then, every variable is exported, or braces stay.
            _ if leaves_braces(text) || is_cluster(text) && text.contains(['k', 'a']) => {
                return Look::unknown(Wraps::Transparently, UNREADABLE);
            }
            _ => {
                // `+c` and `+s` are `-c` and `-s`.
                has_text |= text.contains('c');
                // `-o NAME` and `-O NAME`.
                let n_names = text.matches(['o', 'O']).count();
                let mut names = arguments.iter().skip(next).take(n_names);
                if names.any(changes_reading) {
                    return Look::unknown(Wraps::Transparently, UNREADABLE);
                }
                next += n_names;
            }
        }
    }
    let operand = arguments.get(next);
    let reads_input = arguments
        .iter()
        .take(next)
        .map(|argument| argument.text.as_str())
        .any(|text| (is_cluster(text) || text.starts_with('+')) && text.contains('s'));
    match operand {
        Some(text) if has_text => Look::one(wraps, text_of(text.clone())),
        None if has_text => Look::unknown(Wraps::Transparently, "the text it runs is missing"),
        None => Look::one(Wraps::Transparently, WrappedCommand::Input),
        Some(file) if reads_input || is_input(&file.text) => {
            Look::one(Wraps::Transparently, WrappedCommand::Input)
        }
        Some(file) if !is_file(file) => Look::unknown(
            Wraps::Transparently,
            "it runs a file that is named while it runs",
        ),
        Some(_) => Look::nothing(),
    }
}

/// Whether a text is letters after a dash.
fn is_cluster(text: &str) -> bool {
    text.starts_with('-') && text.len() <= 8 && !text.starts_with("--")
}

/// A shell whose language is another: what it is given is looked at, and not relied on.
fn other_shell(arguments: &[Value]) -> Look {
    const REASON: &str = "it runs text in the language of another shell";
    let runs_file =
        matches!(arguments.first(), Some(first) if is_file(first) && !first.text.starts_with('-'));
    if runs_file || matches!(arguments, [only] if only.text == "--version") {
        return Look::nothing();
    }
    let texts = arguments.iter().filter(|a| !a.text.starts_with('-'));
    Look {
        inner: texts
            .map(|text| WrappedCommand::Text(text.clone()))
            .collect(),
        ..Look::unknown(Wraps::WithEffect, REASON)
    }
}

const ENV_OPTIONS: ProgramOptions = ProgramOptions {
    flags: "iv0",
    valued: "uCS",
    long_flags: &[
        "ignore-environment",
        "null",
        "debug",
        "help",
        "version",
        "block-signal",
        "default-signal",
        "ignore-signal",
        "list-signal-handling",
    ],
    long_valued: &["unset", "chdir", "split-string"],
};

/// Most texts of `env -S` within one another.
const SPLITS_MAX: usize = 4;

/// The arguments of `env`, with the words of a text of `-S` in place of the options up to it.
pub(super) fn split_out(arguments: &[Value]) -> Vec<Value> {
    let mut arguments = arguments.to_vec();
    for _ in 0..=SPLITS_MAX {
        let Some(read) = ENV_OPTIONS.read(&arguments) else {
            return arguments;
        };
        let is_split = |met: &&Met| matches!(met.name.as_str(), "S" | "split-string");
        let Some(met) = read.met.iter().find(is_split) else {
            return arguments;
        };
        let Some(words) = met.value.as_ref().and_then(split) else {
            return arguments;
        };
        // What stands behind the text may belong to the command in it.
        let rest = arguments.get(met.next..).unwrap_or_default();
        arguments = words.into_iter().chain(rest.iter().cloned()).collect();
    }
    arguments
}

/// `env [options] [NAME=value…] [COMMAND]`; `-S TEXT` is split into words that stand for it.
fn env(arguments: &[Value]) -> Look {
    let arguments = split_out(arguments);
    let read = ENV_OPTIONS.read(&arguments);
    let Some(read) = read.filter(|read| !read.has(&["S", "split-string"])) else {
        return Look {
            inner: guesses(&arguments),
            ..Look::unknown(Wraps::Transparently, UNREADABLE)
        };
    };
    if read.has(&["help", "version"]) {
        return Look::nothing();
    }
    let rest = arguments.get(read.next..).unwrap_or_default();
    // A lone `-` is `-i`.
    let rest = match rest.first() {
        Some(first) if first.text == "-" => rest.get(1..).unwrap_or_default(),
        _ => rest,
    };
    let assignments = rest.iter().take_while(|value| is_assignment(value)).count();
    Look::words(
        Wraps::Transparently,
        rest.get(assignments..).unwrap_or_default(),
    )
}

/// The words of a text without anything special in it.
fn split(text: &Value) -> Option<Vec<Value>> {
    let is_plain = |c: char| !matches!(c, '\'' | '"' | '\\' | '$' | '#' | '`');
    let text = text
        .as_literal()
        .filter(|text| text.chars().all(is_plain))?;
    Some(text.split_whitespace().map(Value::literal).collect())
}

/// `su [options] [-] [USER] [-c TEXT]`; its options may follow its operands.
fn su(arguments: &[Value]) -> Look {
    const OPTIONS: ProgramOptions = ProgramOptions {
        flags: "flmpPTh",
        valued: "cgGswuC",
        long_flags: &[
            "fast",
            "login",
            "preserve-environment",
            "pty",
            "no-pty",
            "help",
            "version",
        ],
        long_valued: &[
            "command",
            "group",
            "supp-group",
            "shell",
            "whitelist-environment",
            "user",
            "session-command",
        ],
    };
    let mut texts = Vec::new();
    let mut has_user = false;
    let mut rest = arguments;
    while !rest.is_empty() {
        let Some(read) = OPTIONS.read(rest) else {
            return Look::unknown(Wraps::WithEffect, UNREADABLE);
        };
        let found = read
            .met
            .iter()
            .filter(|met| matches!(met.name.as_str(), "c" | "C" | "command" | "session-command"));
        texts.extend(
            found
                .filter_map(|met| met.value.clone())
                .map(WrappedCommand::Text),
        );
        has_user |= read.has(&["u", "user"]);
        rest = rest.get(read.next..).unwrap_or_default();
        if has_user {
            // `runuser -u USER COMMAND`.
            return Look::words(Wraps::WithEffect, rest);
        }
        if rest.first().is_some_and(|operand| !operand.is_operand()) {
            return Look::unknown(Wraps::WithEffect, UNREADABLE);
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    texts_or_input(texts)
}

/// `script [options] [FILE]`; `-c TEXT` may follow the file.
fn script(arguments: &[Value]) -> Look {
    const OPTIONS: ProgramOptions = ProgramOptions {
        flags: "aefqhV",
        valued: "cEIOoBTmt",
        long_flags: &[
            "append", "return", "flush", "force", "quiet", "help", "version",
        ],
        long_valued: &[
            "command",
            "echo",
            "log-in",
            "log-out",
            "log-io",
            "log-timing",
            "logging-format",
            "output-limit",
        ],
    };
    let mut rest = arguments;
    let mut texts = Vec::new();
    while !rest.is_empty() {
        let Some(read) = OPTIONS.read(rest) else {
            return Look::unknown(Wraps::WithEffect, UNREADABLE);
        };
        texts.extend(
            read.value(&["c", "command"])
                .cloned()
                .map(WrappedCommand::Text),
        );
        let next = read.next + 1;
        rest = rest.get(next.min(rest.len())..).unwrap_or_default();
    }
    texts_or_input(texts)
}

/// A wrapper that runs the texts it is given, and without one what it reads.
fn texts_or_input(texts: Vec<WrappedCommand>) -> Look {
    match texts.is_empty() {
        true => Look::one(Wraps::WithEffect, WrappedCommand::Input),
        false => Look {
            wraps: Wraps::WithEffect,
            inner: texts,
            unknown: None,
        },
    }
}

/// `flock [options] FILE (-c TEXT | COMMAND…)`.
fn flock(arguments: &[Value]) -> Look {
    const OPTIONS: ProgramOptions = ProgramOptions {
        flags: "sxeunoFhV",
        valued: "wEc",
        long_flags: &[
            "shared",
            "exclusive",
            "unlock",
            "nonblock",
            "nb",
            "close",
            "no-fork",
            "verbose",
            "help",
            "version",
        ],
        long_valued: &["timeout", "wait", "conflict-exit-code", "command"],
    };
    let Some(read) = OPTIONS.read(arguments) else {
        return Look::unknown(Wraps::WithEffect, UNREADABLE);
    };
    let (operand, rest) = arguments
        .get(read.next..)
        .unwrap_or_default()
        .split_first()
        .unzip();
    let rest = rest.unwrap_or_default();
    if operand.is_some_and(|operand| !operand.is_operand()) {
        return Look {
            inner: guesses(rest),
            ..Look::unknown(Wraps::WithEffect, UNREADABLE)
        };
    }
    match rest {
        [option, text, ..] if matches!(option.text.as_str(), "-c" | "--command") => {
            Look::one(Wraps::WithEffect, WrappedCommand::Text(text.clone()))
        }
        _ => match read.value(&["c", "command"]) {
            Some(text) => Look::one(Wraps::WithEffect, WrappedCommand::Text(text.clone())),
            None => Look::words(Wraps::WithEffect, rest),
        },
    }
}

/// `watch [options] COMMAND…`, joined and given to `sh -c`.
fn watch(arguments: &[Value]) -> Look {
    const OPTIONS: ProgramOptions = ProgramOptions {
        flags: "bcCdegprtxwvh",
        valued: "nqs",
        long_flags: &[
            "beep",
            "color",
            "no-color",
            "differences",
            "errexit",
            "chgexit",
            "precise",
            "no-rerun",
            "no-title",
            "exec",
            "no-wrap",
            "help",
            "version",
        ],
        long_valued: &["interval", "equexit", "shotsdir"],
    };
    let Some(read) = OPTIONS.read(arguments) else {
        return Look::unknown(Wraps::WithEffect, UNREADABLE);
    };
    let rest = arguments.get(read.next..).unwrap_or_default();
    match rest.is_empty() {
        true => Look::nothing(),
        false if read.has(&["x", "exec"]) => Look::words(Wraps::WithEffect, rest),
        false => Look::one(Wraps::WithEffect, WrappedCommand::Text(joined(rest))),
    }
}

/// `ssh [options] HOST [options] [COMMAND…]`, joined and given to a shell there.
fn ssh(arguments: &[Value]) -> Look {
    const OPTIONS: ProgramOptions = ProgramOptions {
        flags: "46AaCfGgKkMNnqsTtVvXxYy",
        valued: "BbcDEeFIiJLlmOoPpQRSWw",
        ..NONE
    };
    let Some(before) = OPTIONS.read(arguments) else {
        return Look::unknown(Wraps::WithEffect, UNREADABLE);
    };
    let (host, rest) = arguments
        .get(before.next..)
        .unwrap_or_default()
        .split_first()
        .unzip();
    let rest = rest.unwrap_or_default();
    if host.is_some_and(|host| !host.is_operand()) {
        return Look::unknown(Wraps::WithEffect, UNREADABLE);
    }
    let Some(after) = OPTIONS.read(rest) else {
        return Look::unknown(Wraps::WithEffect, UNREADABLE);
    };
    // A configuration names commands, a library is loaded.
    let leads = |met: &super::options::Met| {
        let value = met.value.as_ref().map_or("", |value| value.text.as_str());
        let leads = |mark: &str| value.to_ascii_lowercase().contains(mark);
        let is_setting = met.name == "o" && (leads("provider") || leads("xauthlocation"));
        is_setting || met.name == "I" || met.name == "F" && !["/dev/null", "none"].contains(&value)
    };
    if before.met.iter().chain(&after.met).any(leads) {
        return Look::unknown(Wraps::WithEffect, UNREADABLE);
    }
    // `-o ProxyCommand=…` and its like run a command here.
    let options = before
        .met
        .iter()
        .chain(&after.met)
        .filter(|met| met.name == "o");
    let mut inner: Vec<WrappedCommand> = options
        .filter_map(|met| met.value.as_ref())
        .filter_map(super::carriers::ssh_command)
        .map(WrappedCommand::Text)
        .collect();
    let command = rest.get(after.next..).unwrap_or_default();
    let mut options = before.met.iter().chain(&after.met);
    let runs_nothing =
        options.any(|met| matches!(met.name.as_str(), "N" | "V" | "G" | "Q" | "O" | "W"));
    match command.is_empty() {
        false => inner.push(WrappedCommand::Text(joined(command))),
        true if runs_nothing || host.is_none() => {}
        true => inner.push(WrappedCommand::Input),
    }
    match inner.is_empty() {
        true => Look::nothing(),
        false => Look {
            wraps: Wraps::WithEffect,
            inner,
            unknown: None,
        },
    }
}
