//! `strip_noise`: leaves out lines that match any of the given patterns.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::automaton::Search;
use crate::{
    Automaton, Confidence, Coverage, Definition, Input, LineSet, Lines, Selection, Strategy,
    options,
};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "strip_noise",
    description: "Removes lines matching any of the patterns, but never an error or a warning.",
    coverage: Coverage::Recognised,
    schema: options::schema::<StripNoiseOptions>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StripNoiseOptions {
    /// Regular expressions of at most 512 characters; a line that matches one is noise.
    patterns: Vec<String>,
}

struct StripNoise {
    noise: Automaton,
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    let StripNoiseOptions { patterns } = options::read(options)?;
    if patterns.is_empty() {
        return Err("`patterns` is empty".to_owned());
    }
    Ok(Box::new(StripNoise {
        noise: options::any_of(&patterns)?,
    }))
}

impl Strategy for StripNoise {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let lines = input.lines.iter().enumerate();
        let mut noise = self.noise.search();
        let (mut kept, mut has_noise) = (LineSet::default(), false);
        for (line_idx, line) in lines {
            match is_noise(&mut noise, input.lines, line_idx, line) {
                true => has_noise = true,
                false => kept.insert(line_idx),
            }
        }
        match has_noise {
            false => Selection::all(input, Confidence::Fallback),
            true => Selection::of(&kept, Confidence::Full),
        }
    }
}

/// Whether a line matches and says nothing of errors and warnings.
pub(crate) fn is_noise(
    noise: &mut Search<'_>,
    lines: &Lines<'_>,
    line_idx: usize,
    line: &str,
) -> bool {
    lines.severity(line_idx).is_none() && noise.is_match(line)
}
