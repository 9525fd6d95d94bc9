//! The output of CTest.

use std::collections::HashSet;
use std::ops::Range;

use super::{Limits, Mark, Marks};
use crate::Lines;
use crate::text::{is_number, trim_start};

/// Marks what passed, what is said before a test starts, and the list at the end, of one run after the other: each numbers its tests
/// anew.
pub(super) fn mark(lines: &Lines<'_>, _: Limits, marks: &mut Marks) {
    for run in runs(lines) {
        let verdicts = Verdicts::of(lines, run.tests.clone());
        mark_tests(lines, run.tests, &verdicts, marks);
        mark_list(lines, run.list, &verdicts, marks);
    }
}

/// The lines of one run.
struct Run {
    /// From the first that is CTest's to the total.
    tests: Range<usize>,
    /// What follows the total, up to the next run.
    list: Range<usize>,
}

/// Runs in their order. No line is in two of them, however many totals there are.
fn runs(lines: &Lines<'_>) -> impl Iterator<Item = Run> {
    let n_lines = lines.len();
    let first = move |mut range: Range<usize>| range.find(|line_idx| is_first(lines.at(*line_idx)));
    let mut start = 0;
    std::iter::from_fn(move || {
        let total = (start..n_lines).find(|line_idx| is_sign(lines.at(*line_idx)))?;
        let tests = first(start..total).unwrap_or(total)..total;
        start = first(total + 1..n_lines).unwrap_or(n_lines);
        let list = total + 1..start;
        Some(Run { tests, list })
    })
}

/// The numbers of the tests of a run.
struct Verdicts<'a> {
    passed: HashSet<&'a str>,
    failed: HashSet<&'a str>,
}

impl<'a> Verdicts<'a> {
    fn of(lines: &Lines<'a>, run: Range<usize>) -> Self {
        let verdicts = || lines.range(run.clone()).filter_map(verdict);
        let with = |wanted: bool| {
            let wanted = verdicts().filter(move |(_, is_passed)| *is_passed == wanted);
            wanted.map(|(number, _)| number).collect()
        };
        Self {
            passed: with(true),
            failed: with(false),
        }
    }
}

fn mark_tests(lines: &Lines<'_>, run: Range<usize>, verdicts: &Verdicts<'_>, marks: &mut Marks) {
    let Verdicts { passed, failed } = verdicts;
    // Those whose lines begin with their number.
    let mut told = HashSet::new();
    for line_idx in run {
        let line = lines.at(line_idx);
        let text = trim_start(line);
        told.extend(text.strip_prefix("test ").filter(|n| is_number(n)));
        let is_over = started(text).is_some_and(|n| passed.contains(n) || failed.contains(n));
        let is_passed = verdict(line).is_some_and(|(_, is_passed)| is_passed);
        let printed = printed(text).filter(|(n, _)| told.contains(n));
        let of_passed = printed.is_some_and(|(n, said)| {
            is_preparation(said) || (passed.contains(n) && lines.severity(line_idx).is_none())
        });
        if is_over || is_passed || of_passed || is_header(text) || text.is_empty() {
            marks[line_idx] = Mark::Passing;
        }
    }
}

/// What follows a total: the failures once more.
fn mark_list(lines: &Lines<'_>, list: Range<usize>, verdicts: &Verdicts<'_>, marks: &mut Marks) {
    let mut heading_idx = None;
    let mut is_list = false;
    for line_idx in list {
        let text = trim_start(lines.at(line_idx));
        let is_listed = is_list && listed(text).is_some_and(|n| verdicts.failed.contains(n));
        is_list = is_listed || text == "The following tests FAILED:";
        if is_listed {
            marks[line_idx] = Mark::Told;
            if let Some(heading_idx) = heading_idx.take() {
                marks[heading_idx] = Mark::Told;
            }
        } else if text.is_empty() || text.starts_with("Use \"--rerun-failed") {
            marks[line_idx] = Mark::Passing;
        }
        if is_list && !is_listed {
            heading_idx = Some(line_idx);
        }
    }
}

/// Whether a run begins with a line.
fn is_first(line: &str) -> bool {
    let text = trim_start(line);
    is_header(text) || started(text).is_some() || verdict(line).is_some()
}

/// `88% tests passed, 1 tests failed out of 9`, in whatever line.
pub(super) fn is_sign(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), b"% tests passed, ").is_some()
}

/// The number of ` 7/22 Test  #7: shop.case_06 ....***Failed    0.01 sec`, and whether it passed.
fn verdict(line: &str) -> Option<(&str, bool)> {
    let (count, rest) = line.split_once(" Test ")?;
    count
        .trim_start()
        .split_once('/')
        .filter(|(n, _)| is_number(n))?;
    let (number, rest) = trim_start(rest).strip_prefix('#')?.split_once(": ")?;
    Some((number, rest.contains("   Passed ")))
}

/// The number of `      Start  7: shop.case_06`, and of `test 7`.
fn started(text: &str) -> Option<&str> {
    let number = match text.strip_prefix("Start ") {
        Some(rest) => trim_start(rest).split(':').next()?,
        None => text.strip_prefix("test ")?,
    };
    is_number(number).then_some(number)
}

/// The number of `7: a line that the test printed`, with `-V`, and the line.
fn printed(text: &str) -> Option<(&str, &str)> {
    let (number, said) = text.split_once(": ")?;
    is_number(number).then_some((number, said))
}

/// The number of `7 - shop.case_06 (Failed)`, in the list at the end.
fn listed(text: &str) -> Option<&str> {
    let (number, rest) = text.split_once(" - ")?;
    (is_number(number) && rest.ends_with(')')).then_some(number)
}

fn is_preparation(said: &str) -> bool {
    said.starts_with("Working Directory: ") || said.starts_with("Test timeout computed to be: ")
}

fn is_header(text: &str) -> bool {
    const HEADERS: [&str; 7] = [
        "UpdateCTestConfiguration ",
        "Constructing a list of tests",
        "Done constructing a list of tests",
        "Updating test list for fixtures",
        "Added 0 tests to meet fixture",
        "Checking test dependency graph",
        "Test project ",
    ];
    HEADERS.iter().any(|header| text.starts_with(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_in_two_runs() {
        const TOTAL: &str = "100% tests passed, 0 tests failed out of 1\n";
        const TEST: &str = "1/1 Test #1: a ....   Passed 0.0 sec\n";
        let totals = TOTAL.repeat(100);
        for (text, n_runs) in [
            (totals.clone(), 1),
            (format!("{TEST}{TOTAL}").repeat(100), 100),
            (format!("{totals}{TEST}{totals}{TEST}"), 2),
            (TEST.to_owned(), 0),
        ] {
            let lines = Lines::of(&text);
            let runs: Vec<Run> = runs(&lines).collect();
            assert_eq!(runs.len(), n_runs, "{text}");
            let mut at = 0;
            for run in runs {
                assert!(at <= run.tests.start && run.tests.start <= run.tests.end);
                assert!(run.tests.end < run.list.start && run.list.start <= run.list.end);
                at = run.list.end;
            }
            assert!(at <= lines.len());
        }
    }
}
