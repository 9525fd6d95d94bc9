//! What changed between two versions of a text, as a unified diff.
//!
//! Lines that both versions share at the start and the end are put aside first, so the cost follows the size of the
//! change and not of the file.

use std::time::Duration;

use similar::{ChangeTag, DiffOp, TextDiff};

/// Lines of context around a change, as in `diff -u`.
const CONTEXT_LINES: usize = 3;
/// Bytes compared line by line, both versions together. A larger change is better read in the file itself.
const CHANGE_BYTES_MAX: usize = 1024 * 1024;
/// Lines of a diff that are shown.
const SHOWN_LINES_MAX: usize = 400;
/// How long the search for the smallest diff may take; after it a larger one is good enough.
const SEARCH_TIME: Duration = Duration::from_millis(500);

/// A change, for people and models.
#[derive(Debug, PartialEq, Eq)]
pub struct Diff {
    /// Unified diff with file header; cut when it is very long.
    pub text: String,
    /// Lines that are new.
    pub added: usize,
    /// Lines that are gone.
    pub removed: usize,
}

/// The change from `old` to `new`.
///
/// Shape: none when nothing changed, when either is no text, or when the change is larger than one mebibyte.
pub fn unified(path: &str, old: &[u8], new: &[u8]) -> Option<Diff> {
    let is_binary = memchr::memchr(0, old).is_some() || memchr::memchr(0, new).is_some();
    if old == new || is_binary {
        return None;
    }
    let window = Window::around_change(old, new);
    let (old, new) = (
        &old[window.old.0..window.old.1],
        &new[window.new.0..window.new.1],
    );
    if old.len() + new.len() > CHANGE_BYTES_MAX {
        return None;
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure()
        .timeout(SEARCH_TIME)
        .diff_lines(&*old, &*new);
    Some(print(path, &diff, window.first_line))
}

/// Lines that are new and lines that are gone, where no diff is made: all from the first that differs to the last.
pub fn counts(old: &[u8], new: &[u8]) -> (usize, usize) {
    let n_same = n_same(old.iter(), new.iter());
    let start = line_start(old, n_same);
    let n_behind = n_same_end(old, new, n_same);
    let [old_at, new_at] = [old, new].map(|text| text.len() - n_behind);
    let begins_line = |text: &[u8], at: usize| at == start || text[at - 1] == b'\n';
    // What is the same behind the change begins a line only where it does so in both.
    let (old_end, new_end) = match begins_line(old, old_at) && begins_line(new, new_at) {
        true => (old_at, new_at),
        false => (line_end(old, old_at), line_end(new, new_at)),
    };
    (n_lines(&new[start..new_end]), n_lines(&old[start..old_end]))
}

fn n_lines(text: &[u8]) -> usize {
    let is_partial = text.last().is_some_and(|byte| *byte != b'\n');
    memchr::memchr_iter(b'\n', text).count() + usize::from(is_partial)
}

fn print(path: &str, diff: &TextDiff<'_, '_, str>, first_line: usize) -> Diff {
    let mut lines = vec![format!("--- a/{path}"), format!("+++ b/{path}")];
    let (mut added, mut removed) = (0, 0);
    for group in diff.grouped_ops(CONTEXT_LINES) {
        lines.push(hunk_header(&group, first_line));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            added += usize::from(sign == '+');
            removed += usize::from(sign == '-');
            let text = change.value();
            lines.push(format!("{sign}{}", text.strip_suffix('\n').unwrap_or(text)));
            if !text.ends_with('\n') {
                lines.push("\\ No newline at end of file".to_owned());
            }
        }
    }
    if lines.len() > SHOWN_LINES_MAX {
        let n_left = lines.len() - SHOWN_LINES_MAX;
        lines.truncate(SHOWN_LINES_MAX);
        lines.push(format!("… {n_left} more lines of this diff"));
    }
    Diff {
        text: lines.join("\n"),
        added,
        removed,
    }
}

fn hunk_header(group: &[DiffOp], first_line: usize) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return String::new();
    };
    let range = |start: usize, end: usize| match end - start {
        // An empty range is named by the line before it.
        0 => format!("{},0", first_line + start),
        1 => format!("{}", first_line + start + 1),
        len => format!("{},{len}", first_line + start + 1),
    };
    let old = range(first.old_range().start, last.old_range().end);
    let new = range(first.new_range().start, last.new_range().end);
    format!("@@ -{old} +{new} @@")
}

/// The part of both versions that holds every change and its context, as byte ranges of whole lines.
struct Window {
    old: (usize, usize),
    new: (usize, usize),
    /// Lines before it.
    first_line: usize,
}

impl Window {
    fn around_change(old: &[u8], new: &[u8]) -> Self {
        let n_same = n_same(old.iter(), new.iter());
        let mut start = line_start(old, n_same);
        for _ in 0..CONTEXT_LINES {
            start = line_start(old, start.saturating_sub(1));
        }
        let n_same_end = n_same_end(old, new, n_same);
        let mut old_end = line_end(old, old.len() - n_same_end);
        for _ in 0..CONTEXT_LINES {
            old_end = line_end(old, old_end);
        }
        Self {
            old: (start, old_end),
            new: (start, new.len() - (old.len() - old_end)),
            first_line: memchr::memchr_iter(b'\n', &old[..start]).count(),
        }
    }
}

/// How many bytes two texts have in common at their begin.
fn n_same<'a>(one: impl Iterator<Item = &'a u8>, two: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(two).take_while(|(one, two)| one == two).count()
}

/// How many they have in common at their end, behind the first `n_before`.
fn n_same_end(old: &[u8], new: &[u8], n_before: usize) -> usize {
    let (old, new) = (&old[n_before..], &new[n_before..]);
    n_same(old.iter().rev(), new.iter().rev())
}

/// Where the line that holds the byte at `at` starts.
fn line_start(text: &[u8], at: usize) -> usize {
    memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1)
}

/// Where the line that holds the byte at `at` ends, its line end included.
fn line_end(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end + 1)
}

#[cfg(test)]
mod tests;
