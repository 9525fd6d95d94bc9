//! Checks JSON values against JSON Schemas that others wrote, within bounds.
//!
//! The library for it is generic, and compiled once more for each crate that uses it and is optimised for speed: a megabyte in the program
//! that is handed out. So it stands here alone, behind functions that are not generic. Nothing is fetched: a schema that refers to another
//! file cannot be used.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions};
use serde_json::Value;

/// Most steps back that matching one text against one `pattern` may take: about a millisecond. The library's own bound is a
/// hundred times that; only patterns with look-around or references to groups take any.
const BACKTRACKS_MAX: usize = 10_000;

/// Most bytes a piece of a pattern takes compiled. `.{1,1000}` takes a tenth.
const PATTERN_SIZE_MAX: usize = 256 * 1024;

/// How a schema is read that does not name its draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// By the newest draft.
    Newest,
    /// By draft 7, which takes less time to prepare.
    Draft7,
}

/// What a value is checked with.
#[derive(Debug)]
pub struct Validator(jsonschema::Validator);

/// The first thing about a value that does not agree with the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Whether a value has another JSON type.
    pub is_type: bool,
    /// Where in the value it is, as a JSON pointer.
    pub pointer: String,
    /// What does not agree.
    pub message: String,
}

impl Validator {
    /// Prepares a schema. Formats are not checked.
    ///
    /// Errors: what is wrong with the schema, of any length.
    pub fn new(schema: &Value, reading: Reading) -> Result<Self, String> {
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS_MAX)
            .size_limit(PATTERN_SIZE_MAX);
        let mut options = jsonschema::options()
            .should_validate_formats(false)
            .with_pattern_options(patterns);
        if reading == Reading::Draft7 {
            options = options.with_draft(Draft::Draft7);
        }
        let validator = options.build(schema);
        validator.map(Self).map_err(|error| error.to_string())
    }

    /// Whether the value agrees with the schema.
    pub fn accepts(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// What does not agree with the schema first; none when all of it agrees.
    pub fn mismatch(&self, value: &Value) -> Option<Mismatch> {
        let error = self.0.iter_errors(value).next()?;
        Some(Mismatch {
            is_type: matches!(error.kind(), ValidationErrorKind::Type { .. }),
            pointer: error.instance_path().to_string(),
            message: error.to_string(),
        })
    }
}
