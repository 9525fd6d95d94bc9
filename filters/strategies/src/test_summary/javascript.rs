//! The output of jest, vitest, mocha and Node's own runner.

use std::collections::{HashMap, HashSet};

use super::frames::is_library;
use super::{Limits, Mark, Marks};
use crate::text::{depth, is_blank, is_number, trim, trim_end, trim_start};
use crate::{Lines, Severity, severity};

/// Marks what passed, library frames, and the source printed around failures.
pub(super) fn mark(lines: &Lines<'_>, limits: Limits, marks: &mut Marks) {
    let names = Names::of(lines);
    let mut report = Report::default();
    for line_idx in 0..lines.len() {
        if let Some(mark) = report.mark(lines, line_idx, &names, limits) {
            marks[line_idx] = mark;
        } else if report.place != Place::Tree {
            // What is said there is no part of a tree, whatever it looks like.
        } else if is_heading(lines, line_idx, &names) {
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

/// Where in the report a line stands. Only in trees is a line with a sign one of a test that passed: elsewhere it is a part of a
/// message, of a value, or of what a test printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// The names of tests and suites, and all that is nothing else.
    #[default]
    Tree,
    /// A failure of jest, up to the next file or the totals: all of it is indented.
    Jest,
    /// A failure of vitest, up to a rule. Of its message nothing is indented.
    Vitest,
    /// A failure in mocha's list, up to the end of its frames. Of its message only the first line is indented.
    Mocha { has_frames: bool },
    /// A failure in a tree of Node: what is further in.
    Node { depth: usize, is_told: bool },
    /// The failures in Node's list: what is indented.
    NodeList,
    /// What a test printed, in jest: what is further in than its heading.
    Console { depth: usize },
    /// What a test printed, in vitest: up to a blank line with a tree below it.
    Printed { is_after_blank: bool },
}

/// What has been read of the report.
#[derive(Default)]
struct Report<'a> {
    place: Place,
    n_failures: usize,
    /// The failure was there before.
    is_repeated: bool,
    file: &'a str,
    blocks: HashSet<(&'a str, &'a str)>,
    /// Files that blocks are of.
    files: HashSet<&'a str>,
    frames: HashSet<&'a str>,
    has_legend: bool,
    is_summary: bool,
    /// Mocha's list has begun.
    is_in_list: bool,
    /// The line behind the last run of numbered lines in a failure, and whether that is source.
    numbered: (usize, bool),
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
        if text.is_empty() {
            self.pass_blank();
            return Some(Mark::Passing);
        }
        self.end(line);
        let is_listed = line_idx < names.list_idx && names.listed.contains(trim(line));
        if self.begin(line, is_listed) {
            return self.is_told().then_some(Mark::Told);
        }
        match self.place {
            Place::Tree if is_rule(line) => Some(Mark::Passing),
            Place::Tree => sign(lines, line_idx, names).or_else(|| self.frame(text)),
            Place::Jest | Place::Vitest if self.is_repeated => Some(Mark::Told),
            Place::Jest | Place::Vitest => self.detail(lines, line_idx, limits),
            Place::Node { is_told: true, .. } if is_listed => Some(Mark::Told),
            Place::Node { .. } | Place::NodeList => match self.is_internal(lines, line_idx) {
                true => Some(Mark::Detail),
                false => self.frame(text),
            },
            Place::Mocha { .. } | Place::Console { .. } | Place::Printed { .. } => self.frame(text),
        }
    }

    fn is_told(&self) -> bool {
        match self.place {
            Place::Node { is_told, .. } => is_told,
            _ => self.is_repeated,
        }
    }

    fn pass_blank(&mut self) {
        match &mut self.place {
            Place::Mocha { has_frames: true } => self.place = Place::Tree,
            Place::Printed { is_after_blank } => *is_after_blank = true,
            _ => {}
        }
    }

    /// Looks whether a line is behind the place of those above it.
    fn end(&mut self, line: &str) {
        let is_further_in = |than: usize| depth(line) > than;
        let is_behind = match &mut self.place {
            Place::Tree => false,
            Place::Jest => is_sign(line) && !is_further_in(0),
            Place::Vitest => is_rule(line) || line.starts_with(" Test Files  "),
            Place::Mocha { has_frames } => {
                *has_frames |= line.starts_with("      at ");
                false
            }
            Place::Node { depth, .. } | Place::Console { depth } => !is_further_in(*depth),
            Place::NodeList => line.starts_with(['✔', '▶', 'ℹ']),
            Place::Printed { is_after_blank } => {
                let is_tree = || line.strip_prefix(' ').is_some_and(is_vitest_sign);
                let is_after_blank = std::mem::take(is_after_blank);
                is_rule(line)
                    || (is_after_blank && (is_tree() || line.starts_with(" Test Files  ")))
            }
        };
        if is_behind {
            self.place = Place::Tree;
        }
    }

    /// Looks whether a failure, a file, a list or what a test printed begins.
    fn begin(&mut self, line: &'a str, is_listed: bool) -> bool {
        if !matches!(self.place, Place::Tree | Place::Jest | Place::Vitest) {
            return false;
        }
        if let Some(title) = title(line)
            && (self.place != Place::Vitest || !line.starts_with("  ● "))
        {
            self.place = match line.starts_with("  ● ") {
                true => Place::Jest,
                false => Place::Vitest,
            };
            self.n_failures += 1;
            self.frames.clear();
            let is_new = self.blocks.insert((self.file, title));
            self.files.insert(self.file);
            self.is_repeated = !is_new && self.is_summary;
            return true;
        }
        if self.place == Place::Vitest {
            return false;
        }
        if line == "Summary of all failing tests" {
            self.is_summary = true;
            self.place = Place::Tree;
            self.is_repeated = true;
            return true;
        }
        if let Some((is_failure, file)) = file(line) {
            self.place = Place::Tree;
            self.file = file;
            // In the list at the end the same file comes again, with the same failures.
            self.is_repeated = self.is_summary && self.files.contains(self.file);
            return is_failure;
        }
        if self.place == Place::Tree
            && let Some(place) = self.begun(line, is_listed)
        {
            self.place = place;
            self.is_repeated = false;
            return true;
        }
        false
    }

    /// What begins with a line of a tree.
    fn begun(&mut self, line: &str, is_listed: bool) -> Option<Place> {
        let text = trim_start(line);
        self.is_in_list |= is_n_failing(line);
        if text.starts_with("✖ ") {
            let place = match text == "✖ failing tests:" {
                true => Place::NodeList,
                false => Place::Node {
                    depth: depth(line),
                    is_told: is_listed,
                },
            };
            return (is_listed || place == Place::NodeList || is_timed(text)).then_some(place);
        }
        if line.starts_with("stdout | ") || line.starts_with("stderr | ") {
            return Some(Place::Printed {
                is_after_blank: false,
            });
        }
        if line.strip_prefix("  console.").is_some_and(is_word) {
            return Some(Place::Console { depth: depth(line) });
        }
        let is_item = || line.strip_prefix("  ").is_some_and(is_numbered_name);
        (self.is_in_list && is_item()).then_some(Place::Mocha { has_frames: false })
    }

    /// A line of a failure of jest or vitest.
    fn detail(&mut self, lines: &Lines<'a>, line_idx: usize, limits: Limits) -> Option<Mark> {
        let text = trim_start(lines.at(line_idx));
        if self.is_source(lines, line_idx) {
            let next = trim_start(lines.at(line_idx + 1));
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

    /// Whether a line is of the source around a failure: in a run of numbered lines that has a pointer, at a frame. A table in a value
    /// may look like lines of it.
    fn is_source(&mut self, lines: &Lines<'_>, line_idx: usize) -> bool {
        let (end, is_source) = self.numbered;
        if line_idx < end {
            return is_source;
        }
        let Some(first) = source_number(trim_start(lines.at(line_idx))) else {
            return false;
        };
        let (mut next, mut end, mut has_pointer) = (Some(first), line_idx, false);
        while end < lines.len() {
            let text = trim_start(lines.at(end));
            if is_pointer(text) {
                has_pointer = true;
            } else if next.is_some() && source_number(text) == next {
                next = next.and_then(|number| number.checked_add(1));
            } else {
                break;
            }
            end += 1;
        }
        let above = line_idx.checked_sub(1).map_or("", |above| lines.at(above));
        let mut below = lines.range(end..lines.len()).filter(|line| !is_blank(line));
        let is_at_frame = trim_start(above).starts_with("❯ ")
            || below
                .next()
                .is_some_and(|line| trim_start(line).starts_with("at "));
        self.numbered = (end, has_pointer && is_at_frame);
        self.numbered.1
    }

    /// What Node tells of an assertion for its own use, the first and the last of what stands behind the frames. What is further
    /// in is of the values that it compared.
    fn is_internal(&mut self, lines: &Lines<'_>, line_idx: usize) -> bool {
        let line = lines.at(line_idx);
        let (text, depth) = (trim(line), depth(line));
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
        let is_inside = matches!(self.place, Place::Jest | Place::Vitest);
        let is_frame = text.starts_with("at ") || (is_inside && text.starts_with("❯ "));
        // A message may say `at home` twice.
        if !is_frame || !has_place(text) {
            return None;
        }
        let is_hidden = is_library(text)
            || text.contains("node_modules/")
            || (is_inside && !self.frames.insert(text));
        (is_hidden && severity(text) != Some(Severity::Error)).then_some(Mark::Detail)
    }
}

/// What passed, and the names in a tree that a block tells again.
fn sign(lines: &Lines<'_>, line_idx: usize, names: &Names<'_>) -> Option<Mark> {
    let line = lines.at(line_idx);
    if is_passed(line) {
        return Some(Mark::Passing);
    }
    let text = trim_start(line);
    let in_tree = line_idx < names.list_idx;
    let is_told = (is_named(text, names) && !goes_on(lines, line_idx + 1))
        || is_message(lines, line_idx, names)
        || (in_tree && names.has_numbered(text));
    is_told.then_some(Mark::Told)
}

/// `  ✓ adds (5 ms)`, `PASS test/cart.test.js`. Where nothing stands before the sign, the time of a test does behind it.
fn is_passed(line: &str) -> bool {
    let text = trim_start(line);
    let has_sign = ["✓ ", "✔ ", "√ "].iter().any(|sign| text.starts_with(sign));
    match has_sign {
        true => text.len() < line.len() || is_timed(text),
        false => file(line).is_some_and(|(is_failure, _)| !is_failure),
    }
}

/// `✔ adds (0.53ms)`, `✔ adds (0.53ms) # SKIP`.
fn is_timed(text: &str) -> bool {
    trim_end(text).ends_with("ms)") || text.contains("ms) # ")
}

/// Whether a file of tests failed, and which: `FAIL test/cart.test.js (7.4 s)`.
fn file(line: &str) -> Option<(bool, &str)> {
    let is_failure = line.starts_with("FAIL ");
    let rest = line
        .strip_prefix("FAIL ")
        .or_else(|| line.strip_prefix("PASS "))?;
    let file = rest.split(" (").next().unwrap_or(rest).trim();
    let is_path = file.rsplit(' ').next()?.contains(['.', '/', '\\']);
    is_path.then_some((is_failure, file))
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
    if !is_arrow(lines.at(line_idx)) || goes_on(lines, line_idx) {
        return false;
    }
    let before = (0..line_idx).rev().map(|above| lines.at(above));
    let mut others = before.take(MESSAGES_MAX).skip_while(|line| is_arrow(line));
    others
        .next()
        .is_some_and(|line| is_named(trim_start(line), names))
}

fn is_arrow(line: &str) -> bool {
    let rest = trim_start(line).strip_prefix("→ ");
    rest.is_some_and(|rest| !rest.is_empty())
}

/// Whether a line is the first of a message of several: of the others nothing is indented.
fn goes_on(lines: &Lines<'_>, line_idx: usize) -> bool {
    let next = lines.at(line_idx + 1);
    is_arrow(lines.at(line_idx)) && !is_blank(next) && depth(next) == 0 && !is_rule(next)
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

/// The number of `> 13 |   expect(x)` and `13|   expect(x)`.
fn source_number(text: &str) -> Option<u32> {
    let text = trim_start(text.strip_prefix("> ").unwrap_or(text));
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text[..text.len() - rest.len()].parse();
    number.ok().filter(|_| trim_start(rest).starts_with('|'))
}

/// `|       ^`, below a line of source.
fn is_pointer(text: &str) -> bool {
    text.strip_prefix('|').is_some_and(|rest| {
        let rest = trim(rest);
        !rest.is_empty() && rest.chars().all(|c| c == '^')
    })
}

/// `⎯⎯⎯⎯[1/17]⎯`, between failures.
fn is_rule(line: &str) -> bool {
    line.starts_with("⎯⎯") && trim_end(line).ends_with('⎯')
}

/// `✓ test/cart.test.ts (3 tests)`, `❯ …`, `× …`.
fn is_vitest_sign(text: &str) -> bool {
    let mut chars = text.chars();
    matches!(chars.next(), Some('✓' | '√' | '❯' | '×' | '↓')) && chars.next() == Some(' ')
}

/// Whether a frame ends with a place: `at f (src/a.js:3:5)`, `at src/a.js:3:5`, `at Array.map (<anonymous>) {`.
fn has_place(text: &str) -> bool {
    let text = trim_end(text).trim_end_matches(" {");
    let inner = text.strip_suffix(')').unwrap_or(text);
    let column = inner.rsplit_once(':').map_or("", |(_, column)| column);
    inner.ends_with("(<anonymous>") || is_number(column)
}

/// `2) cart`.
fn is_numbered_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && item(text).is_some()
}

/// `log` of `console.log`; older versions of jest have the place behind it.
fn is_word(text: &str) -> bool {
    let word = text.split(' ').next().unwrap_or_default();
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The name of a suite: what stands below it, further in, is a name in a tree.
fn is_heading(lines: &Lines<'_>, line_idx: usize, names: &Names<'_>) -> bool {
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
