//! `dedup`: folds consecutive lines that differ in nothing but timestamps and UUIDs, and says how many there were.
//!
//! The first and the last of a run are shown as they are. Numbers other than times are never ignored: two different
//! diagnostics stay two.

mod normal;

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::keep;
use crate::{Confidence, Coverage, Definition, Input, Piece, Selection, Strategy, options};
pub use normal::normalise;

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "dedup",
    description: "Folds consecutive lines that differ in timestamps and UUIDs only, with a count.",
    coverage: Coverage::Recognised,
    schema: options::schema::<Options>,
    create,
};

/// Fewer equal lines are shown: a note would not be shorter.
const RUN_MIN: usize = 4;

/// There is nothing to set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    Ok(Box::new(options::read::<Options>(options)?))
}

impl Strategy for Options {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let mut pieces = Vec::new();
        let (mut run, mut next) = (String::new(), String::new());
        let mut start = 0;
        let mut told = Vec::new();
        for line_idx in 0..input.lines.len() {
            normalise(input.lines[line_idx], &mut next);
            if line_idx > start && next == run {
                continue;
            }
            told.extend(fold(&mut pieces, start, line_idx));
            start = line_idx;
            std::mem::swap(&mut run, &mut next);
        }
        told.extend(fold(&mut pieces, start, input.lines.len()));
        let confidence = if told.is_empty() {
            Confidence::Fallback
        } else {
            Confidence::Full
        };
        Selection {
            pieces,
            confidence,
            told,
        }
    }
}

/// Shows the equal lines `start..end`, and returns those it left out.
fn fold(pieces: &mut Vec<Piece>, start: usize, end: usize) -> Range<usize> {
    let n = end - start;
    if n < RUN_MIN {
        (start..end).for_each(|line_idx| keep(pieces, line_idx));
        return start..start;
    }
    keep(pieces, start);
    pieces.push(Piece::Note(format!("{} more like it, the last:", n - 1)));
    keep(pieces, end - 1);
    start + 1..end - 1
}
