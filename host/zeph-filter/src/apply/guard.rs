//! What no strategy can take away: errors, and the look of a failure.

use std::ops::Range;

use zeph_strategies::{LineSet, is_blank};

use crate::apply::{Shown, Text, gap};

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
    /// The lines that a strategy of ours omitted because they are shown in other words.
    pub(super) told: &'a LineSet,
    /// What stands behind a sign or a blank in the first column is the content of a file or a message, not an error.
    pub(super) is_content: bool,
    /// The command failed.
    pub(super) is_failure: bool,
}

/// Brings errors back that are not shown.
pub(super) fn restore(source: &Text<'_, '_>, shown: &mut Shown, what: Restore<'_>) {
    let lines = &source.lines;
    let is_content =
        |line_idx: usize| what.is_content && lines.at(line_idx).starts_with([' ', '+', '-']);
    let gaps = || shown.gaps(lines.len());
    let errors = gaps().flat_map(|gap| lines.severities().errors().within(gap));
    let mut lost =
        errors.filter(|line_idx| !what.told.contains(*line_idx) && !is_content(*line_idx));
    let mut back: Vec<usize> = lost.by_ref().take(ERRORS_MAX).collect();
    let n_more = lost.count();
    if what.is_failure {
        let is_hidden = |line_idx: &usize| gaps().any(|gap| gap.contains(line_idx));
        back.extend(last_lines(source).filter(is_hidden));
    }
    back.sort_unstable();
    back.dedup();
    shown.insert(&back);
    if n_more > 0 {
        shown.push_note(format!("{n_more} more error lines omitted"));
    }
}

fn last_lines(source: &Text<'_, '_>) -> impl Iterator<Item = usize> {
    (0..source.lines.len())
        .rev()
        .filter(|line_idx| !is_blank(source.lines.at(*line_idx)))
        .take(LAST_LINES)
}

/// Whether a failure is shown without a word of what failed: of all errors, none is.
pub(super) fn is_green(source: &Text<'_, '_>, shown: &Shown) -> bool {
    let errors = source.lines.severities().errors();
    let n_errors = errors.n_within(0..source.lines.len());
    let hidden = shown.gaps(source.lines.len());
    n_errors == hidden.map(|gap| errors.n_within(gap)).sum::<usize>()
}

/// What is shown with the beginning and the end of the text; `None` when these are all of it. No line says which error there is: what the
/// strategy found worth showing is as good a sign of it as any.
pub(super) fn with_ends(source: &Text<'_, '_>, mut shown: Shown) -> Option<Shown> {
    let n_lines = source.lines.len();
    if n_lines <= HEAD_LINES + TAIL_LINES {
        return None;
    }
    let is_of_ends = |line_idx: &usize| *line_idx < HEAD_LINES || *line_idx >= n_lines - TAIL_LINES;
    let back: Vec<usize> = shown.gaps(n_lines).flatten().filter(is_of_ends).collect();
    shown.insert(&back);
    let hidden = shown.gaps(n_lines).reduce(|all, gap| all.start..gap.end);
    if let Some(hidden) = hidden {
        let n_hidden: usize = shown.gaps(n_lines).map(|gap| gap.len()).sum();
        let except = match hidden.len() - n_hidden {
            0 => String::new(),
            1 => " except for 1 line".to_owned(),
            n => format!(" except for {n} lines"),
        };
        // Where single lines are missing, how many there are is said at the end.
        if except.is_empty() || shown.has_notes() {
            shown.retain_notes(|note| !gap::is_of_gap(note));
            let note = gap::omitted(source, &hidden, &except);
            shown.insert_note(note, hidden.start);
        }
    }
    Some(shown)
}

/// Brings back the blank lines at the borders of gaps: they may be another command's, which no rule knows.
pub(super) fn restore_blanks(source: &Text<'_, '_>, shown: &mut Shown) {
    let is_blank = |line_idx: &usize| is_blank(source.lines.at(*line_idx));
    let borders = |gap: Range<usize>| {
        let n_first = gap.clone().take_while(is_blank).count();
        let first = gap.start..gap.start + n_first;
        let n_last = (first.end..gap.end).rev().take_while(is_blank).count();
        first.chain(gap.end - n_last..gap.end)
    };
    let gaps = shown.gaps(source.lines.len());
    let back: Vec<usize> = gaps.flat_map(borders).collect();
    shown.insert(&back);
}
