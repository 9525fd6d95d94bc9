//! Variables that make a command another one than its words say.

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
    let runs_project = |program: &str| {
        let base = program.rsplit('/').next().unwrap_or(program);
        program.contains('/') || RUN_PROJECTS.contains(&base)
    };
    let is_own = match whom {
        For::Program(program) => runs_project(program),
        For::Shell | For::All => false,
    };
    if leading::is_known(name) {
        let is_tame = value.is_literal && leading::is_tame(name, &value.text)
            || leads_to_installed(&value.text)
                && name.ends_with("_HOME")
                && !name.starts_with("XDG_");
        let is_library = is_own && LIBRARIES.contains(&name) && is_below(&value.text);
        // A program of the project is no more led by where its configuration would be.
        let is_path = matches!(whom, For::Program(program) if program.contains('/'));
        let is_home = is_path && (name == "HOME" || name.starts_with("XDG_"));
        return !is_tame && !is_library && !is_home;
    }
    whom != For::Shell
        && !is_own
        && leading::is_generic(name)
        && name != "PATH"
        && !value.text.is_empty()
}

/// Whether all entries of a search path are folders of the project.
fn is_below(path: &str) -> bool {
    let is_below = |entry: &str| {
        let rest = ["$PWD", "${PWD}", "$(pwd)"]
            .iter()
            .find_map(|here| entry.strip_prefix(here));
        let rest = rest.unwrap_or(entry);
        let is_plain = rest
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        is_plain && !rest.contains("..") && (rest.len() < entry.len() || !rest.starts_with('/'))
    };
    let is_same =
        |entry: &str| entry.starts_with('$') && entry.to_ascii_uppercase().contains("PATH");
    path.split(':')
        .all(|entry| is_below(entry) || is_same(entry))
}

/// Whether a variable decides which program a name means, or what else a program runs.
pub(super) fn decides_what_runs(name: &str) -> bool {
    name == "PATH" || leading::is_known(name) || is_command(name)
}

/// Names of variables that a builtin sets, which stand among its words: `read a b`, `printf -v a`, `mapfile a`.
pub(super) fn set_by_name<'v>(command: &str, arguments: &'v [Value]) -> Vec<&'v Value> {
    match command {
        "read" | "mapfile" | "readarray" | "getopts" => arguments.iter().collect(),
        "printf" => match arguments {
            [option, name, ..] if option.text == "-v" => vec![name],
            [first, ..] if first.text.starts_with("-v") => vec![first],
            _ => Vec::new(),
        },
        "wait" => arguments
            .iter()
            .skip_while(|word| word.text != "-p")
            .skip(1)
            .take(1)
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether a builtin sets such a variable that stands among its words: `read PATH`, `printf -v PATH`, `declare -n x=PATH`.
pub(super) fn sets_by_name(command: &str, arguments: &[Value]) -> bool {
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    match command {
        "declare" | "typeset" | "local" => {
            let is_reference = |text: &&str| text.starts_with('-') && text.contains('n');
            let values = texts.iter().filter_map(|text| text.split_once('='));
            let mut names = values.map(|(_, name)| name);
            texts.iter().any(is_reference) && names.any(decides_what_runs)
        }
        _ => {
            let names = set_by_name(command, arguments);
            let mut names = names
                .iter()
                .map(|name| name.text.strip_prefix("-v").unwrap_or(&name.text));
            names.any(decides_what_runs)
        }
    }
}
