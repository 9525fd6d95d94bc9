//! Out of the folder again: file, pin, grants, and what the cache knows of the file.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Serialize;
use zeph_config::{Config, lock_of};
use zeph_core::id::Pin;
use zeph_store::{Revoke, Store, StoreError};

use super::ManageError;
use super::carrying::is_used_elsewhere;
use super::install::removed;
use super::names::KnownPlugin;
use super::sync::only_one;
use crate::lock::{Lock, LockFile};
use crate::record::Records;
use crate::signature::SignatureFile;

/// A removal that has begun: other commands that change the folder wait until it is dropped.
#[derive(Debug)]
pub struct PluginRemoval<'a> {
    known: &'a KnownPlugin,
    /// What its lock pins.
    pin: Option<Pin>,
    _only_one: File,
}

/// What is gone.
#[derive(Debug, Serialize)]
pub struct RemovedPlugin {
    /// The file, when there was one.
    pub file: Option<PathBuf>,
    /// Whether it was pinned.
    pub was_pinned: bool,
}

impl<'a> PluginRemoval<'a> {
    /// Keeps other commands out of the folder, and looks what is pinned by now. Blocks, for some seconds where another one changes the folder.
    ///
    /// Errors: `Busy`, `File`, `Lock`; nothing is changed.
    pub fn begin(known: &'a KnownPlugin) -> Result<Self, ManageError> {
        let only_one = only_one(&known.folder)?;
        let lock = Lock::read(&lock_of(&known.folder))?;
        Ok(Self {
            known,
            pin: lock.get(&known.name).map(|locked| locked.pin),
            _only_one: only_one,
        })
    }

    /// Revokes what was granted to the plugin, before anything of it is deleted: a removal that ends half-way can be made again. Says how
    /// many grants that were.
    ///
    /// Shape:  grants that count for another component of that name stay, and so do those that others may use (see
    ///         [`is_used_elsewhere`]).
    /// Errors: [`StoreError`]; nothing is revoked.
    pub async fn ungrant(&self, config: &Config, store: &Store) -> Result<usize, StoreError> {
        let KnownPlugin { name, folder, .. } = self.known;
        match self.pin {
            Some(pin) if !is_used_elsewhere(config, (name, pin), folder) => {
                store.revoke_grants(name.clone(), Revoke::Pin(pin)).await
            }
            _ => Ok(0),
        }
    }

    /// What its lock pins.
    pub fn pin(&self) -> Option<Pin> {
        self.pin
    }

    /// Deletes what is on disk. The file goes first: a host that runs would pin it again. Blocks.
    ///
    /// Errors: `File`, `Lock`; what was deleted before stays deleted, and the same command goes on from there.
    pub fn delete(self, records: &Records) -> Result<RemovedPlugin, ManageError> {
        let KnownPlugin {
            name, folder, file, ..
        } = self.known;
        if let Some(file) = file {
            delete(file)?;
            records.forget(file);
            for signature in SignatureFile::ALL {
                delete(&signature.beside(file))?;
            }
        }
        let was_pinned = LockFile::edit(&lock_of(folder), |lock| {
            Ok::<_, ManageError>(lock.remove(name).is_some())
        })?;
        Ok(RemovedPlugin {
            file: file.clone(),
            was_pinned,
        })
    }
}

/// Deletes a file that may be gone.
fn delete(file: &Path) -> Result<(), ManageError> {
    removed(file).map_err(|source| ManageError::File {
        operation: "delete",
        path: file.to_owned(),
        source,
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
