//! Programs with a language of their own that can run commands, and that people take for harmless: editors of streams and files,
//! clients of databases. Interpreters (`python -c`) are not among them: a rule that allows one allows anything.

use zeph_core::command::Wraps;

use super::super::value::Value;
use super::{Look, WrappedCommand};

mod awk;
mod make;
mod sed;
mod sqlite;
mod vim;

const REASON: &str = "it can run commands that stand in its own language";

const ACTS: &str = "it can run commands or write files that stand in its own language";

const SED_ACTS: &str = "its script can run commands, write files or read files of its own, or is not known before it runs";

/// Programs, and pieces of arguments with which they run commands.
const MARKS: &[(&[&str], &[&str])] = &[
    (
        &["psql"],
        &[
            "\\!",
            "\\o",
            "\\g",
            "\\w",
            "`",
            "to program",
            "from program",
            "\\e ",
            "\\edit",
            "\\ef",
            "\\ev",
            "\\setenv",
            "\\lo_export",
        ],
    ),
    (&["mysql", "mariadb"], &["\\!", "system "]),
    (&["m4"], &["syscmd"]),
    (&["gnuplot"], &["system", "`", "!", "'<", "\"<", "|"]),
];

/// Editors that are vim.
const VIMS: &[&str] = &[
    "vim",
    "vi",
    "nvim",
    "view",
    "vimdiff",
    "ex",
    "editor",
    "gvim",
    "gview",
    "rvim",
    "rview",
    "rgvim",
    "evim",
    "vim.basic",
    "vim.tiny",
    "vim.nox",
];

pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    let found = in_arguments(name, arguments);
    match reads_statements(name, arguments) {
        true => {
            let reads = Look::one(Wraps::Nothing, WrappedCommand::Statements);
            Some(found.unwrap_or(Look::nothing()).and(reads))
        }
        false => found,
    }
}

pub(super) use make::acts as make_acts;

/// Whether a program runs the statements that it finds on its standard input.
fn reads_statements(name: &str, arguments: &[Value]) -> bool {
    let has = |options: &[&str]| {
        options
            .iter()
            .any(|option| !super::carriers::values(arguments, option).is_empty())
    };
    let is_asked = || {
        arguments
            .iter()
            .any(|word| word.text == "--version" || word.text == "--help")
    };
    match name {
        "sqlite3" | "duckdb" => n_operands(arguments) < 2 && !is_asked(),
        "psql" => !has(&["-c", "-f", "--command", "--file"]) && !is_asked(),
        "mysql" | "mariadb" => !has(&["-e", "--execute"]) && !is_asked(),
        "dc" => !has(&["-e", "--expression"]),
        "ftp" | "lftp" | "sftp" => true,
        "m4" | "gnuplot" => arguments.iter().all(|word| word.text.starts_with('-')),
        _ if VIMS.contains(&name) => {
            let is_ex = |word: &Value| {
                let letters = word.text.strip_prefix('-').unwrap_or_default();
                !letters.starts_with('-') && letters.contains(['e', 'E', 's'])
            };
            name == "ex" || arguments.iter().any(is_ex)
        }
        _ => false,
    }
}

/// Words that are no options, nor the values of those of a client of SQLite.
fn n_operands(arguments: &[Value]) -> usize {
    const VALUED: [&str; 8] = [
        "cmd",
        "init",
        "separator",
        "newline",
        "nullvalue",
        "vfs",
        "maxsize",
        "mmap",
    ];
    let mut n_operands = 0;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.text.strip_prefix('-') {
            Some(option) if VALUED.contains(&option.trim_start_matches('-')) => {
                words.next();
            }
            Some(_) => {}
            None => n_operands += 1,
        }
    }
    n_operands
}

/// Whether statements that a program reads run a command.
pub(in super::super) fn statements_act(name: &str, text: &str) -> bool {
    match name {
        "sqlite3" | "duckdb" => sqlite::acts(text),
        "dc" | "ftp" | "lftp" | "sftp" => text.contains('!'),
        _ if VIMS.contains(&name) => {
            let mut commands = text.lines().map(|line| line.trim_start_matches([':', ' ']));
            commands.any(|command| !vim::is_edit(command))
        }
        "mysql" | "mariadb" => is_marked(name, text) || is_client_command(text),
        "psql" => is_marked(name, text) || copies_out(text),
        _ => is_marked(name, text),
    }
}

/// Whether a statement for `mysql` is a command of the client that runs something or writes a file.
fn is_client_command(text: &str) -> bool {
    const WORDS: [&str; 5] = ["edit", "pager", "source", "system", "tee"];
    let is_command = |statement: &str| {
        let lower = statement.trim_start().to_ascii_lowercase();
        let word = lower.split_whitespace().next().unwrap_or_default();
        WORDS.contains(&word) || ["\\e", "\\p", "\\t", "\\."].contains(&word)
    };
    text.split([';', '\n']).any(is_command)
}

/// Whether a `\copy` of `psql` writes a file.
fn copies_out(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut copies = lower.split("\\copy").skip(1);
    copies.any(|copy| copy.split_whitespace().any(|word| word == "to"))
}

/// Whether a text holds a piece with which a program runs commands.
fn is_marked(name: &str, text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let marks = MARKS.iter().filter(|(names, _)| names.contains(&name));
    marks
        .flat_map(|(_, marks)| *marks)
        .any(|mark| lower.contains(mark))
}

/// What stands in the arguments.
fn in_arguments(name: &str, arguments: &[Value]) -> Option<Look> {
    let texts = || arguments.iter().map(|argument| argument.text.as_str());
    let runs = match name {
        "sed" | "gsed" => sed::acts(arguments),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk::acts(arguments),
        "make" | "gmake" => make::acts(arguments),
        "sqlite3" | "duckdb" => texts().any(sqlite::acts),
        "cargo" => {
            let tame = [
                "net.",
                "term.",
                "profile.",
                "build.jobs",
                "build.target",
                "build.incremental",
                "http.",
            ];
            let leads = |value: &str| !tame.iter().any(|tame| value.starts_with(tame));
            valued(arguments, &["--config"], leads) || texts().any(|text| text.contains("linker="))
        }
        "strace" | "ltrace" => valued(arguments, &["-o", "--output"], |value| {
            value.starts_with(['|', '!'])
        }),
        _ if VIMS.contains(&name) => {
            return vim::leads(name, arguments).then(|| Look::unknown(Wraps::Nothing, REASON));
        }
        "rename" | "prename" | "file-rename" | "perl-rename" => texts()
            .find(|text| !text.starts_with('-'))
            .is_some_and(perl_runs),
        "less" | "more" => texts().any(|text| text.starts_with('+') && !is_search(text)),
        "mysql" | "mariadb" => texts().any(|text| is_marked(name, text) || is_client_command(text)),
        "psql" => {
            let is_piped = |value: &str| value.starts_with('|');
            texts().any(|text| is_marked(name, text) || copies_out(text))
                || valued(arguments, &["-o", "--output"], is_piped)
        }
        "go" => texts().any(|text| {
            let of_linker = || {
                text.split(['=', ' ', '"', '\''])
                    .any(super::settings::leads_compiler)
            };
            text.contains("-extld=")
                || text.contains("-extar=")
                || text.contains("extldflags") && of_linker()
        }),
        _ => texts().any(|text| is_marked(name, text)),
    };
    let reason = match name {
        "sed" | "gsed" => SED_ACTS,
        _ if name.ends_with("awk") => ACTS,
        _ => REASON,
    };
    runs.then(|| Look::unknown(Wraps::Nothing, reason))
}

/// Whether a command of a pager only goes to a place.
fn is_search(text: &str) -> bool {
    let command = text.trim_start_matches('+');
    let is_place = command.is_empty()
        || command.starts_with(['/', '?', 'g', 'G', 'F', '%', '&'])
        || command.starts_with(|c: char| c.is_ascii_digit());
    is_place && !command.contains(['!', '|', '\n'])
}

/// Whether a program in a language of its own is made while the line runs.
fn is_made(script: &Value) -> bool {
    script.holes.iter().any(|hole| hole.start == 0)
}

/// Whether a value of one of the options, in the next word or in the same, is of this kind.
fn valued(arguments: &[Value], options: &[&str], is_meant: impl Fn(&str) -> bool) -> bool {
    let values = options
        .iter()
        .flat_map(|option| super::carriers::values(arguments, option));
    values.into_iter().any(|value| is_meant(&value.text))
}

/// Whether an expression of a Perl `rename` is more than a replacement. The `rename` of util-linux takes two plain words instead.
fn perl_runs(expression: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || " ._-".contains(c);
    if expression.chars().all(is_plain) {
        return false;
    }
    let is_code = ["@", "`", "${", "?{", "$("]
        .iter()
        .any(|mark| expression.contains(mark));
    let sections = expression
        .strip_prefix('s')
        .or(expression.strip_prefix('y'));
    let delimited = sections.filter(|rest| rest.starts_with(['/', '#', ',', '!', '|', ':']));
    let flags = delimited.and_then(|rest| after_sections(rest, 2));
    is_code || !flags.is_some_and(|flags| flags.chars().all(|flag| "gimsxr".contains(flag)))
}

/// What follows `n` texts between the first character and its like.
fn after_sections(rest: &str, n: usize) -> Option<&str> {
    let delimiter = rest.chars().next()?;
    let mut left = n;
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == delimiter => {
                left -= 1;
                if left == 0 {
                    return rest.get(at + c.len_utf8()..);
                }
            }
            _ => {}
        }
    }
    None
}
