//! Where a plugin was had from and who signed it, for exactly the component it is known of.

use zeph_core::id::Digest;

use crate::lock::{LockedPlugin, NextVersion, Provenance};

/// Notes where the component with the digest `wasm` was had from. For one that waits for its approval it is kept until then; a signer that
/// is known of these very bytes is not forgotten for a source that has none.
pub(super) fn learn(locked: &mut LockedPlugin, wasm: Digest, provenance: Provenance) {
    if locked.pin.wasm != wasm {
        locked.next = Some(NextVersion { wasm, provenance });
    } else if locked.signer().is_none() || provenance.signer.is_some() {
        locked.provenance = Some(provenance);
    }
}

impl LockedPlugin {
    /// What is known of where the component with this digest comes from.
    pub fn provenance_of(&self, wasm: Digest) -> Option<Provenance> {
        if self.pin.wasm == wasm {
            return self.provenance.clone();
        }
        let next = self.next.as_ref().filter(|next| next.wasm == wasm);
        next.map(|next| next.provenance.clone())
    }
}
