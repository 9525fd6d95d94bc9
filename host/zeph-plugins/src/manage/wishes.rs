//! Requests that the operator adds for a plugin without a manifest: they are written to the lock, so that they can be granted, read
//! and approved like an author's manifest.

use std::path::Path;

use zeph_config::{PathBase, lock_of};
use zeph_core::capability::{Capability, FsRights, LimitName};
use zeph_core::id::{Pin, PluginId};
use zeph_core::manifest::{BadManifest, MANIFEST_BYTES_MAX, Manifest, Want};

use super::ManageError;
use super::selection::RequestedItem;
use crate::definitions::Definitions;
use crate::lock::{LockFile, LockedPlugin};
use crate::set::{ManifestBy, VettedPlugin};

/// The reason of a request that was added by granting it.
const REASON: &str = "its author wrote no manifest; its operator granted this";

/// Requests that were written, and the pins before and after.
#[derive(Debug, PartialEq, Eq)]
pub struct WrittenRequests {
    /// The pin before.
    pub old: Pin,
    /// The pin after; grants are transferred to it.
    pub new: Pin,
}

/// Whether the operator may add requests.
pub fn may_be_written(good: &VettedPlugin) -> bool {
    good.manifest_by != ManifestBy::Author && good.plugin.strategies().is_empty()
}

/// The requests that allow `asked` to be granted: the present ones, extended as needed.
///
/// Errors: `BadSelector` for a capability that a manifest cannot request.
pub fn with(
    manifest: &Manifest,
    asked: &[RequestedItem],
    base: PathBase<'_>,
) -> Result<Manifest, ManageError> {
    let mut wants = manifest.wants.clone();
    for asked in asked {
        add(&mut wants, capability(asked, base)?);
    }
    Manifest::of(wants).map_err(|error| ManageError::BadSelector(error.to_string()))
}

/// The manifest in `file`, a `plugin.toml`.
///
/// Errors: `Read`, or `Manifest` if the file is not a manifest.
pub fn read(file: &Path) -> Result<Manifest, ManageError> {
    use std::io::{Error, ErrorKind, Read as _};

    let cannot_read = |source| ManageError::Read {
        path: file.to_owned(),
        source,
    };
    let opened = std::fs::File::open(file).map_err(cannot_read)?;
    if !opened.metadata().map_err(cannot_read)?.is_file() {
        let source = Error::new(ErrorKind::InvalidInput, "it is not a regular file");
        return Err(cannot_read(source));
    }
    let mut text = String::new();
    let mut bounded = opened.take(MANIFEST_BYTES_MAX as u64 + 1);
    bounded.read_to_string(&mut text).map_err(cannot_read)?;
    Manifest::parse(&text).map_err(|reason: BadManifest| ManageError::Manifest {
        path: file.to_owned(),
        reason: reason.to_string(),
    })
}

/// Writes the requests of a pinned plugin to the lock of its directory. Blocks.
///
/// Shape:  `seen` is what it was pinned as when its operator decided.
/// Errors: `Lock`; `Meanwhile` when something else was accepted since; `State` when it is not pinned. Then nothing is changed.
pub fn write(
    folder: &Path,
    name: &PluginId,
    manifest: &Manifest,
    seen: Option<Pin>,
) -> Result<WrittenRequests, ManageError> {
    LockFile::edit(&lock_of(folder), |lock| {
        let state = |state: String| ManageError::State {
            name: name.clone(),
            state,
            hint: Some("`zeph-host plugin list` says how it stands".to_owned()),
        };
        let Some(locked) = lock.get_mut(name) else {
            return Err(state("is not pinned".to_owned()));
        };
        if seen.is_some_and(|seen| seen != locked.pin) {
            return Err(ManageError::Meanwhile(name.clone()));
        }
        let tools = locked.definitions.tools().to_vec();
        let definitions = Definitions::new(manifest.wants.clone(), tools)
            .map_err(|error| state(format!("cannot request that: {error}")))?;
        let old = locked.pin;
        let new = Pin {
            tools: definitions.digest(),
            ..old
        };
        *locked = LockedPlugin {
            pin: new,
            operator_wants: true,
            definitions,
            ..locked.clone()
        };
        Ok(WrittenRequests { old, new })
    })
}

fn capability(asked: &RequestedItem, base: PathBase<'_>) -> Result<Capability, ManageError> {
    Ok(match asked {
        RequestedItem::Directory {
            path,
            rights,
            problem,
        } => {
            let path = super::selection::place(path, problem.as_deref(), base)?;
            let rights = rights.unwrap_or(FsRights::READ);
            Capability::Directory { path, rights }
        }
        RequestedItem::Host(access) => Capability::Host(access.clone()),
        RequestedItem::Program(name) => Capability::Program { name: name.clone() },
        RequestedItem::Variable(name) => Capability::Variable { name: name.clone() },
        RequestedItem::Embedder(name) => Capability::Embedder { name: name.clone() },
        RequestedItem::Tool(name) => Capability::Tool { name: name.clone() },
        RequestedItem::Limit { name, value } => Capability::Limit {
            name: *name,
            value: value.ok_or_else(|| no_value(*name))?,
        },
        RequestedItem::Secret { name, used } => {
            Capability::Secret(used.clone().ok_or_else(|| no_place(name))?)
        }
    })
}

fn no_value(name: LimitName) -> ManageError {
    ManageError::BadSelector(format!(
        "`{name}` takes a value here, such as `{name}=100`: there is no manifest with its value"
    ))
}

fn no_place(name: &str) -> ManageError {
    ManageError::BadSelector(format!(
        "the secret `{name}` takes a place here, such as `{name}=api.example.com:authorization`: there is no manifest with one"
    ))
}

/// Adds a request, or widens the one with the same subject.
fn add(wants: &mut Vec<Want>, more: Capability) {
    let same = |want: &&mut Want| want.capability.subject() == more.subject();
    let Some(want) = wants.iter_mut().find(same) else {
        wants.push(Want {
            capability: more,
            reason: REASON.to_owned(),
        });
        return;
    };
    match (&mut want.capability, more) {
        (Capability::Directory { rights, .. }, Capability::Directory { rights: more, .. }) => {
            *rights = rights.union(more);
        }
        (Capability::Limit { value, .. }, Capability::Limit { value: more, .. }) => {
            *value = more.max(*value);
        }
        (Capability::Host(access), Capability::Host(more)) => access.widen(more),
        (Capability::Secret(used), Capability::Secret(more)) => used.widen(&more),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
