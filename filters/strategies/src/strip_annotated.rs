//! `strip_annotated`: leaves out lines that carry one of the given annotations (`note:`, `Compiling`), but for a summary.

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::strip_noise::is_noise;
use crate::{Confidence, Coverage, Definition, Input, Selection, Strategy, options};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "strip_annotated",
    description: "Removes lines that carry an annotation, but keeps those that match `summary_pattern`.",
    coverage: Coverage::Recognised,
    schema: options::schema::<Options>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// Regular expressions; a line that matches one is left out.
    #[serde(default)]
    patterns: Vec<String>,
    /// Plain words; a line that begins with one, white space aside, is left out.
    #[serde(default)]
    prefixes: Vec<String>,
    /// A line that matches this is kept whatever else it matches.
    #[serde(default)]
    summary_pattern: Option<String>,
}

struct StripAnnotated {
    annotated: Regex,
    summary: Option<Regex>,
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    let Options {
        mut patterns,
        prefixes,
        summary_pattern,
    } = options::read(options)?;
    patterns.extend(
        prefixes
            .iter()
            .map(|prefix| format!(r"^\s*{}", regex::escape(prefix))),
    );
    if patterns.is_empty() {
        return Err("neither `patterns` nor `prefixes` is given".to_owned());
    }
    let summary = summary_pattern.as_deref().map(options::one).transpose()?;
    Ok(Box::new(StripAnnotated {
        annotated: options::any_of(&patterns)?,
        summary,
    }))
}

impl Strategy for StripAnnotated {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let is_kept: Vec<_> = input
            .lines
            .iter()
            .map(|line| !self.is_left_out(line))
            .collect();
        Selection::of(&is_kept, Confidence::Full)
    }
}

impl StripAnnotated {
    fn is_left_out(&self, line: &str) -> bool {
        let is_summary = |line| {
            let summary = self.summary.as_ref();
            summary.is_some_and(|summary| summary.is_match(line))
        };
        is_noise(&self.annotated, line) && !is_summary(line)
    }
}
