//! Reading the options that a rule gives to a strategy.

use regex::Regex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

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
pub(crate) fn any_of(patterns: &[String]) -> Result<Regex, String> {
    for pattern in patterns {
        check(pattern)?;
    }
    let alternatives: Vec<_> = patterns.iter().map(|p| format!("(?:{p})")).collect();
    compile(&alternatives.join("|"))
}

/// One expression of a rule.
///
/// Errors: as for [`any_of`].
pub(crate) fn one(pattern: &str) -> Result<Regex, String> {
    check(pattern)?;
    compile(pattern)
}

/// Whether a pattern is one by itself: `a)(b` is none, though a group around it would be. Far cheaper than compiling it.
fn check(pattern: &str) -> Result<(), String> {
    let n_chars = pattern.chars().count();
    if n_chars > PATTERN_CHARS_MAX {
        return Err(format!(
            "a pattern has {n_chars} characters, {PATTERN_CHARS_MAX} are allowed"
        ));
    }
    let parsed = regex_syntax::Parser::new().parse(pattern);
    parsed.map(drop).map_err(|error| wrong(pattern, &error))
}

fn compile(pattern: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| wrong(pattern, &error))
}

fn wrong(pattern: &str, error: &dyn std::error::Error) -> String {
    let message = error.to_string();
    let last = message.lines().next_back().unwrap_or(&message);
    let shown: String = pattern.chars().take(60).collect();
    format!("`{shown}`: {}", last.trim_start_matches("error: "))
}
