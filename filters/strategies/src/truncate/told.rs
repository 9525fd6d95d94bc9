//! What the middle of a long output says of errors and warnings: their lines, and those beside them without which they say little. A
//! message, a trace, or what a recipe printed before `make` gave it up stand above or below the line that is known for an error.

use std::ops::Range;

use super::rows::{NotableRows, RowBudget};
use crate::diagnostic::{is_diagnostic, is_placed};
use crate::text::{is_blank, is_number, trim, trim_end, trim_start};
use crate::{LineSet, Lines, Severity, is_location};

/// Most errors shown from the middle. As many as fit a screen several times over; beyond it a count says more than lines do.
const ERRORS_MAX: usize = 200;

/// Most warnings shown from the middle; a budget of their own, so that they never cost an error its place.
const WARNINGS_MAX: usize = 200;

/// Most lines beside errors.
const BESIDE_MAX: usize = 400;

/// Lines after a diagnostic that are looked at for the place it is about.
const LOCATION_LINES: usize = 2;

/// Lines above the failure of a target, or below its name, that are shown if none of them is known for an error.
const RECIPE_LINES: usize = 30;

/// Lines of a message or of frames below an error.
const BELOW_LINES: usize = 20;

/// Lines of what rustc says of one error.
const BLOCK_LINES: usize = 30;

/// Most files that included each other.
const INCLUDES_MAX: usize = 20;

/// Lines after an error within which a stack of frames begins.
const STACK_WITHIN: usize = 4;

/// Lines of a stack.
const STACK_LINES: usize = 40;

/// Lines of a traceback from its first call, and to its last, where it is longer than both.
const TRACEBACK_LINES: [usize; 2] = [20, 40];

/// Lines of a traceback that are looked at.
const TRACEBACK_LINES_MAX: usize = 2000;

/// Finds what is told.
pub(super) struct Telling<'l, 'a> {
    lines: &'l Lines<'a>,
    /// What is cut, of which the middle is not shown.
    range: Range<usize>,
    middle: Range<usize>,
    is_failure: bool,
    told: LineSet,
    n_beside: usize,
    /// The line behind the last failure of a target: what stands above it is another one's.
    recipe: usize,
}

impl<'l, 'a> Telling<'l, 'a> {
    /// Of the lines in the middle of `range`, of which the others are shown; of a command that failed, whatever names a place is told.
    pub(super) fn of(
        lines: &'l Lines<'a>,
        (range, middle): (Range<usize>, Range<usize>),
        is_failure: bool,
    ) -> Self {
        Self {
            lines,
            recipe: range.start,
            range,
            middle,
            is_failure,
            told: LineSet::default(),
            n_beside: 0,
        }
    }

    /// The lines of the middle that speak of errors and warnings, with what belongs to errors, and those of `rows` that the budget takes.
    pub(super) fn told(mut self, (rows, budget): (&NotableRows, &mut RowBudget<'_>)) -> LineSet {
        let (mut n_errors, mut n_warnings) = (0, 0);
        let mut location_until = 0;
        for line_idx in self.range.clone() {
            if !self.middle.contains(&line_idx) {
                // What belongs to an error that is shown may not be.
                if self.lines.severity(line_idx) == Some(Severity::Error) {
                    self.add_beside(line_idx);
                }
                continue;
            }
            let is_wanted = match self.lines.severity(line_idx) {
                Some(Severity::Error) => {
                    let is_wanted = within(&mut n_errors, ERRORS_MAX);
                    if is_wanted {
                        self.add_beside(line_idx);
                    }
                    is_wanted
                }
                Some(Severity::Warning) => within(&mut n_warnings, WARNINGS_MAX),
                None if rows.contains(line_idx) => budget.takes(line_idx),
                None if line_idx <= location_until && is_location(self.lines.at(line_idx)) => {
                    self.told.insert(line_idx);
                    continue;
                }
                None if self.is_failure && is_request(self.lines.at(line_idx)) => {
                    self.add(line_idx..line_idx + 1);
                    continue;
                }
                None if is_ignored_failure(self.lines.at(line_idx)) => {
                    within(&mut n_errors, ERRORS_MAX)
                }
                None if self.is_of_place(line_idx) => within(&mut n_errors, ERRORS_MAX),
                None => continue,
            };
            if is_wanted {
                self.told.insert(line_idx);
                location_until = line_idx + LOCATION_LINES;
            }
        }
        self.told
    }

    /// Whether something is said of a place: an error in whatever language, and in a run that failed, anything.
    fn is_of_place(&self, line_idx: usize) -> bool {
        let line = self.lines.at(line_idx);
        // Whatever is a diagnostic is placed, too.
        match self.is_failure {
            true => is_placed(line),
            false => is_diagnostic(line),
        }
    }

    /// Adds what belongs to an error.
    fn add_beside(&mut self, line_idx: usize) {
        let line = self.lines.at(line_idx);
        if line.contains("*** [") {
            self.add_recipe(line_idx.saturating_sub(RECIPE_LINES).max(self.recipe)..line_idx);
            self.recipe = line_idx + 1;
        } else if line.starts_with("FAILED: ") {
            // Ninja prints what a command said below its name, up to the next step.
            let below = self.lines.range(self.below(line_idx, RECIPE_LINES));
            let n_lines = below.take_while(|line| !line.starts_with('[')).count();
            self.add_recipe(line_idx + 1..line_idx + 1 + n_lines);
        } else if trim_start(line).starts_with("Traceback (most recent call last)") {
            self.add_traceback(line_idx);
        } else {
            self.add_includes(line_idx);
            match is_arrow(self.lines.at(line_idx + 1)) {
                true => self.add_block(line_idx),
                false => self.add_message(line_idx),
            }
            self.add_stack(line_idx);
        }
    }

    /// Adds which of the user's own files included the one that an error is in.
    fn add_includes(&mut self, line_idx: usize) {
        let above = (self.range.start..line_idx).rev().take(INCLUDES_MAX);
        for above_idx in above {
            let Some(place) = included_from(self.lines.at(above_idx)) else {
                break;
            };
            if !is_of_system(place) {
                self.add(above_idx..above_idx + 1);
            }
        }
    }

    /// Adds the message of rustc below an error and its place: what it says beside the source and below it, up to a blank line.
    fn add_block(&mut self, line_idx: usize) {
        let below = self.below(line_idx, BLOCK_LINES);
        for next_idx in below {
            let line = self.lines.at(next_idx);
            if !is_of_block(line) {
                break;
            }
            if !matches!(trim(line), "|" | "...") {
                self.add(next_idx..next_idx + 1);
            }
        }
    }

    /// The lines below one, at most so many.
    fn below(&self, line_idx: usize, n_max: usize) -> Range<usize> {
        line_idx + 1..self.range.end.min(line_idx + 1 + n_max)
    }

    /// Adds lines, as far as they are in the middle.
    fn add(&mut self, lines: Range<usize>) {
        let start = lines.start.max(self.middle.start);
        let end = lines.end.min(self.middle.end).max(start);
        let n_lines = (end - start).min(BESIDE_MAX - self.n_beside);
        self.n_beside += n_lines;
        self.told.insert_all(start..start + n_lines);
    }

    /// Adds what a recipe said that failed, where no line of it is known for an error.
    fn add_recipe(&mut self, lines: Range<usize>) {
        let is_error = |line_idx: usize| {
            self.lines.severity(line_idx) == Some(Severity::Error) || self.is_of_place(line_idx)
        };
        if !lines.clone().any(is_error) {
            self.add(lines);
        }
    }

    /// Adds a traceback of Python down to its message.
    fn add_traceback(&mut self, line_idx: usize) {
        let below = line_idx + 1..self.range.end;
        let frames = self.lines.range(below.clone());
        let frames = frames.take(TRACEBACK_LINES_MAX);
        let n_frames = frames.take_while(|line| line.starts_with(' ')).count();
        let end = below.end.min(below.start + n_frames + 1);
        let [n_first, n_last] = TRACEBACK_LINES;
        if below.start + n_first + n_last >= end {
            return self.add(below.start..end);
        }
        self.add(below.start..below.start + n_first);
        self.add(end - n_last..end);
    }

    /// Adds the message below a line that ends with a colon, and what is indented below an error: more of its message, or frames. A
    /// compiler's lines of source are passed over.
    fn add_message(&mut self, line_idx: usize) {
        let is_head = trim_end(self.lines.at(line_idx)).ends_with(':');
        let below = self.below(line_idx, BELOW_LINES);
        for next_idx in below.clone() {
            let line = self.lines.at(next_idx);
            let is_message = is_head && next_idx == below.start && !is_blank(line);
            // A message may have paragraphs.
            let is_gap = is_head && is_blank(line) && {
                let behind = self.lines.at(next_idx + 1);
                next_idx + 1 < below.end && behind.starts_with(' ') && !is_blank(behind)
            };
            let is_indented = line.starts_with([' ', '\t']) && !is_blank(line);
            if !(is_message || is_gap || is_indented || line.starts_with(">>> ")) {
                break;
            }
            if !is_source(line) {
                self.add(next_idx..next_idx + 1);
            }
        }
    }

    /// Adds the stack that begins soon below an error: lines that are indented, and in one of Go the lines above them.
    fn add_stack(&mut self, line_idx: usize) {
        let mut soon = self.below(line_idx, STACK_WITHIN);
        let Some(first) = soon.find(|next_idx| begins_stack(self.lines.at(*next_idx))) else {
            return;
        };
        let is_of_stack = |next_idx: &usize| {
            let line = self.lines.at(*next_idx);
            let is_frame = line.starts_with([' ', '\t', '#']);
            !is_blank(line) && (is_frame || self.lines.at(next_idx + 1).starts_with('\t'))
        };
        let n_below = self
            .below(first, STACK_LINES)
            .take_while(is_of_stack)
            .count();
        self.add(line_idx + 1..first + 1 + n_below);
    }
}

/// Whether frames are below a line, or it is the first of them.
fn begins_stack(line: &str) -> bool {
    let text = trim_start(line);
    text.starts_with("goroutine ")
        || text.starts_with("#0 ")
        || text.starts_with("stack backtrace:")
}

/// `    5 |   f();`, `      |   ^~~`
fn is_source(line: &str) -> bool {
    let text = trim_start(line).trim_start_matches(|c: char| c.is_ascii_digit());
    trim_start(text).starts_with('|')
}

/// ` --> src/main.rs:3:5`.
fn is_arrow(line: &str) -> bool {
    trim_start(line).starts_with("--> ")
}

/// What stands below the place of an error of rustc: source with numbers, what is said of it, and advice.
fn is_of_block(line: &str) -> bool {
    let source = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = source.len() < line.len() && source.starts_with(' ');
    let is_said = line.starts_with("help: ") || line.starts_with("note: ") || line == "...";
    !is_blank(line) && (line.starts_with(' ') || is_numbered || is_said)
}

/// What asks for the code of a template that has an error: `a.cpp:7:30: note: in instantiation of … requested here`. Of the notes in
/// the headers of a library there are many, and none is of the user's own code.
fn is_request(line: &str) -> bool {
    let Some((place, note)) = line.split_once(": note: ") else {
        return false;
    };
    let is_asked =
        note.starts_with("in instantiation of ") || trim_end(note).ends_with("requested here");
    is_asked && !is_of_system(place) && is_location(line)
}

/// The place in `In file included from src/a.h:3:`, and in `                 from src/a.h:3,`.
fn included_from(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("In file included from ");
    let place = rest.or_else(|| trim_start(line).strip_prefix("from "))?;
    let (_, number) = place.trim_end_matches([':', ',']).rsplit_once(':')?;
    is_number(number).then_some(place)
}

/// Whether a file is of a compiler or of a library of the system.
fn is_of_system(path: &str) -> bool {
    path.starts_with("/usr/") || path.contains("/include/c++/") || path.contains("/lib/clang/")
}

/// `make: [Makefile:5: lint] Error 1 (ignored)`.
fn is_ignored_failure(line: &str) -> bool {
    trim_end(line).ends_with(" (ignored)") && line.contains("] Error ")
}

fn within(n: &mut usize, max: usize) -> bool {
    *n += 1;
    *n <= max
}

#[cfg(test)]
mod tests;
