//! What a program of awk runs: `system`, pipes, functions called by their name, and files of code.
//!
//! Source: the manual of gawk 5.2. Where it depends on awk's grammar whether a `/` divides or begins an expression, the rest of the
//! program is searched for anything that could run a command.

use super::super::super::value::Value;
use super::super::options::ProgramOptions;
use super::{after_sections, is_made};

const OPTIONS: ProgramOptions = ProgramOptions {
    flags: "bcCghIMnNOPrsStV",
    valued: "dDeEfFiklLopvW",
    long_flags: &[
        "bignum",
        "characters-as-bytes",
        "csv",
        "help",
        "lint",
        "no-optimize",
        "non-decimal-data",
        "optimize",
        "posix",
        "re-interval",
        "sandbox",
        "traditional",
        "use-lc-numeric",
        "version",
    ],
    long_valued: &[
        "assign",
        "exec",
        "field-separator",
        "file",
        "include",
        "load",
        "source",
    ],
};

/// Options that read code from files, which a tool may have written, or turn on what no table knows.
const FILES: &[&str] = &[
    "f", "file", "E", "exec", "i", "include", "l", "load", "D", "W",
];

/// Words behind which a `/` begins an expression.
const KEYWORDS: [&str; 8] = [
    "case", "do", "else", "exit", "in", "print", "printf", "return",
];

/// Whether an awk with these arguments may run a command.
pub(super) fn runs(arguments: &[Value]) -> bool {
    let Some(read) = OPTIONS.read(arguments) else {
        return true;
    };
    let named = read
        .met
        .iter()
        .filter(|met| ["e", "source"].contains(&met.name.as_str()));
    let named: Vec<&Value> = named.filter_map(|met| met.value.as_ref()).collect();
    let programs = match named.is_empty() {
        true => arguments.get(read.next).into_iter().collect(),
        false => named,
    };
    let mut programs = programs.into_iter();
    read.has(FILES) || programs.any(|program| is_made(program) || program_runs(&program.text))
}

/// What stands before a place in a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing, or what no value ends with: a `/` begins an expression.
    Operator,
    /// A value: a `/` divides.
    Value,
    /// Either.
    Unclear,
}

fn program_runs(program: &str) -> bool {
    let mut rest = program;
    let mut before = Before::Operator;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        (rest, before) = match c {
            '"' => match after_sections(rest, 1) {
                Some(after) => (after, Before::Value),
                None => return false,
            },
            '/' if before == Before::Value => (after, Before::Unclear),
            '/' => match after_sections(rest, 1).filter(|_| before == Before::Operator) {
                Some(after) if !is_open(&rest[1..rest.len() - after.len() - 1]) => {
                    (after, Before::Unclear)
                }
                _ => return may_run(after),
            },
            '#' => (after.find('\n').map_or("", |end| &after[end..]), before),
            '|' if after.starts_with('|') => (&after[1..], Before::Operator),
            '|' => return true,
            // `@/x/` is an expression as a value; else a function by its name, or a file.
            '@' if after.starts_with('/') => (after, Before::Operator),
            '@' => return true,
            '\n' if before == Before::Value => (after, Before::Unclear),
            _ if c.is_whitespace() => (after, before),
            _ if is_word(c) => {
                let (word, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
                if word == "system" && after.trim_start().starts_with('(') {
                    return true;
                }
                (after, behind(word))
            }
            ']' => (after, Before::Value),
            _ if "(,{;}!~&=<>?:".contains(c) => (after, Before::Operator),
            _ => (after, Before::Unclear),
        };
    }
    false
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn behind(word: &str) -> Before {
    match word {
        "getline" => Before::Unclear,
        word if KEYWORDS.contains(&word) => Before::Operator,
        _ => Before::Value,
    }
}

/// Whether an expression ends within brackets, where some programs take a `/` for its end and others do not.
fn is_open(expression: &str) -> bool {
    let classes = expression.matches("[:").count();
    let count = |bracket: char| expression.matches(bracket).count();
    count('[').saturating_sub(classes) > count(']').saturating_sub(classes)
        || expression.contains("[]")
        || expression.contains("[^]")
        || expression.contains("\\]")
        || expression.contains("\\[")
}

/// Whether anything in the text looks like a command that is run.
fn may_run(text: &str) -> bool {
    let text = text.replace("||", "");
    text.contains(['|', '@']) || text.contains("system")
}
