//! One file: bytes to checked assignments, each with its line.
//!
//! Any bytes are survived: what cannot be read or parsed becomes a problem with its place. Nothing is merged here.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use zeph_core::failure::one_line;

use super::keys::{KeyKind, Keys, join};
use super::origin::{Problem, ValueOrigin};
use super::record::{self, Records, Spots};
use super::value;

/// Bytes of the longest configuration file that is read. A thousand times what a long one needs; more is a mistake
/// (a log, a disk image) and would only cost memory.
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Unknown keys of one file that are reported one by one. Someone who mistyped more has another kind of file in hand.
const UNKNOWN_MAX: usize = 20;

/// Which layer a text belongs to.
#[derive(Debug, Clone)]
pub(crate) enum LayerSource {
    User(PathBuf),
    Project(PathBuf),
}

impl LayerSource {
    /// The origin of what stands on `line`; 0 for the text as a whole.
    pub(crate) fn at(&self, line: usize) -> ValueOrigin {
        match self {
            Self::User(path) => ValueOrigin::User {
                path: path.clone(),
                line,
            },
            Self::Project(path) => ValueOrigin::Project {
                path: path.clone(),
                line,
            },
        }
    }
}

/// A value for a known key, of the right type and in its range.
#[derive(Debug, Clone)]
pub(crate) struct KeyAssignment {
    pub(crate) key: String,
    pub(crate) value: toml::Value,
    pub(crate) origin: ValueOrigin,
    /// Where the tables of a list stand; empty for other values, and where there are no lines.
    pub(crate) items: Vec<TableItem>,
}

/// Where one table of a list stands, and each of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableItem {
    pub(crate) origin: ValueOrigin,
    pub(crate) fields: BTreeMap<String, ValueOrigin>,
}

/// The text of a file.
///
/// Errors: in words, for whatever is not a readable regular file of UTF-8 within the size limit; a pipe or device is
/// refused without waiting on it.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<String, String> {
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
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!(
            "is longer than {bytes_max} bytes ({} bytes), the limit of such a file",
            metadata.len()
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = line_ends(&error.as_bytes()[..valid]).count() + 1;
        format!("is not UTF-8 text: byte {valid}, on line {line}, belongs to no character")
    })
}

/// The assignments of a text and everything that is wrong in it.
pub(crate) fn parse(
    text: &str,
    source: &LayerSource,
    keys: &Keys,
) -> (Vec<KeyAssignment>, Vec<Problem>) {
    let mut reading = Reading {
        text,
        line_ends: line_ends(text.as_bytes()).collect(),
        source,
        keys,
        n_unknown: 0,
        assignments: Vec::new(),
        problems: Vec::new(),
    };
    match DeTable::parse(text) {
        Ok(table) => reading.table("", table.get_ref()),
        Err(error) => reading.tolerate(&error),
    }
    if reading.n_unknown > UNKNOWN_MAX {
        let message = format!("{} more unknown keys", reading.n_unknown - UNKNOWN_MAX);
        reading.problems.push(Problem::new(source.at(0), message));
    }
    (reading.assignments, reading.problems)
}

struct Reading<'a> {
    text: &'a str,
    line_ends: Vec<usize>,
    source: &'a LayerSource,
    keys: &'a Keys,
    n_unknown: usize,
    assignments: Vec<KeyAssignment>,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn table(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = join(section, name.get_ref());
            let kind = self.keys.kind(&key);
            if let (Some(KeyKind::Records { record, items_max }), DeValue::Array(items)) =
                (kind, value.get_ref())
            {
                let records = record::read(record, *items_max, items);
                self.records(key, name.span().start, records);
            } else if let (Some(KeyKind::Record(record)), DeValue::Table(table)) =
                (kind, value.get_ref())
            {
                let start = name.span().start;
                self.one(key, start, record::read_table(record, start, table));
            } else if let Some(kind) = kind {
                match value::typed(kind, value.get_ref()) {
                    Ok(value) => {
                        let origin = self.at(name.span().start);
                        self.assignments.push(KeyAssignment {
                            key,
                            value,
                            origin,
                            items: Vec::new(),
                        });
                    }
                    Err(wrong) => {
                        let start = wrong.span.unwrap_or(name.span()).start;
                        self.problem(start, format!("`{key}`: {}", wrong.message));
                    }
                }
            } else if self.keys.has_section(&key) {
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

    fn records(&mut self, key: String, start: usize, records: Records) {
        for wrong in &records.wrong {
            let message = format!("`{key}{}`: {}", wrong.at, wrong.message);
            self.problem(wrong.start.unwrap_or(start), message);
        }
        if records.wrong.is_empty() {
            let items = records.spots.into_iter().map(|spots| self.item(spots));
            let items: Vec<TableItem> = items.collect();
            let first = items.first().map(|item| item.origin.clone());
            self.assignments.push(KeyAssignment {
                key,
                value: toml::Value::Array(records.values),
                origin: first.unwrap_or_else(|| self.at(start)),
                items,
            });
        }
    }

    /// A single table that is one value.
    fn one(&mut self, key: String, start: usize, records: Records) {
        for wrong in &records.wrong {
            let message = format!("`{key}{}`: {}", wrong.at, wrong.message);
            self.problem(wrong.start.unwrap_or(start), message);
        }
        let value = records.values.into_iter().next();
        if let Some(value) = value.filter(|_| records.wrong.is_empty()) {
            let items = records.spots.into_iter().map(|spots| self.item(spots));
            let items = items.collect();
            self.assignments.push(KeyAssignment {
                key,
                value,
                origin: self.at(start),
                items,
            });
        }
    }

    fn item(&self, spots: Spots) -> TableItem {
        let fields = spots.fields.into_iter();
        TableItem {
            origin: self.at(spots.start),
            fields: fields.map(|(name, start)| (name, self.at(start))).collect(),
        }
    }

    fn unknown(&mut self, section: &str, name: &str, start: usize) {
        self.n_unknown += 1;
        if self.n_unknown <= UNKNOWN_MAX {
            self.problem(start, self.keys.unknown(section, name));
        }
    }

    /// A second look at a text that is not TOML as it stands.
    fn tolerate(&mut self, error: &toml::de::Error) {
        let Some(text) = tolerated(self.text) else {
            return self.broken(error);
        };
        // Bytes stand where they stood, so places hold.
        match DeTable::parse(&text) {
            Ok(table) => self.table("", table.get_ref()),
            Err(error) => self.broken(&error),
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

    fn at(&self, start: usize) -> ValueOrigin {
        let n_before = self.line_ends.partition_point(|end| *end < start);
        self.source.at(n_before + 1)
    }
}

/// The text without headers `[x]` that are followed by `[[x]]` at once, in their place blanks; `None` when there are none.
///
/// TOML forbids the pair and guides show it: the first line only names what is meant, and says nothing.
fn tolerated(text: &str) -> Option<String> {
    let mut kept = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    let mut changed = false;
    while let Some(line) = lines.next() {
        let list = header(line).map(|name| format!("[[{name}]]"));
        let next = lines.peek().map(|next| next.trim());
        if list.is_some() && list.as_deref() == next {
            kept.push_str(&" ".repeat(line.trim_end().len()));
            kept.push_str(&line[line.trim_end().len()..]);
            changed = true;
        } else {
            kept.push_str(line);
        }
    }
    changed.then_some(kept)
}

fn header(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('[')?.strip_suffix(']')?;
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        .then_some(name)
}

/// The places of the line ends, ascending.
fn line_ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let places = bytes.iter().enumerate();
    places.filter_map(|(at, byte)| (*byte == b'\n').then_some(at))
}
