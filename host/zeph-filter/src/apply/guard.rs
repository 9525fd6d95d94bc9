//! What no strategy can take away: errors, and the look of a failure.

use std::collections::HashSet;
use std::ops::Range;

use zeph_strategies::{Severity, error_lines, severity};

use crate::apply::{Shown, Text};
use crate::mark::MARK;

/// Most error lines brought back into one result. Beyond it they are counted: a log of nothing but errors is not told better by
/// all of them.
const ERRORS_MAX: usize = 200;

/// Lines shown of a failure that says nothing of an error.
const HEAD_LINES: usize = 40;

/// As above, at the end, where most tools say why they stop.
const TAIL_LINES: usize = 120;

/// Lines at the end of a failure that always stay, blank ones aside: most tools say there why they stop.
const LAST_LINES: usize = 1;

/// What is known of an output when errors are brought back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Restore<'a> {
    /// Errors that a strategy of ours left out because they are shown in other words.
    pub(super) told: &'a HashSet<usize>,
    /// The first column is a sign: what stands behind a sign is the content of a file, not an error.
    pub(super) is_patch: bool,
    /// The command failed.
    pub(super) is_failure: bool,
}

/// Brings errors back that are not shown.
pub(super) fn restore(source: &Text<'_>, shown: &mut Vec<Shown>, what: Restore<'_>) {
    let is_shown = source.is_shown(shown);
    let is_content =
        |line_idx: usize| what.is_patch && source.lines[line_idx].starts_with([' ', '+', '-']);
    let mut back: Vec<usize> = numbered(source, error_lines(source.text))
        .filter(|line_idx| {
            !is_shown[*line_idx] && !what.told.contains(line_idx) && !is_content(*line_idx)
        })
        .collect();
    let n_more = back.len().saturating_sub(ERRORS_MAX);
    back.truncate(ERRORS_MAX);
    if what.is_failure {
        back.extend(last_lines(source).filter(|line_idx| !is_shown[*line_idx]));
    }
    back.sort_unstable();
    back.dedup();
    insert(shown, &back);
    if n_more > 0 {
        shown.push(Shown::Note(format!(
            "{MARK}{n_more} more error lines left out"
        )));
    }
}

/// Line numbers of ascending byte ranges.
fn numbered<'a>(
    source: &'a Text<'_>,
    ranges: impl Iterator<Item = Range<usize>> + 'a,
) -> impl Iterator<Item = usize> + 'a {
    let base = source.text.as_ptr().addr();
    let mut line_idx = 0;
    ranges.filter_map(move |range| {
        let starts_at = |line: &str| line.as_ptr().addr() - base >= range.start;
        line_idx += source.lines[line_idx..]
            .iter()
            .position(|line| starts_at(line))?;
        Some(line_idx)
    })
}

fn last_lines(source: &Text<'_>) -> impl Iterator<Item = usize> {
    (0..source.lines.len())
        .rev()
        .filter(|line_idx| !source.lines[*line_idx].trim().is_empty())
        .take(LAST_LINES)
}

/// Puts lines back where they were.
fn insert(shown: &mut Vec<Shown>, back: &[usize]) {
    if back.is_empty() {
        return;
    }
    let mut merged = Vec::with_capacity(shown.len() + back.len());
    let mut back = back.iter().copied().peekable();
    for line in shown.drain(..) {
        if let Shown::Raw(line_idx) = line {
            while let Some(before) = back.next_if(|before| *before < line_idx) {
                merged.push(Shown::Raw(before));
            }
        }
        merged.push(line);
    }
    merged.extend(back.map(Shown::Raw));
    *shown = merged;
}

/// Whether a failure is shown without a word of what failed.
pub(super) fn is_green(source: &Text<'_>, shown: &[Shown]) -> bool {
    let is_error = |line: &Shown| match line {
        Shown::Raw(line_idx) => severity(source.lines[*line_idx]) == Some(Severity::Error),
        Shown::Note(_) => false,
    };
    !shown.iter().any(is_error)
}

/// The beginning and the end of the text; `None` when that is all of it. There is no error to show between them.
pub(super) fn ends(source: &Text<'_>) -> Option<Vec<Shown>> {
    let n_lines = source.lines.len();
    if n_lines <= HEAD_LINES + TAIL_LINES {
        return None;
    }
    let (first, last) = (HEAD_LINES + 1, n_lines - TAIL_LINES);
    let mut shown: Vec<_> = (0..HEAD_LINES).map(Shown::Raw).collect();
    shown.push(Shown::Note(format!("{MARK}lines {first}-{last} left out")));
    shown.extend((last..n_lines).map(Shown::Raw));
    Some(shown)
}
