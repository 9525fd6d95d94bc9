//! `test_summary`: the failures and the totals of a test run, without what passed.
//!
//! Each runner has a file that marks the lines it recognises as passing or as detail; everything else stays. So an abort, a
//! compiler's message or the output of another command between the tests is never lost, and totals are the runner's own lines.

mod ctest;
mod frames;
mod go;
mod javascript;
mod libtest;
mod nextest;
mod pytest;
mod ruby;
mod tap;
mod unittest;

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::keep;
use crate::{Confidence, Coverage, Definition, Input, Piece, Selection, Strategy, options};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "test_summary",
    description: "Keeps the failures and totals of test runners; drops what passed.",
    coverage: Coverage::Recognised,
    schema: options::schema::<Options>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// Failures shown with all their detail; of the others, name, message and place.
    #[serde(default = "ten")]
    max_failures: usize,
    /// Most lines of detail per failure.
    #[serde(default = "fifty")]
    truncate_stack_trace: usize,
}

fn ten() -> usize {
    10
}

fn fifty() -> usize {
    50
}

/// What a runner says of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Mark {
    /// Nothing; it is shown.
    #[default]
    Unknown,
    /// It says that something passed, or is around what passed.
    Passing,
    /// It is detail of a failure that adds nothing.
    Detail,
    /// It speaks of a failure that other lines tell better.
    Told,
    /// It is shown in shorter words.
    Said(String),
}

/// How much of failures is shown.
#[derive(Debug, Clone, Copy)]
struct Limits {
    n_failures: usize,
    n_lines: usize,
}

/// Lines of detail shown of a failure beyond the limit on failures: the message, mostly.
const BRIEF_LINES: usize = 4;

impl Limits {
    /// Lines of detail for the failure with this number, from 0.
    fn lines_of(self, failure_idx: usize) -> usize {
        if failure_idx < self.n_failures {
            self.n_lines
        } else {
            BRIEF_LINES.min(self.n_lines)
        }
    }
}

/// Marks the lines of one runner's output, and says whether there were any.
type Runner = fn(&[&str], Limits, &mut [Mark]) -> bool;

const RUNNERS: [Runner; 9] = [
    libtest::mark,
    nextest::mark,
    pytest::mark,
    go::mark,
    unittest::mark,
    javascript::mark,
    ruby::mark,
    ctest::mark,
    tap::mark,
];

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    Ok(Box::new(options::read::<Options>(options)?))
}

impl Strategy for Options {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let limits = Limits {
            n_failures: self.max_failures,
            n_lines: self.truncate_stack_trace,
        };
        match marks(input.lines, limits) {
            Some(marks) => show(marks),
            None => Selection::all(input, Confidence::Fallback),
        }
    }
}

/// What the runners say of each line; `None` when none of them ran.
fn marks(lines: &[&str], limits: Limits) -> Option<Vec<Mark>> {
    let mut marks = vec![Mark::Unknown; lines.len()];
    let runners = RUNNERS.iter();
    let n_runners = runners
        .filter(|mark| mark(lines, limits, &mut marks))
        .count();
    (n_runners > 0).then_some(marks)
}

/// The report of test runners in the output of a program that ran them, make for one.
pub(crate) struct Report {
    /// From the first line that a runner knows to the last.
    pub(crate) lines: Range<usize>,
    /// What is shown of these lines.
    pub(crate) selection: Selection,
}

/// Finds the report of test runners in an output.
pub(crate) fn report(lines: &[&str]) -> Option<Report> {
    let limits = Limits {
        n_failures: ten(),
        n_lines: fifty(),
    };
    let mut marks = marks(lines, limits)?;
    let is_known = |mark: &Mark| *mark != Mark::Unknown;
    let first = marks.iter().position(is_known)?;
    let last = marks.iter().rposition(is_known)?;
    marks.truncate(last + 1);
    marks[..first].fill(Mark::Passing);
    Some(Report {
        lines: first..last + 1,
        selection: show(marks),
    })
}

fn show(marks: Vec<Mark>) -> Selection {
    let mut pieces = Vec::new();
    let mut told = Vec::new();
    for (line_idx, mark) in marks.into_iter().enumerate() {
        match mark {
            Mark::Unknown => keep(&mut pieces, line_idx),
            Mark::Said(note) => {
                pieces.push(Piece::Note(note));
                told.push(line_idx);
            }
            Mark::Told => told.push(line_idx),
            Mark::Passing | Mark::Detail => {}
        }
    }
    Selection {
        pieces,
        confidence: Confidence::Full,
        told,
    }
}
