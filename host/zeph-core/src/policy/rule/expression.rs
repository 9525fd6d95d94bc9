//! The regular expressions of rules (`args_match`), with their bounds.

use regex::{RegexBuilder, RegexSet, RegexSetBuilder};

use crate::failure::one_line;
use crate::policy::bad::BadRule;

/// Most bytes of one `args_match`. Source: the documented limit.
pub const ARGS_MATCH_BYTES_MAX: usize = 1024;

/// Most bytes a compiled `args_match` takes. Ordinary ones take some kilobytes; nested repetitions are refused.
const REGEX_SIZE_MAX: usize = 1024 * 1024;

/// Most bytes all of them take together.
const REGEX_SET_SIZE_MAX: usize = 32 * 1024 * 1024;

/// The text of an expression, when it is one.
pub(super) fn checked(text: &str) -> Result<String, BadRule> {
    if text.len() > ARGS_MATCH_BYTES_MAX {
        let reason = format!(
            "`args_match` has {} bytes; {ARGS_MATCH_BYTES_MAX} are the most",
            text.len()
        );
        return Err(BadRule::new(text, reason));
    }
    one(text)?;
    Ok(text.to_owned())
}

fn one(text: &str) -> Result<(), BadRule> {
    RegexBuilder::new(text)
        .size_limit(REGEX_SIZE_MAX)
        .build()
        .map(drop)
        .map_err(|error| BadRule::new(text, one_line(&error.to_string(), 300)))
}

pub(super) fn set(texts: &[&str]) -> Result<RegexSet, BadRule> {
    RegexSetBuilder::new(texts)
        .size_limit(REGEX_SET_SIZE_MAX)
        .build()
        .map_err(|error| BadRule::new("args_match", one_line(&error.to_string(), 300)))
}
