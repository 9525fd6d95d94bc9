//! Where a plugin was had from and who signed it: written into the lock for exactly the component it is known of.

use std::path::Path;

use zeph_config::lock_of;
use zeph_core::id::{Digest, PluginId};

use super::ManageError;
use crate::lock::{LockFile, LockedPlugin, NextVersion, Provenance};

/// Writes where the component with the digest `wasm` was had from. For one that waits for its approval it is kept until then. Blocks.
///
/// Errors: `Lock`; `State` when the plugin is not pinned. Then nothing is changed.
pub fn record(
    folder: &Path,
    name: &PluginId,
    wasm: Digest,
    provenance: Provenance,
) -> Result<(), ManageError> {
    LockFile::edit(&lock_of(folder), |lock| {
        let Some(locked) = lock.get_mut(name) else {
            return Err(ManageError::State {
                name: name.clone(),
                state: "is not pinned".to_owned(),
                hint: Some("`zeph-host plugin list` says how it stands".to_owned()),
            });
        };
        match locked.pin.wasm == wasm {
            true => learn(locked, provenance),
            false => locked.next = Some(NextVersion { wasm, provenance }),
        }
        Ok(())
    })
}

/// A signer that is known of these very bytes is not forgotten for a source that has none.
fn learn(locked: &mut LockedPlugin, provenance: Provenance) {
    if locked.signer().is_none() || provenance.signer.is_some() {
        locked.provenance = Some(provenance);
    }
}

impl LockedPlugin {
    /// What is known of where the component with this digest comes from.
    pub(crate) fn provenance_of(&self, wasm: Digest) -> Option<Provenance> {
        if self.pin.wasm == wasm {
            return self.provenance.clone();
        }
        let next = self.next.as_ref().filter(|next| next.wasm == wasm);
        next.map(|next| next.provenance.clone())
    }
}
