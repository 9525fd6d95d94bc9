//! What is run for which project: a table. A further checker is a row here, its command line in `plugin.toml`, and a parser if it prints
//! like none of the others.

use crate::diagnostic::Diagnostic;
use crate::parse::{self, Printout};

/// How strict the check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Errors and warnings of compilers.
    #[default]
    Check,
    /// Lints as well, with clippy. For other languages than Rust the same as `check`.
    Clippy,
}

/// One program with its arguments.
#[derive(Debug)]
pub struct Command {
    /// The program's bare name.
    pub program: &'static str,
    /// Its arguments, separated by spaces: as in `plugin.toml`.
    pub arguments: &'static str,
    /// A file of the project without which it is not tried.
    pub needs: Option<&'static str>,
}

/// One checker.
#[derive(Debug)]
pub struct Checker {
    /// What it is called.
    pub name: &'static str,
    /// The levels at which it runs.
    pub levels: &'static [Level],
    /// Files one of which shows a project of its language.
    pub markers: &'static [Marker],
    /// Its commands; the first that is there runs.
    pub commands: &'static [Command],
    /// Makes diagnostics of what it printed.
    pub parse: fn(&Printout) -> Vec<Diagnostic>,
}

/// A file that shows that a project uses a checker.
#[derive(Debug)]
pub struct Marker {
    /// Its name.
    pub file: &'static str,
    /// What must stand in it.
    pub mentions: &'static str,
}

const fn file(file: &'static str) -> Marker {
    Marker { file, mentions: "" }
}

const fn mentions(file: &'static str, mentions: &'static str) -> Marker {
    Marker { file, mentions }
}

const fn command(program: &'static str, arguments: &'static str) -> Command {
    Command {
        program,
        arguments,
        needs: None,
    }
}

const ANY: &[Level] = &[Level::Check, Level::Clippy];

/// Every checker.
pub const CHECKERS: &[Checker] = &[
    Checker {
        name: "cargo check",
        levels: &[Level::Check],
        markers: &[file("Cargo.toml")],
        commands: &[command(
            "cargo",
            "check --quiet --locked --keep-going --message-format=json",
        )],
        parse: parse::cargo::read,
    },
    Checker {
        name: "cargo clippy",
        levels: &[Level::Clippy],
        markers: &[file("Cargo.toml")],
        commands: &[command(
            "cargo",
            "clippy --quiet --locked --keep-going --message-format=json",
        )],
        parse: parse::cargo::read,
    },
    Checker {
        name: "tsc",
        levels: ANY,
        markers: &[file("tsconfig.json")],
        commands: &[
            Command {
                program: "node",
                arguments: "node_modules/typescript/bin/tsc --noEmit --pretty false",
                needs: Some("node_modules/typescript/bin/tsc"),
            },
            command("tsc", "--noEmit --pretty false"),
        ],
        parse: parse::lines::tsc,
    },
    Checker {
        name: "ruff",
        levels: ANY,
        markers: &[
            file("pyproject.toml"),
            file("ruff.toml"),
            file(".ruff.toml"),
            file("setup.py"),
            file("setup.cfg"),
            file("requirements.txt"),
        ],
        commands: &[command(
            "ruff",
            "check --quiet --no-cache --output-format=json .",
        )],
        parse: parse::ruff::read,
    },
    Checker {
        name: "mypy",
        levels: ANY,
        markers: &[
            file("mypy.ini"),
            file(".mypy.ini"),
            mentions("pyproject.toml", "[tool.mypy"),
            mentions("setup.cfg", "[mypy"),
        ],
        commands: &[command(
            "mypy",
            "--show-column-numbers --no-error-summary --no-pretty --no-color-output .",
        )],
        parse: parse::lines::mypy,
    },
    Checker {
        name: "go vet",
        levels: ANY,
        markers: &[file("go.mod")],
        commands: &[command("go", "vet -json ./...")],
        parse: parse::go::read,
    },
];

#[cfg(test)]
mod tests {
    use super::CHECKERS;

    /// What is not in the manifest could not be granted.
    #[test]
    fn every_command_is_in_the_manifest() {
        let manifest = include_str!("../plugin.toml");
        for command in CHECKERS.iter().flat_map(|checker| checker.commands) {
            let name = format!("name = \"{}\"", command.program);
            let arguments = format!("\"{}\"", command.arguments);
            let stands = manifest
                .split("[[")
                .any(|table| table.contains(&name) && table.contains(&arguments));
            assert!(stands, "{command:?}");
        }
    }
}
