//! What a script of sed runs, writes and reads besides what it is given: the command `e` and the flag `e` of `s`, and names of files. What
//! is not known before the line runs acts, but for a replacement.
//!
//! Some versions of sed take a delimiter between brackets for itself, others for the end: a script acts if it does in either reading. What
//! cannot be read is an error of a sed that reads so; what nobody can read acts.
//!
//! Source: the manual of GNU sed 4.9, "sed scripts".

use super::super::super::value::Value;
use super::super::carriers::values;
use super::after_sections;

/// Commands that act on what sed has read, and on its output, and the bracket around some. A number may stand behind some of them.
const PLAIN: &str = "{=dDFgGhHlLnNpPqQxz";

/// Flags of `s` besides numbers and those that act.
const FLAGS: &str = "gpiImM";

/// Names of files that sed takes for streams of its own when it writes and when it reads. Those of the others lead to whatever the stream is.
const OUTPUTS: [&str; 3] = ["/dev/stdout", "/dev/stderr", "/dev/null"];
const INPUTS: [&str; 2] = ["/dev/stdin", "/dev/null"];

/// Letters of options that take the rest of their word, or the next one.
const VALUED: [char; 5] = ['e', 'f', 'i', 'I', 'l'];

/// Whether a sed with these arguments may run a command, write to a file, or read one that only its script names.
pub(super) fn acts(arguments: &[Value]) -> bool {
    let script_acts = |script: &Value| is_open(script) || acts_in(&script.text);
    has_script_file(arguments) || scripts(arguments).iter().any(script_acts)
}

/// Whether it is not known what a script does. In a replacement people put what is only known when the line runs.
fn is_open(script: &Value) -> bool {
    let is_replacement = script.text.starts_with('s');
    let mut holes = script.holes.iter();
    holes.any(|hole| hole.start == 0 || !is_replacement)
}

/// Whether it reads a script from a file, which a tool may have written.
fn has_script_file(arguments: &[Value]) -> bool {
    let is_letter = |word: &Value| {
        let letters = word
            .text
            .strip_prefix('-')
            .and_then(|word| word.split_once('f'));
        letters.is_some_and(|(flags, _)| flags.chars().all(|flag| "nErsuzb".contains(flag)))
    };
    !values(arguments, "--file").is_empty() || arguments.iter().any(is_letter)
}

/// The scripts: the values of `-e`, or the first word that is no option.
fn scripts(arguments: &[Value]) -> Vec<Value> {
    let mut scripts = values(arguments, "--expression");
    let mut operands = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "--" => operands.extend(words.by_ref()),
            long if long.starts_with("--") => {
                let is_valued = |option: &str| option.starts_with(long);
                if ["--expression", "--file", "--line-length"]
                    .into_iter()
                    .any(is_valued)
                {
                    words.next();
                }
            }
            short if short.starts_with('-') && short.len() > 1 => {
                let valued = short.char_indices().find(|(_, c)| VALUED.contains(c));
                let Some((at, letter)) = valued else {
                    continue;
                };
                match (letter, &short[at + 1..]) {
                    ('e', "") => scripts.extend(words.next().cloned()),
                    ('e', script) => scripts.push(word.part(script)),
                    ('f', "") => {
                        words.next();
                    }
                    // Elsewhere than in GNU it takes none.
                    ('l', "") => operands.extend(words.next().filter(|word| !is_number(word))),
                    _ => {}
                }
            }
            _ => operands.push(word),
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first().copied().cloned());
    }
    scripts
}

fn is_number(word: &Value) -> bool {
    word.text.chars().all(|c| c.is_ascii_digit())
}

/// Whether a script acts in one of its readings, or has none.
fn acts_in(script: &str) -> bool {
    let readings = [after_sections, after_expression].map(|after| reading(script, after));
    readings.contains(&Reading::Acts) || readings == [Reading::Unknown; 2]
}

/// What one version of sed makes of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// It only reads and prints what it is given.
    Tame,
    /// It does something of its own.
    Acts,
    /// An error, as far as is known.
    Unknown,
}

/// What follows `n` texts between delimiters of which the first is an expression.
type AfterExpression = fn(&str, usize) -> Option<&str>;

fn reading(script: &str, after_expression: AfterExpression) -> Reading {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ";{}".contains(c));
        rest = after_address(rest, after_expression);
        let Some(command) = rest.chars().next() else {
            return Reading::Tame;
        };
        rest = &rest[command.len_utf8()..];
        rest = match command {
            's' => match after_expression(rest, 2).map_or(Err(Reading::Unknown), after_flags) {
                Ok(after) => after,
                Err(found) => return found,
            },
            'y' => match after_sections(rest, 2) {
                Some(after) => after,
                None => return Reading::Unknown,
            },
            'e' => return Reading::Acts,
            'w' | 'W' if !OUTPUTS.contains(&file(rest)) => return Reading::Acts,
            'r' | 'R' if !INPUTS.contains(&file(rest)) => return Reading::Acts,
            'a' | 'i' | 'c' => after_text(rest),
            // Names of files and comments, up to the end of the line.
            'r' | 'R' | 'w' | 'W' | '#' => after_line(rest),
            // Some versions end a label at a space too.
            ':' | 'b' | 't' | 'T' | 'v' => {
                let label = rest.trim_start_matches([' ', '\t']);
                let end = |c: char| c.is_whitespace() || matches!(c, ';' | '}');
                label.find(end).map_or("", |end| &label[end..])
            }
            command if PLAIN.contains(command) => {
                rest.trim_start_matches(|c: char| c.is_ascii_digit() || " \t".contains(c))
            }
            _ => return Reading::Unknown,
        };
    }
}

/// What follows the flags of an `s`.
///
/// Errors: they act, or one of them is not known.
fn after_flags(flags: &str) -> Result<&str, Reading> {
    let is_flag = |c: char| FLAGS.contains(c) || c.is_ascii_digit() || " \t".contains(c);
    let after = flags.trim_start_matches(is_flag);
    match after.chars().next() {
        // Behind it stands the name of a file, up to the end of the line.
        Some('w') if OUTPUTS.contains(&file(&after[1..])) => Ok(after_line(after)),
        Some('e' | 'w') => Err(Reading::Acts),
        None | Some(';' | '}' | '#' | '\n') => Ok(after),
        Some(_) => Err(Reading::Unknown),
    }
}

/// The name of a file, which goes on to the end of the line.
fn file(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}

fn after_line(text: &str) -> &str {
    text.find('\n').map_or("", |end| &text[end..])
}

/// What follows a text, which goes on behind a line that ends with a backslash.
fn after_text(text: &str) -> &str {
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        let n_backslashes = line.len() - line.trim_end_matches('\\').len();
        if n_backslashes.is_multiple_of(2) {
            return &rest[line.len()..];
        }
        rest = after;
    }
    ""
}

/// What follows the addresses of a command.
fn after_address(mut rest: &str, after_expression: AfterExpression) -> &str {
    loop {
        let Some(first) = rest.chars().next() else {
            return rest;
        };
        rest = match first {
            '0'..='9' | '$' | ',' | '~' | '+' | '!' | ' ' | '\t' | 'I' | 'M' => &rest[1..],
            '/' => match after_expression(rest, 1) {
                Some(after) => after,
                None => return "",
            },
            '\\' => match after_expression(&rest[1..], 1) {
                Some(after) => after,
                None => return "",
            },
            _ => return rest,
        };
    }
}

/// What follows `n` texts between the first character and its like, which in the first of them does not count between brackets.
fn after_expression(rest: &str, n: usize) -> Option<&str> {
    let delimiter = rest.chars().next()?;
    let mut at = delimiter.len_utf8();
    loop {
        let inside = rest.get(at..)?;
        let c = inside.chars().next()?;
        if c == delimiter {
            break;
        }
        at += match c {
            '\\' => 1 + inside.chars().nth(1)?.len_utf8(),
            '[' => inside.len() - after_brackets(inside)?.len(),
            other => other.len_utf8(),
        };
    }
    match n {
        0 | 1 => rest.get(at + delimiter.len_utf8()..),
        _ => after_sections(&rest[at..], n - 1),
    }
}

/// What follows a `[…]`, in which a `]` at the start and the name of a class stand for themselves.
fn after_brackets(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('[')?;
    rest = rest.strip_prefix('^').unwrap_or(rest);
    rest = rest.strip_prefix(']').unwrap_or(rest);
    loop {
        let at = rest.find([']', '['])?;
        let found = &rest[at..];
        rest = match [":", ".", "="]
            .iter()
            .find(|kind| found[1..].starts_with(**kind))
        {
            _ if found.starts_with(']') => return Some(&found[1..]),
            Some(kind) => found[2..].split_once(&format!("{kind}]"))?.1,
            None => &found[1..],
        };
    }
}

#[cfg(test)]
mod tests;
