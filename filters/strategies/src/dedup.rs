//! `dedup`: folds lines that differ in nothing but timestamps and UUIDs, and says how many there were.
//!
//! Of such lines the first and the last are shown as they are, wherever they stand: sources that write into one log interleave.
//! In lines that are no diagnostics, durations of one magnitude and identifiers are ignored too; two different diagnostics
//! stay two.

mod normal;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::keep;
use crate::{Confidence, Coverage, Definition, Input, Lines, Piece, Selection, Strategy, options};
pub use normal::normalise;
use normal::without_identifiers;

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "dedup",
    description: "Folds lines that differ in timestamps and identifiers only, with a count.",
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
        let groups = Groups::of(input.lines);
        let mut shown = Shown::default();
        for line_idx in 0..input.lines.len() {
            shown.add(&groups, line_idx);
        }
        shown.close();
        let confidence = if shown.told.is_empty() {
            Confidence::Fallback
        } else {
            Confidence::Full
        };
        Selection {
            pieces: shown.pieces,
            confidence,
            told: shown.told,
        }
    }
}

/// Lines that are equal.
#[derive(Debug, Clone, Copy)]
struct Group {
    first: usize,
    last: usize,
    n: usize,
}

/// The groups of all lines.
struct Groups {
    of_line: Vec<usize>,
    groups: Vec<Group>,
}

impl Groups {
    fn of(lines: &Lines<'_>) -> Self {
        let mut by_text: HashMap<String, usize> = HashMap::new();
        let mut all = Self {
            of_line: Vec::with_capacity(lines.len()),
            groups: Vec::new(),
        };
        let (mut normal, mut loose) = (String::new(), String::new());
        for (line_idx, line) in lines.iter().enumerate() {
            normalise(line, &mut normal);
            // What is indented belongs to the line above it, which may be a diagnostic.
            if !line.starts_with([' ', '\t']) && lines.severity(line_idx).is_none() {
                without_identifiers(&normal, &mut loose);
                std::mem::swap(&mut normal, &mut loose);
            }
            let next = all.groups.len();
            let group_idx = match by_text.get(normal.as_str()) {
                Some(group_idx) => *group_idx,
                None => {
                    by_text.insert(normal.clone(), next);
                    all.groups.push(Group {
                        first: line_idx,
                        last: line_idx,
                        n: 0,
                    });
                    next
                }
            };
            let group = &mut all.groups[group_idx];
            group.n += 1;
            group.last = line_idx;
            all.of_line.push(group_idx);
        }
        all
    }
}

/// What is shown so far.
#[derive(Default)]
struct Shown {
    pieces: Vec<Piece>,
    told: Vec<usize>,
    /// Lines at the end that are the first of their group: how many lines, how often again, and where the next one would stand.
    open: Option<(usize, Group)>,
}

impl Shown {
    fn add(&mut self, groups: &Groups, line_idx: usize) {
        let group = groups.groups[groups.of_line[line_idx]];
        let is_folded = group.n >= RUN_MIN;
        let is_first = line_idx == group.first;
        if is_folded && !is_first && line_idx != group.last {
            self.told.push(line_idx);
            return;
        }
        if let Some((n, open)) = &mut self.open
            && is_folded
            && is_first
            && open.n == group.n
            && open.last + *n == group.last
        {
            *n += 1;
            keep(&mut self.pieces, line_idx);
            return;
        }
        self.close();
        keep(&mut self.pieces, line_idx);
        if is_folded && is_first {
            self.open = Some((1, group));
        }
    }

    /// Says how often the lines came again that were shown last.
    fn close(&mut self) {
        let Some((n_lines, group)) = self.open.take() else {
            return;
        };
        let n = group.n - 1;
        self.pieces.push(Piece::Note(match n_lines {
            1 => format!("{n} more like it, the last below"),
            _ => format!("these {n_lines} lines {n} more times, the last below"),
        }));
    }
}
