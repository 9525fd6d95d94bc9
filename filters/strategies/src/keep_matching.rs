//! `keep_matching`: shows only lines that match one of the given patterns, and errors and warnings.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Automaton, Confidence, Coverage, Definition, Input, LineSet, Selection, Strategy, options,
};

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
        let (mut kept, mut has_wanted) = (LineSet::default(), false);
        for (line_idx, line) in input.lines.iter().enumerate() {
            if self.wanted.is_match(line) {
                kept.insert(line_idx);
                has_wanted = true;
            }
        }
        if !has_wanted {
            return Selection::all(input, Confidence::Fallback);
        }
        let is_diagnostic = |line_idx: &usize| input.lines.severity(*line_idx).is_some();
        let diagnostics = (0..input.lines.len()).filter(is_diagnostic);
        diagnostics.for_each(|line_idx| kept.insert(line_idx));
        Selection::of(&kept, Confidence::Full)
    }
}
