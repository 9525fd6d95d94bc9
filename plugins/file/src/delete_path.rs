//! `delete_path`: a file, a symbolic link itself, or a directory. Never follows a link, never removes a granted directory.

use std::io::ErrorKind;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Context, Output, ToolError};

use crate::area::{Area, AreaPath};
use crate::deadline::{Deadline, TIME_OVER};
use crate::refusal::{explain, missing};
use crate::sys::{Kind, Links};
use crate::text::counted;
use crate::tree::{self, RemovalReport};

/// The arguments of `delete_path`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The file or directory, absolute or relative to the working directory. A symbolic link is removed itself.
    pub path: String,
    /// Whether a directory goes with all it holds. Without it only an empty directory is deleted.
    #[serde(default)]
    pub recursive: bool,
}

/// The structured result of `delete_path`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// What was deleted.
    path: String,
    /// Files and links removed.
    files: u64,
    /// Directories removed.
    directories: u64,
}

/// Runs `delete_path` within the time of `context`.
///
/// Errors: the path leads nowhere or is not granted, or not everything could be removed; what is left is named.
pub fn run(area: &Area, args: &Args, context: &Context) -> Result<Output, ToolError> {
    let place = area.place(&args.path)?;
    let path = place.shown();
    refuse_root(area, &place, "deleted")?;
    let stat = match place.root().stat(place.relative(), Links::Keep) {
        Ok(stat) => stat,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(&place)),
        Err(error) => return Err(explain(&place, "deleted", &error)),
    };
    if stat.kind == Kind::Directory && !args.recursive {
        return match place.root().remove_directory(place.relative()) {
            Ok(()) => Ok(output(
                &place,
                &RemovalReport {
                    directories: 1,
                    ..RemovalReport::default()
                },
            )),
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                Err(ToolError::invalid_parameters(format!(
                    "`{path}` is a directory that is not empty; `recursive` deletes it with all it holds"
                )))
            }
            Err(error) => Err(explain(&place, "deleted", &error)),
        };
    }
    let removed = tree::remove(&place, Deadline::of(context));
    match removed.n_failed {
        0 if removed.is_late => Err(late(&place, &removed)),
        0 => Ok(output(&place, &removed)),
        _ => Err(incomplete(&place, &removed)),
    }
}

/// Refuses to take away a granted directory, or one that holds a granted directory.
///
/// Errors: `place` is one or holds one.
pub fn refuse_root(area: &Area, place: &AreaPath<'_>, done: &str) -> Result<(), ToolError> {
    let path = place.shown();
    if area.holds_root(place) {
        let message =
            format!("`{path}` may not be {done}: it is an allowed directory or holds one");
        return Err(ToolError::denied(message));
    }
    if place.name() == ".." {
        let message = format!("`{path}` ends in `..`; name what is to be {done} itself");
        return Err(ToolError::invalid_parameters(message));
    }
    Ok(())
}

/// Says what is gone of a directory that takes longer than a call may.
fn late(place: &AreaPath<'_>, removed: &RemovalReport) -> ToolError {
    let path = place.shown();
    let message = match removed.files + removed.directories {
        0 => format!("`{path}` is not deleted, and nothing in it: {TIME_OVER}"),
        _ => format!(
            "`{path}` is deleted only in part: {} removed; {TIME_OVER}, so delete it again for the rest",
            removed.summary()
        ),
    };
    ToolError::io(ErrorKind::TimedOut, message)
}

/// Says exactly what is gone and what is left.
fn incomplete(place: &AreaPath<'_>, removed: &RemovalReport) -> ToolError {
    let kind = removed
        .failures
        .first()
        .map_or(ErrorKind::Other, |(_, error)| error.kind());
    let is_whole = removed.files + removed.directories == 0;
    let is_of_top = |(path, _): &(String, _)| *path == place.shown();
    if is_whole && removed.n_failed == 1 && removed.failures.first().is_some_and(is_of_top) {
        return explain(place, "deleted", &kind.into());
    }
    let mut left: Vec<String> = removed
        .failures
        .iter()
        .map(|(path, error)| match error.kind() {
            ErrorKind::PermissionDenied => format!("`{path}` (not permitted)"),
            _ => format!("`{path}` ({error})"),
        })
        .collect();
    let n_more = removed.n_failed - left.len() as u64;
    if n_more > 0 {
        left.push(format!("and {}", counted(n_more, "more", "more")));
    }
    let (path, left) = (place.shown(), left.join(", "));
    let message = match is_whole {
        true => format!("`{path}` is not deleted, and nothing in it: it holds {left}"),
        false => format!(
            "`{path}` is deleted only in part: {} removed; left are {left}",
            removed.summary()
        ),
    };
    ToolError::io(kind, message)
}

fn output(place: &AreaPath<'_>, removed: &RemovalReport) -> Output {
    let text = format!("Deleted: {} ({})", place.shown(), removed.summary());
    let (files, directories) = (removed.files, removed.directories);
    Output::text(text).structured(&Deleted {
        path: place.spelled(),
        files,
        directories,
    })
}

#[cfg(test)]
mod tests;
