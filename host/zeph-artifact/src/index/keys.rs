//! Whose signature an index needs: the keys of the operator, and those that earlier indexes handed on.
//!
//! A key that an index leaves out stays revoked, whatever time does and whichever other keys the operator adds. The operator has the last word
//! about each key: one that is added to the configuration afterwards counts, and without the key that began to hand on, none of it does.

use zeph_core::signer::SignerKey;

use super::IndexMark;

/// Whose signature an index needs, and what is remembered of the last one.
#[derive(Debug, Clone, Default)]
pub struct IndexTrust {
    /// Where it was had from, as the configuration names it.
    pub address: String,
    /// The keys that the operator trusts with this index now.
    pub keys: Vec<SignerKey>,
    /// Those that the operator trusted with it until they expired.
    pub expired: Vec<SignerKey>,
    /// Those that the operator revoked, in any form.
    pub revoked: Vec<SignerKey>,
    /// What is remembered.
    pub mark: Option<IndexMark>,
}

/// Keys that an index named for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRotation {
    /// The keys that were named last.
    pub keys: Vec<SignerKey>,
    /// The key of the operator with which it began: that of the last index with keys which such a key signed.
    pub root: SignerKey,
    /// The keys of the operator, expired or not, when those were named. What is here and not in `keys` was left out.
    pub configured: Vec<SignerKey>,
}

impl IndexTrust {
    /// The keys that may sign the next index.
    pub(super) fn accepted(&self) -> Vec<SignerKey> {
        let Some(rotation) = self.rotation() else {
            return self.keys.clone();
        };
        let is_left_out =
            |key: &SignerKey| rotation.configured.contains(key) && !rotation.keys.contains(key);
        let own = self.keys.iter().filter(|key| !is_left_out(key));
        let may_hand_on = self.keys.contains(&rotation.root);
        let handed_on = rotation.keys.iter().filter(|key| {
            let is_revoked = self.revoked.iter().any(|revoked| revoked.is_same(key));
            let is_over = self.expired.contains(key) || is_revoked;
            may_hand_on && !is_over && !self.keys.contains(key)
        });
        own.chain(handed_on).cloned().collect()
    }

    /// The keys that may have signed the last index itself.
    pub(super) fn accepted_before(&self) -> Vec<SignerKey> {
        let mut keys = self.accepted();
        keys.extend(self.keys.iter().cloned());
        keys
    }

    /// What to remember after an index that `signer` signed and that names `keys`.
    pub(super) fn handed_on(
        &self,
        signer: &SignerKey,
        keys: Vec<SignerKey>,
    ) -> Option<KeyRotation> {
        let root = match self.keys.contains(signer) {
            true => signer,
            false => &self.rotation()?.root,
        };
        Some(KeyRotation {
            keys,
            root: root.clone(),
            configured: self.configured().cloned().collect(),
        })
    }

    /// What to remember after an index that names no keys. A key that the operator has removed meanwhile counts when it is added again.
    pub(super) fn kept(&self) -> Option<KeyRotation> {
        let mut rotation = self.rotation()?.clone();
        let is_there = |key: &SignerKey| self.configured().any(|one| one == key);
        rotation.configured.retain(is_there);
        Some(rotation)
    }

    /// What was handed on, while the operator has the key that it rests on.
    fn rotation(&self) -> Option<&KeyRotation> {
        let rotation = self.mark.as_ref()?.rotation.as_ref()?;
        self.configured()
            .any(|key| *key == rotation.root)
            .then_some(rotation)
    }

    fn configured(&self) -> impl Iterator<Item = &SignerKey> {
        self.keys.iter().chain(&self.expired)
    }
}
