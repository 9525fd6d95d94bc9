//! `move_path`: a file, link or directory under a new name.
//!
//! One rename where the file system can do it. Between two file systems: a whole copy first, then the source goes.

use std::io::ErrorKind;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Context, Output, ToolError};

use crate::area::{Area, AreaPath};
use crate::copy_path::{refuse_existing, take_back, whole_copy};
use crate::deadline::{Deadline, TIME_OVER};
use crate::delete_path::refuse_root;
use crate::refusal::{explain, missing};
use crate::replace::Parents;
use crate::sys::{Kind, Links};
use crate::text::counted;
use crate::tree;

/// The arguments of `move_path`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The file or directory to move or rename, absolute or relative to the working directory.
    pub source: String,
    /// Its new name itself, not a directory to put it in. It must not exist; missing directories above it are created.
    pub destination: String,
}

/// The structured result of `move_path`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MovePathResult {
    /// The old path.
    source: String,
    /// The new path.
    destination: String,
}

/// Runs `move_path` within the time of `context`.
///
/// Errors: a path that leads nowhere or is not granted, a destination that exists, no time left for a copy.
pub fn run(area: &Area, args: &Args, context: &Context) -> Result<Output, ToolError> {
    let source = area.place(&args.source)?;
    let destination = area.place(&args.destination)?;
    refuse_root(area, &source, "moved")?;
    let kind = match source.root().stat(source.relative(), Links::Keep) {
        Ok(stat) => stat.kind,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(&source)),
        Err(error) => return Err(explain(&source, "moved", &error)),
    };
    if kind == Kind::Directory && destination.is_below(&source) {
        let (source, destination) = (source.shown(), destination.shown());
        let message = format!("`{source}` cannot be moved into itself, to `{destination}`");
        return Err(ToolError::invalid_parameters(message));
    }
    if !renames_case(&source, &destination) {
        refuse_existing(&destination)?;
    }
    let parents = Parents::make(&destination)?;
    let renamed = source.root().rename(
        source.relative(),
        destination.root(),
        destination.relative(),
    );
    let done = match renamed {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            by_copy(&source, kind, &destination, Deadline::of(context))
        }
        Err(error) => Err(explain(
            &source,
            &format!("moved to `{}`", destination.shown()),
            &error,
        )),
    };
    if let Err(error) = done {
        parents.take_back();
        return Err(error);
    }
    let (from, to) = (source.shown(), destination.shown());
    Ok(Output::text(format!("Moved: {from} -> {to}"))
        .structured(&MovePathResult {
            source: source.spelled(),
            destination: destination.spelled(),
        })
        .location(destination.absolute(), None))
}

/// Whether the destination is the source itself, met under another case on a file system that does not tell them apart.
fn renames_case(source: &AreaPath<'_>, destination: &AreaPath<'_>) -> bool {
    let (from, to) = (source.absolute(), destination.absolute());
    from != to && from.to_lowercase() == to.to_lowercase() && source.is_same(destination)
}

fn by_copy(
    source: &AreaPath<'_>,
    kind: Kind,
    destination: &AreaPath<'_>,
    end: Deadline,
) -> Result<(), ToolError> {
    let copied = whole_copy(source, kind, destination, end)?;
    let (from, to) = (source.shown(), destination.shown());
    if copied.skipped > 0 {
        let left = take_back(destination, end);
        let entries = counted(copied.skipped, "entry", "entries");
        return Err(ToolError::permanent(format!(
            "`{from}` lies on another file system and holds {entries} that cannot be copied there (links out of it, special \
             files, or names that are not UTF-8); nothing was moved{left}"
        )));
    }
    let removed = tree::remove_copied(source, &copied, end);
    let (kind, why) = match removed.failures.first() {
        Some((path, error)) => (error.kind(), format!("`{path}` could not be deleted")),
        None if removed.is_late => (ErrorKind::TimedOut, TIME_OVER.to_owned()),
        None => return Ok(()),
    };
    let left = match removed.files + removed.directories {
        0 => "the source is still there".to_owned(),
        _ => format!("of the source only {} are deleted", removed.summary()),
    };
    let message = format!("`{from}` is copied to `{to}`, but {left}: {why}");
    Err(ToolError::io(kind, message))
}

#[cfg(test)]
mod tests;
