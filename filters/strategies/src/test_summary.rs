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

use std::iter::Peekable;
use std::ops::{Index, IndexMut, Range};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::selection::push_lines;
use crate::{Confidence, Coverage, Definition, Input, Lines, Piece, Selection, Strategy, options};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "test_summary",
    description: "Keeps the failures and totals of test runners; drops what passed.",
    coverage: Coverage::Recognised,
    schema: options::schema::<TestSummaryOptions>,
    create,
};

/// What a rule may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TestSummaryOptions {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    Said,
}

/// What the runners say of each line.
#[derive(Debug)]
struct Marks {
    marks: Vec<Mark>,
    /// The shorter words by their line, mostly in order: of a line that is there twice, the last ones count.
    said: Vec<(u32, Box<str>)>,
}

impl Marks {
    fn of(n_lines: usize) -> Self {
        Self {
            marks: vec![Mark::Unknown; n_lines],
            said: Vec::new(),
        }
    }

    /// Has a line shown in shorter words.
    fn say(&mut self, line_idx: usize, words: impl Into<Box<str>>) {
        // No text has more lines than that.
        if let Ok(number) = u32::try_from(line_idx) {
            self.marks[line_idx] = Mark::Said;
            self.said.push((number, words.into()));
        }
    }
}

impl Index<usize> for Marks {
    type Output = Mark;

    fn index(&self, line_idx: usize) -> &Mark {
        &self.marks[line_idx]
    }
}

impl IndexMut<usize> for Marks {
    fn index_mut(&mut self, line_idx: usize) -> &mut Mark {
        &mut self.marks[line_idx]
    }
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

/// One test runner, or several that write alike.
struct Runner {
    /// What the lines that it is known by begin with, white space aside.
    first: &'static [u8],
    /// Whether it is known by a line.
    is_sign: fn(&str) -> bool,
    /// Marks the lines of its output.
    mark: fn(&Lines<'_>, Limits, &mut Marks),
}

const RUNNERS: [Runner; 9] = [
    Runner {
        first: b"rt",
        is_sign: libtest::is_sign,
        mark: libtest::mark,
    },
    Runner {
        first: b"S",
        is_sign: nextest::is_sign,
        mark: nextest::mark,
    },
    Runner {
        first: b"=0123456789",
        is_sign: pytest::is_sign,
        mark: pytest::mark,
    },
    Runner {
        first: b"{=oF?-",
        is_sign: go::is_sign,
        mark: go::mark,
    },
    Runner {
        first: b"R",
        is_sign: unittest::is_sign,
        mark: unittest::mark,
    },
    Runner {
        first: b"T0123456789\xe2",
        is_sign: javascript::is_sign,
        mark: javascript::mark,
    },
    Runner {
        first: b"0123456789",
        is_sign: ruby::is_sign,
        mark: ruby::mark,
    },
    // Its sign may stand anywhere in a line.
    Runner {
        first: b"",
        is_sign: ctest::is_sign,
        mark: ctest::mark,
    },
    Runner {
        first: b"T",
        is_sign: tap::is_sign,
        mark: tap::mark,
    },
];

/// Where CTest is among them.
const CTEST_IDX: usize = 7;

/// For each byte the runners whose sign it may begin: bit by bit, the first is the lowest.
const FIRST: [u16; 256] = {
    let mut runners = [0; 256];
    let mut runner_idx = 0;
    while runner_idx < RUNNERS.len() {
        let first = RUNNERS[runner_idx].first;
        let mut byte_idx = 0;
        while byte_idx < first.len() {
            runners[first[byte_idx] as usize] |= 1 << runner_idx;
            byte_idx += 1;
        }
        runner_idx += 1;
    }
    runners
};

/// The runners that an output is of, as above.
fn runners(lines: &Lines<'_>) -> u16 {
    let mut found = 0;
    for (line_idx, beginning) in lines.beginnings().enumerate() {
        let first = match beginning.first() {
            Some(b' ' | b'\t' | b'\r' | b'\x0c') => first_sign(lines.at(line_idx)),
            first => first.copied().unwrap_or(b' '),
        };
        let mut left = FIRST[usize::from(first)] & !found;
        while left != 0 {
            let runner_idx = left.trailing_zeros() as usize;
            if (RUNNERS[runner_idx].is_sign)(lines.at(line_idx)) {
                found |= 1 << runner_idx;
            }
            left &= left - 1;
        }
    }
    // Lines that are left out still stand in the text.
    let may_be = ctest::is_sign(lines.text());
    let is_ctest = may_be && (!lines.is_cut() || lines.iter().any(ctest::is_sign));
    found | u16::from(is_ctest) << CTEST_IDX
}

fn first_sign(line: &str) -> u8 {
    let text = line.as_bytes().trim_ascii_start();
    text.first().copied().unwrap_or(b' ')
}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    Ok(Box::new(options::read::<TestSummaryOptions>(options)?))
}

impl Strategy for TestSummaryOptions {
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
fn marks(lines: &Lines<'_>, limits: Limits) -> Option<Marks> {
    let found = runners(lines);
    if found == 0 {
        return None;
    }
    let mut marks = Marks::of(lines.len());
    for (runner_idx, runner) in RUNNERS.iter().enumerate() {
        if found >> runner_idx & 1 == 1 {
            (runner.mark)(lines, limits, &mut marks);
        }
    }
    Some(marks)
}

/// The report of test runners in the output of a program that ran them, make for one.
pub(crate) struct Report {
    /// From the first line that a runner knows to the last.
    pub(crate) lines: Range<usize>,
    /// What is shown of these lines.
    pub(crate) selection: Selection,
}

/// Finds the report of test runners in an output.
pub(crate) fn report(lines: &Lines<'_>) -> Option<Report> {
    let limits = Limits {
        n_failures: ten(),
        n_lines: fifty(),
    };
    let mut marks = marks(lines, limits)?;
    let is_known = |mark: &Mark| *mark != Mark::Unknown;
    let first = marks.marks.iter().position(is_known)?;
    let last = marks.marks.iter().rposition(is_known)?;
    marks.marks.truncate(last + 1);
    marks.marks[..first].fill(Mark::Passing);
    Some(Report {
        lines: first..last + 1,
        selection: show(marks),
    })
}

fn show(marks: Marks) -> Selection {
    let Marks { marks, mut said } = marks;
    if !said.is_sorted_by_key(|(line_idx, _)| *line_idx) {
        said.sort_by_key(|(line_idx, _)| *line_idx);
    }
    let mut said = said.into_iter().peekable();
    let runs = || marks.chunk_by(|one, other| one == other);
    // Long outputs have many pieces, and growing step by step takes twice as much.
    let n_pieces = runs().map(|run| match run[0] {
        Mark::Unknown => 1,
        Mark::Said => run.len(),
        Mark::Passing | Mark::Detail | Mark::Told => 0,
    });
    let mut pieces = Vec::with_capacity(n_pieces.sum());
    let mut told = Vec::new();
    let mut at = 0;
    for run in runs() {
        let lines = at..at + run.len();
        at = lines.end;
        match run[0] {
            Mark::Unknown => pieces.push(Piece::Keep(lines)),
            Mark::Said => {
                push_lines(&mut told, lines.clone());
                let words = lines.filter_map(|line_idx| words_of(&mut said, line_idx));
                pieces.extend(words.map(|words| Piece::Note(words.into_string())));
            }
            Mark::Told => push_lines(&mut told, lines),
            Mark::Passing | Mark::Detail => {}
        }
    }
    Selection {
        pieces,
        confidence: Confidence::Full,
        told,
    }
}

/// The last of the words for a line, which come after those for lines before it.
fn words_of(
    said: &mut Peekable<impl Iterator<Item = (u32, Box<str>)>>,
    line_idx: usize,
) -> Option<Box<str>> {
    while said
        .next_if(|(other, _)| (*other as usize) < line_idx)
        .is_some()
    {}
    let mut words = None;
    while let Some((_, last)) = said.next_if(|(other, _)| *other as usize == line_idx) {
        words = Some(last);
    }
    words
}

#[cfg(test)]
mod tests;
