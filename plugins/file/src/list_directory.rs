//! `list_directory`: what one directory holds, links as links. Changes nothing.

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::walk::{Entry, EntryKind, Options};
use zeph_plugin::{Output, ToolError};

use crate::area::{Area, AreaPath};
use crate::refusal::{explain, missing};
use crate::sys::{Directory, Kind, Links, Walk};
use crate::text::{ESCAPED_NAMES, bytes, grouped, is_escaped, name};

/// Entries shown. More would fill a model's context with names; `find_path` narrows.
const ENTRIES_MAX: usize = 1_000;

/// The arguments of `list_directory`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The directory, absolute or relative to the working directory.
    #[serde(default = "path_default")]
    pub path: String,
}

fn path_default() -> String {
    ".".to_owned()
}

/// The structured result of `list_directory`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listing {
    /// The directory.
    path: String,
    /// What it holds, as far as shown.
    entries: Vec<ListedEntry>,
    /// How many entries it has.
    total: usize,
}

/// One entry of a directory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedEntry {
    name: String,
    kind: &'static str,
    /// Bytes, of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

/// Runs `list_directory`.
///
/// Errors: the path is no directory that can be read.
pub fn run(area: &Area, args: &Args) -> Result<Output, ToolError> {
    let place = area.place(&args.path)?;
    let failed = |error| explain(&place, "listed", &error);
    match place.root().stat(place.relative(), Links::Follow) {
        Ok(stat) if stat.kind == Kind::Directory => {}
        Ok(_) => {
            let path = place.shown();
            return Err(ToolError::permanent(format!(
                "`{path}` is not a directory; `read` shows a file"
            )));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(&place)),
        Err(error) => return Err(failed(error)),
    }

    let entries = entries(&place).map_err(failed)?;
    let directory = place.root().directory(place.relative()).map_err(failed)?;
    let mut total = entries.len();
    let mut text = Vec::new();
    let mut listed = Vec::new();
    let mut has_escaped = false;
    for entry in entries {
        if listed.len() == ENTRIES_MAX {
            break;
        }
        match size(&directory, &entry) {
            Some(size) => {
                has_escaped |= entry.kind == EntryKind::Other && is_escaped(&entry.path);
                text.push(row(&entry, size));
                listed.push(item(entry, size));
            }
            None => total -= 1,
        }
    }
    if total == 0 {
        text.push(format!("Empty directory: {}", place.shown()));
    } else if total > ENTRIES_MAX {
        let (rest, total) = (grouped((total - ENTRIES_MAX) as u64), grouped(total as u64));
        let shown = grouped(ENTRIES_MAX as u64);
        text.push(format!(
            "... and {rest} more (showing first {shown} of {total})"
        ));
    }
    if has_escaped {
        text.push(ESCAPED_NAMES.to_owned());
    }
    let listing = Listing {
        path: place.spelled(),
        entries: listed,
        total,
    };
    Ok(Output::text(text.join("\n")).structured(&listing))
}

/// What the directory holds: directories, files, links, the rest, each by name.
fn entries(place: &AreaPath<'_>) -> io::Result<Vec<Entry>> {
    let mut walk = Walk::open(&place.absolute(), &options())?;
    let mut entries = Vec::new();
    loop {
        let batch = walk.next_batch()?;
        if batch.is_empty() {
            break;
        }
        entries.extend(batch);
    }
    // The host sorts by name.
    entries.sort_by_key(|entry| rank(entry.kind));
    Ok(entries)
}

/// Bytes of a file, 0 of what is none; nothing for a file that is gone. Asked for what is shown only: most of a large directory is not.
fn size(directory: &Directory, entry: &Entry) -> Option<u64> {
    if entry.kind != EntryKind::File {
        return Some(0);
    }
    match directory.stat(&entry.path) {
        Ok(stat) if stat.kind == Kind::File => Some(stat.size),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Ok(_) | Err(_) => Some(0),
    }
}

/// Everything in the directory itself: what is hidden or ignored counts as well.
fn options() -> Options {
    Options {
        max_depth: Some(1),
        only: Vec::new(),
        skip: Vec::new(),
        standard_filters: false,
        sizes: false,
    }
}

fn rank(kind: EntryKind) -> u8 {
    match kind {
        EntryKind::Directory => 0,
        EntryKind::File => 1,
        EntryKind::Symlink => 2,
        EntryKind::Other => 3,
    }
}

fn row(entry: &Entry, size: u64) -> String {
    let name = name(&entry.path);
    match entry.kind {
        EntryKind::Directory => format!("[dir]  {name}"),
        EntryKind::File => format!("[file] {name} ({})", bytes(size)),
        EntryKind::Symlink => format!("[symlink] {name}"),
        EntryKind::Other => format!("[special] {name}"),
    }
}

fn item(entry: Entry, size: u64) -> ListedEntry {
    ListedEntry {
        name: entry.path,
        kind: match entry.kind {
            EntryKind::Directory => "dir",
            EntryKind::File => "file",
            EntryKind::Symlink => "symlink",
            EntryKind::Other => "special",
        },
        size: (entry.kind == EntryKind::File).then_some(size),
    }
}

#[cfg(test)]
mod tests;
