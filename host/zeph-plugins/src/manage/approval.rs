//! Accepting a plugin as it is now: what is compared, and the pin that is written, are one and the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_config::lock_of;
use zeph_core::id::PluginId;

use super::ManageError;
use crate::diff::{self, Changes};
use crate::keeper::locked;
use crate::lock::{Lock, LockFile, LockedPlugin, Provenance};
use crate::set::{PluginStanding, Status, VettedPlugin};

/// A plugin that is not what was accepted.
#[derive(Debug)]
pub struct ChangedPlugin {
    /// What was accepted.
    pub old: LockedPlugin,
    /// What is there now.
    pub new: LockedPlugin,
    /// The plugin as it is now.
    pub good: Arc<VettedPlugin>,
    /// What is different.
    pub changes: Changes,
    /// The folder it is in.
    pub folder: PathBuf,
}

/// Compares what is there now with what was accepted; `None` when it is the same.
///
/// Errors: `State` if the plugin cannot be approved; `Lock`.
pub fn compare(
    standing: &PluginStanding,
    folder: &Path,
    now_ms: i64,
) -> Result<Option<ChangedPlugin>, ManageError> {
    let name = &standing.name;
    let cannot = |state: String| ManageError::State {
        name: name.clone(),
        state,
        hint: None,
    };
    let good = match (&standing.status, &standing.good) {
        (Status::Quarantined(reason), _) => {
            return Err(cannot(format!("cannot be approved: {reason}")));
        }
        (_, None) => return Err(cannot("is still being loaded; try again".to_owned())),
        (_, Some(good)) => Arc::clone(good),
    };
    let Some(old) = Lock::read(&lock_of(folder))?.get(name).cloned() else {
        return Err(cannot("is not pinned; start the host once more".to_owned()));
    };
    // One that nobody signs any more is another thing to agree to, and be it the same file.
    if old.pin == good.pin && !standing.has_changed {
        return Ok(None);
    }
    let new = LockedPlugin {
        provenance: Provenance::checked(
            old.provenance_of(good.pin.wasm),
            &standing.path,
            standing.signature.as_ref(),
        ),
        ..locked(&standing.path, &good, now_ms)
    };
    if new.definitions.digest() != good.pin.tools {
        return Err(cannot(
            "cannot be approved: what is known of it contradicts itself".to_owned(),
        ));
    }
    Ok(Some(ChangedPlugin {
        changes: diff::between_versions(&old, &new, None),
        old,
        new,
        good,
        folder: folder.to_owned(),
    }))
}

/// Pins a plugin that nobody signed, which its operator looked at. Blocks.
///
/// Errors: `State` when it waits for something else; `Meanwhile` when the name was pinned since; `Lock`. Then nothing is changed.
pub fn agree(standing: &PluginStanding, folder: &Path, now_ms: i64) -> Result<(), ManageError> {
    let name = &standing.name;
    let (Some(good), true) = (&standing.good, standing.awaits_agreement) else {
        return Err(ManageError::State {
            name: name.clone(),
            state: "waits for no agreement".to_owned(),
            hint: None,
        });
    };
    LockFile::edit(&lock_of(folder), |lock| {
        if lock.get(name).is_some() {
            return Err(ManageError::Meanwhile(name.clone()));
        }
        lock.put(locked(&standing.path, good, now_ms));
        Ok(())
    })
}

impl ChangedPlugin {
    /// Pins exactly what was compared. Blocks.
    ///
    /// Errors: `Meanwhile` when something else was accepted since; `Lock`. Then nothing is changed.
    pub fn accept(&self) -> Result<(), ManageError> {
        LockFile::edit(&lock_of(&self.folder), |lock| {
            match lock.get_mut(self.name()) {
                Some(locked) if locked.pin == self.old.pin => {
                    *locked = LockedPlugin {
                        disabled: locked.disabled,
                        ..self.new.clone()
                    };
                    Ok(())
                }
                _ => Err(ManageError::Meanwhile(self.name().clone())),
            }
        })
    }

    /// Of which plugin.
    pub fn name(&self) -> &PluginId {
        &self.old.name
    }
}
