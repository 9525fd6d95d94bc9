//! `write`: a whole file, replaced in one step or not at all. Makes missing directories; keeps links and permissions.

use std::io::ErrorKind;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Output, ToolError};

use crate::area::{Area, AreaPath};
use crate::diff;
use crate::refusal::{explain, special};
use crate::replace::{Parents, Slot, behind_links, changed, content, parted};
use crate::sys::{Kind, Links, Stat};
use crate::text::bytes;

/// Bytes of an overwritten file up to which the result says what changed.
const DIFF_BYTES_MAX: u64 = 256 * 1024;

/// The arguments of `write`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The file, absolute or relative to the working directory. Missing directories are created.
    pub path: String,
    /// The whole new content.
    pub content: String,
}

/// The structured result of `write`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WriteResult {
    /// The file.
    path: String,
    /// Its new size in bytes.
    bytes: u64,
    /// Whether it is new.
    created: bool,
    /// What changed in a text file that was there before, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

/// Runs `write`.
///
/// Errors: the path is not granted, is a directory, or cannot be written.
pub fn run(area: &Area, args: &Args) -> Result<Output, ToolError> {
    let place = area.place(&args.path)?;
    if place.is_root() {
        return Err(explain(&place, "written", &ErrorKind::IsADirectory.into()));
    }
    let (replaced, old) = changed(&place, || {
        let target = behind_links(&place)?;
        let replaced = existing(&place, &target)?;
        let old = match replaced {
            // Unreadable is no reason not to write: the right to read may be missing.
            Some(stat) if stat.size <= DIFF_BYTES_MAX => {
                content(&target, DIFF_BYTES_MAX).ok().flatten()
            }
            _ => None,
        };
        let parents = Parents::make(&target)?;
        let written = Slot::open(target)
            .and_then(|slot| slot.replace(args.content.as_bytes(), replaced.is_some()));
        if written.is_err() {
            parents.take_back();
        }
        Ok(written.map(|()| (replaced, old)))
    })?;

    let path = place.shown();
    let new_size = args.content.len() as u64;
    let how = match (replaced, &old) {
        (None, _) => "created".to_owned(),
        (Some(_), Some(old)) if old == args.content.as_bytes() => "unchanged".to_owned(),
        (Some(stat), _) => format!("overwrote {}", bytes(stat.size)),
    };
    let mut text = format!("Wrote {} to {path} ({how})", bytes(new_size));
    text.extend(replaced.and_then(|stat| parted(stat.links)));
    let diff = old.and_then(|old| diff::unified(&path, &old, args.content.as_bytes()));
    let written = WriteResult {
        path: place.spelled(),
        bytes: new_size,
        created: replaced.is_none(),
        diff: diff.map(|diff| diff.text),
    };
    Ok(Output::text(text)
        .structured(&written)
        .location(place.absolute(), None))
}

/// The file that is to be overwritten; none when there is nothing yet.
fn existing(place: &AreaPath<'_>, target: &AreaPath<'_>) -> Result<Option<Stat>, ToolError> {
    match target.root().stat(target.relative(), Links::Keep) {
        Ok(stat) => match stat.kind {
            Kind::File => Ok(Some(stat)),
            Kind::Directory => Err(explain(place, "written", &ErrorKind::IsADirectory.into())),
            Kind::Symlink => Err(special(place, "symbolic link")),
            Kind::Special(what) => Err(special(place, what)),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(explain(place, "written", &error)),
    }
}

#[cfg(test)]
mod tests;
