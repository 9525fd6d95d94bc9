//! The output of CTest.

use std::collections::HashSet;

use super::{Limits, Mark, Marks};
use crate::Lines;
use crate::text::trim_start;

/// Marks what passed, what is said before a test starts, and the list at the end.
pub(super) fn mark(lines: &Lines<'_>, _: Limits, marks: &mut Marks) {
    let total_idx = lines.iter().position(is_sign).unwrap_or(lines.len());
    let (mut passed, mut failed) = (HashSet::new(), HashSet::new());
    for (number, is_passed) in lines.iter().filter_map(|line| verdict(line)) {
        if is_passed { &mut passed } else { &mut failed }.insert(number);
    }
    for (line_idx, line) in lines.iter().enumerate() {
        let text = trim_start(line);
        let mark = if line_idx > total_idx {
            listed(text)
                .filter(|number| failed.contains(number))
                .map(|_| Mark::Told)
        } else {
            let is_over = started(text).is_some_and(|n| passed.contains(n) || failed.contains(n));
            let is_passed = verdict(line).is_some_and(|(_, is_passed)| is_passed);
            let of_passed = printed(text).is_some_and(|(n, said)| {
                is_preparation(said) || (passed.contains(n) && lines.severity(line_idx).is_none())
            });
            (is_over || is_passed || of_passed || is_header(text)).then_some(Mark::Passing)
        };
        let is_blank = text.is_empty() || text.starts_with("Use \"--rerun-failed");
        if let Some(mark) = mark.or(is_blank.then_some(Mark::Passing)) {
            marks[line_idx] = mark;
        }
    }
    let heading = lines
        .iter()
        .position(|line| line == "The following tests FAILED:");
    if let Some(at) = heading.filter(|at| *at + 1 < lines.len() && marks[*at + 1] == Mark::Told) {
        marks[at] = Mark::Told;
    }
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

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
