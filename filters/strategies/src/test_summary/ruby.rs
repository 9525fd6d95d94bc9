//! The output of RSpec and minitest.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::frames::is_library;
use super::{Limits, Mark, Marks};
use crate::text::{is_blank, trim, trim_start};
use crate::{Lines, Severity};

/// Marks what passed, frames of gems, and the list of failures that RSpec tells once more.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let Some(total_idx) = lines.iter().position(is_sign) else {
        return;
    };
    let run = Run::before(lines, total_idx);
    mark_progress(lines, &run, marks);
    mark_failures(lines, run.failures.clone(), limits, marks);
    if let Some(finished_idx) = run.finished_idx {
        marks[finished_idx] = Mark::Passing;
    }
    mark_list(lines, total_idx, marks);
}

/// Where the parts of a run are. Before it another program may have printed, and between its tests the tests.
struct Run {
    /// What is said while the tests run. Without a heading it begins where the output does.
    progress: Range<usize>,
    has_heading: bool,
    failures: Range<usize>,
    finished_idx: Option<usize>,
    total_idx: usize,
}

impl Run {
    fn before(lines: &Lines<'_>, total_idx: usize) -> Self {
        let finished_idx = last(lines, total_idx, |line| line.starts_with("Finished in "));
        let end = finished_idx.unwrap_or(total_idx);
        let failures = if is_of_rspec(lines.at(total_idx)) {
            sections(lines, end, lines.at(total_idx))
        } else {
            finished_idx.map_or(total_idx, |at| at + 1)..total_idx
        };
        let progress_end = failures.start.min(end);
        let heading = lines.range(0..progress_end).position(is_heading);
        Self {
            progress: heading.unwrap_or(0)..progress_end,
            has_heading: heading.is_some(),
            failures,
            finished_idx,
            total_idx,
        }
    }
}

/// The lists of pending and failed examples that a total of RSpec counts, which end at `end`.
fn sections(lines: &Lines<'_>, end: usize, total: &str) -> Range<usize> {
    let mut start = end;
    if !total.contains(" 0 failures") {
        start = last(lines, start, |line| line == "Failures:").unwrap_or(start);
    }
    if total.contains(" pending") {
        start = last(lines, start, |line| line.starts_with("Pending: (")).unwrap_or(start);
    }
    start..end
}

fn last(lines: &Lines<'_>, end: usize, is_wanted: fn(&str) -> bool) -> Option<usize> {
    (0..end)
        .rev()
        .find(|line_idx| is_wanted(lines.at(*line_idx)))
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

fn is_of_rspec(total: &str) -> bool {
    total.contains(" example")
}

/// What a runner says before the first test.
fn is_heading(line: &str) -> bool {
    line.starts_with("Run options: ")
        || line == "# Running:"
        || line.starts_with("Randomized with seed ")
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

/// Marks what is said while the tests run.
fn mark_progress(lines: &Lines<'_>, run: &Run, marks: &mut Marks) {
    let told = Told::of(lines, run.failures.clone());
    let mut has_rows = false;
    for line_idx in run.progress.clone() {
        let line = lines.at(line_idx);
        let is_row = is_row(line);
        has_rows |= is_row;
        if is_row || is_heading(line) || is_passed(line) || line.is_empty() {
            marks[line_idx] = Mark::Passing;
        } else if told.has(line) {
            marks[line_idx] = Mark::Told;
        }
    }
    if !has_rows && is_of_rspec(lines.at(run.total_idx)) {
        mark_documentation(lines, run, marks);
    }
}

/// `..F..S*`, a sign for each test.
fn is_row(line: &str) -> bool {
    let text = trim(line);
    !text.is_empty() && text.bytes().all(|sign| b".FES*".contains(&sign))
}

/// `AlphaTest#test_adds = 0.00 s = .`
fn is_passed(line: &str) -> bool {
    line.contains(" s = ") && (line.ends_with(" = .") || line.ends_with(" = S"))
}

/// The failures that blocks tell.
struct Told<'a> {
    /// Titles of RSpec with their numbers.
    titles: HashMap<&'a str, &'a str>,
    /// The first words of lines: names of minitest.
    names: HashSet<&'a str>,
}

impl<'a> Told<'a> {
    fn of(lines: &Lines<'a>, failures: Range<usize>) -> Self {
        let numbered = lines.range(failures.clone()).filter(|line| is_number(line));
        let first = |line: &'a str| {
            line.split(' ')
                .next()
                .map(|word| word.trim_end_matches(':'))
        };
        Self {
            titles: numbered
                .filter_map(|line| trim(line).split_once(") "))
                .collect(),
            names: lines.range(failures).filter_map(first).collect(),
        }
    }

    /// Whether a line of a verbose form says nothing but that a test failed whose block is there.
    fn has(&self, line: &str) -> bool {
        let of_rspec = || {
            let (name, number) = trim(line).strip_suffix(')')?.rsplit_once(FAILED)?;
            Some(self.titles.get(number)?.ends_with(name))
        };
        let of_minitest = || {
            let (name, rest) = line.split_once(" = ")?;
            let is_failed = rest.ends_with(" s = F") || rest.ends_with(" s = E");
            Some(is_failed && self.names.contains(name))
        };
        of_rspec().or_else(of_minitest).unwrap_or(false)
    }
}

/// Marks the groups and examples of RSpec's documentation form. Only their number tells them from other lines that are indented: where
/// it is not that of the total, all of them stay.
fn mark_documentation(lines: &Lines<'_>, run: &Run, marks: &mut Marks) {
    let total = lines.at(run.total_idx).split(' ').next();
    let total: Option<usize> = total.and_then(|n| n.parse().ok());
    let Range { start, end } = run.progress;
    let mut described = Described::within(lines, start..end);
    if Some(described.n_examples) != total && !run.has_heading {
        // What stands before the last other line is another program's.
        let is_in_form = |line_idx: &usize| {
            let line = lines.at(*line_idx);
            line.is_empty() || depth(line) > 0 || is_group(lines, *line_idx)
        };
        let n_in_form = (start..end).rev().take_while(is_in_form).count();
        described = Described::within(lines, end - n_in_form..end);
    }
    if Some(described.n_examples) != total {
        return;
    }
    for line_idx in described.lines {
        let is_plain = lines.severity(line_idx).is_none() && !lines.at(line_idx).contains(FAILED);
        if is_plain && marks[line_idx] == Mark::Unknown {
            marks[line_idx] = Mark::Passing;
        }
    }
}

/// Lines that look like groups and examples.
struct Described {
    lines: Vec<usize>,
    n_examples: usize,
}

impl Described {
    fn within(lines: &Lines<'_>, range: Range<usize>) -> Self {
        let mut described = Self {
            lines: Vec::new(),
            n_examples: 0,
        };
        // What is in a group stands two further in.
        let mut depth_max = 0;
        for line_idx in range {
            let own = depth(lines.at(line_idx));
            if is_group(lines, line_idx) {
                depth_max = 2;
            } else if lines.at(line_idx).is_empty() {
                depth_max = 0;
            } else if own > 0 && own <= depth_max && own % 2 == 0 {
                depth_max = own + 2;
                let is_group = depth(lines.at(line_idx + 1)) > own;
                described.n_examples += usize::from(!is_group);
            } else {
                continue;
            }
            described.lines.push(line_idx);
        }
        described
    }
}

/// What stands behind the name of an example that failed.
const FAILED: &str = " (FAILED - ";

/// The name of a group that is in no other: a blank line before it, and what is in it below.
fn is_group(lines: &Lines<'_>, line_idx: usize) -> bool {
    let line = lines.at(line_idx);
    let is_first = line_idx == 0 || lines.at(line_idx - 1).is_empty();
    is_first && !is_blank(line) && depth(line) == 0 && depth(lines.at(line_idx + 1)) == 2
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The blocks of failures: message and places stay.
fn mark_failures(lines: &Lines<'_>, range: Range<usize>, limits: Limits, marks: &mut Marks) {
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
            || (is_frame && (is_gem(frame) || !frames.insert(frame)));
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
