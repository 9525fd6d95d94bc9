//! `truncate`: shows the first and the last lines of a long output, and what the middle says of errors and warnings.

mod rows;

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use self::rows::{NotableRows, RowBudget, RowOptions, Rows};
use crate::diagnostic::is_diagnostic;
use crate::selection::{count, keep};
use crate::test_summary::{Report, report};
use crate::{
    Automaton, Confidence, Coverage, Definition, Input, Lines, Piece, Selection, Severity,
    Strategy, is_location, options,
};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "truncate",
    description: "Keeps the first and the last lines, and errors and warnings between them.",
    coverage: Coverage::Unrecognised,
    schema: options::schema::<TruncateOptions>,
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
struct TruncateOptions {
    /// Outputs of at most this many lines pass as they are; never less than `head` and `tail` together.
    #[serde(default)]
    max_lines: usize,
    /// Lines kept from the beginning.
    #[serde(default = "twenty")]
    head: usize,
    /// A regular expression of a line without which nothing is left out, the heading of a table: `rows` tell nothing without it.
    #[serde(default)]
    heading: Option<String>,
    /// Lines kept from the end.
    #[serde(default = "twenty")]
    tail: usize,
    /// The report of a test runner in the output is shown as `test_summary` does, not truncated.
    #[serde(default)]
    reports: bool,
    /// Rows of tables that are shown from the middle, too.
    #[serde(default)]
    rows: Vec<RowOptions>,
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
    heading: Option<Automaton>,
}

fn record() -> String {
    "record".to_owned()
}

struct Truncate {
    options: TruncateOptions,
    record: Option<Automaton>,
    rows: Rows,
}

        heading,
fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    let mut options: TruncateOptions = options::read(options)?;
    let rows = Rows::of(std::mem::take(&mut options.rows))?;
    let made = |pattern: Option<&str>| pattern.map(options::matcher).transpose();
    let record = made(options.record.as_deref())?;
    let heading = made(options.heading.as_deref())?;
    Ok(Box::new(Truncate {
        options,
        record,
        rows,
    }))
}

impl Strategy for Truncate {
    fn apply(&self, input: &Input<'_>) -> Selection {
        if let Some(heading) = &self.heading {
            let mut search = heading.search();
            if !input.lines.iter().any(|line| search.is_match(line)) {
                return Selection::all(input, Confidence::Fallback);
            }
        }
        let n_lines = input.lines.len();
        if self.options.reports
            && let Some(report) = report(input.lines)
        {
            return self.around(input.lines, report);
        }
        if n_lines <= self.lines_max() {
            return Selection::all(input, Confidence::Full);
        }
        if let Some(record) = &self.record
            && let Some(selection) = self.records(input.lines, record)
        {
            return selection;
        }
        let mut pieces = Vec::new();
        self.cut(input.lines, 0..n_lines, &mut pieces);
        Selection::from_pieces(pieces, Confidence::Partial)
    }
}

impl Truncate {
    fn lines_max(&self) -> usize {
        let shown = self.options.head.saturating_add(self.options.tail);
        self.options.max_lines.max(shown)
    }

    /// Shows `range`, the first and the last lines of it, and what its middle says of errors and warnings.
    fn cut(&self, lines: &Lines<'_>, range: Range<usize>, pieces: &mut Vec<Piece>) {
        if range.len() <= self.lines_max() {
            range.for_each(|line_idx| keep(pieces, line_idx));
            return;
        }
        let middle = range.start + self.options.head..range.end - self.options.tail;
        let rows = match self.rows.is_empty() {
            true => NotableRows::default(),
            false => self.rows.find(lines),
        };
        let mut budget = RowBudget::of(&rows);
        let told = told(lines, middle.clone(), (&rows, &mut budget));
        (range.start..middle.start).for_each(|line_idx| keep(pieces, line_idx));
        let noun = match self.rows.is_empty() {
            true => "diagnostic line",
            false => "notable row",
        };
        let note = note(&middle, told.len(), noun) + &budget.more();
        pieces.push(Piece::Note(note));
        told.iter().for_each(|line_idx| keep(pieces, *line_idx));
        (middle.end..range.end).for_each(|line_idx| keep(pieces, line_idx));
    }

    /// Truncates what stands before and behind the report of a test runner.
    fn around(&self, lines: &Lines<'_>, report: Report) -> Selection {
        let mut selection = report.selection;
        let mut pieces = Vec::new();
        self.cut(lines, 0..report.lines.start, &mut pieces);
        pieces.append(&mut selection.pieces);
        self.cut(lines, report.lines.end..lines.len(), &mut pieces);
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

/// The lines of `range` that speak of errors and warnings, with the places they are about, and those of `rows` that the budget takes.
fn told(
    lines: &Lines<'_>,
    range: Range<usize>,
    (rows, budget): (&NotableRows, &mut RowBudget<'_>),
) -> Vec<usize> {
    let (mut n_errors, mut n_warnings) = (0, 0);
    let mut told = Vec::new();
    let mut location_until = 0;
    for line_idx in range {
        let is_wanted = match lines.severity(line_idx) {
            Some(Severity::Error) => within(&mut n_errors, ERRORS_MAX),
            Some(Severity::Warning) => within(&mut n_warnings, WARNINGS_MAX),
            None if rows.contains(line_idx) => budget.takes(line_idx),
            None if line_idx <= location_until && is_location(lines.at(line_idx)) => {
                told.push(line_idx);
                continue;
            }
            None if is_diagnostic(lines.at(line_idx)) => within(&mut n_errors, ERRORS_MAX),
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
