//! The output of RSpec and minitest.

use std::collections::HashSet;

use super::frames::is_library;
use super::{Limits, Mark, Marks};
use crate::text::{trim, trim_start};
use crate::{Lines, Severity};

/// Marks what passed, frames of gems, and the list of failures that RSpec tells once more.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let total_idx = lines.iter().position(is_sign).unwrap_or(lines.len());
    let first = lines
        .iter()
        .position(|line| is_number(line) || is_section(line));
    let first = first.unwrap_or(total_idx).min(total_idx);
    mark_progress(lines, first, marks);
    mark_failures(lines, first..total_idx, limits, marks);
    mark_list(lines, total_idx, marks);
}

/// `56 examples, 18 failures`, `50 runs, 46 assertions, …`.
pub(super) fn is_sign(line: &str) -> bool {
    let Some((n, rest)) = line.split_once(' ') else {
        return false;
    };
    let is_counted = n.parse::<u32>().is_ok();
    let of_rspec = rest.starts_with("example") && rest.contains(" failure");
    let of_minitest = rest.contains(" assertions, ") && rest.contains(" failures, ");
    is_counted && (of_rspec || of_minitest)
}

fn is_section(line: &str) -> bool {
    line == "Failures:" || line.starts_with("Pending: (")
}

/// `  1) Till adds 4`, before each failure. Minitest writes ` 10) Failure:` and `100) Error:`: its numbers end in one column.
fn is_number(line: &str) -> bool {
    let Some((number, rest)) = trim_start(line).split_once(") ") else {
        return false;
    };
    let is_indented = line.starts_with("  ");
    number.parse::<u32>().is_ok()
        && (is_indented || matches!(rest, "Failure:" | "Error:" | "Skipped:"))
}

/// What is said while the tests run.
fn mark_progress(lines: &Lines<'_>, end: usize, marks: &mut Marks) {
    let failed = lines.iter().any(is_number);
    for (line_idx, line) in lines.iter().enumerate().take(end) {
        let text = trim(line);
        let is_row = !text.is_empty()
            && text
                .chars()
                .all(|c| matches!(c, '.' | 'F' | 'E' | 'S' | '*'));
        let is_header = line.starts_with("Run options: ")
            || line == "# Running:"
            || line.starts_with("Finished in ")
            || line.starts_with("Randomized with seed ");
        if text.is_empty() || is_row || is_header || is_passed(line) {
            marks[line_idx] = Mark::Passing;
        } else if failed && (is_told(line)) {
            marks[line_idx] = Mark::Told;
        } else if is_description(lines, line_idx, end) {
            marks[line_idx] = Mark::Passing;
        }
    }
}

/// `AlphaTest#test_adds = 0.00 s = .`
fn is_passed(line: &str) -> bool {
    line.contains(" s = ") && (line.ends_with(" = .") || line.ends_with(" = S"))
}

/// A failure in the lines of verbose forms; its block tells it again.
fn is_told(line: &str) -> bool {
    (line.contains(" s = ") && (line.ends_with(" = F") || line.ends_with(" = E")))
        || (line.contains("(FAILED - ") && line.ends_with(')'))
}

/// What the documentation form says of a group or of an example that passed. What a test prints is not indented, mostly; it
/// stays when it speaks of an error or a warning.
fn is_description(lines: &Lines<'_>, line_idx: usize, end: usize) -> bool {
    let line = lines.at(line_idx);
    let below = match line_idx + 1 < end {
        true => lines.at(line_idx + 1),
        false => "",
    };
    let is_group = !line.starts_with(' ') && below.starts_with("  ");
    (line.starts_with("  ") || is_group) && lines.severity(line_idx).is_none()
}

/// The blocks of failures: message and places stay.
fn mark_failures(
    lines: &Lines<'_>,
    range: std::ops::Range<usize>,
    limits: Limits,
    marks: &mut Marks,
) {
    let (mut failure_idx, mut n_shown) = (0, 0);
    let mut frames = HashSet::new();
    for line_idx in range {
        let line = lines.at(line_idx);
        let text = trim(line);
        if is_number(line) {
            failure_idx += 1;
            n_shown = 0;
            frames.clear();
            continue;
        }
        let frame = text.strip_prefix("# ").unwrap_or(text);
        let is_frame = frame.contains(":in `") || frame.contains(":in '");
        let is_noise = text.is_empty()
            || text == "(compared using ==)"
            || text == "---Backtrace---"
            || text == "---------------"
            || (is_frame && (is_gem(frame) || !frames.insert(frame)))
            || line.starts_with("Finished in ");
        n_shown += usize::from(!is_noise && !is_frame && !is_diff_header(text));
        let is_over = !is_frame && n_shown > limits.lines_of(failure_idx.max(1) - 1);
        if is_noise || (is_over && lines.severity(line_idx) != Some(Severity::Error)) {
            marks[line_idx] = Mark::Detail;
        } else if let Some(place) = block_place(text) {
            marks.say(line_idx, place);
        }
    }
}

/// What stands above a difference. Of many failures few lines are shown, and these are not worth any of them.
fn is_diff_header(text: &str) -> bool {
    matches!(text, "--- expected" | "+++ actual") || text.starts_with("@@ ")
}

/// The place of a frame that is the block of the example itself: what it is called says nothing.
fn block_place(text: &str) -> Option<&str> {
    let (place, name) = text.strip_prefix("# ")?.split_once(":in ")?;
    let is_block = name.contains("block (") && name.contains(" in <top (required)>");
    (is_block && !place.contains(|c: char| c.is_whitespace() || c.is_control())).then_some(place)
}

fn is_gem(frame: &str) -> bool {
    is_library(frame) || frame.starts_with("/usr/bin/") || frame.starts_with("<internal:")
}

/// `rspec ./spec/a_spec.rb:28 # Till adds 4`: of lines whose name is told above only the places remain, in one line.
fn mark_list(lines: &Lines<'_>, total_idx: usize, marks: &mut Marks) {
    let Some(heading) = lines
        .range(total_idx..lines.len())
        .position(|line| line == "Failed examples:")
    else {
        return;
    };
    let heading_idx = total_idx + heading;
    let mut named: Vec<&str> = lines
        .range(0..total_idx)
        .filter(|line| is_number(line))
        .filter_map(|line| Some(line.split_once(") ")?.1.trim_end()))
        .collect();
    let mut places = Vec::new();
    for (line_idx, line) in lines.iter().enumerate().skip(heading_idx + 1) {
        let Some((place, name)) = listed(line) else {
            continue;
        };
        let Some(name_idx) = named.iter().position(|named| *named == name) else {
            continue;
        };
        named.swap_remove(name_idx);
        places.push(place);
        marks[line_idx] = Mark::Told;
    }
    if !places.is_empty() {
        marks.say(
            heading_idx,
            format!("Failed examples: rspec {}", places.join(" ")),
        );
    }
}

fn listed(line: &str) -> Option<(&str, &str)> {
    let (place, name) = line.strip_prefix("rspec ")?.split_once(" # ")?;
    let (_, number) = place.rsplit_once(':')?;
    let is_plain = !place.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\'');
    (is_plain && number.parse::<u32>().is_ok()).then_some((place, name))
}
