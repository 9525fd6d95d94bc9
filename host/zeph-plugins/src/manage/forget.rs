//! Out of the folder again: file, pin, grants, and what the cache knows of the file.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::Serialize;
use zeph_config::lock_of;
use zeph_store::{Store, StoreError};

use super::ManageError;
use super::install::removed;
use super::names::KnownPlugin;
use crate::lock::LockFile;
use crate::record::Records;
use crate::signature::SignatureFile;

/// What is gone.
#[derive(Debug, Serialize)]
pub struct PluginRemoval {
    /// The file, when there was one.
    pub file: Option<PathBuf>,
    /// Whether it was pinned.
    pub was_pinned: bool,
    /// How many grants it had.
    #[serde(rename = "grants")]
    pub n_grants: usize,
}

/// Deletes what is on disk. The file goes first: a host that runs would pin it again.
///
/// Errors: `File`, `Lock`; what was deleted before stays deleted, and the same command goes on from there.
pub fn delete(known: &KnownPlugin, records: &Records) -> Result<PluginRemoval, ManageError> {
    if let Some(file) = &known.file {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ManageError::File {
                    operation: "delete",
                    path: file.clone(),
                    source: error,
                });
            }
            _ => records.forget(file),
        }
        for signature in SignatureFile::ALL {
            let path = signature.beside(file);
            removed(&path).map_err(|source| ManageError::File {
                operation: "delete",
                path,
                source,
            })?;
        }
    }
    let unpinned = LockFile::edit(&lock_of(&known.folder), |lock| {
        Ok::<_, ManageError>(lock.remove(&known.name).is_some())
    })?;
    Ok(PluginRemoval {
        file: known.file.clone(),
        was_pinned: unpinned,
        n_grants: 0,
    })
}

/// Takes back every grant of the plugin.
///
/// Errors: [`StoreError`].
pub async fn ungrant(
    known: &KnownPlugin,
    store: &Store,
    forgotten: &mut PluginRemoval,
) -> Result<(), StoreError> {
    forgotten.n_grants = store.forget_plugin(known.name.clone()).await?;
    Ok(())
}

/// Switches a pinned plugin on or off.
///
/// Errors: `Lock`, or `State` when it is not pinned.
pub fn switch(known: &KnownPlugin, to: Switch) -> Result<SwitchResult, ManageError> {
    LockFile::edit(&lock_of(&known.folder), |lock| {
        let Some(locked) = lock.get_mut(&known.name) else {
            return Err(ManageError::State {
                name: known.name.clone(),
                state: "is not pinned: its file could not be used".to_owned(),
                hint: Some("`zeph-host plugin list` says why".to_owned()),
            });
        };
        let disabled = to == Switch::Off;
        let was_so = locked.disabled == disabled;
        locked.disabled = disabled;
        Ok(match was_so {
            true => SwitchResult::Already,
            false => SwitchResult::Now,
        })
    })
}

/// Whether a plugin's tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// They are.
    On,
    /// They are not; nothing else is forgotten.
    Off,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchResult {
    /// It is different from before.
    Now,
    /// It was so before.
    Already,
}
