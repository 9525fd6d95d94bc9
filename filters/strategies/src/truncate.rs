//! `truncate`: shows the first and the last lines of a long output, and what the middle says of errors and warnings.

mod rows;
mod told;

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use self::rows::{NotableRows, RowBudget, RowOptions, Rows};
use self::told::Telling;
use crate::selection::{count, keep};
use crate::test_summary::{Report, report};
use crate::{
    Automaton, Confidence, Coverage, Definition, Input, Lines, Piece, Selection, Strategy, options,
};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "truncate",
    description: "Keeps the first and the last lines, and errors and warnings between them.",
    coverage: Coverage::Unrecognised,
    schema: options::schema::<TruncateOptions>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TruncateOptions {
    /// Outputs of at most this many lines pass as they are; never less than `head` and `tail` together.
    #[serde(default)]
    max_lines: usize,
    /// Lines kept from the beginning.
    #[serde(default = "twenty")]
    head: usize,
    /// Lines kept from the end.
    #[serde(default = "twenty")]
    tail: usize,
    /// The report of a test runner in the output is shown as `test_summary` does, not truncated.
    #[serde(default)]
    reports: bool,
    /// Rows of tables that are shown from the middle, too.
    #[serde(default)]
    rows: Vec<RowOptions>,
    /// A regular expression of a line without which nothing is left out, the heading of a table: `rows` tell nothing without it.
    #[serde(default)]
    heading: Option<String>,
    /// A regular expression of the first line of a record. Records are shown whole, as many as there is room for in `head`, and
    /// the others are counted. What stands in them is content: none of it is taken for an error.
    #[serde(default)]
    record: Option<String>,
    /// What a record is called.
    #[serde(default = "record")]
    record_name: String,
}

fn twenty() -> usize {
    20
}

fn record() -> String {
    "record".to_owned()
}

struct Truncate {
    options: TruncateOptions,
    record: Option<Automaton>,
    heading: Option<Automaton>,
    rows: Rows,
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    let mut options: TruncateOptions = options::read(options)?;
    let rows = Rows::of(std::mem::take(&mut options.rows))?;
    let made = |pattern: Option<&str>| pattern.map(options::matcher).transpose();
    let record = made(options.record.as_deref())?;
    let heading = made(options.heading.as_deref())?;
    Ok(Box::new(Truncate {
        options,
        record,
        heading,
        rows,
    }))
}

impl Strategy for Truncate {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let n_lines = input.lines.len();
        if self.options.reports
            && let Some(report) = report(input.lines)
        {
            return self.around(input, report);
        }
        if n_lines <= self.lines_max() {
            return Selection::all(input, Confidence::Full);
        }
        if let Some(heading) = &self.heading {
            let mut search = heading.search();
            if !input.lines.iter().any(|line| search.is_match(line)) {
                return Selection::all(input, Confidence::Fallback);
            }
        }
        if let Some(record) = &self.record
            && let Some(selection) = self.records(input.lines, record)
        {
            return selection;
        }
        let mut pieces = Vec::new();
        self.cut(input, 0..n_lines, &mut pieces);
        Selection::from_pieces(pieces, Confidence::Partial)
    }
}

impl Truncate {
    fn lines_max(&self) -> usize {
        let shown = self.options.head.saturating_add(self.options.tail);
        self.options.max_lines.max(shown)
    }

    /// Shows `range`, the first and the last lines of it, and what its middle says of errors and warnings.
    fn cut(&self, input: &Input<'_>, range: Range<usize>, pieces: &mut Vec<Piece>) {
        if range.len() <= self.lines_max() {
            range.for_each(|line_idx| keep(pieces, line_idx));
            return;
        }
        let middle = range.start + self.options.head..range.end - self.options.tail;
        let rows = match self.rows.is_empty() {
            true => NotableRows::default(),
            false => self.rows.find(input.lines),
        };
        let mut budget = RowBudget::of(&rows);
        // What runs tests compiles, too: where it fails, a place is no result of a search.
        let is_failure = self.options.reports && input.exit_code != Some(0);
        let ranges = (range.clone(), middle.clone());
        let telling = Telling::of(input.lines, ranges, is_failure);
        let told = telling.told((&rows, &mut budget));
        (range.start..middle.start).for_each(|line_idx| keep(pieces, line_idx));
        let noun = match self.rows.is_empty() {
            true => "diagnostic line",
            false => "notable row",
        };
        let note = note(&middle, told.n_within(middle.clone()), noun) + &budget.more();
        pieces.push(Piece::Note(note));
        let told = told.within(middle.clone());
        told.for_each(|line_idx| keep(pieces, line_idx));
        (middle.end..range.end).for_each(|line_idx| keep(pieces, line_idx));
    }

    /// Truncates what stands before and behind the report of a test runner.
    fn around(&self, input: &Input<'_>, report: Report) -> Selection {
        let mut selection = report.selection;
        let mut pieces = Vec::new();
        self.cut(input, 0..report.lines.start, &mut pieces);
        pieces.append(&mut selection.pieces);
        self.cut(input, report.lines.end..input.lines.len(), &mut pieces);
        selection.pieces = pieces;
        selection
    }

    /// As many whole records as fit into the head, and how many follow. Of one that is longer than that, the head.
    fn records(&self, lines: &Lines<'_>, record: &Automaton) -> Option<Selection> {
        let starts = (0..lines.len()).filter(|line_idx| record.is_match(lines.at(*line_idx)));
        let starts: Vec<_> = starts.collect();
        let head = self.options.head;
        let ends = starts.iter().skip(1).copied().chain([lines.len()]);
        let end = ends.rev().find(|end| *end <= head).unwrap_or(head);
        let n_more = starts.iter().filter(|start| **start >= end).count();
        let (first, last) = (end + 1, lines.len());
        let note = match n_more {
            _ if starts.is_empty() => return None,
            0 => format!("lines {first}-{last} omitted"),
            n => {
                let follow = if n == 1 { "follows" } else { "follow" };
                let more = count(n, &format!("more {}", self.options.record_name));
                format!("{more} {follow}: lines {first}-{last} omitted")
            }
        };
        let pieces = vec![Piece::Keep(0..end), Piece::Note(note)];
        Some(Selection::from_pieces(pieces, Confidence::Partial))
    }
}

/// Lines count from 1 for readers. The host makes them those of the whole output where a rule before this one has left some out.
fn note(middle: &Range<usize>, told: usize, noun: &str) -> String {
    let (first, last) = (middle.start + 1, middle.end);
    match told {
        0 => format!("lines {first}-{last} omitted"),
        n => format!("lines {first}-{last} omitted except for {}", count(n, noun)),
    }
}
