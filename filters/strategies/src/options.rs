//! Reading the options that a rule gives to a strategy.

use regex::Regex;
use regex_syntax::hir::Hir;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::Automaton;

/// The longest regular expression of a rule, in characters. Longer ones are generated and hide what they match.
pub const PATTERN_CHARS_MAX: usize = 512;

/// What one strategy's expressions may come to once compiled, in bytes. Counted repetitions of a short expression reach any
/// size.
const COMPILED_BYTES_MAX: usize = 4 << 20;

/// Reads the options of one strategy; an empty text means none.
pub(crate) fn read<T: DeserializeOwned>(options: &str) -> Result<T, String> {
    let text = if options.trim().is_empty() {
        "{}"
    } else {
        options
    };
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let plain = message.split(" at line ").next().unwrap_or(&message);
        plain.to_owned()
    })
}

/// The JSON Schema of some options, as text.
pub(crate) fn schema<T: JsonSchema>() -> String {
    schemars::schema_for!(T).to_value().to_string()
}

/// One expression that matches where any of `patterns` does.
///
/// Errors: a pattern that is too long, does not compile or compiles to too much.
pub(crate) fn any_of(patterns: &[String]) -> Result<Automaton, String> {
    let parsed: Result<Vec<Hir>, String> = patterns.iter().map(|p| parse(p)).collect();
    let any = Hir::alternation(parsed?);
    let automaton = Automaton::of_hir(&any, Some(COMPILED_BYTES_MAX));
    automaton.map_err(|_| {
        let shown = shown(&patterns.join("|"));
        format!("`{shown}`: compiled regex exceeds size limit of {COMPILED_BYTES_MAX} bytes")
    })
}

/// One expression that is only asked whether it matches.
///
/// Errors: as for [`any_of`].
pub(crate) fn matcher(pattern: &str) -> Result<Automaton, String> {
    any_of(&[pattern.to_owned()])
}

/// One expression with groups.
///
/// Errors: as for [`any_of`].
pub(crate) fn one(pattern: &str) -> Result<Regex, String> {
    parse(pattern)?;
    regex::RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| wrong(pattern, &error))
}

/// Reads a pattern. It is one by itself: `a)(b` is none, though a group around it would be.
fn parse(pattern: &str) -> Result<Hir, String> {
    let n_chars = pattern.chars().count();
    if n_chars > PATTERN_CHARS_MAX {
        return Err(format!(
            "a pattern has {n_chars} characters, {PATTERN_CHARS_MAX} are allowed"
        ));
    }
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).build();
    let parsed = parser.parse(&with_plain_borders(pattern));
    parsed.map_err(|error| wrong(pattern, &error))
}

/// A pattern whose `\b` are those of ASCII: others cost an automaton the lines that hold more than ASCII.
fn with_plain_borders(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        match escaped {
            Some(border @ ('b' | 'B')) => {
                // `\b{start}` is one word, `\b{2}` is two.
                let rest = chars.as_str();
                let is_named = rest.starts_with('{') && !rest[1..].starts_with(char::is_numeric);
                let name_end = rest.find('}').filter(|_| is_named).map_or(0, |at| at + 1);
                let name = &rest[..name_end];
                plain.push_str(&format!(r"(?-u:\{border}{name})"));
                chars = rest[name_end..].chars();
            }
            Some(escaped) => plain.extend([c, escaped]),
            None => plain.push(c),
        }
    }
    plain
}

fn wrong(pattern: &str, error: &dyn std::error::Error) -> String {
    let message = error.to_string();
    let last = message.lines().next_back().unwrap_or(&message);
    let shown = shown(pattern);
    format!("`{shown}`: {}", last.trim_start_matches("error: "))
}

/// As much of a pattern as fits a message.
fn shown(pattern: &str) -> String {
    pattern.chars().take(60).collect()
}
