//! `truncate`: shows the first and the last lines of a long output, and what the middle says of errors and warnings.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::{count, keep};
use crate::{
    Confidence, Coverage, Definition, Input, Piece, Selection, Severity, Strategy, is_location,
    options, severity,
};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "truncate",
    description: "Keeps the first and the last lines, and errors and warnings between them.",
    coverage: Coverage::Unrecognised,
    schema: options::schema::<Options>,
    create,
};

/// Most errors shown from the middle. As many as fit a screen several times over; beyond it a count says more than lines do.
const ERRORS_MAX: usize = 200;

/// Most warnings shown from the middle; a budget of their own, so that they never cost an error its place.
const WARNINGS_MAX: usize = 200;

/// Lines after a diagnostic that are looked at for the place it is about.
const LOCATION_LINES: usize = 2;

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// Outputs of at most this many lines pass as they are; never less than `head` and `tail` together.
    #[serde(default)]
    max_lines: usize,
    /// Lines kept from the beginning.
    #[serde(default = "twenty")]
    head: usize,
    /// Lines kept from the end.
    #[serde(default = "twenty")]
    tail: usize,
}

fn twenty() -> usize {
    20
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    Ok(Box::new(options::read::<Options>(options)?))
}

impl Strategy for Options {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let n_lines = input.lines.len();
        let shown = self.head.saturating_add(self.tail);
        if n_lines <= self.max_lines.max(shown) {
            return Selection::all(input, Confidence::Full);
        }
        let middle = self.head..n_lines - self.tail;
        let told = told(input.lines, middle.clone());
        let mut pieces = Vec::new();
        (0..middle.start).for_each(|line_idx| keep(&mut pieces, line_idx));
        pieces.push(Piece::Note(note(&middle, told.len())));
        told.iter()
            .for_each(|line_idx| keep(&mut pieces, *line_idx));
        (middle.end..n_lines).for_each(|line_idx| keep(&mut pieces, line_idx));
        Selection::from_pieces(pieces, Confidence::Partial)
    }
}

/// Lines count from 1 for readers.
fn note(middle: &std::ops::Range<usize>, n_told: usize) -> String {
    let (first, last) = (middle.start + 1, middle.end);
    match n_told {
        0 => format!("lines {first}-{last} left out"),
        n => format!(
            "lines {first}-{last} left out but for {}",
            count(n, "diagnostic line")
        ),
    }
}

/// The lines of `range` that speak of errors and warnings, with the places they are about.
fn told(lines: &[&str], range: std::ops::Range<usize>) -> Vec<usize> {
    let (mut n_errors, mut n_warnings) = (0, 0);
    let mut told = Vec::new();
    let mut location_until = 0;
    for line_idx in range {
        let is_wanted = match severity(lines[line_idx]) {
            Some(Severity::Error) => within(&mut n_errors, ERRORS_MAX),
            Some(Severity::Warning) => within(&mut n_warnings, WARNINGS_MAX),
            None if line_idx <= location_until && is_location(lines[line_idx]) => {
                told.push(line_idx);
                continue;
            }
            None => continue,
        };
        if is_wanted {
            told.push(line_idx);
            location_until = line_idx + LOCATION_LINES;
        }
    }
    told
}

fn within(n: &mut usize, max: usize) -> bool {
    *n += 1;
    *n <= max
}
