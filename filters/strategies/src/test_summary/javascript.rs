//! The output of jest, vitest, mocha and Node's own runner.

use std::collections::HashSet;

use super::frames::is_library;
use super::{Limits, Mark, Marks};
use crate::text::{is_blank, trim, trim_end, trim_start};
use crate::{Lines, Severity, severity};

/// Marks what passed, library frames, and the source printed around failures.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let names = Names::of(lines);
    let mut report = Report::default();
    for (line_idx, line) in lines.iter().enumerate() {
        if let Some(mark) = report.mark(lines, line_idx, &names, limits) {
            marks[line_idx] = mark;
        } else if is_heading(lines, line_idx) && !report.is_inside {
            marks[line_idx] = Mark::Passing;
        } else if line.starts_with("> ") {
            // What npm says it runs.
            marks[line_idx] = Mark::Passing;
        }
    }
}

/// The line with which each of the runners counts.
pub(super) fn is_sign(line: &str) -> bool {
    let text = trim_start(line);
    let is_counted = |text: &str| {
        text.split(' ')
            .next()
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    text.starts_with("Tests:  ")
        || text.starts_with("Test Suites: ")
        || text.starts_with("Test Files  ")
        || text.strip_prefix("ℹ tests ").is_some_and(is_counted)
        || (is_counted(text) && text.contains(" passing ("))
}

/// The names of failures where they are told in full: nearer names and lists repeat them.
struct Names<'a> {
    /// Titles of blocks: behind `● `, ` FAIL `, `✖ `, and of mocha's numbers.
    titles: Vec<&'a str>,
    /// Where mocha and Node begin to tell of their failures.
    list_idx: usize,
    /// What Node says in its list, with the sign and the time.
    listed: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    fn of(lines: &Lines<'a>) -> Self {
        let titles = lines.iter().filter_map(|line| title(line)).collect();
        let is_list = |line: &str| {
            let text = trim(line);
            text.ends_with(" failing") || text == "✖ failing tests:"
        };
        let list_idx = lines.iter().position(is_list).unwrap_or(0);
        let listed = lines.range(list_idx..lines.len()).map(trim);
        Self {
            titles,
            list_idx,
            listed: listed.filter(|text| text.starts_with("✖ ")).collect(),
        }
    }

    /// Whether a block tells of the test that a tree calls `name`.
    fn has(&self, name: &str) -> bool {
        self.titles.iter().any(|title| title.ends_with(name))
    }
}

/// The title of a block that tells of a failure: `  ● suite › name`, ` FAIL  file > suite > name`.
fn title(line: &str) -> Option<&str> {
    let title = line
        .strip_prefix("  ● ")
        .or_else(|| line.strip_prefix(" FAIL  "))
        .or_else(|| {
            line.strip_prefix("FAIL  ")
                .filter(|rest| rest.contains(" > "))
        })?;
    Some(title.trim_end())
}

/// What has been read of the report.
#[derive(Default)]
struct Report<'a> {
    n_failures: usize,
    /// Inside a block that tells of a failure.
    is_inside: bool,
    /// The block was there before.
    is_repeated: bool,
    file: &'a str,
    blocks: HashSet<(&'a str, &'a str)>,
    frames: HashSet<&'a str>,
    has_legend: bool,
    is_summary: bool,
    /// How far in the name of a failure stands that Node tells again in its list; what is further in is told there too.
    told_depth: Option<usize>,
}

impl<'a> Report<'a> {
    /// Why a line is not shown, if so.
    fn mark(
        &mut self,
        lines: &Lines<'a>,
        line_idx: usize,
        names: &Names<'_>,
        limits: Limits,
    ) -> Option<Mark> {
        let line = lines.at(line_idx);
        let text = trim_start(line);
        if self.is_listed(line, line_idx, names) {
            return Some(Mark::Told);
        }
        if is_rule(text) {
            return Some(Mark::Passing);
        }
        if self.begin(line, text) {
            return self.is_repeated.then_some(Mark::Told);
        }
        if let Some(mark) = sign(text, line_idx, names) {
            return Some(mark);
        }
        if is_sign(line) {
            self.is_inside = false;
            return None;
        }
        if !self.is_inside {
            let is_node = line_idx >= names.list_idx && names.list_idx > 0;
            return self.frame(text, is_node);
        }
        if self.is_repeated {
            return Some(Mark::Told);
        }
        self.detail(lines, line_idx, limits)
    }

    fn is_listed(&mut self, line: &str, line_idx: usize, names: &Names<'_>) -> bool {
        if line_idx >= names.list_idx || is_blank(line) {
            return false;
        }
        let depth = line.len() - trim_start(line).len();
        if self.told_depth.is_some_and(|told| depth > told) {
            return true;
        }
        let is_listed = names.listed.contains(trim(line));
        self.told_depth = is_listed.then_some(depth);
        is_listed
    }

    /// Looks whether a block, a file or a list begins.
    fn begin(&mut self, line: &'a str, text: &'a str) -> bool {
        if text == "Summary of all failing tests" {
            self.is_summary = true;
            self.is_inside = false;
            self.is_repeated = true;
            return true;
        }
        if let Some(title) = title(line) {
            self.is_inside = true;
            self.n_failures += 1;
            self.frames.clear();
            let is_new = self.blocks.insert((self.file, title));
            self.is_repeated = !is_new && self.is_summary;
            return true;
        }
        if let Some(file) = line
            .strip_prefix("FAIL ")
            .or_else(|| line.strip_prefix("PASS "))
        {
            self.is_inside = false;
            self.file = file.split(" (").next().unwrap_or(file).trim();
            // In the list at the end the same file comes again, with the same failures.
            self.is_repeated = self.is_summary && self.has_file();
            return line.starts_with("FAIL");
        }
        false
    }

    fn has_file(&self) -> bool {
        self.blocks.iter().any(|(file, _)| *file == self.file)
    }

    /// A line of a block.
    fn detail(&mut self, lines: &Lines<'a>, line_idx: usize, limits: Limits) -> Option<Mark> {
        let line = lines.at(line_idx);
        let text = trim_start(line);
        if text.is_empty() {
            return Some(Mark::Passing);
        }
        if is_source(text) {
            let next = lines.get(line_idx + 1).map_or("", |next| trim_start(next));
            let is_cause = text.starts_with("> ") || (!is_pointer(text) && is_pointer(next));
            let is_shown = is_cause && self.n_failures <= limits.n_failures;
            return (!is_shown).then_some(Mark::Detail);
        }
        if matches!(text, "- Expected" | "+ Received" | "+ expected - actual") {
            let has_legend = self.has_legend;
            self.has_legend |= !text.starts_with("- ");
            return has_legend.then_some(Mark::Detail);
        }
        self.frame(text, true)
    }

    /// A frame of a library, or one that was there before.
    fn frame(&mut self, text: &'a str, is_failure: bool) -> Option<Mark> {
        let is_frame = text.starts_with("at ") || (self.is_inside && text.starts_with("❯ "));
        if !is_frame {
            let is_internal = ["generatedMessage: ", "operator: "]
                .iter()
                .any(|key| text.starts_with(key));
            return (is_failure && is_internal).then_some(Mark::Detail);
        }
        let is_hidden = is_library(text)
            || text.contains("node_modules/")
            || (self.is_inside && !self.frames.insert(text));
        (is_hidden && severity(text) != Some(Severity::Error)).then_some(Mark::Detail)
    }
}

/// What passed, and the names in a tree that a block tells again.
fn sign(text: &str, line_idx: usize, names: &Names<'_>) -> Option<Mark> {
    if text.is_empty() {
        return Some(Mark::Passing);
    }
    if ["✓ ", "✔ ", "√ ", "PASS "]
        .iter()
        .any(|sign| text.starts_with(sign))
    {
        return Some(Mark::Passing);
    }
    let named = text.strip_prefix("✕ ").or_else(|| text.strip_prefix("× "));
    if let Some(name) = named {
        return names.has(without_time(name)).then_some(Mark::Told);
    }
    if let Some(message) = text.strip_prefix("→ ") {
        return (!message.is_empty() && !names.titles.is_empty()).then_some(Mark::Told);
    }
    let in_tree = line_idx < names.list_idx;
    let is_numbered = text.split_once(") ").is_some_and(|(n, name)| {
        n.bytes().all(|byte| byte.is_ascii_digit()) && !n.is_empty() && !name.is_empty()
    });
    (in_tree && is_numbered).then_some(Mark::Told)
}

/// `adds (5 ms)` and `adds 5ms` are `adds`.
fn without_time(name: &str) -> &str {
    let name = name.trim_end();
    let is_time = |word: &str| {
        let number = word.trim_end_matches("ms").trim_end_matches('s');
        number.len() < word.len() && number.parse::<f64>().is_ok()
    };
    if let Some((rest, time)) = name.rsplit_once(" (")
        && time.trim_end_matches(')').split(' ').next_back() == Some("ms")
    {
        return rest;
    }
    match name.rsplit_once(' ') {
        Some((rest, last)) if is_time(last) => trim_end(rest),
        _ => name,
    }
}

/// `> 13 |   expect(x)`, `13|   expect(x)`, and the pointer below it.
fn is_source(text: &str) -> bool {
    let text = text.strip_prefix("> ").unwrap_or(text).trim_start();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let bar = trim_start(rest);
    (rest.len() < text.len() && bar.starts_with('|')) || is_pointer(text)
}

/// `|       ^`, below a line of source.
fn is_pointer(text: &str) -> bool {
    text.strip_prefix('|').is_some_and(|rest| {
        let rest = trim(rest);
        !rest.is_empty() && rest.chars().all(|c| c == '^')
    })
}

/// `⎯⎯⎯⎯[1/17]⎯`, between failures.
fn is_rule(text: &str) -> bool {
    text.starts_with("⎯⎯")
}

/// The name of a suite: what stands below it, further in, is a name in a tree.
fn is_heading(lines: &Lines<'_>, line_idx: usize) -> bool {
    let depth = |line: &str| line.len() - trim_start(line).len();
    let own = depth(lines.at(line_idx));
    let is_word =
        trim_start(lines.at(line_idx)).starts_with(|c: char| c.is_alphanumeric() || c == '▶');
    if !is_word || (own < 2 && !lines.at(line_idx).starts_with('▶')) {
        return false;
    }
    let mut below = lines
        .range(line_idx + 1..lines.len())
        .filter(|line| !is_blank(line));
    let next = below.find(|line| is_tree_sign(trim_start(line)) || depth(line) <= own);
    next.is_some_and(|next| depth(next) > own && is_tree_sign(trim_start(next)))
}

fn is_tree_sign(text: &str) -> bool {
    ["✓ ", "✔ ", "√ ", "✕ ", "✖ ", "× ", "○ "]
        .iter()
        .any(|sign| text.starts_with(sign))
        || text
            .split_once(") ")
            .is_some_and(|(n, _)| n.parse::<u32>().is_ok())
}
