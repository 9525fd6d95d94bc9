//! Variables that make a command another one than its words say.

use super::numbers::is_name;
use super::value::Value;
use crate::leading;

pub(super) use crate::leading::{is_command, leads_to_installed};

/// Programs that run the code of the project they are called in, whatever a variable of it says.
const RUN_PROJECTS: [&str; 40] = [
    "ant",
    "bun",
    "bundle",
    "cargo",
    "celery",
    "composer",
    "deno",
    "django-admin",
    "docker",
    "docker-compose",
    "dotnet",
    "flask",
    "go",
    "gradle",
    "gunicorn",
    "jest",
    "make",
    "mix",
    "mocha",
    "mvn",
    "node",
    "nox",
    "npm",
    "npx",
    "php",
    "pnpm",
    "pytest",
    "python",
    "python3",
    "rails",
    "rake",
    "rspec",
    "ruby",
    "sbt",
    "swift",
    "tox",
    "uv",
    "uvicorn",
    "vitest",
    "yarn",
];

/// Variables with the folders of a project's own libraries.
const LIBRARIES: [&str; 6] = [
    "CLASSPATH",
    "MYPYPATH",
    "NODE_PATH",
    "PERL5LIB",
    "PYTHONPATH",
    "RUBYLIB",
];

/// For whom a variable is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For<'t> {
    /// The shell, which hands on only what is exported already.
    Shell,
    /// All that follows.
    All,
    /// One program.
    Program(&'t str),
}

/// Whether a variable may lead a program to what its words do not name.
pub(super) fn leads(name: &str, value: &Value, whom: For<'_>) -> bool {
    let is_of_project =
        matches!(whom, For::Program(program) if program.contains('/') && is_inside(program));
    let is_own = match whom {
        For::Program(program) => is_of_project || RUN_PROJECTS.contains(&base_name(program)),
        For::Shell | For::All => false,
    };
    if leading::is_known(name) {
        let is_tame = value.is_literal && leading::is_tame(name, &value.text)
            || leads_to_installed(&value.text) && leading::is_installed(name);
        let is_library = is_own && LIBRARIES.contains(&name) && is_below(&value.text);
        // A program of the project is no more led by where its configuration would be.
        let is_home = is_of_project && (name == "HOME" || name.starts_with("XDG_"));
        return !is_tame && !is_library && !is_home;
    }
    whom != For::Shell
        && !is_own
        && leading::is_generic(name)
        && name != "PATH"
        && !value.text.is_empty()
}

/// Whether `ENV` is set for a shell, which runs the file of that name when it is interactive.
pub(super) fn is_start_up(whom: For<'_>) -> bool {
    const SHELLS: [&str; 9] = [
        "ash", "bash", "busybox", "dash", "ksh", "ksh93", "mksh", "sh", "zsh",
    ];
    let For::Program(program) = whom else {
        return false;
    };
    SHELLS.contains(&base_name(program))
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether all entries of a search path are folders of the project.
fn is_below(path: &str) -> bool {
    let is_same =
        |entry: &str| entry.starts_with('$') && entry.to_ascii_uppercase().contains("PATH");
    path.split(':')
        .all(|entry| is_inside(entry) || is_same(entry))
}

/// Whether a path leads to something in the project: it begins in the directory the line is in, and does not leave it.
fn is_inside(path: &str) -> bool {
    let rest = ["$PWD", "${PWD}", "$(pwd)"]
        .iter()
        .find_map(|here| path.strip_prefix(here));
    let rest = rest.unwrap_or(path);
    let is_plain = rest
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let is_here = rest.len() < path.len();
    is_plain && !rest.contains("..") && (rest.is_empty() || rest.starts_with('/') == is_here)
}

/// Whether a variable decides which program a name means, or what else a program runs; an element of an array too.
pub(super) fn decides_what_runs(name: &str) -> bool {
    let name = whole_name(name);
    name == "PATH" || leading::is_known(name) || is_command(name)
}

/// The variable of which `PATH[0]` is an element, and to which `PATH+=…` adds.
pub(super) fn whole_name(name: &str) -> &str {
    let end = name.find(['[', '+']).unwrap_or(name.len());
    &name[..end]
}

/// Names of variables that a builtin sets, which stand among its words: `read a b`, `printf -v a`, `mapfile a`.
pub(super) fn set_by_name(command: &str, arguments: &[Value]) -> Vec<Value> {
    match command {
        "read" => glued(arguments, 'a'),
        "mapfile" | "readarray" | "getopts" => arguments.to_vec(),
        "printf" => printf_names(arguments).0,
        "wait" => {
            let name = |(at, word): (usize, &Value)| {
                let (_, name) = word.text.strip_prefix('-')?.split_once('p')?;
                match name.is_empty() {
                    true => arguments.get(at + 1).cloned(),
                    false => Some(word.part(name)),
                }
            };
            arguments.iter().enumerate().filter_map(name).collect()
        }
        _ => Vec::new(),
    }
}

/// The variables of the options of a `printf`, of which the last is set, and what follows the options.
fn printf_names(arguments: &[Value]) -> (Vec<Value>, &[Value]) {
    let mut names = Vec::new();
    let mut rest = arguments;
    loop {
        let (name, after) = match rest {
            [option, name, after @ ..] if option.text == "-v" => (name.clone(), after),
            [first, after @ ..] => match first.text.strip_prefix("-v") {
                Some(name) => (first.part(name), after),
                None => return (names, rest),
            },
            [] => return (names, rest),
        };
        names.push(name);
        rest = after;
    }
}

/// Whether a builtin makes arrays of the variables that it sets by their names.
pub(super) fn makes_arrays(command: &str, arguments: &[Value]) -> bool {
    let is_letter = |word: &Value| word.text.starts_with('-') && word.text.contains('a');
    match command {
        "mapfile" | "readarray" => true,
        "read" => arguments.iter().any(is_letter),
        _ => false,
    }
}

/// The words, with the name that follows the letter of an option at once in place of the option: `read -raNAME`.
fn glued(arguments: &[Value], letter: char) -> Vec<Value> {
    let name = |word: &Value| {
        let letters = word.text.strip_prefix('-')?;
        let (_, name) = letters.split_once(letter)?;
        (!name.is_empty()).then(|| word.part(name))
    };
    arguments
        .iter()
        .map(|word| name(word).unwrap_or_else(|| word.clone()))
        .collect()
}

/// Whether the format of a `printf` may be `-v` and the name of a variable instead.
pub(super) fn may_set_by_format(arguments: &[Value]) -> bool {
    let is_open = |format: &Value| format.holes.first().is_some_and(|hole| hole.start == 0);
    match arguments {
        [only] => is_open(only) && !only.is_one_word,
        [format, ..] => {
            is_open(format)
                && format
                    .holes
                    .first()
                    .is_some_and(|hole| hole.end == format.text.len())
        }
        [] => false,
    }
}

/// Whether a builtin sets such a variable that stands among its words: `read PATH`, `printf -v PATH`, `declare -n x=PATH`.
pub(super) fn sets_by_name(command: &str, arguments: &[Value]) -> bool {
    match command {
        "declare" | "typeset" | "local" => {
            is_reference(arguments) && !leads_to_plain_names(arguments)
        }
        // Without it, programs are searched for in the directory the shell is in.
        "unset" => arguments
            .iter()
            .any(|word| whole_name(&word.text) == "PATH"),
        "printf" if may_set_by_format(printf_names(arguments).1) => true,
        _ => {
            let names = set_by_name(command, arguments);
            names.iter().any(|name| decides_what_runs(&name.text))
        }
    }
}

/// Whether a `declare` makes references to other variables.
pub(super) fn is_reference(arguments: &[Value]) -> bool {
    let is_option = |word: &&Value| word.text.starts_with(['-', '+']);
    let mut options = arguments.iter().take_while(is_option);
    options.any(|word| word.text.starts_with('-') && word.text.contains('n'))
}

/// Whether all references lead to variables that are known and decide nothing: one without a value may be led anywhere later, and one to
/// an element runs its subscript whenever it is used.
fn leads_to_plain_names(arguments: &[Value]) -> bool {
    let mut words = arguments
        .iter()
        .filter(|word| !word.text.starts_with(['-', '+']));
    words.all(|word| match word.text.split_once('=') {
        Some((_, name)) => word.is_literal && is_name(name) && !decides_what_runs(name),
        None => false,
    })
}
