//! One file: bytes to checked assignments, each with its line.
//!
//! Any bytes are survived: what cannot be read or parsed becomes a problem with its place. Nothing is merged here.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use zeph_core::failure::one_line;

use super::keys::{Keys, join};
use super::origin::{Origin, Problem};
use super::value;

/// The built-in layer: the only place where defaults stand.
pub(crate) const DEFAULTS: &str = include_str!("../../../../config/default.toml");

/// Bytes of the longest configuration file that is read. A thousand times what a long one needs; more is a mistake
/// (a log, a disk image) and would only cost memory.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Unknown keys of one file that are reported one by one. Someone who mistyped more has another kind of file in hand.
const UNKNOWN_MAX: usize = 20;

/// Which layer a text belongs to.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    BuiltIn,
    User(PathBuf),
    Project(PathBuf),
}

impl Source {
    /// The origin of what stands on `line`; 0 for the text as a whole.
    pub(crate) fn at(&self, line: usize) -> Origin {
        match self {
            Self::BuiltIn => Origin::BuiltIn { line },
            Self::User(path) => Origin::User {
                path: path.clone(),
                line,
            },
            Self::Project(path) => Origin::Project {
                path: path.clone(),
                line,
            },
        }
    }
}

/// A value for a known key, of the right type and in its range.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) key: String,
    pub(crate) value: toml::Value,
    pub(crate) origin: Origin,
}

/// The text of a file.
///
/// Errors: in words, for whatever is not a readable regular file of UTF-8 within the size limit; a pipe or device is
/// refused without waiting on it.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(|error| format!("cannot be opened: {error}"))?;
    let metadata = file
        .metadata()
        .map_err(|error| format!("cannot be examined: {error}"))?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!(
            "is longer than {FILE_BYTES_MAX} bytes ({} bytes), the limit of a configuration file",
            metadata.len()
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = line_of_bytes(error.as_bytes(), valid);
        format!("is not UTF-8 text: byte {valid}, on line {line}, belongs to no character")
    })
}

/// The assignments of a text and everything that is wrong in it.
pub(crate) fn parse(text: &str, source: &Source, keys: &Keys) -> (Vec<Assignment>, Vec<Problem>) {
    let mut reading = Reading {
        text,
        source,
        keys,
        n_unknown: 0,
        assignments: Vec::new(),
        problems: Vec::new(),
    };
    match DeTable::parse(text) {
        Ok(table) => reading.table("", table.get_ref()),
        Err(error) => reading.broken(&error),
    }
    if reading.n_unknown > UNKNOWN_MAX {
        let message = format!("{} more unknown keys", reading.n_unknown - UNKNOWN_MAX);
        reading.problems.push(Problem::new(source.at(0), message));
    }
    (reading.assignments, reading.problems)
}

struct Reading<'a> {
    text: &'a str,
    source: &'a Source,
    keys: &'a Keys,
    n_unknown: usize,
    assignments: Vec<Assignment>,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn table(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = join(section, name.get_ref());
            if let Some(kind) = self.keys.leaves.get(&key) {
                match value::typed(kind, value.get_ref()) {
                    Ok(value) => {
                        let origin = self.at(name.span().start);
                        self.assignments.push(Assignment { key, value, origin });
                    }
                    Err(wrong) => {
                        let start = wrong.span.unwrap_or(name.span()).start;
                        self.problem(start, format!("`{key}`: {}", wrong.message));
                    }
                }
            } else if self.keys.sections.contains(&key) {
                match value.get_ref() {
                    DeValue::Table(inner) => self.table(&key, inner),
                    other => {
                        let found = value::found(other);
                        self.problem(
                            name.span().start,
                            format!("`{key}`: found {found}, wanted a table"),
                        );
                    }
                }
            } else {
                self.unknown(section, name.get_ref(), name.span().start);
            }
        }
    }

    fn unknown(&mut self, section: &str, name: &str, start: usize) {
        self.n_unknown += 1;
        if self.n_unknown <= UNKNOWN_MAX {
            self.problem(start, self.keys.unknown(section, name));
        }
    }

    fn broken(&mut self, error: &toml::de::Error) {
        let start = error
            .span()
            .map_or(0, |span| span.start)
            .min(self.text.len());
        let before = self.text.get(..start).unwrap_or_default();
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let message = format!("is not TOML: {}", one_line(error.message(), 300));
        let mut problem = Problem::new(self.at(start), message);
        problem.column = column;
        self.problems.push(problem);
    }

    fn problem(&mut self, start: usize, message: String) {
        self.problems.push(Problem::new(self.at(start), message));
    }

    fn at(&self, start: usize) -> Origin {
        self.source.at(line_of_bytes(self.text.as_bytes(), start))
    }
}

/// The line, counted from 1, on which the byte at `start` stands.
fn line_of_bytes(bytes: &[u8], start: usize) -> usize {
    let before = &bytes[..start.min(bytes.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
