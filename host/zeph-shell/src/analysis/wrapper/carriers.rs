//! Programs with an option whose value is a command: not made to run others, and able to.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::options::Options;
use super::{Inner, Look, UNREADABLE};

/// Programs, and the options that name a command.
const CARRIERS: &[(&str, &[&str])] = &[
    (
        "tar",
        &[
            "--to-command",
            "--use-compress-program",
            "-I",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
        ],
    ),
    ("rsync", &["--rsh", "-e"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("man", &["--pager", "-P"]),
    ("nix-shell", &["--run", "--command"]),
    ("rg", &["--pre"]),
];

/// The same for what comes after `git SUBCOMMAND`.
const GIT: &[&str] = &[
    "--exec",
    "--extcmd",
    "--upload-pack",
    "--receive-pack",
    "--tree-filter",
    "--index-filter",
    "--msg-filter",
    "--env-filter",
    "--commit-filter",
    "--parent-filter",
    "--tag-name-filter",
    "--open-files-in-pager",
];

/// Settings of git whose value is run.
const GIT_SETTINGS: &[&str] = &[
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.askpass",
    "core.fsmonitor",
    "core.hookspath",
    "sequence.editor",
    "diff.external",
    "interactive.difffilter",
    "gpg.program",
];

/// How the names of such settings end.
const GIT_ENDINGS: &[&str] = &[
    ".textconv",
    ".command",
    ".driver",
    ".cmd",
    ".clean",
    ".smudge",
    ".process",
    ".program",
];

pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    if name == "git" {
        return Some(git(arguments));
    }
    let (_, options) = CARRIERS.iter().find(|(carrier, _)| *carrier == name)?;
    let mut inner = named(arguments, options);
    let actions = arguments
        .iter()
        .filter_map(|argument| after(argument, "--checkpoint-action=exec="));
    inner.extend(actions.map(Inner::Text));
    Some(with(inner))
}

fn git(arguments: &[Value]) -> Look {
    const OPTIONS: Options = Options {
        flags: "pPhv",
        valued: "cC",
        long_flags: &[
            "paginate",
            "no-pager",
            "bare",
            "version",
            "help",
            "html-path",
            "man-path",
            "info-path",
            "exec-path",
            "no-replace-objects",
            "literal-pathspecs",
            "glob-pathspecs",
            "noglob-pathspecs",
            "icase-pathspecs",
            "no-optional-locks",
            "no-lazy-fetch",
            "no-advice",
        ],
        long_valued: &[
            "git-dir",
            "work-tree",
            "namespace",
            "config-env",
            "super-prefix",
            "attr-source",
            "list-cmds",
        ],
    };
    let Some(read) = OPTIONS.read(arguments) else {
        return Look::unknown(Wraps::WithEffect, UNREADABLE);
    };
    let settings = read.met.iter().filter(|met| met.name == "c");
    let mut inner: Vec<Inner> = settings
        .filter_map(|met| met.value.as_ref().and_then(setting))
        .map(Inner::Text)
        .collect();
    let rest = arguments.get(read.next..).unwrap_or_default();
    let texts: Vec<&str> = rest.iter().map(|argument| argument.text.as_str()).collect();
    match texts.as_slice() {
        ["bisect", "run", ..] => {
            inner.push(Inner::Words(rest.get(2..).unwrap_or_default().to_vec()));
        }
        ["submodule", "foreach", ..] => {
            let words = rest.get(2..).unwrap_or_default();
            let words = words
                .iter()
                .filter(|word| !word.text.starts_with('-'))
                .cloned();
            inner.push(Inner::Text(super::builtins::joined(
                &words.collect::<Vec<_>>(),
            )));
        }
        ["rebase" | "difftool", ..] => inner.extend(named(rest, &["-x"])),
        _ => {}
    }
    inner.extend(named(rest, GIT));
    inner.extend(
        rest.iter()
            .filter_map(|argument| after(argument, "ext::"))
            .map(Inner::Text),
    );
    with(inner)
}

/// What a setting `NAME=VALUE` runs.
fn setting(value: &Value) -> Option<Value> {
    let (name, text) = value.text.split_once('=')?;
    let name = name.to_ascii_lowercase();
    let is_run = GIT_SETTINGS.contains(&name.as_str())
        || name.starts_with("pager.")
        || GIT_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || text.starts_with('!');
    is_run.then(|| Value {
        text: text.trim_start_matches('!').to_owned(),
        ..value.clone()
    })
}

/// The values of options, in the same word or in the next.
fn named(arguments: &[Value], options: &[&str]) -> Vec<Inner> {
    let mut found = Vec::new();
    for (at, argument) in arguments.iter().enumerate() {
        let next = || arguments.get(at + 1).cloned();
        for option in options {
            let value = match (option.strip_prefix("--"), argument.text.split_once('=')) {
                (Some(_), _) if argument.text == *option => next(),
                (Some(_), Some((name, _))) if name == *option => {
                    after(argument, &format!("{option}="))
                }
                (Some(_), _) => None,
                (None, _) => clustered(argument, option, next()),
            };
            found.extend(value.map(Inner::Text));
        }
    }
    found
}

/// The value of a letter among others: `-e ssh`, `-essh`, `-ave ssh`.
fn clustered(argument: &Value, option: &str, next: Option<Value>) -> Option<Value> {
    let letters = argument
        .text
        .strip_prefix('-')
        .filter(|letters| !letters.starts_with('-'))?;
    let (_, rest) = letters.split_once(option.trim_start_matches('-'))?;
    match rest.is_empty() {
        true => next,
        false => Some(Value {
            text: rest.to_owned(),
            ..argument.clone()
        }),
    }
}

fn after(argument: &Value, prefix: &str) -> Option<Value> {
    let text = argument.text.strip_prefix(prefix)?;
    Some(Value {
        text: text.to_owned(),
        ..argument.clone()
    })
}

fn with(inner: Vec<Inner>) -> Look {
    match inner.is_empty() {
        true => Look::nothing(),
        false => Look {
            wraps: Wraps::WithEffect,
            inner,
            unknown: None,
        },
    }
}
