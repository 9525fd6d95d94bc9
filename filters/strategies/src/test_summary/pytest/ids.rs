//! Which file the failure below a header is in: headers name the test, the list at the end and the verbose lines its file.

use std::collections::{HashMap, HashSet};

use super::{failure_name, heading};
use crate::{Lines, has_control};

/// Where a test is named with its file, and under which header its failure stands.
struct Named<'a> {
    /// `tests/a.py::TestB::test_c[d]`.
    id: &'a str,
    line_idx: usize,
}

/// The tests that failed, by the name in their header.
pub(super) struct Ids<'a> {
    by_name: HashMap<String, Vec<Named<'a>>>,
    /// How many headers there are of each name.
    n_headers: HashMap<&'a str, usize>,
    n_taken: HashMap<&'a str, usize>,
    /// Lines whose test is shown under its file and name.
    told: HashSet<usize>,
}

impl<'a> Ids<'a> {
    pub(super) fn of(lines: &Lines<'a>) -> Self {
        let mut n_headers = HashMap::new();
        for line in lines.iter() {
            if let Some(name) = failure_name(line) {
                *n_headers.entry(name).or_insert(0) += 1;
            }
        }
        let mut ids = Self {
            by_name: HashMap::new(),
            n_headers,
            n_taken: HashMap::new(),
            told: HashSet::new(),
        };
        ids.read_summary(lines);
        if ids.by_name.is_empty() {
            ids.read_progress(lines);
        }
        ids
    }

    fn read_summary(&mut self, lines: &Lines<'a>) {
        let title = |line: &str| heading(line) == Some("short test summary info");
        let first = lines.iter().position(title).unwrap_or(lines.len());
        for (line_idx, line) in lines.iter().enumerate().skip(first) {
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
            let rest = line.trim_end().trim_end_matches("%]");
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
        let ends = rest.match_indices(" - ").map(|(at, _)| at);
        let ids = ends.chain([rest.len()]).map(|end| &rest[..end]);
        for id in ids {
            let Some(name) = name_in_header(id) else {
                continue;
            };
            for before in before {
                let header = format!("{before}{name}");
                if self.n_headers.contains_key(header.as_str()) {
                    let named = Named { id, line_idx };
                    self.by_name.entry(header).or_default().push(named);
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
        let plain = || (!header.starts_with("ERROR ")).then(|| header.to_owned());
        let Some(named) = self.by_name.get(header) else {
            return plain();
        };
        // The list has the order of the headers; where it lacks some, it cannot be told which.
        let is_whole = self.n_headers.get(header) == Some(&named.len());
        let n_taken = self.n_taken.entry(header).or_insert(0);
        let Some(named) = named.get(*n_taken).filter(|_| is_whole) else {
            return plain();
        };
        *n_taken += 1;
        if has_control(named.id) {
            return plain();
        }
        self.told.insert(named.line_idx);
        let before = header
            .split(" of ")
            .next()
            .filter(|_| header.starts_with("ERROR "));
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
        let mut all = self.by_name.values().flatten();
        all.any(|named| named.id.split("::").next() == Some(path))
    }
}

/// `tests/a.py::TestB::test_c[d]` as a header has it: `TestB.test_c[d]`.
fn name_in_header(id: &str) -> Option<String> {
    let (_, path) = id.split_once("::")?;
    // What stands in brackets is a parameter and may hold anything.
    let (path, parameter) = path.find('[').map_or((path, ""), |at| path.split_at(at));
    Some(format!("{}{parameter}", path.replace("::", ".")))
}
