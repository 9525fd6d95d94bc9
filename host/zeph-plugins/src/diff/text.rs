//! The difference of two texts. Short ones stand there whole; of long ones the changed places, with a little around.

use std::ops::Range;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use super::line::{DiffLine, DiffMark};
use crate::visible::visible_line;

/// Most characters of a text that is shown whole: it fits on a line.
const SHORT_CHARS_MAX: usize = 100;

/// Most characters of the lines of a text that is compared line by line. In a longer line, a changed word would be hard to find.
const LINE_CHARS_MAX: usize = 200;

/// Lines shown before and after a changed one.
const CONTEXT_LINES: usize = 1;

/// Words shown before and after a changed place.
const CONTEXT_WORDS: usize = 6;

/// Most pairs of lines or words that are compared. What would take longer, as only a text made for it does, is shown from the
/// first that differs to the last.
const PAIRS_MAX: usize = 4_000_000;

/// Lines for a text that changed; an empty side has none.
pub(super) fn push_lines(lines: &mut Vec<DiffLine>, depth: usize, old: &str, new: &str) {
    let is_short = |text: &str| !text.contains('\n') && text.chars().count() <= SHORT_CHARS_MAX;
    let has_short_lines = |text: &str| {
        text.lines()
            .all(|line| line.chars().count() <= LINE_CHARS_MAX)
    };
    if is_short(old) && is_short(new) {
        for (mark, text) in [(DiffMark::Removed, old), (DiffMark::Added, new)] {
            if !text.is_empty() {
                lines.push(DiffLine::new(
                    mark,
                    depth,
                    format!("\"{}\"", visible_line(text)),
                ));
            }
        }
    } else if has_short_lines(old) && has_short_lines(new) {
        by_lines(lines, depth, old, new);
    } else {
        by_words(lines, depth, old, new);
    }
}

/// The changed lines between those around them.
fn by_lines(lines: &mut Vec<DiffLine>, depth: usize, old: &str, new: &str) {
    // With its end, a line that lost it differs from the same line that has it.
    let old: Vec<_> = old.split_inclusive('\n').collect();
    let new: Vec<_> = new.split_inclusive('\n').collect();
    let mut push = |mark, lead: &str, some: &[&str]| {
        for line in some {
            let shown = visible_line(line.strip_suffix('\n').unwrap_or(line));
            lines.push(DiffLine::new(mark, depth, format!("{lead}{shown}")));
        }
    };
    for op in groups(&old, &new, CONTEXT_LINES).iter().flatten() {
        if op.tag() == DiffTag::Equal {
            // Below the text of the others, not below their signs.
            push(DiffMark::Plain, "  ", &new[op.new_range()]);
        } else {
            push(DiffMark::Removed, "", &old[op.old_range()]);
            push(DiffMark::Added, "", &new[op.new_range()]);
        }
    }
}

/// The changed places, each before and after, with the words around and `…` where the text goes on.
fn by_words(lines: &mut Vec<DiffLine>, depth: usize, old: &str, new: &str) {
    // Each with the one white space after it, so that nothing of the text is lost.
    let old: Vec<_> = old.split_inclusive(char::is_whitespace).collect();
    let new: Vec<_> = new.split_inclusive(char::is_whitespace).collect();
    for group in groups(&old, &new, CONTEXT_WORDS) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let before = first.old_range().start..last.old_range().end;
        let after = first.new_range().start..last.new_range().end;
        for (mark, words, range) in [
            (DiffMark::Removed, &old, before),
            (DiffMark::Added, &new, after),
        ] {
            let fragment = fragment(words, range);
            let shown = fragment.split('\n').map(visible_line);
            lines.extend(shown.map(|shown| DiffLine::new(mark, depth, shown)));
        }
    }
}

fn fragment(words: &[&str], range: Range<usize>) -> String {
    let before = if range.start > 0 { "…" } else { "" };
    let after = if range.end < words.len() { "…" } else { "" };
    let fragment = words[range].concat();
    format!(
        "{before}{}{after}",
        fragment.strip_suffix('\n').unwrap_or(&fragment)
    )
}

/// The differing parts, each with `n_around` equal ones before and after.
fn groups(old: &[&str], new: &[&str], n_around: usize) -> Vec<Vec<DiffOp>> {
    let is_long = old.len().saturating_mul(new.len()) > PAIRS_MAX;
    let ops = if is_long {
        whole(old, new)
    } else {
        capture_diff_slices(Algorithm::Myers, old, new)
    };
    group_diff_ops(ops, n_around)
}

/// One replacement, from the first part that differs to the last.
fn whole(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let same = |(one, other): &(&&str, &&str)| one == other;
    let n_before = old.iter().zip(new).take_while(same).count();
    let (old_left, new_left) = (&old[n_before..], &new[n_before..]);
    let backwards = old_left.iter().rev().zip(new_left.iter().rev());
    let n_after = backwards.take_while(same).count();
    let equal = |old_index, new_index, len| DiffOp::Equal {
        old_index,
        new_index,
        len,
    };
    let ops = [
        equal(0, 0, n_before),
        DiffOp::Replace {
            old_index: n_before,
            old_len: old_left.len() - n_after,
            new_index: n_before,
            new_len: new_left.len() - n_after,
        },
        equal(old.len() - n_after, new.len() - n_after, n_after),
    ];
    let is_some = |op: &DiffOp| !op.old_range().is_empty() || !op.new_range().is_empty();
    ops.into_iter().filter(is_some).collect()
}
