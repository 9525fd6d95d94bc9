//! What no strategy can take away: errors, and the look of a failure.

use std::ops::Range;

use zeph_strategies::error_lines;

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
    /// The numbers of all lines that are errors, ascending.
    pub(super) errors: &'a [usize],
    /// For each line whether a strategy of ours left it out because it is shown in other words.
    pub(super) is_told: &'a [bool],
    /// What stands behind a sign or a blank in the first column is the content of a file or a message, not an error.
    pub(super) is_content: bool,
    /// The command failed.
    pub(super) is_failure: bool,
}

/// The numbers of all lines that are errors.
pub(super) fn errors(source: &Text<'_>) -> Vec<usize> {
    numbered(source, error_lines(source.text)).collect()
}

/// Brings errors back that are not shown.
pub(super) fn restore(source: &Text<'_>, shown: &mut Shown, what: Restore<'_>) {
    let is_content =
        |line_idx: usize| what.is_content && source.lines[line_idx].starts_with([' ', '+', '-']);
    let gaps: Vec<Range<usize>> = shown.gaps(source.lines.len()).collect();
    let mut back: Vec<usize> = (gaps.iter())
        .flat_map(|gap| within(what.errors, gap))
        .copied()
        .filter(|line_idx| !what.is_told[*line_idx] && !is_content(*line_idx))
        .collect();
    let n_more = back.len().saturating_sub(ERRORS_MAX);
    back.truncate(ERRORS_MAX);
    if what.is_failure {
        let is_hidden = |line_idx: &usize| gaps.iter().any(|gap| gap.contains(line_idx));
        back.extend(last_lines(source).filter(is_hidden));
    }
    back.sort_unstable();
    back.dedup();
    shown.insert(&back);
    if n_more > 0 {
        shown.push_note(format!("{MARK}{n_more} more error lines omitted"));
    }
}

/// Those of ascending numbers that lie in a range.
fn within<'a>(numbers: &'a [usize], range: &Range<usize>) -> &'a [usize] {
    let first = numbers.partition_point(|number| *number < range.start);
    let end = numbers.partition_point(|number| *number < range.end);
    &numbers[first..end]
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

/// Whether a failure is shown without a word of what failed: of all errors, none is.
pub(super) fn is_green(errors: &[usize], source: &Text<'_>, shown: &Shown) -> bool {
    let hidden = shown.gaps(source.lines.len());
    let n_hidden: usize = hidden.map(|gap| within(errors, &gap).len()).sum();
    n_hidden == errors.len()
}

/// The beginning and the end of the text; `None` when that is all of it. There is no error to show between them.
pub(super) fn ends(source: &Text<'_>) -> Option<Shown> {
    let n_lines = source.lines.len();
    if n_lines <= HEAD_LINES + TAIL_LINES {
        return None;
    }
    let (first, last) = (HEAD_LINES + 1, n_lines - TAIL_LINES);
    let mut shown = Shown::all(HEAD_LINES);
    shown.push_note(format!("{MARK}lines {first}-{last} omitted"));
    shown.push_lines(last..n_lines);
    Some(shown)
}
