//! Programs with an option whose value is a command: not made to run others, and able to.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::table::guesses;
use super::{Look, UNREADABLE, WrappedCommand};

/// Programs, and the options that name a command. A long name may be shortened.
const CARRIERS: &[(&str, &[&str])] = &[
    ("ack", &["--pager"]),
    ("ag", &["--pager"]),
    (
        "aria2c",
        &[
            "--on-bt-download-complete",
            "--on-download-complete",
            "--on-download-error",
            "--on-download-pause",
            "--on-download-start",
            "--on-download-stop",
        ],
    ),
    ("bazel", &["--run_under"]),
    ("bazelisk", &["--run_under"]),
    ("bpftrace", &["-c"]),
    ("chokidar", &["--command", "-c"]),
    ("cppcheck", &["--clang"]),
    ("diff3", &["--diff-program"]),
    (
        "tar",
        &[
            "--to-command",
            "--use-compress-program",
            "-I",
            "-F",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
        ],
    ),
    ("cpio", &["--rsh-command"]),
    (
        "ghc",
        &["-pgmF", "-pgmc", "-pgml", "-pgmP", "-pgmL", "-pgma"],
    ),
    ("go", &["-toolexec", "-exec", "-vettool"]),
    ("hg", &["--command", "--program"]),
    ("just", &["--shell"]),
    ("man", &["--pager", "-P", "--html", "-H"]),
    ("meson", &["--wrapper", "--gdb-path"]),
    ("mise", &["-c"]),
    ("mosh", &["--ssh", "--client"]),
    ("nano", &["--speller", "-s"]),
    ("nc", &["-c", "-e"]),
    ("ncat", &["-c", "-e"]),
    ("netcat", &["-c", "-e"]),
    ("nix-shell", &["--run", "--command"]),
    ("nodemon", &["--exec", "-x"]),
    ("npm", &["--call", "--script-shell"]),
    ("npx", &["--call", "-c"]),
    ("pandoc", &["--filter", "--pdf-engine", "-F"]),
    ("repo", &["-c", "--command"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["--rsh", "--rsync-path", "-e"]),
    ("scp", &["-S"]),
    ("sdiff", &["--diff-program"]),
    ("sftp", &["-S"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("tcpdump", &["-z"]),
    ("ug", &["--filter", "--view"]),
    ("ugrep", &["--filter", "--view"]),
    ("wget", &["--use-askpass"]),
    ("zip", &["--unzip-command", "-TT"]),
];

/// Programs whose option is followed by a command that takes all other words: `nix develop -c PROGRAM …`.
const TAKE_ALL: &[(&str, &[&str])] = &[
    ("just", &["--command", "-c"]),
    ("nix", &["--command", "-c"]),
];

pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    Some(
        match (option_value(name, arguments), all_behind(name, arguments)) {
            (Some(look), Some(behind)) => look.and(behind),
            (look, behind) => return look.or(behind),
        },
    )
}

/// The command behind an option that takes all words.
fn all_behind(name: &str, arguments: &[Value]) -> Option<Look> {
    let (_, options) = TAKE_ALL.iter().find(|(carrier, _)| *carrier == name)?;
    let (at, value) = arguments.iter().enumerate().find_map(|(at, word)| {
        let glued = || {
            options
                .iter()
                .find_map(|option| after(word, &format!("{option}=")))
        };
        match options.contains(&word.text.as_str()) {
            true => Some((at, None)),
            false => Some((at, Some(glued()?))),
        }
    })?;
    let rest = arguments.get(at + 1..).unwrap_or_default();
    let words: Vec<Value> = value.into_iter().chain(rest.iter().cloned()).collect();
    Some(Look::words(Wraps::WithEffect, &words))
}

/// The commands that are values of options.
fn option_value(name: &str, arguments: &[Value]) -> Option<Look> {
    let (_, options) = CARRIERS.iter().find(|(carrier, _)| *carrier == name)?;
    let mut inner = named(arguments, options);
    match name {
        "tar" => {
            // `tar xIf COMMAND FILE`: letters without a dash take the next words in their order.
            let is_old = arguments.first().is_some_and(|first| {
                !first.text.starts_with('-') && first.text.contains(['I', 'F'])
            });
            if is_old {
                return Some(Look {
                    inner: guesses(arguments.get(1..).unwrap_or_default()),
                    ..Look::unknown(Wraps::WithEffect, UNREADABLE)
                });
            }
            let actions = values(arguments, "--checkpoint-action");
            inner.extend(
                actions
                    .iter()
                    .filter_map(|action| after(action, "exec="))
                    .map(WrappedCommand::Text),
            );
        }
        "npm"
            if arguments
                .first()
                .is_some_and(|word| matches!(word.text.as_str(), "exec" | "x")) =>
        {
            inner.extend(named(arguments, &["-c"]));
        }
        "hg" if arguments.iter().any(|word| word.text == "bisect") => {
            inner.extend(named(arguments, &["-c"]));
        }
        "hg" if arguments.iter().any(|word| word.text == "extdiff") => {
            inner.extend(named(arguments, &["-p"]));
        }
        "scp" | "sftp" => {
            let options = values(arguments, "-o");
            inner.extend(
                options
                    .iter()
                    .filter_map(ssh_command)
                    .map(WrappedCommand::Text),
            );
        }
        _ => {}
    }
    Some(with(inner))
}

/// The command of an option of ssh such as `ProxyCommand=…`, which runs here.
pub(super) fn ssh_command(option: &Value) -> Option<Value> {
    let (name, text) = option.text.split_once(['=', ' '])?;
    let is_command = name.to_ascii_lowercase().ends_with("command");
    is_command.then(|| option.part(text))
}

/// The values of options as commands.
pub(super) fn named(arguments: &[Value], options: &[&str]) -> Vec<WrappedCommand> {
    let values = options.iter().flat_map(|option| values(arguments, option));
    values.map(WrappedCommand::Text).collect()
}

/// The values of an option, in the same word or in the next.
pub(super) fn values(arguments: &[Value], option: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for (at, argument) in arguments.iter().enumerate() {
        let next = || arguments.get(at + 1).cloned();
        found.extend(match option.starts_with("--") {
            true => long(argument, option, next),
            false => clustered(argument, option, next()),
        });
    }
    found
}

/// The value of a long option, whose name may be shortened.
fn long(argument: &Value, option: &str, next: impl Fn() -> Option<Value>) -> Option<Value> {
    let (name, has_value) = match argument.text.split_once('=') {
        Some((name, _)) => (name, true),
        None => (argument.text.as_str(), false),
    };
    // Programs take any beginning of a long name that is no beginning of another.
    let is_meant = name.len() > 2 && option.starts_with(name);
    match (is_meant, has_value) {
        (false, _) => None,
        (true, true) => after(argument, &format!("{name}=")),
        (true, false) => next(),
    }
}

/// The value of a letter among others, or of a long name with one dash: `-e ssh`, `-essh`, `-ave ssh`, `-exec=x`. Programs that know
/// long names with one dash take two as well.
fn clustered(argument: &Value, option: &str, next: Option<Value>) -> Option<Value> {
    let letters = argument.text.strip_prefix('-')?;
    let is_letter = option.len() == 2;
    let letters = match letters.strip_prefix('-') {
        Some(_) if is_letter => return None,
        Some(name) => name.starts_with(&option[1..]).then_some(name)?,
        None => letters,
    };
    let (_, rest) = letters.split_once(option.trim_start_matches('-'))?;
    match rest.strip_prefix('=').unwrap_or(rest) {
        "" => next,
        rest => Some(argument.part(rest)),
    }
}

pub(super) fn after(argument: &Value, prefix: &str) -> Option<Value> {
    let text = argument.text.strip_prefix(prefix)?;
    Some(argument.part(text))
}

pub(super) fn with(inner: Vec<WrappedCommand>) -> Look {
    match inner.is_empty() {
        true => Look::nothing(),
        false => Look {
            wraps: Wraps::WithEffect,
            inner,
            unknown: None,
        },
    }
}
