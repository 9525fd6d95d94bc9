//! Options whose name says that their value is a command: `--pager=…`, `--use-compress-program …`, `--ssh-cmd …`.
//!
//! The other tables know what single programs call such options; this one knows how options are called, and holds for every program,
//! known or not.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::carriers::after;
use super::{Look, WrappedCommand};
use crate::leading;

/// Last words of the names of options whose value is a command or a program.
const COMMANDS: &[&str] = &[
    "askpass",
    "browser",
    "cmd",
    "command",
    "editor",
    "exec",
    "executable",
    "execute",
    "hook",
    "interpreter",
    "launcher",
    "pager",
    "preprocessor",
    "prog",
    "program",
    "rsh",
    "shell",
    "wrapper",
];

/// Last words of the names of options whose value is code that is loaded, when it is a path.
const LOADED: &[&str] = &[
    "addon", "addons", "dlopen", "load", "plugin", "plugins", "preload", "python",
];

/// First words of names that switch something off, or only show it.
const OFF: &[&str] = &[
    "disable", "ignore", "list", "no", "print", "show", "skip", "without",
];

/// Last words of the names of options that begin with `hook-` and say which one, or where: `--hook-stage`.
const HOOK_FACTS: &[&str] = &["id", "name", "stage", "type"];

/// Fewest letters that a word of an option is recognised by, as `getopt` lets names be shortened: `--pag`, `--use-compress-prog`.
const SHORT_MIN: usize = 3;

/// Words of options that begin like others and are not short for them: `--pre`, `--prose-wrap`.
const OWN_WORDS: &[&str] = &[
    "add", "ask", "com", "int", "inter", "pre", "prep", "pro", "wra", "wrap",
];

/// Clients of databases: what they are to execute is a statement.
const CLIENTS: &[&str] = &[
    "clickhouse",
    "clickhouse-client",
    "cockroach",
    "duckdb",
    "mariadb",
    "mysql",
    "psql",
    "sqlcmd",
    "sqlite3",
];

/// Shells that are named in order to choose between them.
const SHELLS: &[&str] = &[
    "bash",
    "dash",
    "elvish",
    "fish",
    "ksh",
    "nu",
    "nushell",
    "powershell",
    "pwsh",
    "sh",
    "tcsh",
    "xonsh",
    "zsh",
];

/// What the value of an option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionValue {
    Command,
    Loaded,
}

/// Adds what the other tables did not find.
pub(super) fn look(name: &str, arguments: &[Value], known: Look) -> Look {
    let own = own(arguments, &known);
    let mut found = known;
    let options = own.iter().take_while(|word| word.text != "--");
    for (at, word) in options.enumerate() {
        let next = own.get(at + 1);
        let of_option = value(word, next).or_else(|| shortened(word));
        let of_setting = || Some((OptionValue::Command, setting(name, word, next)?));
        let Some((kind, value)) = of_option.or_else(of_setting) else {
            continue;
        };
        if is_choice(&value) || found.inner.iter().any(|inner| inner.is_text(&value)) {
            continue;
        }
        match kind {
            OptionValue::Loaded if !is_library(&value) => {}
            OptionValue::Command if CLIENTS.contains(&name) => {}
            OptionValue::Loaded => {
                found.unknown = found
                    .unknown
                    .or(Some("it loads a file that an option names"));
            }
            OptionValue::Command => {
                found.wraps = Wraps::WithEffect;
                found.inner.push(WrappedCommand::Text(value));
            }
        }
    }
    found
}

/// The arguments before a command that takes all that follow for itself.
fn own<'v>(arguments: &'v [Value], known: &Look) -> &'v [Value] {
    let inner = known.inner.iter().filter_map(|inner| match inner {
        WrappedCommand::Words(words) | WrappedCommand::Within(words) => Some(words),
        _ => None,
    });
    let last = inner.filter(|words| arguments.ends_with(words));
    let n_inner = last.map(Vec::len).max().unwrap_or_default();
    arguments
        .get(..arguments.len() - n_inner)
        .unwrap_or_default()
}

/// The value of an option that runs it.
fn value(word: &Value, next: Option<&Value>) -> Option<(OptionValue, Value)> {
    let long = word.text.strip_prefix('-')?;
    // Letters behind one dash may be options of their own; java and linkers know whole names.
    let (dashes, long) = match long.strip_prefix('-') {
        Some(long) => ("--", long),
        None => ("-", long),
    };
    let end = long.find(['=', ':']).unwrap_or(long.len());
    let name = &long[..end];
    let kind = match dashes {
        "--" => kind(name)?,
        _ => LOADED
            .contains(&name)
            .then_some(OptionValue::Loaded)
            .filter(|_| name != "load")?,
    };
    let value = match end < long.len() {
        true => after(word, &format!("{dashes}{}", &long[..=end]))?,
        false => next.filter(|next| !next.text.starts_with('-'))?.clone(),
    };
    Some((kind, value))
}

/// What a name of few letters may be short for, when its value can be a program or a file: `--p=./evil`.
fn shortened(word: &Value) -> Option<(OptionValue, Value)> {
    let (name, value) = word.text.strip_prefix("--")?.split_once('=')?;
    let can_be_run = !word.is_literal || value.contains(|c: char| c == '/' || c.is_whitespace());
    let begins = |whole: &&&str| !name.is_empty() && whole.starts_with(name);
    let is_command = COMMANDS.iter().any(|whole| begins(&whole));
    let is_short = is_command || LOADED.iter().any(|whole| begins(&whole));
    let kind = match is_command {
        true => OptionValue::Command,
        false => OptionValue::Loaded,
    };
    (is_short && can_be_run).then(|| (kind, word.part(value)))
}

fn kind(name: &str) -> Option<OptionValue> {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(['-', '_', '.']);
    let first = words.clone().next().unwrap_or_default();
    let last = words.next_back().unwrap_or_default();
    let is_short = last.len() >= SHORT_MIN && !OWN_WORDS.contains(&last);
    let is_one_of = |words: &[&str]| {
        let mut words = words.iter();
        words.any(|whole| *whole == last || is_short && whole.starts_with(last))
    };
    if OFF.contains(&first) {
        None
    } else if first == "hook" && !HOOK_FACTS.contains(&last) || is_one_of(COMMANDS) {
        Some(OptionValue::Command)
    } else {
        is_one_of(LOADED).then_some(OptionValue::Loaded)
    }
}

/// Options whose values are settings by name: `-o ProxyCommand=…`.
const SETTINGS: &[&str] = &["-c", "-o", "--config", "--option", "--set", "--setting"];

/// Programs whose settings other tables know, and those whose `-c` is code of their own or a statement.
const KNOWN_SETTINGS: &[&str] = &[
    "apt", "apt-get", "cmake", "git", "perl", "php", "python", "python3", "rsync", "ruby", "scp",
    "sftp", "ssh",
];

/// The value of a setting whose name says that it is run.
fn setting(program: &str, word: &Value, next: Option<&Value>) -> Option<Value> {
    if KNOWN_SETTINGS.contains(&program) || CLIENTS.contains(&program) {
        return None;
    }
    let given = match SETTINGS.contains(&word.text.as_str()) {
        true => next?.clone(),
        false => {
            let is_long = |option: &&&str| option.starts_with("--");
            let (long, short): (Vec<&str>, Vec<&str>) =
                SETTINGS.iter().partition(|option| is_long(option));
            let long = long
                .iter()
                .find_map(|option| after(word, &format!("{option}=")));
            long.or_else(|| short.iter().find_map(|option| after(word, option)))?
        }
    };
    // ssh and what is like it take a space as well.
    let (name, value) = given.text.split_once(['=', ' '])?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    let is_run = name.chars().all(is_name) && is_run(name);
    is_run.then(|| given.part(value))
}

/// Whether the name of a setting says that its value is run: `core.pager`, `ProxyCommand`.
fn is_run(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit(['.', '-', '_', ':']).next().unwrap_or_default();
    let is_joined = |whole: &&&str| whole.len() > SHORT_MIN + 1 && last.ends_with(**whole);
    COMMANDS.contains(&last) || COMMANDS.iter().any(|whole| is_joined(&whole))
}

/// Whether a value is a file rather than the name of something installed; one that is not known may be.
fn is_library(value: &Value) -> bool {
    !value.is_literal || value.text.contains('/') || value.text.ends_with(".so")
}

/// Whether a value chooses among what the program would use anyway.
fn is_choice(value: &Value) -> bool {
    const WORDS: [&str; 14] = [
        "always", "auto", "chrome", "chromium", "default", "edge", "electron", "false", "firefox",
        "never", "no", "none", "webkit", "yes",
    ];
    let name = value.text.strip_prefix("/bin/").unwrap_or(&value.text);
    let name = name.strip_prefix("/usr/bin/").unwrap_or(name);
    value.is_literal
        && (WORDS.contains(&name)
            || SHELLS.contains(&name)
            || leading::is_tame_command(&value.text))
}
