//! The output of Python's `unittest`.

use std::collections::HashSet;

use super::frames::Traceback;
use super::{BRIEF_LINES, Limits, Mark, Marks};
use crate::text::is_blank;
use crate::{Lines, Severity};

/// Marks what passed, rules between failures, and frames of libraries.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let end = lines.iter().position(is_sign).unwrap_or(lines.len());
    let failed: HashSet<&str> = (0..end)
        .filter_map(|line_idx| failed_name(lines, line_idx))
        .collect();
    let mut failure_idx = 0;
    let mut is_failure = false;
    let mut traceback = Traceback::new(false);
    // Lines of a failure, what differs aside, and these.
    let (mut n_lines, mut n_differences) = (0, 0);
    for (line_idx, line) in lines.iter().enumerate().take(end) {
        if failed_name(lines, line_idx).is_some() {
            is_failure = true;
            failure_idx += 1;
            (n_lines, n_differences) = (0, 0);
            let budget = limits.lines_of(failure_idx - 1);
            traceback = Traceback::new(budget <= BRIEF_LINES);
        } else if is_blank(line) || is_rule(line) {
            marks[line_idx] = Mark::Passing;
        } else if !is_failure {
            if let Some(mark) = in_progress(lines, line_idx, &failed) {
                marks[line_idx] = mark;
            }
        } else if let Some(mark) = traceback.mark(line) {
            if let Some(mark) = mark {
                marks[line_idx] = mark;
            }
        } else {
            let n_alike = match line.starts_with(['-', '+']) {
                true => &mut n_differences,
                false => &mut n_lines,
            };
            *n_alike += 1;
            let is_over = *n_alike > limits.lines_of(failure_idx - 1);
            let is_hint = line.starts_with('?')
                && line
                    .trim_start_matches('?')
                    .trim()
                    .chars()
                    .all(is_hint_sign);
            if is_hint || (is_over && lines.severity(line_idx) != Some(Severity::Error)) {
                marks[line_idx] = Mark::Detail;
            }
        }
    }
}

/// `Ran 67 tests in 0.006s`.
pub(super) fn is_sign(line: &str) -> bool {
    line.starts_with("Ran ") && line.contains(" test") && line.contains(" in ")
}

/// The signs of `?    ^^  --`, below a line that differs.
fn is_hint_sign(c: char) -> bool {
    matches!(c, '^' | '-' | '+' | ' ')
}

fn is_rule(line: &str) -> bool {
    line.len() >= 70 && line.chars().all(|c| c == '=' || c == '-')
}

/// `test_a (tests.test_b.T.test_a)` in `FAIL: test_a (tests.test_b.T.test_a) (n=2)`, which stands below a rule.
fn failed_name<'a>(lines: &Lines<'a>, line_idx: usize) -> Option<&'a str> {
    let line = lines.at(line_idx);
    let name = line
        .strip_prefix("FAIL: ")
        .or_else(|| line.strip_prefix("ERROR: "))?;
    if line_idx == 0 || !is_rule(lines.at(line_idx - 1)) {
        return None;
    }
    Some(
        name.split_once(") ")
            .map_or(name, |(first, _)| &name[..first.len() + 1]),
    )
}

/// What is said of a test when it has run: in a row of signs, or in a line of its own.
fn in_progress(lines: &Lines<'_>, line_idx: usize, failed: &HashSet<&str>) -> Option<Mark> {
    let line = lines.at(line_idx);
    if !line.is_empty()
        && line
            .chars()
            .all(|c| matches!(c, '.' | 's' | 'x' | 'u' | 'F' | 'E'))
    {
        return Some(Mark::Passing);
    }
    // With a description the verdict stands in the line below the name.
    let verdict = |line: &str| {
        line.rsplit_once(" ... ")
            .map(|(_, verdict)| verdict.to_owned())
    };
    let next = lines.get(line_idx + 1).unwrap_or_default();
    let of_next = || is_name(line).then(|| verdict(next))?;
    let verdict = verdict(line).or_else(of_next)?;
    if verdict == "ok" || verdict.starts_with("skipped") || verdict == "expected failure" {
        return Some(Mark::Passing);
    }
    let name = line.split(" ... ").next().unwrap_or(line);
    let is_told = matches!(verdict.as_str(), "FAIL" | "ERROR") && failed.contains(name);
    is_told.then_some(Mark::Told)
}

/// `test_a (tests.test_b.T.test_a)`, alone.
fn is_name(line: &str) -> bool {
    let id = line.split_once(" (").map(|(_, id)| id);
    line.starts_with("test")
        && id.is_some_and(|id| id.ends_with(')') && id.contains('.') && !id.contains(' '))
}
