//! Outputs beside the goal: what has little to do with it is replaced by a line that says so and names where the whole is.
//!
//! What says that something went wrong always stays, and so does every line near the goal. The same text and the same goal give the same
//! parts. Linear in the text; what is looked at of one line is bounded.

mod relevance;
mod sections;

use std::collections::BTreeSet;
use std::ops::Range;
use zeph_core::text::counted;

use memchr::memchr_iter;
use zeph_strategies::{Lines, is_blank, is_location};

pub use self::relevance::GoalWords;
use self::relevance::LineScores;
pub use self::sections::sections;
use self::sections::{near_sections, paragraphs};

/// How the line begins that stands for what was replaced.
pub const FILTERED: &str = "[output filtered: ";

/// Lines of an output that is compressed. Beyond them what is known of each would take more than the output.
const LINES_MAX: usize = 100_000;

/// Lines with errors that stay of one output; more are counted.
const ERROR_LINES_MAX: usize = 200;

/// Bytes of a line that stays.
const LINE_BYTES_MAX: usize = 2_000;

/// Bytes of a line that stays for where it stands and not for what it says.
const FRAME_BYTES_MAX: usize = 500;

/// Bytes that are not worth the line that would stand for them.
const RUN_BYTES_MIN: usize = 200;

/// Bytes of that line at most, about.
const MARKER_BYTES: usize = 220;

/// The share of an output, in percent, from which on it is near the goal as a whole when so much of it is.
const WHOLE_PERCENT: usize = 50;

/// How an output is compressed.
#[derive(Debug, Clone, PartialEq)]
pub struct CompressionRules {
    /// Bytes of the beginning that stay; 0 for the first line alone.
    pub head_bytes: usize,
    /// Whether paragraphs and whole outputs near the goal stay whole.
    pub goal_aware: bool,
    /// The relevance from which on something is near the goal, from 0 to 1.
    pub relevance_threshold: f64,
    /// Whether lines that say what went wrong always stay.
    pub preserves_errors: bool,
    /// Characters of all lines that stay, errors aside.
    pub preserved_chars_max: usize,
}

/// What is left of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressedText {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// These bytes stay.
    Kept(Range<usize>),
    /// So many lines are gone, so many of them errors and so many others near the goal; of a single line its rest, in bytes.
    Gone {
        n_lines: usize,
        n_near: usize,
        n_errors: usize,
        rest_bytes: usize,
    },
}

/// A text and where its lines are, as [`str::lines`] tells them.
struct TextLines<'a> {
    text: &'a str,
    places: Vec<Range<usize>>,
}

impl<'a> TextLines<'a> {
    fn of(text: &'a str) -> Self {
        let start = text.as_ptr().addr();
        let place = |line: &str| {
            let at = line.as_ptr().addr() - start;
            at..at + line.len()
        };
        Self {
            text,
            places: text.lines().map(place).collect(),
        }
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    fn place(&self, idx: usize) -> Range<usize> {
        self.places[idx].clone()
    }

    fn line(&self, idx: usize) -> &'a str {
        &self.text[self.place(idx)]
    }
}

/// Whether a text was not compressed before, and has no more than 100,000 lines.
fn is_compressible(text: &str) -> bool {
    let n_lines = memchr_iter(b'\n', text.as_bytes()).count();
    n_lines <= LINES_MAX && !text.contains(FILTERED)
}

/// Compresses `text`, the output of what `said` asks for. `None` when all of it stays.
///
/// `meant` is how near each of its [`sections`] is to the goal by its meaning, in their order; empty where only words are compared. What is
/// near by its words stays first, then the sections; of both, the nearest first.
/// Limits: n log n. A text that was compressed before, or has more than 100,000 lines, stays as it is.
pub fn compress(
    text: &str,
    said: &str,
    (goal, meant): (&GoalWords, &[f64]),
    rules: &CompressionRules,
) -> Option<CompressedText> {
    if !is_compressible(text) {
        return None;
    }
    let lines = TextLines::of(text);
    let scores = goal.scores(&lines);
    let is_near = |relevance: f64| relevance >= rules.relevance_threshold;
    let mut near: Vec<bool> = (0..lines.len())
        .map(|idx| is_near(scores.of_line(idx)))
        .collect();
    let sections = near_sections(&lines, meant, is_near);
    let words = near.clone();
    for section in &sections {
        near[section.clone()].fill(true);
    }
    if rules.goal_aware && (is_near(goal.relevance(said)) || is_near_as_a_whole(&lines, &near)) {
        return None;
    }
    let mut choice = Choice::new(&lines, rules);
    choice.keep_errors();
    choice.keep_frame();
    choice.keep_near(&words, &scores);
    for idx in sections.into_iter().flatten() {
        choice.keep(idx, LINE_BYTES_MAX);
    }
    let compressed = choice.parts(&near);
    // What is left to say of it takes as much again.
    let is_worth_it = compressed.rendered_bytes() + MARKER_BYTES < text.len() / 10 * 9;
    is_worth_it.then_some(compressed)
}

fn is_near_as_a_whole(lines: &TextLines<'_>, near: &[bool]) -> bool {
    let n_bytes = |idx: usize| lines.place(idx).len();
    let all: usize = (0..lines.len()).map(n_bytes).sum();
    let near: usize = (0..lines.len()).filter(|idx| near[*idx]).map(n_bytes).sum();
    near * 100 >= all * WHOLE_PERCENT
}

/// Which lines stay, while it is being found out.
struct Choice<'a> {
    lines: &'a TextLines<'a>,
    rules: &'a CompressionRules,
    /// By line: the bytes of it that stay.
    kept: Vec<usize>,
    errors: BTreeSet<usize>,
    /// Characters that may still be kept, errors aside.
    chars_left: usize,
}

impl<'a> Choice<'a> {
    fn new(lines: &'a TextLines<'a>, rules: &'a CompressionRules) -> Self {
        let errors = match rules.preserves_errors {
            true => {
                let severities = Lines::of(lines.text);
                let errors = severities.severities().errors();
                errors.within(0..lines.len()).collect()
            }
            false => BTreeSet::new(),
        };
        Self {
            kept: vec![0; lines.len()],
            errors,
            chars_left: rules.preserved_chars_max,
            lines,
            rules,
        }
    }

    fn line(&self, idx: usize) -> &'a str {
        self.lines.line(idx)
    }

    /// Errors, and the places that stand below them.
    fn keep_errors(&mut self) {
        let errors: Vec<usize> = self.errors.iter().copied().take(ERROR_LINES_MAX).collect();
        for idx in errors {
            self.kept[idx] = self.line(idx).len().min(LINE_BYTES_MAX);
            let below = (idx + 1..self.lines.len().min(idx + 3))
                .find(|below| is_location(self.line(*below)));
            if let Some(below) = below {
                self.kept[below] = self.line(below).len().min(FRAME_BYTES_MAX);
            }
        }
    }

    /// The beginning, and the last line that says something.
    fn keep_frame(&mut self) {
        let says = |choice: &Self, idx: usize| !is_blank(choice.line(idx));
        if let Some(last) = (0..self.lines.len()).rev().find(|idx| says(self, *idx)) {
            self.keep(last, FRAME_BYTES_MAX);
        }
        let mut head_bytes = 0;
        for idx in 0..self.lines.len() {
            head_bytes += self.line(idx).len() + 1;
            if head_bytes > self.rules.head_bytes && idx > 0 {
                return;
            }
            self.keep(idx, FRAME_BYTES_MAX);
            if self.rules.head_bytes == 0 && says(self, idx) {
                return;
            }
        }
    }

    /// What is near the goal, the nearest first: lines, and paragraphs where those count.
    fn keep_near(&mut self, near: &[bool], scores: &LineScores) {
        let mut nearest: Vec<usize> = (0..near.len()).filter(|idx| near[*idx]).collect();
        nearest.sort_by(|a, b| scores.of_line(*b).total_cmp(&scores.of_line(*a)));
        for idx in nearest {
            self.keep(idx, LINE_BYTES_MAX);
        }
        if !self.rules.goal_aware {
            return;
        }
        for paragraph in paragraphs(self.lines) {
            let relevance = scores.of_lines(paragraph.clone());
            if relevance >= self.rules.relevance_threshold {
                paragraph.for_each(|idx| self.keep(idx, LINE_BYTES_MAX));
            }
        }
    }

    /// Keeps a line as far as there is room.
    fn keep(&mut self, idx: usize, bytes_max: usize) {
        let line = self.line(idx);
        let wanted = line.floor_char_boundary(bytes_max.min(line.len()));
        if self.kept[idx] >= wanted && wanted > 0 {
            return;
        }
        let n_chars = line[..wanted].chars().count() + 1;
        if n_chars <= self.chars_left {
            self.chars_left -= n_chars;
            self.kept[idx] = wanted;
        } else if self.kept[idx] == 0 && self.chars_left > FRAME_BYTES_MAX {
            self.kept[idx] = line.floor_char_boundary(FRAME_BYTES_MAX.min(wanted));
            self.chars_left -= FRAME_BYTES_MAX;
        }
    }

    fn parts(mut self, near: &[bool]) -> CompressedText {
        let mut parts = Vec::new();
        let mut idx = 0;
        while idx < self.lines.len() {
            let end = (idx..self.lines.len())
                .find(|idx| self.kept[*idx] > 0)
                .unwrap_or(self.lines.len());
            if end > idx {
                self.push_run(idx..end, near, &mut parts);
            }
            if end < self.lines.len() {
                self.push_line(end, &mut parts);
            }
            idx = end + 1;
        }
        CompressedText { parts }
    }

    /// A run of lines that go, unless it is too short to be worth it and there is room.
    fn push_run(&mut self, run: Range<usize>, near: &[bool], parts: &mut Vec<Part>) {
        let bytes = self.lines.place(run.start).start..self.lines.place(run.end - 1).end;
        if self.lines.text[bytes.clone()].trim().is_empty() {
            return;
        }
        if bytes.len() < RUN_BYTES_MIN.min(self.chars_left) {
            self.chars_left -= bytes.len();
            return push_kept(bytes, parts);
        }
        let is_near = |idx: &usize| near[*idx] && !self.errors.contains(idx);
        parts.push(Part::Gone {
            n_near: run.clone().filter(is_near).count(),
            n_errors: self.errors.range(run.clone()).count(),
            n_lines: run.len(),
            rest_bytes: 0,
        });
    }

    fn push_line(&self, idx: usize, parts: &mut Vec<Part>) {
        let place = self.lines.place(idx);
        let kept = place.start + self.kept[idx];
        let rest_bytes = place.end - kept;
        if rest_bytes < RUN_BYTES_MIN {
            return push_kept(place, parts);
        }
        let kept = self.lines.text.floor_char_boundary(kept);
        push_kept(place.start..kept, parts);
        parts.push(Part::Gone {
            n_lines: 0,
            n_near: 0,
            n_errors: 0,
            rest_bytes,
        });
    }
}

fn push_kept(bytes: Range<usize>, parts: &mut Vec<Part>) {
    parts.push(Part::Kept(bytes));
}

impl CompressedText {
    /// What is shown of `text`, the one it was made of; `handle` names the whole.
    pub fn render(&self, text: &str, handle: &str) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Kept(bytes) => text[bytes.clone()].to_owned(),
            gone @ Part::Gone { .. } => {
                format!("{FILTERED}{}; all of it: {handle}]", gone.reason())
            }
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    /// Lines that are gone.
    pub fn n_lines_gone(&self) -> usize {
        let gone = self.parts.iter().map(|part| match part {
            Part::Gone { n_lines, .. } => *n_lines,
            Part::Kept(_) => 0,
        });
        gone.sum()
    }

    /// Bytes it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.parts.len() * size_of::<Part>()
    }

    fn rendered_bytes(&self) -> usize {
        let bytes = self.parts.iter().map(|part| match part {
            Part::Kept(bytes) => bytes.len() + 1,
            Part::Gone { .. } => MARKER_BYTES,
        });
        bytes.sum()
    }
}

impl Part {
    /// Why something is gone.
    fn reason(&self) -> String {
        let Self::Gone {
            n_lines,
            n_near,
            n_errors,
            rest_bytes,
        } = self
        else {
            return String::new();
        };
        if *rest_bytes > 0 {
            return counted(*rest_bytes, "more byte", "more bytes") + " of a long line";
        }
        let lines = counted(n_lines - n_near - n_errors, "line", "lines");
        let of_them = |n: &usize, what: &str| (*n > 0).then(|| format!("{n} {what}"));
        let more = [
            of_them(n_errors, "with errors beyond the first 200"),
            of_them(
                n_near,
                "near it beyond `tools.compression.max_preserved_chars`",
            ),
        ];
        let more: Vec<String> = more.into_iter().flatten().collect();
        match more.is_empty() {
            true => format!("{lines} beside the goal"),
            false => format!("{lines} beside the goal, {}", more.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests;
