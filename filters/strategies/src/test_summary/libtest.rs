//! The output of Rust's own test runner, indented or not.

use foldhash::fast::RandomState;

use super::frames::is_library;
use super::{Limits, Mark, Marks};
use crate::text::{find, is_blank, trim, trim_start};
use crate::{Lines, Severity, severity};

type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
type HashSet<T> = std::collections::HashSet<T, RandomState>;

/// The line with which a run begins, or ends.
pub(super) fn is_sign(line: &str) -> bool {
    let text = trim_start(line);
    text.starts_with("test result: ") || is_start(text)
}

/// Marks what passed, and the detail of failures.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let mut failed = HashSet::default();
    let heads = heads(lines);
    let mut failure_idx = 0;
    let mut at = 0;
    while at < lines.len() {
        let line = trim_start(lines.at(at));
        failed.extend(failed_name(line));
        if is_start(line) || is_passing(line) {
            marks[at] = Mark::Passing;
        } else if line.starts_with("test result: ") {
            mark_binary(lines, at, marks);
        } else if is_failure_header(line) {
            let end = block_end(lines, at + 1);
            mark_names(lines, at, &heads, marks);
            mark_body(lines, at + 1..end, limits.lines_of(failure_idx), marks);
            failure_idx += 1;
            at = end;
            continue;
        } else if line == "failures:" {
            mark_list(lines, at, &failed, marks);
        }
        at += 1;
    }
}

/// `test a::b ... ok` and what cargo says of a build that went well.
fn is_passing(line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("test ") {
        // Nearly all; searching from the end is slow.
        if rest.ends_with(" ... ok") {
            return true;
        }
        let verdict = rest.rsplit_once(" ... ").map_or("", |(_, verdict)| verdict);
        return verdict == "ok"
            || verdict.starts_with("ok <")
            || verdict == "ignored"
            || verdict.starts_with("ignored,");
    }
    line.starts_with("Finished `test` profile")
}

/// `running 3 tests`.
fn is_start(line: &str) -> bool {
    line.strip_prefix("running ").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && (rest.ends_with(" test") || rest.ends_with(" tests"))
    })
}

fn is_failure_header(line: &str) -> bool {
    line.starts_with("---- ") && (line.ends_with(" stdout ----") || line.ends_with(" stderr ----"))
}

/// Where each failure is named with its verdict.
fn heads<'a>(lines: &Lines<'a>) -> HashMap<&'a str, usize> {
    let named = lines.iter().enumerate();
    let named =
        named.filter_map(|(line_idx, line)| Some((failed_name(trim_start(line))?, line_idx)));
    named.collect()
}

/// Of the lines that name a failure one remains: the panic's, with the place, or the header before what the test printed.
fn mark_names(lines: &Lines<'_>, at: usize, heads: &HashMap<&str, usize>, marks: &mut Marks) {
    let name = trim_start(lines.at(at))
        .trim_start_matches("---- ")
        .split(" std")
        .next();
    let name = name.unwrap_or_default();
    if let Some(head_idx) = heads.get(name).filter(|head_idx| **head_idx < at) {
        marks[*head_idx] = Mark::Told;
    }
    let body = lines
        .range(at + 1..lines.len())
        .find(|line| !is_blank(line));
    let is_named = |line: &str| {
        let thread = trim_start(line).strip_prefix("thread '");
        let rest = thread.and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with('\'') && rest.contains(" panicked at "))
    };
    if body.is_some_and(is_named) {
        marks[at] = Mark::Told;
    }
}

/// Where the captured output of a test ends: at the next one, or at the list of failures.
fn block_end(lines: &Lines<'_>, start: usize) -> usize {
    let is_end = |line: &str| {
        let line = trim_start(line);
        is_failure_header(line) || line == "failures:" || line.starts_with("test result: ")
    };
    lines
        .range(start..lines.len())
        .position(is_end)
        .map_or(lines.len(), |n| start + n)
}

/// In the captured output of a failed test, keeps the panic, the first lines and the frames of the user's code. Beyond the budget a frame
/// stays when nothing before it in this output has its place.
pub(super) fn mark_body(
    lines: &Lines<'_>,
    body: std::ops::Range<usize>,
    budget: usize,
    marks: &mut Marks,
) {
    let mut n_shown = 0;
    let mut is_trace = false;
    let mut is_message = false;
    let mut places = HashSet::default();
    let mut is_new_place = false;
    for line_idx in body.clone() {
        let line = trim_start(lines.at(line_idx));
        is_message = find(line, b"panicked at ", 5).is_some()
            || line.starts_with("note: panic did not contain expected string")
            || (is_message && !line.is_empty() && !line.starts_with("stack backtrace"));
        is_trace = line == "stack backtrace:" || (is_trace && !line.is_empty());
        let is_noise = line.is_empty()
            || line == "stack backtrace:"
            || line.starts_with("note: run with `RUST_BACKTRACE")
            || line.starts_with("note: Some details are omitted")
            || (is_trace && is_library_frame(lines, line_idx));
        places.extend(place_of_panic(line));
        if is_trace && !line.starts_with("at ") {
            let place = place_of_frame(lines, line_idx).filter(|_| !is_noise);
            is_new_place = place.is_some_and(|place| places.insert(place));
        }
        n_shown += usize::from(!is_noise);
        let is_over = n_shown > budget
            && !is_message
            && !(is_trace && is_new_place)
            && severity(line) != Some(Severity::Error);
        if is_noise || is_over {
            marks[line_idx] = Mark::Detail;
        }
    }
}

/// `src/lib.rs:7` of `thread 'a' panicked at src/lib.rs:7:42:`.
fn place_of_panic(line: &str) -> Option<&str> {
    const PANICKED: &[u8; 13] = b" panicked at ";
    let line = line.strip_suffix(':')?;
    let place = find(line, PANICKED, 6)? + PANICKED.len();
    without_column(&line[place..])
}

/// `src/lib.rs:7` of the line `at ./src/lib.rs:7:42` below a frame's symbol.
fn place_of_frame<'a>(lines: &Lines<'a>, symbol_idx: usize) -> Option<&'a str> {
    let place = trim_start(lines.get(symbol_idx + 1)?).strip_prefix("at ")?;
    without_column(place.strip_prefix("./").unwrap_or(place))
}

fn without_column(place: &str) -> Option<&str> {
    Some(place.rsplit_once(':')?.0)
}

/// A frame is a numbered symbol with the place on the next line; both go or stay together.
fn is_library_frame(lines: &Lines<'_>, line_idx: usize) -> bool {
    let line = trim_start(lines.at(line_idx));
    if line.starts_with("at ") {
        let symbol = lines.at(line_idx.saturating_sub(1));
        return is_library(line) || is_library(symbol);
    }
    let place = lines.get(line_idx + 1).map_or("", |next| trim_start(next));
    is_library(line) || (place.starts_with("at ") && is_library(place))
}

/// The list of names at the end repeats the headers before it: drops those names that are shown already.
fn mark_list(lines: &Lines<'_>, at: usize, shown: &HashSet<&str>, marks: &mut Marks) {
    let n_names = lines
        .range(at + 1..lines.len())
        .take_while(|line| is_listed_name(line))
        .count();
    let names = at + 1..at + 1 + n_names;
    let mut is_all_shown = n_names > 0;
    for line_idx in names {
        if shown.contains(trim(lines.at(line_idx))) {
            marks[line_idx] = Mark::Detail;
        } else {
            is_all_shown = false;
        }
    }
    if is_all_shown {
        marks[at] = Mark::Detail;
    }
}

fn is_listed_name(line: &str) -> bool {
    line.starts_with("    ") && !is_blank(line) && !trim_start(line).starts_with("test result:")
}

fn failed_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

/// `Running tests/a.rs (target/debug/deps/a-0123456789abcdef)`, `Doc-tests shop`.
fn is_binary(line: &str) -> bool {
    let is_in = |folder: &str| line.starts_with("Running ") && line.contains(folder);
    let is_documentation =
        (line.strip_prefix("Doc-tests ")).is_some_and(|name| !name.contains(' '));
    is_in("/deps/") || is_in("\\deps\\") || is_documentation
}

/// The lines that name a binary are of interest only when something in it failed.
fn mark_binary(lines: &Lines<'_>, result_idx: usize, marks: &mut Marks) {
    if !trim_start(lines.at(result_idx)).starts_with("test result: ok.") {
        return;
    }
    for line_idx in (0..result_idx).rev() {
        let line = trim_start(lines.at(line_idx));
        if is_binary(line) {
            marks[line_idx] = Mark::Passing;
            return;
        }
        if !line.is_empty() && marks[line_idx] == Mark::Unknown {
            return;
        }
        if line.is_empty() {
            marks[line_idx] = Mark::Passing;
        }
    }
}
