//! The output of `go test`, plain, verbose (`-v`) and as events (`-json`).

mod said;
mod usual;

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

use serde::Deserialize;

use self::said::{Benchmarks, Skips, is_of_place};
use super::frames::is_library;
use super::{Limits, Mark, Marks};
use crate::text::{is_blank, trim_start};
use crate::{Lines, Severity, has_control, severity};

type HashSet<T> = std::collections::HashSet<T, RandomState>;

/// One line of `-json`.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "Action", borrow)]
    action: &'a str,
    #[serde(rename = "Package", borrow, default)]
    package: std::borrow::Cow<'a, str>,
    #[serde(rename = "Test", borrow)]
    test: Option<std::borrow::Cow<'a, str>>,
    #[serde(rename = "Output", borrow)]
    output: Option<std::borrow::Cow<'a, str>>,
}

impl<'a> Event<'a> {
    /// The event of a line; none when it is no event.
    fn read(line: &'a str) -> Option<Self> {
        usual::event(line).or_else(|| serde_json::from_str(line).ok())
    }

    /// The package and the name of the test that it is about.
    fn id(&self) -> Option<(&str, &str)> {
        Some((&self.package, self.test.as_deref()?))
    }
}

/// Marks what passed, and frames of the runtime.
pub(super) fn mark(lines: &Lines<'_>, _: Limits, marks: &mut Marks) {
    match lines.iter().any(is_event) {
        true => mark_events(lines, marks),
        false => mark_plain(lines, marks),
    }
}

/// A line about a package or the start of a test, or an event.
pub(super) fn is_sign(line: &str) -> bool {
    is_package(line) || line.starts_with("=== RUN   ") || is_event(line)
}

fn is_event(line: &str) -> bool {
    line.starts_with("{\"Time\":\"") && line.contains("\"Action\":\"")
}

/// `ok  \tpackage\t0.01s`, `FAIL\tpackage\t0.01s`, `?   \tpackage\t[no test files]`.
fn is_package(line: &str) -> bool {
    ["ok  \t", "FAIL\t", "?   \t", "---\t"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Marks package after package: tests of several may have the same name.
fn mark_plain(lines: &Lines<'_>, marks: &mut Marks) {
    let mut start = 0;
    let ends = (0..lines.len()).filter(|line_idx| is_package(lines.at(*line_idx)));
    for end in ends.chain([lines.len()]) {
        mark_package(lines, start..end, marks);
        if lines.get(end).is_some_and(is_passing) {
            marks[end] = Mark::Passing;
        }
        start = end + 1;
    }
}

/// Marks what is said before the line about a package.
fn mark_package(lines: &Lines<'_>, package: Range<usize>, marks: &mut Marks) {
    let named = |verdict: &'static str| {
        let lines = lines.range(package.clone());
        lines.filter_map(move |line| verdict_name(line, verdict))
    };
    let failed: HashSet<&str> = named("--- FAIL: ").collect();
    let skipped: HashSet<&str> = named("--- SKIP: ").collect();
    let passed: HashSet<&str> = named("--- PASS: ").chain(skipped.iter().copied()).collect();
    let mut running = None;
    let mut is_trace = false;
    let mut skips = Skips::default();
    let mut heads = Heads::default();
    // The last lines that tests logged which were skipped.
    let mut logs: HashMap<&str, &str, RandomState> = HashMap::default();
    for line_idx in package.clone() {
        let line = lines.at(line_idx);
        is_trace = line.starts_with("goroutine ") || (is_trace && !line.is_empty());
        if !skipped.is_empty()
            && let Some(name) = running.filter(|name| skipped.contains(name))
            && is_of_place(line)
        {
            logs.insert(name, line);
        }
        if let Some(name) = started(line) {
            running = Some(name);
            // Without a verdict it is the one that took the whole run down.
            if passed.contains(name) || failed.contains(name) || !line.starts_with("=== RUN") {
                marks[line_idx] = Mark::Passing;
            }
            heads.begin((line_idx, name), marks);
            continue;
        }
        if let Some((name, is_shown)) = verdict(line) {
            heads.end((name, is_shown), marks);
        }
        if is_passing(line) {
            marks[line_idx] = Mark::Passing;
            if let Some(name) = verdict_name(line, "--- SKIP: ") {
                let below = || lines.get(line_idx + 1).filter(|line| is_of_place(line));
                let log = logs.get(name).copied().or_else(below);
                skips.add(line_idx, ("", name), log.unwrap_or_default());
            }
        } else if is_trace && is_library_frame(lines, line_idx) {
            marks[line_idx] = Mark::Detail;
        } else if is_log(line)
            && running.is_some_and(|name| passed.contains(name) && !failed.contains(name))
        {
            marks[line_idx] = Mark::Passing;
        } else if verdict_name(line, "--- FAIL: ").is_some() {
            running = None;
        } else if !is_end(line) && !is_blank(line) {
            let has_passed = |name| passed.contains(name) && !failed.contains(name);
            heads.say(has_passed, marks);
        }
    }
    heads.pay(marks);
    skips.say(marks);
}

/// The names of tests above what they said, for where no verdict below it tells whose it is: tests that run side by side take turns, and the
/// verdicts on subtests come after all of them.
#[derive(Debug, Default)]
struct Heads<'a> {
    /// The line with the name of the test that speaks.
    last: Option<(usize, &'a str)>,
    /// Something that it said is shown, and its name is not.
    is_owed: bool,
    /// The test that a reader takes for the one that speaks.
    shown: Option<&'a str>,
}

impl<'a> Heads<'a> {
    /// A test begins to speak.
    fn begin(&mut self, head: (usize, &'a str), marks: &mut Marks) {
        self.pay(marks);
        self.last = Some(head);
        if marks[head.0] == Mark::Unknown {
            self.shown = Some(head.1);
        }
    }

    /// It says something that is shown. Of one that passed the name is needed only where another's would be read into it.
    fn say(&mut self, has_passed: impl Fn(&'a str) -> bool, marks: &mut Marks) {
        let Some((_, name)) = self.last.filter(|(_, name)| self.shown != Some(name)) else {
            return;
        };
        self.is_owed |= self.shown.is_some() || !has_passed(name);
        if self.shown.is_some() {
            self.pay(marks);
        }
    }

    /// There is a verdict, which tells what is owed when it is on the test that spoke.
    fn end(&mut self, (name, is_shown): (&str, bool), marks: &mut Marks) {
        if !is_shown || self.last.is_none_or(|(_, last)| last != name) {
            self.pay(marks);
        }
        self.is_owed = false;
        self.last = None;
        if is_shown {
            self.shown = None;
        }
    }

    /// Has the name shown, if it is owed.
    fn pay(&mut self, marks: &mut Marks) {
        if let Some((line_idx, name)) = self.last.filter(|_| self.is_owed) {
            marks[line_idx] = Mark::Unknown;
            self.shown = Some(name);
        }
        self.is_owed = false;
    }
}

/// The test that a verdict is on, and whether it is shown.
fn verdict(line: &str) -> Option<(&str, bool)> {
    let rest = trim_start(line).strip_prefix("--- ")?;
    let (verdict, rest) = rest.split_once(": ")?;
    let is_verdict = matches!(verdict, "FAIL" | "PASS" | "SKIP");
    is_verdict.then(|| {
        (
            rest.split(' ').next().unwrap_or_default(),
            verdict == "FAIL",
        )
    })
}

/// What Go says at the end of a package.
fn is_end(line: &str) -> bool {
    line == "FAIL" || line.starts_with("exit status ") || line.starts_with("coverage: ")
}

/// `=== RUN   TestX` and its kin.
fn started(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("=== ")?;
    let name = ["RUN ", "CONT ", "PAUSE ", "NAME "]
        .iter()
        .find_map(|verb| rest.strip_prefix(verb))?;
    Some(name.trim())
}

fn is_passing(line: &str) -> bool {
    let text = trim_start(line);
    text.starts_with("--- PASS: ")
        || text.starts_with("--- SKIP: ")
        || line == "PASS"
        || (line.starts_with("?   \t") && line.ends_with("[no test files]"))
}

fn verdict_name<'a>(line: &'a str, verdict: &str) -> Option<&'a str> {
    trim_start(line).strip_prefix(verdict)?.split(' ').next()
}

/// `    x_test.go:12: message`.
fn is_log(line: &str) -> bool {
    is_of_place(line) && severity(line) != Some(Severity::Error)
}

/// A frame is a function with its place, indented by a tab, on the next line.
fn is_library_frame(lines: &Lines<'_>, line_idx: usize) -> bool {
    let line = lines.at(line_idx);
    if severity(line) == Some(Severity::Error) {
        return false;
    }
    let next = lines.get(line_idx + 1).unwrap_or_default();
    is_library(line) || (next.starts_with('\t') && is_library(next))
}

/// What the events say of tests and packages.
struct Verdicts<'a> {
    failed: HashSet<(&'a str, &'a str)>,
    failed_packages: HashSet<&'a str>,
    /// Tests that came to an end of any kind.
    ended: HashSet<(&'a str, &'a str)>,
}

impl<'a> Verdicts<'a> {
    fn of(events: &'a [Option<Event<'a>>]) -> Self {
        let tests = |actions: &'static [&str]| {
            let events = events.iter().flatten();
            events
                .filter(move |event| actions.contains(&event.action))
                .filter_map(Event::id)
        };
        let fails = events
            .iter()
            .flatten()
            .filter(|event| event.action == "fail");
        Self {
            failed: tests(&["fail"]).collect(),
            failed_packages: fails.map(|event| &*event.package).collect(),
            ended: tests(&["fail", "pass", "skip"]).collect(),
        }
    }

    fn is_passing(&self, event: &Event<'_>) -> bool {
        let output = event.output.as_deref().unwrap_or_default();
        let package = &*event.package;
        match (event.action, event.test.as_deref()) {
            // Without a verdict it is the one that took the whole run down.
            ("run", Some(test)) => self.ended.contains(&(package, test)),
            ("start" | "run" | "pause" | "cont", _) => true,
            ("output", Some(test)) => {
                // A test that neither passed nor failed was cut short by a crash: what it said stays.
                let is_over = self.ended.contains(&(package, test))
                    || !self.failed_packages.contains(package);
                output.starts_with("=== ")
                    || (is_over
                        && !self.failed.contains(&(package, test))
                        && severity(output) != Some(Severity::Error))
            }
            (action, Some(_)) => matches!(action, "pass" | "skip"),
            (action, None) => action == "output" && matches!(output, "PASS\n" | "FAIL\n" | ""),
        }
    }
}

/// What is made of an event that tells of a failure.
enum Retold {
    /// It is not shown.
    Omitted(Mark),
    /// It is shown in other words.
    Words(String),
}

impl<'a> Verdicts<'a> {
    /// An event in the words of plain `go test`: what a test printed, and its name before that. The failure of a package keeps
    /// its event.
    fn retold(
        &self,
        event: &'a Event<'_>,
        said: &mut HashSet<(&'a str, &'a str)>,
    ) -> Option<Retold> {
        let test = event.test.as_deref();
        let id = (&*event.package, test.unwrap_or_default());
        if event.action == "fail" {
            let is_said = test.is_some() && said.contains(&id);
            return is_said.then_some(Retold::Omitted(Mark::Told));
        }
        let output = event
            .output
            .as_deref()
            .filter(|_| event.action == "output")?;
        let text = output.trim_end_matches('\n').replace('\t', "    ");
        let is_frame = is_library(&text) && severity(&text) != Some(Severity::Error);
        if is_blank(&text) || is_frame {
            return Some(Retold::Omitted(Mark::Detail));
        }
        if has_control(&text) || has_control(id.0) || has_control(id.1) {
            return None;
        }
        let is_first = said.insert(id);
        Some(Retold::Words(match test {
            Some(test) if is_first => format!("{} {test}: {text}", id.0),
            _ => text,
        }))
    }
}

fn mark_events(lines: &Lines<'_>, marks: &mut Marks) {
    let events: Vec<Option<Event<'_>>> = lines.iter().map(Event::read).collect();
    let verdicts = Verdicts::of(&events);
    let mut said = HashSet::default();
    let mut benchmarks = Benchmarks::default();
    mark_skips(&events, marks);
    for (line_idx, event) in events.iter().enumerate() {
        let Some(event) = event else {
            continue;
        };
        match benchmarks.retold(event) {
            Some(Some(words)) => marks.say(line_idx, words),
            Some(None) => marks[line_idx] = Mark::Passing,
            None => {}
        }
        if marks[line_idx] != Mark::Unknown {
            continue;
        }
        if verdicts.is_passing(event) {
            marks[line_idx] = Mark::Passing;
            continue;
        }
        match verdicts.retold(event, &mut said) {
            Some(Retold::Omitted(mark)) => marks[line_idx] = mark,
            Some(Retold::Words(words)) => marks.say(line_idx, words),
            None => {}
        }
    }
}

/// Has those events shown that tell of a test that was skipped, with the last line that it logged.
fn mark_skips(events: &[Option<Event<'_>>], marks: &mut Marks) {
    let mut logs: HashMap<(&str, &str), &str, RandomState> = HashMap::default();
    let is_skip = |event: &&Event<'_>| event.action == "skip";
    let skipped: HashSet<(&str, &str)> = (events.iter().flatten())
        .filter(is_skip)
        .filter_map(Event::id)
        .collect();
    if skipped.is_empty() {
        return;
    }
    let mut skips = Skips::default();
    for (line_idx, event) in events.iter().enumerate() {
        let Some((event, id)) = event.as_ref().and_then(|event| Some((event, event.id()?))) else {
            continue;
        };
        if event.action == "skip" {
            let log = logs.get(&id).copied();
            skips.add(line_idx, id, log.unwrap_or_default());
        } else if let Some(output) = event.output.as_deref()
            && skipped.contains(&id)
            && is_of_place(output)
        {
            logs.insert(id, output);
        }
    }
    skips.say(marks);
}
