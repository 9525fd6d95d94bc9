//! `copy_path`: a file or a whole directory under a new name.
//!
//! The copy grows under a temporary name and takes its own when it is whole. A link named as the source is followed, with
//! the host's check on where it leads; links inside a directory are kept when they stay inside it, else omitted.

use std::io::ErrorKind;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Context, Output, ToolError};

use crate::area::{Area, AreaPath};
use crate::deadline::Deadline;
use crate::refusal::{explain, missing, special};
use crate::replace::{Parents, temporary};
use crate::sys::{Kind, Links};
use crate::text::counted;
use crate::tree::{Copied, CopyFailure, copy_file, copy_tree, remove};

/// The arguments of `copy_path`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The file or directory to copy, absolute or relative to the working directory.
    pub source: String,
    /// The name of the copy itself, not a directory to put it in. It must not exist; missing directories above it are
    /// created.
    pub destination: String,
}

/// The structured result of `copy_path`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Copy {
    /// What was copied.
    source: String,
    /// The copy.
    destination: String,
    /// Files copied.
    files: u64,
    /// Directories made.
    directories: u64,
    /// Bytes copied.
    bytes: u64,
    /// Links out of the directory, special files and names that are not UTF-8, omitted.
    skipped: u64,
}

/// Runs `copy_path` within the time of `context`.
///
/// Errors: a path that leads nowhere or is not granted, a destination that exists, no time left; what is left behind then is named.
pub fn run(area: &Area, args: &Args, context: &Context) -> Result<Output, ToolError> {
    let source = area.place(&args.source)?;
    let destination = area.place(&args.destination)?;
    let kind = match source.root().stat(source.relative(), Links::Follow) {
        Ok(stat) => stat.kind,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(&source)),
        Err(error) => return Err(explain(&source, "read", &error)),
    };
    if kind == Kind::Directory && destination.is_below(&source) {
        let (source, destination) = (source.shown(), destination.shown());
        let message = format!("`{source}` cannot be copied into itself, to `{destination}`");
        return Err(ToolError::invalid_parameters(message));
    }
    refuse_existing(&destination)?;
    let parents = Parents::make(&destination)?;
    match whole_copy(&source, kind, &destination, Deadline::of(context)) {
        Ok(copied) => Ok(output(&source, &destination, copied)),
        Err(error) => {
            parents.take_back();
            Err(error)
        }
    }
}

/// Refuses a destination that is there already, whatever it is.
///
/// Errors: there is something, or it cannot be looked at.
pub fn refuse_existing(destination: &AreaPath<'_>) -> Result<(), ToolError> {
    let path = destination.shown();
    match destination.root().stat(destination.relative(), Links::Keep) {
        Ok(stat) if stat.kind == Kind::Directory => Err(ToolError::invalid_parameters(format!(
            "`{path}` exists already; name a new path inside it, or delete it first"
        ))),
        Ok(_) => Err(ToolError::invalid_parameters(format!(
            "`{path}` exists already; delete it first or choose another name"
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(explain(destination, "written", &error)),
    }
}

/// Copies `source` to the free name `destination`, or leaves nothing behind that it does not name.
///
/// Limits: half of the time until `end`; the rest is for taking back what was copied, or removing the source of a move.
/// Errors: the source cannot be read, the destination not written, or the time is over.
pub fn whole_copy(
    source: &AreaPath<'_>,
    kind: Kind,
    destination: &AreaPath<'_>,
    end: Deadline,
) -> Result<Copied, ToolError> {
    let new = temporary(destination);
    let half = end.half();
    let copied = match kind {
        Kind::Directory => copy_tree(source, &new, half),
        Kind::File => copy_file(source, &new, half).map(|bytes| Copied {
            files: 1,
            bytes,
            ..Copied::default()
        }),
        Kind::Symlink => return Err(special(source, "symbolic link")),
        Kind::Special(what) => return Err(special(source, what)),
    };
    let named = copied.and_then(|copied| {
        let renamed = new
            .root()
            .rename(new.relative(), destination.root(), destination.relative());
        renamed.map(|()| copied).map_err(|error| CopyFailure {
            place: destination.clone(),
            done: "written",
            error,
        })
    });
    named.map_err(|broken| {
        let left = take_back(&new, end);
        // The model knows the destination, not the name the copy had while it grew.
        let place = match broken.place.absolute().starts_with(&new.absolute()) {
            true => destination,
            false => &broken.place,
        };
        let mut error = explain(place, broken.done, &broken.error);
        error.message.push_str(&left);
        error
    })
}

/// Removes the copy at `new` until `end`. What is said of what is left of it: nothing when all is gone.
pub fn take_back(new: &AreaPath<'_>, end: Deadline) -> String {
    let removed = remove(new, end);
    let is_absent = || new.root().stat(new.relative(), Links::Keep).is_err();
    match removed.is_late || removed.n_failed > 0 {
        true if !is_absent() => format!(
            "; a part of the copy is left at `{}`: delete it",
            new.shown()
        ),
        _ => String::new(),
    }
}

fn output(source: &AreaPath<'_>, destination: &AreaPath<'_>, copied: Copied) -> Output {
    let (from, to) = (source.shown(), destination.shown());
    let mut text = format!("Copied: {from} -> {to} ({})", copied.summary());
    if copied.skipped > 0 {
        let skipped = counted(copied.skipped, "entry", "entries");
        text.push_str(&format!(
            "\n[{skipped} skipped: links out of the directory, special files, or names that are not UTF-8]"
        ));
    }
    let copy = Copy {
        source: source.spelled(),
        destination: destination.spelled(),
        files: copied.files,
        directories: copied.directories,
        bytes: copied.bytes,
        skipped: copied.skipped,
    };
    Output::text(text)
        .structured(&copy)
        .location(destination.absolute(), None)
}

#[cfg(test)]
mod tests;
