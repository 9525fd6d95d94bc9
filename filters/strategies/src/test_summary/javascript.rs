//! The output of jest, vitest, mocha and Node's own runner.

use std::collections::{HashMap, HashSet};

use super::frames::is_library;
use super::{Limits, Mark, Marks};
use crate::text::{is_blank, trim, trim_end, trim_start};
use crate::{Lines, Severity, severity};

/// Marks what passed, library frames, and the source printed around failures.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let names = Names::of(lines);
    let mut report = Report::default();
    for line_idx in 0..lines.len() {
        if let Some(mark) = report.mark(lines, line_idx, &names, limits) {
            marks[line_idx] = mark;
        } else if is_heading(lines, line_idx, &names) && !report.is_inside {
            marks[line_idx] = Mark::Passing;
        } else if is_script(lines, line_idx) {
            marks[line_idx] = Mark::Passing;
            marks[line_idx + 1] = Mark::Passing;
        }
    }
}

/// `> shop@1.0.0 test` above `> mocha`: what npm says it runs.
fn is_script(lines: &Lines<'_>, line_idx: usize) -> bool {
    let package = lines.at(line_idx).strip_prefix("> ");
    let package = package.and_then(|rest| rest.split(' ').next());
    let version = package.and_then(|package| Some(package.rsplit_once('@')?.1));
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
        && lines.at(line_idx + 1).starts_with("> ")
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
    /// Titles of blocks: behind `● `, ` FAIL ` and `✖ `. Read backwards they are in order.
    titles: Vec<&'a str>,
    /// Where mocha and Node begin to tell of their failures.
    list_idx: usize,
    /// What Node says in its list, line by line.
    listed: HashSet<&'a str>,
    /// The titles of mocha's list by their number: the names of suites and of the test, one after the other.
    numbered: HashMap<&'a str, String>,
}

impl<'a> Names<'a> {
    fn of(lines: &Lines<'a>) -> Self {
        let mut titles: Vec<&str> = lines.iter().filter_map(title).collect();
        titles.sort_unstable_by(|one, other| one.bytes().rev().cmp(other.bytes().rev()));
        let is_list = |line: &str| is_n_failing(line) || trim(line) == "✖ failing tests:";
        let list_idx = lines.iter().position(is_list).unwrap_or(0);
        let listed = lines.range(list_idx..lines.len()).map(trim);
        Self {
            titles,
            list_idx,
            listed: listed.filter(|text| !text.is_empty()).collect(),
            numbered: numbered(lines, list_idx),
        }
    }

    /// Whether a block tells of the test that a tree calls `name`: its title ends with it.
    fn has(&self, name: &str) -> bool {
        let is_before = |title: &&str| title.bytes().rev().lt(name.bytes().rev());
        let title = self.titles.get(self.titles.partition_point(is_before));
        title.is_some_and(|title| title.ends_with(name))
    }

    /// Whether mocha's list tells of what a tree calls `2) name`.
    fn has_numbered(&self, text: &str) -> bool {
        item(text).is_some_and(|(number, name)| {
            let title = self.numbered.get(number);
            title
                .and_then(|title| title.strip_suffix(name))
                .is_some_and(|suites| suites.is_empty() || suites.ends_with(' '))
        })
    }
}

/// Most lines of a title: the names of suites in each other, and of the test.
const TITLE_LINES_MAX: usize = 16;

/// `2 failing`.
fn is_n_failing(line: &str) -> bool {
    let n_failing = trim(line).strip_suffix(" failing");
    n_failing.is_some_and(|n| n.parse::<u32>().is_ok())
}

/// The titles of mocha's list, each of which ends with a colon, if the list begins at `list_idx`:
///
/// ```text
///   1) cart
///        adds an item:
/// ```
fn numbered<'a>(lines: &Lines<'a>, list_idx: usize) -> HashMap<&'a str, String> {
    let mut numbered = HashMap::new();
    if !is_n_failing(lines.at(list_idx)) {
        return numbered;
    }
    for line_idx in list_idx + 1..lines.len() {
        let Some((number, first)) = item(lines.at(line_idx)) else {
            continue;
        };
        let mut title = first.to_owned();
        let below = lines.range(line_idx + 1..lines.len()).map(trim);
        let below = below.take_while(|part| !part.is_empty() && item(part).is_none());
        for part in below.take(TITLE_LINES_MAX - 1) {
            if title.ends_with(':') {
                break;
            }
            title.push(' ');
            title.push_str(part);
        }
        if let Some(title) = title.strip_suffix(':') {
            numbered.entry(number).or_insert_with(|| title.to_owned());
        }
    }
    numbered
}

/// The number and the name of `2) name`.
fn item(line: &str) -> Option<(&str, &str)> {
    let item = trim(line).split_once(") ");
    item.filter(|(number, _)| is_number(number))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
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
    /// Files that blocks are of.
    files: HashSet<&'a str>,
    frames: HashSet<&'a str>,
    has_legend: bool,
    is_summary: bool,
    /// How far in the name of a failure stands that Node tells again in its list; what is further in is, too, if it is there.
    told_depth: Option<usize>,
    /// How far in Node tells of an assertion, until something stands less far in.
    assertion_depth: Option<usize>,
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
        if let Some(mark) = sign(lines, line_idx, names) {
            return Some(mark);
        }
        if is_sign(line) {
            self.is_inside = false;
            return None;
        }
        if !self.is_inside {
            let is_node = line_idx >= names.list_idx && names.list_idx > 0;
            let is_internal = is_node && self.is_internal(lines, line_idx);
            return is_internal
                .then_some(Mark::Detail)
                .or_else(|| self.frame(text));
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
        let is_listed = names.listed.contains(trim(line));
        if self.told_depth.is_some_and(|told| depth > told) {
            return is_listed;
        }
        let is_told = is_listed && trim_start(line).starts_with("✖ ");
        self.told_depth = is_told.then_some(depth);
        is_told
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
            self.files.insert(self.file);
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
            self.is_repeated = self.is_summary && self.files.contains(self.file);
            return line.starts_with("FAIL");
        }
        false
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
        let is_internal = self.is_internal(lines, line_idx);
        is_internal
            .then_some(Mark::Detail)
            .or_else(|| self.frame(text))
    }

    /// What Node tells of an assertion for its own use, the first and the last of what stands behind the frames. What is further
    /// in is of the values that it compared.
    fn is_internal(&mut self, lines: &Lines<'_>, line_idx: usize) -> bool {
        let line = lines.at(line_idx);
        let (text, depth) = (trim(line), line.len() - trim_start(line).len());
        if self.assertion_depth.is_some_and(|inside| depth < inside) {
            self.assertion_depth = None;
        }
        if text.starts_with("generatedMessage: ") {
            let above = line_idx.checked_sub(1).map_or("", |above| lines.at(above));
            let is_first = trim_start(above).starts_with("at ") && trim_end(above).ends_with(" {");
            if is_first {
                self.assertion_depth = Some(depth);
            }
            return is_first;
        }
        self.assertion_depth == Some(depth) && text.starts_with("operator: ")
    }

    /// A frame of a library, or one that was there before.
    fn frame(&mut self, text: &'a str) -> Option<Mark> {
        let is_frame = text.starts_with("at ") || (self.is_inside && text.starts_with("❯ "));
        if !is_frame {
            return None;
        }
        let is_hidden = is_library(text)
            || text.contains("node_modules/")
            || (self.is_inside && !self.frames.insert(text));
        (is_hidden && severity(text) != Some(Severity::Error)).then_some(Mark::Detail)
    }
}

/// What passed, and the names in a tree that a block tells again.
fn sign(lines: &Lines<'_>, line_idx: usize, names: &Names<'_>) -> Option<Mark> {
    let text = trim_start(lines.at(line_idx));
    if text.is_empty() {
        return Some(Mark::Passing);
    }
    if ["✓ ", "✔ ", "√ ", "PASS "]
        .iter()
        .any(|sign| text.starts_with(sign))
    {
        return Some(Mark::Passing);
    }
    let in_tree = line_idx < names.list_idx;
    let is_told = is_named(text, names)
        || is_message(lines, line_idx, names)
        || (in_tree && names.has_numbered(text));
    is_told.then_some(Mark::Told)
}

/// `✕ adds (5 ms)`, of which a block tells.
fn is_named(text: &str, names: &Names<'_>) -> bool {
    let named = text.strip_prefix("✕ ").or_else(|| text.strip_prefix("× "));
    named.is_some_and(|name| names.has(without_time(name)))
}

/// Most messages of one test that are looked past for its name.
const MESSAGES_MAX: usize = 20;

/// `→ expected 1 to be 2`, below the name of a test.
fn is_message(lines: &Lines<'_>, line_idx: usize, names: &Names<'_>) -> bool {
    let is_arrow = |text: &str| text.strip_prefix("→ ").is_some_and(|rest| !rest.is_empty());
    if !is_arrow(trim_start(lines.at(line_idx))) {
        return false;
    }
    let before = (0..line_idx).rev().map(|above| trim_start(lines.at(above)));
    let mut others = before.take(MESSAGES_MAX).skip_while(|text| is_arrow(text));
    others.next().is_some_and(|text| is_named(text, names))
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
fn is_heading(lines: &Lines<'_>, line_idx: usize, names: &Names<'_>) -> bool {
    let depth = |line: &str| line.len() - trim_start(line).len();
    let own = depth(lines.at(line_idx));
    let is_word =
        trim_start(lines.at(line_idx)).starts_with(|c: char| c.is_alphanumeric() || c == '▶');
    if !is_word || (own < 2 && !lines.at(line_idx).starts_with('▶')) {
        return false;
    }
    let is_sign = |line: &str| is_tree_sign(trim_start(line), names);
    let mut below = lines
        .range(line_idx + 1..lines.len())
        .filter(|line| !is_blank(line));
    let next = below.find(|line| is_sign(line) || depth(line) <= own);
    next.is_some_and(|next| depth(next) > own && is_sign(next))
}

fn is_tree_sign(text: &str, names: &Names<'_>) -> bool {
    ["✓ ", "✔ ", "√ ", "✕ ", "✖ ", "× ", "○ "]
        .iter()
        .any(|sign| text.starts_with(sign))
        || names.has_numbered(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The titles of a list with these lines.
    fn titles(list: &str) -> HashMap<String, String> {
        let text = format!("  2 failing\n\n{list}");
        let numbered = numbered(&Lines::of(&text), 0);
        let owned = |(number, title): (&str, String)| (number.to_owned(), title);
        numbered.into_iter().map(owned).collect()
    }

    #[test]
    fn a_title_ends_where_the_next_number_stands() {
        let titles = titles("  1) cart\n  2) cart\n       adds:\n\n  2) again:\n");
        let expected = HashMap::from([("2".to_owned(), "cart adds".to_owned())]);
        assert_eq!(titles, expected);
        let listed = "  1) cart\n       adds:\n";
        assert!(numbered(&Lines::of(listed), 0).is_empty());
    }

    #[test]
    fn titles_hold_no_line_twice_nor_many() {
        let rows: String = (0..2_000).map(|n| format!("{n}) row\nof it\n")).collect();
        let rows = rows + "2000) row\n" + &"of it\n".repeat(2_000) + "of it:\n";
        assert!(titles(&rows).is_empty());
        let rows = rows.replace("of it", "of it:");
        let n_bytes: usize = titles(&rows).values().map(String::len).sum();
        assert!(n_bytes < rows.len(), "{n_bytes}");
    }
}
