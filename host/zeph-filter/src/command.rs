//! The command that a rule is matched against.
//!
//! Rules are written for `git status`; people write `git -C repo status`. So a command is matched in two spellings: as it was
//! written, and plain, without folders, runners (`npx`, `python -m`) and options before the subcommand.

use zeph_core::command::{CommandLine, Segment, SimpleCommand};

use crate::sanitize::Writer;

/// What a pipe may end in without changing which lines there are, but for fewer of them.
const TRANSPARENT: [&str; 6] = ["head", "tail", "cat", "tee", "less", "more"];

/// What prints files as they are, or lines of them.
const OF_FILES: [&str; 10] = [
    "cat", "head", "tail", "less", "more", "sed", "awk", "cut", "sort", "nl",
];

/// Options that ask for another output format. A rule that names one itself, or has a list of its own, is not held to these.
pub(crate) const FORMAT_FLAGS: [&str; 9] = [
    "--json",
    "--format",
    "--output-format",
    "--message-format",
    "--porcelain",
    "--template",
    "--pretty",
    "--reporter",
    "--jsonpath",
];

/// Options of programs that stand before the subcommand and take a value.
const VALUED: [(&str, &[&str]); 4] = [
    (
        "git",
        &["-C", "-c", "--git-dir", "--work-tree", "--namespace"],
    ),
    ("docker", &["-H", "--host", "-c", "--context", "--config"]),
    (
        "kubectl",
        &[
            "-n",
            "--namespace",
            "--context",
            "--kubeconfig",
            "--cluster",
        ],
    ),
    ("make", &["-C", "--directory", "-f", "--file"]),
];

/// Programs that run the program named in their arguments and print nothing of their own.
const RUNNERS: [&[&str]; 13] = [
    &["npx"],
    &["bunx"],
    &["pnpm", "exec"],
    &["pnpm", "dlx"],
    &["yarn", "exec"],
    &["uv", "run"],
    &["uvx"],
    &["coverage", "run", "-m"],
    &["poetry", "run"],
    &["pipenv", "run"],
    &["pdm", "run"],
    &["rye", "run"],
    &["bundle", "exec"],
];

/// The command whose output is seen, in the spellings rules may match.
#[derive(Debug)]
pub(crate) struct Spoken<'a> {
    pub(crate) written: String,
    pub(crate) plain: String,
    pub(crate) arguments: &'a [String],
    pub(crate) is_one_of_several: bool,
}

/// What rules are matched against, or why none applies.
pub(crate) fn spoken(line: &CommandLine) -> Result<Spoken<'_>, String> {
    let Some(last) = &line.last else {
        return Err("it is unknown which command's output is seen".to_owned());
    };
    if let Some(owner) = owner(last) {
        return Err(format!(
            "`{owner}` owns the output: it changes what the command before it printed"
        ));
    }
    Ok(Spoken {
        written: last.command.text(),
        plain: plain(&last.command),
        arguments: &last.command.arguments,
        is_one_of_several: last.is_one_of_several,
    })
}

/// Who wrote the output of a command.
pub(crate) fn writer(line: &CommandLine) -> Writer {
    let last = line.last.as_ref();
    let is_of_files = last.is_some_and(|last| OF_FILES.contains(&last.command.base_name()));
    match is_of_files {
        true => Writer::File,
        false => Writer::Command,
    }
}

fn owner(segment: &Segment) -> Option<&str> {
    segment
        .pipes
        .iter()
        .map(|name| base(name))
        .find(|name| !TRANSPARENT.contains(name))
}

fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn plain(command: &SimpleCommand) -> String {
    let mut words: Vec<&str> = vec![command.base_name()];
    words.extend(command.arguments.iter().map(String::as_str));
    let words = without_options(without_runner(&words));
    words.join(" ")
}

/// `npx jest` and `python3 -m pytest` are `jest` and `pytest`.
fn without_runner<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let is_python = words[0]
        .strip_prefix("python")
        .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'));
    if is_python && words.len() > 2 && words[1] == "-m" {
        return &words[2..];
    }
    let runner = RUNNERS.iter().find(|runner| words.starts_with(runner));
    let Some(runner) = runner else {
        return words;
    };
    let rest = &words[runner.len()..];
    let n_options = rest.iter().take_while(|word| word.starts_with('-')).count();
    if n_options == rest.len() {
        words
    } else {
        without_runner(&rest[n_options..])
    }
}

/// `git -C a --no-pager diff` is `git diff`, `cargo +nightly test` is `cargo test`.
fn without_options<'b>(words: &[&'b str]) -> Vec<&'b str> {
    let mut plain = vec![base(words[0])];
    let valued = VALUED
        .iter()
        .find(|(program, _)| *program == plain[0])
        .map(|(_, options)| *options);
    let is_cargo = plain[0] == "cargo";
    let mut rest = words[1..].iter();
    if valued.is_some() || is_cargo {
        while let Some(word) = rest.clone().next() {
            let is_toolchain = is_cargo && word.starts_with('+');
            if !is_toolchain && !word.starts_with('-') {
                break;
            }
            rest.next();
            if valued.is_some_and(|options| options.contains(word)) {
                rest.next();
            }
        }
    }
    plain.extend(rest);
    plain
}

/// The first argument that is one of `flags`, alone, with `=value`, or within a cluster of short options.
pub(crate) fn flag<'a>(arguments: &'a [String], flags: &[String]) -> Option<&'a str> {
    let is_flag = |argument: &String| flags.iter().any(|flag| is(argument, flag));
    arguments
        .iter()
        .find(|argument| is_flag(argument))
        .map(String::as_str)
}

fn is(argument: &str, flag: &str) -> bool {
    if argument == flag {
        return true;
    }
    if flag.starts_with("--") {
        return argument
            .strip_prefix(flag)
            .is_some_and(|rest| rest.starts_with('='));
    }
    match flag.strip_prefix('-') {
        Some(letter) if letter.chars().count() == 1 => {
            let cluster = argument
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'));
            cluster.is_some_and(|rest| rest.starts_with(letter) || is_cluster_with(rest, letter))
        }
        _ => false,
    }
}

/// Only letters, and few: `-Aoyaml` holds `-o`, a long single-dash option such as Terraform's `-no-color` does not.
fn is_cluster_with(rest: &str, letter: &str) -> bool {
    rest.len() <= 6 && rest.chars().all(|c| c.is_ascii_alphabetic()) && rest.contains(letter)
}

#[cfg(test)]
pub(crate) mod tests;
