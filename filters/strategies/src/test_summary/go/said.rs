//! What a run that passed says besides: tests that were skipped, of which Go prints no total, and what benchmarks measured.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::super::Marks;
use super::Event;
use crate::has_control;
use crate::text::trim_start;

/// Most names of tests that were skipped for one reason; of others their number.
const NAMES_MAX: usize = 20;

/// Tests that were skipped, by the reason they give.
#[derive(Debug, Default)]
pub(super) struct Skips<'a> {
    groups: Vec<Group<'a>>,
    by_reason: HashMap<(&'a str, &'a str), usize, RandomState>,
}

#[derive(Debug)]
struct Group<'a> {
    /// Where it is told.
    line_idx: usize,
    package: &'a str,
    reason: &'a str,
    names: Vec<&'a str>,
    n_more: usize,
}

impl<'a> Skips<'a> {
    /// Adds a test of a package, which may be unknown; `log` is the last line that it logged.
    pub(super) fn add(
        &mut self,
        line_idx: usize,
        (package, name): (&'a str, &'a str),
        log: &'a str,
    ) {
        let reason = reason(log);
        let group_idx = *self.by_reason.entry((package, reason)).or_insert_with(|| {
            self.groups.push(Group {
                line_idx,
                package,
                reason,
                names: Vec::new(),
                n_more: 0,
            });
            self.groups.len() - 1
        });
        if let Some(group) = self.groups.get_mut(group_idx) {
            match group.names.len() < NAMES_MAX {
                true => group.names.push(name),
                false => group.n_more += 1,
            }
        }
    }

    /// Tells of each reason once, where the first test was skipped for it.
    pub(super) fn say(self, marks: &mut Marks) {
        for group in self.groups {
            let words = group.words();
            let words = match has_control(&words) {
                true => words.escape_debug().to_string(),
                false => words,
            };
            marks.say(group.line_idx, words);
        }
    }
}

impl Group<'_> {
    fn words(&self) -> String {
        let mut words = String::from("skipped");
        for word in [self.package].iter().chain(&self.names) {
            if !word.is_empty() {
                words.push(' ');
                words.push_str(word);
            }
        }
        if self.n_more > 0 {
            words.push_str(&format!(" and {} more", self.n_more));
        }
        if !self.reason.is_empty() {
            words.push_str(": ");
            words.push_str(self.reason);
        }
        words
    }
}

/// What stands behind `    x_test.go:12: `.
fn reason(log: &str) -> &str {
    let behind = log.split_once(".go:").map_or("", |(_, behind)| behind);
    let text = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    text.strip_prefix(": ").unwrap_or_default().trim_end()
}

/// What benchmarks measured, among events: the name comes first, without the end of its line.
#[derive(Debug, Default)]
pub(super) struct Benchmarks<'a> {
    name: Option<(&'a str, &'a str)>,
}

impl<'a> Benchmarks<'a> {
    /// What is shown of an event that tells of one; nothing of the one with its name.
    pub(super) fn retold(&mut self, event: &'a Event<'_>) -> Option<Option<String>> {
        let output = event.output.as_deref()?;
        let is_named = output.starts_with("Benchmark");
        // `BenchmarkSum-8   \t`
        if is_named && output.ends_with('\t') && output.split_whitespace().count() == 1 {
            self.name = Some((&event.package, output));
            return Some(None);
        }
        if !output.contains(" ns/op") {
            return None;
        }
        let name = self
            .name
            .take()
            .filter(|(package, _)| *package == event.package && !is_named);
        let name = name.map_or("", |(_, name)| name);
        let words = [&*event.package, name, output].into_iter();
        let words: Vec<&str> = words.flat_map(str::split_whitespace).collect();
        let words = words.join(" ");
        (!has_control(&words)).then_some(Some(words))
    }
}

/// `    x_test.go:12: message`, whatever it says.
pub(super) fn is_of_place(line: &str) -> bool {
    let text = trim_start(line);
    let file = text.split_once(".go:").map(|(file, _)| file);
    text.len() < line.len() && file.is_some_and(|file| !file.contains(' '))
}
