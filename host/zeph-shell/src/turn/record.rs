//! Reads the state that a shell reported. It comes from inside the jail, where anything can write to that descriptor: what is
//! not exactly of the expected shape is no record at all.
//!
//! Shape: fields that end with NUL. Before the command: directory, variables; at the end: exit status, directory, variables, command
//! lines of what is left running, each with `\x01` behind. A directory is what `pwd` prints, variables are what `declare -px` prints.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt};
use std::path::{Path, PathBuf};

use zeph_core::text::plain_line;

/// Longest name of a variable that is believed.
const NAME_BYTES_MAX: usize = 200;

/// Characters of the command line of a process: enough to know it by.
const LINE_CHARS_MAX: usize = 80;

/// The state that a shell reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnRecord {
    /// Where the command started.
    pub(crate) start_directory: PathBuf,
    start_variables: BTreeMap<String, Vec<u8>>,
    /// Nothing when the shell did not come to its end.
    pub(crate) end: Option<TurnEnd>,
}

/// How it was at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnEnd {
    pub(crate) status: i32,
    pub(crate) directory: PathBuf,
    variables: BTreeMap<String, Vec<u8>>,
    /// Command lines of what was still running, each in one line that is safe to show.
    pub(crate) left_running: Vec<String>,
}

impl TurnRecord {
    /// Reads it; nothing when any of it is not of the shape.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let fields: Vec<&[u8]> = bytes
            .strip_suffix(b"\0")?
            .split(|byte| *byte == 0)
            .collect();
        let (start, end) = fields.split_at_checked(2)?;
        let end = match end {
            [] => None,
            [status, directory, variables, left_running] => Some(TurnEnd {
                status: std::str::from_utf8(status).ok()?.parse().ok()?,
                directory: parse_directory(directory)?,
                variables: parse_variables(variables)?,
                left_running: parse_left_running(left_running),
            }),
            _ => return None,
        };
        Some(Self {
            start_directory: parse_directory(start[0])?,
            start_variables: parse_variables(start[1])?,
            end,
        })
    }

    /// The home that the command began with.
    pub(crate) fn home(&self) -> Option<&Path> {
        let home = self.start_variables.get("HOME")?;
        Some(Path::new(OsStr::from_bytes(home)))
    }

    /// The variables that the command set (with the value) or removed.
    pub(crate) fn changed(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        let Some(end) = &self.end else {
            return BTreeMap::new();
        };
        let before = &self.start_variables;
        let set = end
            .variables
            .iter()
            .filter(|(name, value)| before.get(*name) != Some(value))
            .map(|(name, value)| (name.clone(), Some(value.clone())));
        let removed = before
            .keys()
            .filter(|name| !end.variables.contains_key(*name))
            .map(|name| (name.clone(), None));
        set.chain(removed).collect()
    }
}

fn parse_directory(line: &[u8]) -> Option<PathBuf> {
    let path = PathBuf::from(OsString::from_vec(line.strip_suffix(b"\n")?.to_vec()));
    (path.is_absolute() && path.as_os_str().len() < 4096).then_some(path)
}

fn parse_left_running(text: &[u8]) -> Vec<String> {
    let lines = text.split(|byte| *byte == 1);
    let lines = lines.map(|line| plain_line(String::from_utf8_lossy(line).trim(), LINE_CHARS_MAX));
    lines.filter(|line| !line.is_empty()).collect()
}

/// Reads the lines `declare -FLAGS NAME="VALUE"`. Arrays and names without a value are omitted: no other program sees them.
fn parse_variables(text: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut variables = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.strip_prefix(b"declare -")?;
        let (flags, after) = split(rest, |byte| byte == b' ')?;
        let is_array = flags.iter().any(|flag| matches!(flag, b'a' | b'A'));
        let (name, after) = split(&after[1..], |byte| matches!(byte, b'=' | b'\n'))?;
        let name = parse_name(name)?;
        if after[0] == b'\n' {
            rest = &after[1..];
            continue;
        }
        let after = &after[1..];
        if is_array {
            rest = after_array(after)?;
            continue;
        }
        let (value, after) = parse_value(after)?;
        rest = after.strip_prefix(b"\n")?;
        variables.insert(name, value);
    }
    Some(variables)
}

/// What comes before the first byte that fits, and the rest from it on.
fn split(text: &[u8], fits: impl Fn(u8) -> bool) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| fits(*byte))?;
    Some(text.split_at(at))
}

fn parse_name(name: &[u8]) -> Option<String> {
    let is_name = name.first().is_some_and(|byte| !byte.is_ascii_digit())
        && name.len() <= NAME_BYTES_MAX
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}

/// Reads `"…"` or `$'…'` and returns what it means and what follows it.
fn parse_value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    if let Some(text) = text.strip_prefix(b"$'") {
        return parse_ansi(text);
    }
    let mut text = text.strip_prefix(b"\"")?;
    let mut value = Vec::new();
    loop {
        let (byte, after) = text.split_first()?;
        text = after;
        match byte {
            b'"' => return Some((value, text)),
            b'\\' => {
                let (escaped, after) = text.split_first()?;
                text = after;
                if !matches!(escaped, b'"' | b'$' | b'`' | b'\\') {
                    value.push(b'\\');
                }
                value.push(*escaped);
            }
            byte => value.push(*byte),
        }
    }
}

/// The rest of `$'…'`.
///
/// Source: the Bash manual, "ANSI-C Quoting"; of its escapes those that the shell itself writes.
fn parse_ansi(mut text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    loop {
        let (byte, after) = text.split_first()?;
        text = after;
        match byte {
            b'\'' => return Some((value, text)),
            b'\\' => {
                let (escaped, after) = text.split_first()?;
                text = after;
                value.push(match escaped {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'E' | b'e' => 27,
                    b'\\' | b'\'' | b'"' | b'?' => *escaped,
                    b'0'..=b'7' => {
                        let digits = [*escaped, *text.first()?, *text.get(1)?];
                        text = &text[2..];
                        u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
                    }
                    _ => return None,
                });
            }
            byte => value.push(*byte),
        }
    }
}

/// What follows the value of an array and its line end.
fn after_array(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        match text.first()? {
            b'\n' => return Some(&text[1..]),
            b'"' => text = parse_value(text)?.1,
            b'$' if text.starts_with(b"$'") => text = parse_value(text)?.1,
            _ => text = &text[1..],
        }
    }
}

#[cfg(test)]
mod tests;
