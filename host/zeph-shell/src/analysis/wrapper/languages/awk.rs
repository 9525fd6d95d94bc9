//! What a program of awk runs and writes: `system`, pipes, functions called by their name, files of code, and `print > FILE`.
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

/// Options that read code from files, which a tool may have written, write files, or turn on what no table knows.
const FILES: &[&str] = &[
    "f", "file", "E", "exec", "i", "include", "l", "load", "d", "o", "p", "D", "W",
];

/// Words behind which a `/` begins an expression.
const KEYWORDS: [&str; 8] = [
    "case", "do", "else", "exit", "in", "print", "printf", "return",
];

/// Whether an awk with these arguments may run a command or write to a file.
pub(super) fn acts(arguments: &[Value]) -> bool {
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
    read.has(FILES) || programs.any(|program| is_made(program) || program_acts(&program.text))
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

/// A piece of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'p> {
    Word(&'p str),
    Symbol(char),
    /// A text, an expression, a comment or a blank.
    Inert,
    /// A `/` of which it is not clear what it begins.
    Unclear,
}

/// Whether a program may run a command or write to a file.
fn program_acts(program: &str) -> bool {
    let mut rest = program;
    let mut before = Before::Operator;
    let mut output = OutputStatement::default();
    while let Some((token, after, behind)) = token(rest, before) {
        let acts = match token {
            Token::Symbol('|' | '@') => true,
            Token::Word("system") => after.trim_start().starts_with('('),
            Token::Unclear => return may_act(after, output.start.is_some()),
            token => output.writes(token, after),
        };
        if acts {
            return true;
        }
        (rest, before) = (after, behind);
    }
    false
}

/// The first piece of a program and what follows it; none at its end and where it cannot be read.
fn token(rest: &str, before: Before) -> Option<(Token<'_>, &str, Before)> {
    let c = rest.chars().next()?;
    let after = &rest[c.len_utf8()..];
    let found = match c {
        '"' => (Token::Inert, after_sections(rest, 1)?, Before::Value),
        '/' if before == Before::Value => (Token::Inert, after, Before::Unclear),
        '/' => match after_sections(rest, 1).filter(|_| before == Before::Operator) {
            Some(after) if !is_open(&rest[1..rest.len() - after.len() - 1]) => {
                (Token::Inert, after, Before::Unclear)
            }
            _ => (Token::Unclear, after, before),
        },
        '#' => {
            let end = after.find('\n');
            (Token::Inert, end.map_or("", |end| &after[end..]), before)
        }
        '|' if after.starts_with('|') => (Token::Inert, &after[1..], Before::Operator),
        // `@/x/` is an expression as a value; else a function by its name, or a file.
        '@' if after.starts_with('/') => (Token::Inert, after, Before::Operator),
        '\n' if before == Before::Value => (Token::Symbol(c), after, Before::Unclear),
        '\n' => (Token::Symbol(c), after, before),
        _ if c.is_whitespace() => (Token::Inert, after, before),
        _ if is_word(c) => {
            let (word, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
            (Token::Word(word), after, behind(word))
        }
        ']' => (Token::Symbol(c), after, Before::Value),
        _ if "(,{;}!~&=<>?:".contains(c) => (Token::Symbol(c), after, Before::Operator),
        _ => (Token::Symbol(c), after, Before::Unclear),
    };
    Some(found)
}

/// What is known of a `print` or `printf`: a `>` in it, outside of brackets, writes to a file; elsewhere it compares.
#[derive(Default)]
struct OutputStatement {
    /// How deep in brackets it began; none outside of one.
    start: Option<usize>,
    depth: usize,
    is_continued: bool,
}

impl OutputStatement {
    /// Whether a file is written to at `token`.
    fn writes(&mut self, token: Token<'_>, after: &str) -> bool {
        match token {
            Token::Word("print" | "printf") => self.start = Some(self.depth),
            Token::Symbol('(' | '[') => self.depth += 1,
            Token::Symbol(')' | ']') => self.depth = self.depth.saturating_sub(1),
            Token::Symbol(';' | '{' | '}') => self.start = None,
            Token::Symbol('\n') if !self.is_continued => self.start = None,
            Token::Symbol('>') => return self.start == Some(self.depth) && !is_stream(after),
            _ => {}
        }
        if token != Token::Inert {
            self.is_continued = matches!(token, Token::Symbol(',' | '\\' | '\n'));
        }
        false
    }
}

/// Whether the target of a `>` is what is printed anyway, or nothing.
fn is_stream(target: &str) -> bool {
    let target = target
        .trim_start_matches('>')
        .trim_start_matches([' ', '\t']);
    let streams = ["\"/dev/stderr\"", "\"/dev/stdout\"", "\"/dev/null\""];
    let mut after = streams
        .iter()
        .filter_map(|stream| target.strip_prefix(stream));
    after.any(|after| {
        let after = after.trim_start_matches([' ', '\t']);
        after.is_empty() || after.starts_with(['\n', ';', '}'])
    })
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

/// Whether anything in the text looks like a command that is run or a file that is written.
fn may_act(text: &str, is_printing: bool) -> bool {
    let text = text.replace("||", "");
    let printed = match is_printing {
        true => Some(text.as_str()),
        false => text.split_once("print").map(|(_, printed)| printed),
    };
    let writes = printed.is_some_and(|printed| printed.contains('>'));
    writes || text.contains(['|', '@']) || text.contains("system")
}
