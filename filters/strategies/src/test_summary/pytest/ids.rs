//! Which file the failure below a header is in: headers name the test, the list at the end and the verbose lines its file.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::Outline;
use crate::text::{find, has, trim_end};
use crate::{Lines, has_control};

/// Where a test is named with its file, and under which header its failure stands.
struct Named<'a> {
    /// `tests/a.py::TestB::test_c[d]`.
    id: &'a str,
    line_idx: usize,
}

/// A name that headers have.
#[derive(Default)]
struct Header<'a> {
    /// How many headers have it.
    n: usize,
    n_taken: usize,
    /// The tests that it may be the name of.
    named: Vec<Named<'a>>,
}

/// The tests that failed, by the name in their header.
pub(super) struct Ids<'a> {
    headers: HashMap<&'a str, Header<'a>, RandomState>,
    /// Lines whose test is shown under its file and name.
    told: HashSet<usize, RandomState>,
    /// The files of all tests that are named.
    files: HashSet<&'a str, RandomState>,
}

impl<'a> Ids<'a> {
    pub(super) fn of(lines: &Lines<'a>, outline: &Outline<'a>) -> Self {
        let mut ids = Self {
            headers: HashMap::default(),
            told: HashSet::default(),
            files: HashSet::default(),
        };
        for name in outline.names() {
            ids.headers.entry(name).or_default().n += 1;
        }
        ids.read_summary(lines, outline);
        // Where nothing failed, there is nobody to name.
        if ids.files.is_empty() && !ids.headers.is_empty() {
            ids.read_progress(lines);
        }
        ids
    }

    fn read_summary(&mut self, lines: &Lines<'a>, outline: &Outline<'a>) {
        let first = outline.summary_idx().unwrap_or(lines.len());
        let listed = outline.listed.iter().copied();
        for line_idx in listed.filter(|line_idx| *line_idx >= first) {
            let line = lines.at(line_idx);
            if let Some(rest) = line.strip_prefix("FAILED ") {
                self.add(line_idx, rest, &[""]);
            } else if let Some(rest) = line.strip_prefix("ERROR ") {
                self.add(
                    line_idx,
                    rest,
                    &["ERROR at setup of ", "ERROR at teardown of "],
                );
            }
        }
    }

    /// `tests/a.py::test_b FAILED [ 10%]`, and with workers `[gw0] [ 10%] FAILED tests/a.py::test_b`.
    fn read_progress(&mut self, lines: &Lines<'a>) {
        for (line_idx, line) in lines.iter().enumerate() {
            let rest = trim_end(line).trim_end_matches("%]");
            let rest = rest.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
            let plain = rest.trim_end_matches('[').trim_end();
            let of_worker = || line.strip_prefix("[gw")?.split_once("] FAILED ");
            let id = plain
                .strip_suffix(" FAILED")
                .or_else(|| of_worker().map(|(_, id)| id.trim_end()));
            if let Some(id) = id {
                self.add(line_idx, id, &[""]);
            }
        }
    }

    /// Adds a line that names a test. What follows its name after ` - ` is a message; a parameter may hold the same signs.
    fn add(&mut self, line_idx: usize, rest: &'a str, before: &[&str]) {
        for id in dashes(rest).chain([rest.len()]).map(|end| &rest[..end]) {
            let Some((file, name)) = file_and_name(id) else {
                continue;
            };
            for before in before {
                let header = match *before {
                    "" => Cow::Borrowed(&*name),
                    before => Cow::Owned([before, &name].concat()),
                };
                if let Some(header) = self.headers.get_mut(&*header) {
                    self.files.insert(file);
                    header.named.push(Named { id, line_idx });
                    return;
                }
            }
        }
    }

    /// What to say in place of a header: with the file where it is known, `None` where the header itself has to stay.
    pub(super) fn take(&mut self, header: &'a str) -> Option<String> {
        // A note holds no control characters.
        if has_control(header) {
            return None;
        }
        let is_error = header.starts_with("ERROR ");
        let plain = || (!is_error).then(|| header.to_owned());
        let Some(known) = self.headers.get_mut(header) else {
            return plain();
        };
        // The list has the order of the headers; where it lacks some, it cannot be told which.
        let is_whole = known.n == known.named.len();
        let Some(named) = known.named.get(known.n_taken).filter(|_| is_whole) else {
            return plain();
        };
        known.n_taken += 1;
        if has_control(named.id) {
            return plain();
        }
        self.told.insert(named.line_idx);
        let before = is_error.then(|| header.split(" of ").next()).flatten();
        Some(before.map_or_else(
            || named.id.to_owned(),
            |before| format!("{before} of {}", named.id),
        ))
    }

    /// Whether a line names a test that is shown under its file.
    pub(super) fn is_told(&self, line_idx: usize) -> bool {
        self.told.contains(&line_idx)
    }

    /// Whether a failure in this file is named with it.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.files.contains(path)
    }
}

/// The places of ` - `.
fn dashes(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let mut free = 0;
    memchr::memchr_iter(b'-', bytes).filter_map(move |dash| {
        let start = dash.checked_sub(1).filter(|start| *start >= free)?;
        let is_apart = bytes[start] == b' ' && bytes.get(dash + 1) == Some(&b' ');
        is_apart.then(|| {
            free = dash + 2;
            start
        })
    })
}

/// The file of `tests/a.py::TestB::test_c[d]` and the rest as a header has it: `TestB.test_c[d]`.
fn file_and_name(id: &str) -> Option<(&str, Cow<'_, str>)> {
    let at = find(id, b"::", 0)?;
    let (file, path) = (&id[..at], &id[at + 2..]);
    // What stands in brackets is a parameter and may hold anything.
    let n = memchr::memchr(b'[', path.as_bytes()).unwrap_or(path.len());
    if !has(&path[..n], b"::") {
        return Some((file, Cow::Borrowed(path)));
    }
    let (path, parameter) = path.split_at(n);
    Some((file, Cow::Owned(path.replace("::", ".") + parameter)))
}
