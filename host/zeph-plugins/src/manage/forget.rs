//! Out of the folder again: file, pin, grants, and what the cache knows of the file.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::Serialize;
use zeph_config::lock_of;
use zeph_core::id::Pin;
use zeph_store::{Revoke, Store, StoreError};

use super::ManageError;
use super::install::removed;
use super::names::KnownPlugin;
use super::sync::only_one;
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

/// Takes back what was granted to the plugin, before anything of it is deleted: a removal that ends half-way can be made again.
///
/// Shape:  `all` is everything that is known. Where another folder has the name, only grants that are bound to this plugin alone are taken.
/// Errors: [`StoreError`].
pub async fn ungrant(
    known: &KnownPlugin,
    all: &[KnownPlugin],
    store: &Store,
) -> Result<usize, StoreError> {
    let others = all.iter();
    let others = others.filter(|other| other.name == known.name && other.folder != known.folder);
    let others: Vec<&KnownPlugin> = others.collect();
    if others.is_empty() {
        return store.forget_plugin(known.name.clone()).await;
    }
    let own = pin(known).filter(|own| others.iter().all(|other| pin(other) != Some(*own)));
    let grants = store.list_grants(Some(known.name.clone())).await?;
    let own = grants.iter().filter(|grant| Some(grant.pin) == own);
    let ids = own.map(|grant| grant.id).collect();
    store
        .revoke_grants(known.name.clone(), Revoke::Ids(ids))
        .await
}

fn pin(known: &KnownPlugin) -> Option<Pin> {
    known.locked.as_ref().map(|locked| locked.pin)
}

/// Deletes what is on disk. The file goes first: a host that runs would pin it again. Blocks, for some seconds where another command
/// changes the folder.
///
/// Shape:  `n_grants` is what was taken back before.
/// Errors: `File`, `Lock`, `Busy`; what was deleted before stays deleted, and the same command goes on from there.
pub fn delete(
    known: &KnownPlugin,
    records: &Records,
    n_grants: usize,
) -> Result<PluginRemoval, ManageError> {
    if known.file.is_none() && known.locked.is_none() {
        return Ok(PluginRemoval {
            file: None,
            was_pinned: false,
            n_grants,
        });
    }
    let _only_one = only_one(&known.folder)?;
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
        n_grants,
    })
}

/// Switches a pinned plugin on or off.
///
/// Errors: `Lock`, or `State` when it is not pinned.
pub fn switch(known: &KnownPlugin, to: Switch) -> Result<SwitchResult, ManageError> {
    LockFile::edit(&lock_of(&known.folder), |lock| {
        let Some(locked) = lock.get_mut(&known.name) else {
            return Err(ManageError::State {
                name: known.name.clone(),
                state: format!(
                    "in `{}` is not pinned: its file could not be used",
                    known.folder.display()
                ),
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
