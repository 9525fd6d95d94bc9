//! Places in what a server says: as JSON in whatever form bridges to language servers give it, or as lines of text.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::Spot;
use crate::index::Index;
use crate::rank::is_below;
use crate::sys;
use crate::tool::Ground;

/// Most places of one answer.
const PLACES_MAX: usize = 500;
/// Most values of one answer that are looked at.
const VALUES_MAX: usize = 100_000;
/// Lines of a place at most; of a longer one the first.
const LINES_MAX: u32 = 200;

/// Names that servers give to the file of a place, and to its lines.
const FILES: [&str; 9] = [
    "uri",
    "targetUri",
    "file",
    "path",
    "file_path",
    "filePath",
    "filename",
    "relativePath",
    "relative_path",
];
const RANGES: [&str; 4] = [
    "range",
    "targetRange",
    "selectionRange",
    "targetSelectionRange",
];
const STARTS: [&str; 4] = ["line", "start_line", "startLine", "lineNumber"];
const ENDS: [&str; 2] = ["end_line", "endLine"];

/// A place as it was told: nothing of it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// A path or a `file:` URI.
    pub file: String,
    /// The first line, as the server counts.
    pub start: u32,
    /// The last line.
    pub end: u32,
}

/// The places in an answer, in its order.
pub fn told(structured: Option<&str>, text: &str) -> Vec<Told> {
    let structured = structured.and_then(|json| serde_json::from_str(json).ok());
    let value: Option<Value> = structured.or_else(|| serde_json::from_str(text).ok());
    let places = value.as_ref().map(in_json).unwrap_or_default();
    match (value, places.is_empty()) {
        (Some(Value::Object(_) | Value::Array(_)), _) | (_, false) => places,
        _ => text.lines().filter_map(in_line).take(PLACES_MAX).collect(),
    }
}

/// Goes over all values, without recursion.
fn in_json(value: &Value) -> Vec<Told> {
    let mut places = Vec::new();
    let mut open = vec![value];
    for _ in 0..VALUES_MAX {
        let Some(value) = open.pop() else { break };
        match value {
            Value::Array(all) => open.extend(all.iter().rev()),
            Value::Object(fields) => match in_object(fields) {
                Some(place) => places.push(place),
                None => open.extend(fields.values().rev()),
            },
            _ => {}
        }
        if places.len() == PLACES_MAX {
            break;
        }
    }
    places
}

fn in_object(fields: &Map<String, Value>) -> Option<Told> {
    let file = FILES.iter().find_map(|name| fields.get(*name)?.as_str())?;
    let of = |fields: &Map<String, Value>, names: &[&str]| -> Option<u32> {
        let mut found = names.iter().filter_map(|name| fields.get(*name)?.as_u64());
        u32::try_from(found.next()?).ok()
    };
    let range = RANGES
        .iter()
        .find_map(|name| fields.get(*name)?.as_object());
    let inner = |name: &str| range?.get(name)?.as_object();
    let start = inner("start").and_then(|start| of(start, &["line"]));
    let start = start.or_else(|| of(range?, &STARTS));
    let start = start.or_else(|| of(fields, &STARTS))?;
    let end = inner("end").and_then(|end| of(end, &["line"]));
    let end = end
        .or_else(|| of(range?, &ENDS))
        .or_else(|| of(fields, &ENDS));
    Some(Told {
        file: file.to_owned(),
        start,
        end: end.unwrap_or(start).max(start),
    })
}

/// `PATH:LINE` or `PATH:LINE:COLUMN`, perhaps with more around it: `name (function) at PATH:LINE:COLUMN`.
fn in_line(line: &str) -> Option<Told> {
    let line = line.trim_start_matches([' ', '-', '*', '•', '\t']);
    let at = line.match_indices(':').map(|(at, _)| at).find(|at| {
        let rest = &line[at + 1..];
        rest.starts_with(|first: char| first.is_ascii_digit())
    })?;
    let digits: String = line[at + 1..]
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let start = digits.parse().ok()?;
    Some(Told {
        file: path_in(&line[..at]).to_owned(),
        start,
        end: start,
    })
}

/// The path at the end of a text: from where an absolute one or a URI begins, since it may hold spaces, else the last word.
fn path_in(text: &str) -> &str {
    let begins = |at: usize| {
        let rest = &text[at..];
        rest.starts_with('/') || rest.starts_with("file://")
    };
    let mut words = text.match_indices([' ', '(', '`']).map(|(at, _)| at + 1);
    match begins(0) {
        true => text,
        false => match words.find(|at| begins(*at)) {
            Some(at) => &text[at..],
            None => text.rsplit(' ').next().unwrap_or(text),
        },
    }
}

/// The place in a file that the index holds, below the searched directory; none for any other.
pub(super) fn resolved(
    told: &Told,
    (index, ground): (&Index, &Ground),
    first_line: u32,
) -> Option<Spot> {
    let path = path_of(&told.file)?;
    let full = plain(&sys::working_directory().join(path));
    let below = full.strip_prefix(&ground.top).ok()?.to_str()?;
    let known = index
        .files
        .binary_search_by(|file| file.path.as_str().cmp(below));
    if known.is_err() || !is_below(below, &ground.below) {
        return None;
    }
    let start = told.start.checked_sub(first_line)?;
    let lines = (told.end - told.start).min(LINES_MAX);
    Some(Spot {
        file: below.to_owned(),
        start,
        end: start.checked_add(lines)?,
    })
}

/// The path in a `file:` URI, or a path; none for what is elsewhere.
fn path_of(text: &str) -> Option<PathBuf> {
    let Some(rest) = text.strip_prefix("file://") else {
        return (!text.contains("://")).then(|| text.into());
    };
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.as_bytes();
    while let [first, after @ ..] = left {
        left = after;
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let byte = digit(*high)? * 16 + digit(*low)?;
                bytes.push(u8::try_from(byte).ok()?);
                left = after;
            }
            (b'%', _) => return None,
            _ => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// A path as a `file:` URI.
pub(super) fn uri_of(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(byte.into());
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// Without `.` and `..`. Links are not followed: a path through one is none of the index.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
