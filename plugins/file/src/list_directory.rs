//! `list_directory`: what one directory holds, links as links. Changes nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::walk::{Entry, EntryKind, Options};
use zeph_plugin::{Output, ToolError};

use crate::area::Area;
use crate::refusal::{explain, missing};
use crate::sys::{Kind, Links, Walk};
use crate::text::{bytes, grouped, name};

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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing(&place)),
        Err(error) => return Err(failed(error)),
    }

    let mut walk = Walk::open(&place.absolute(), &options()).map_err(failed)?;
    let mut entries = Vec::new();
    loop {
        let batch = walk.next_batch().map_err(failed)?;
        if batch.is_empty() {
            break;
        }
        entries.extend(batch);
    }
    entries.sort_by(|one, two| (rank(one.kind), &one.path).cmp(&(rank(two.kind), &two.path)));

    let total = entries.len();
    let shown = &entries[..total.min(ENTRIES_MAX)];
    let mut text: Vec<String> = shown.iter().map(row).collect();
    if total == 0 {
        text.push(format!("Empty directory: {}", place.shown()));
    } else if total > ENTRIES_MAX {
        let (rest, total) = (grouped((total - ENTRIES_MAX) as u64), grouped(total as u64));
        let shown = grouped(ENTRIES_MAX as u64);
        text.push(format!(
            "... and {rest} more (showing first {shown} of {total})"
        ));
    }
    let listing = Listing {
        path: place.spelled(),
        entries: shown.iter().map(item).collect(),
        total,
    };
    Ok(Output::text(text.join("\n")).structured(&listing))
}

/// Everything in the directory itself: what is hidden or ignored counts as well.
fn options() -> Options {
    Options {
        max_depth: Some(1),
        only: Vec::new(),
        skip: Vec::new(),
        standard_filters: false,
        sizes: true,
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

fn row(entry: &Entry) -> String {
    let name = name(&entry.path);
    match entry.kind {
        EntryKind::Directory => format!("[dir]  {name}"),
        EntryKind::File => format!("[file] {name} ({})", bytes(entry.size)),
        EntryKind::Symlink => format!("[symlink] {name}"),
        EntryKind::Other => format!("[special] {name}"),
    }
}

fn item(entry: &Entry) -> ListedEntry {
    ListedEntry {
        name: entry.path.clone(),
        kind: match entry.kind {
            EntryKind::Directory => "dir",
            EntryKind::File => "file",
            EntryKind::Symlink => "symlink",
            EntryKind::Other => "special",
        },
        size: (entry.kind == EntryKind::File).then_some(entry.size),
    }
}

#[cfg(test)]
mod tests;
