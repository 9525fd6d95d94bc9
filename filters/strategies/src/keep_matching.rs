//! `keep_matching`: shows only lines that match one of the given patterns, and errors and warnings.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Automaton, Confidence, Coverage, Definition, Input, Selection, Strategy, options};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "keep_matching",
    description: "Keeps only lines matching at least one of the patterns, and errors and warnings.",
    coverage: Coverage::Unrecognised,
    schema: options::schema::<KeepMatchingOptions>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeepMatchingOptions {
    /// Regular expressions; a line that matches none is omitted.
    patterns: Vec<String>,
}

struct KeepMatching {
    wanted: Automaton,
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    let KeepMatchingOptions { patterns } = options::read(options)?;
    if patterns.is_empty() {
        return Err("`patterns` is empty".to_owned());
    }
    Ok(Box::new(KeepMatching {
        wanted: options::any_of(&patterns)?,
    }))
}

impl Strategy for KeepMatching {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let is_wanted = |line: &str| self.wanted.is_match(line);
        let mut is_kept: Vec<_> = input.lines.iter().map(is_wanted).collect();
        if !is_kept.contains(&true) {
            return Selection::all(input, Confidence::Fallback);
        }
        for (line_idx, is_kept) in is_kept.iter_mut().enumerate() {
            *is_kept |= !*is_kept && input.lines.severity(line_idx).is_some();
        }
        Selection::of(&is_kept, Confidence::Full)
    }
}
