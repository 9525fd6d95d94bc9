//! What a component says of its version, beside the tag that it was had by: a registry or the author of a bundle chooses the tag. Where nobody
//! signed either, they can only be compared.

use semver::Version;
use zeph_plugins::diff::UpdateRisk;
use zeph_plugins::lock::{LockedPlugin, PluginSource, version_of_tag};
use zeph_plugins::manage::sync::{AdoptionItem, SyncFolder};

/// The version that a pinned component says, if it is in the folder. Blocks for as long as the component takes to be read and validated.
pub(super) fn said(folder: &SyncFolder, locked: &LockedPlugin) -> Option<Version> {
    let there = folder.component(&locked.name, locked.pin.wasm).ok()?;
    let (bytes, _) = there?;
    let inspection = zeph_engine::inspect(&bytes).ok()?;
    version_of_tag(inspection.metadata.version.as_deref()?)
}

/// That a component nobody signed says another version than its tag, in one sentence.
pub(super) fn differs(plugin: &LockedPlugin, said: &Version) -> Option<String> {
    let tagged = plugin.source().and_then(PluginSource::tagged_version)?;
    let differs = plugin.signer().is_none() && tagged.cmp_precedence(said).is_ne();
    differs.then(|| {
        format!("its tag is of version {tagged}, and its component says that it is version {said}")
    })
}

/// Has a plugin whose component and tag differ counted by what the components say, too: its tag is the word of who made the bundle.
///
/// Shape: `before` is what the accepted component says; where that is not known, what is accepted counts.
pub(super) fn warn_of_downgrade(
    item: &mut AdoptionItem,
    said: &Version,
    before: impl FnOnce(&LockedPlugin) -> Option<Version>,
) {
    let (Some(old), Some(changes)) = (&item.old, &mut item.changes) else {
        return;
    };
    if differs(&item.new, said).is_none() || changes.risks().contains(&UpdateRisk::Downgrade) {
        return;
    }
    let before = before(old).or_else(|| old.version().cloned());
    let Some(before) = before.filter(|before| said.cmp_precedence(before).is_lt()) else {
        return;
    };
    changes.warn(
        UpdateRisk::Downgrade,
        &format!(
            "its component says that it is version {said}; what was accepted is the later version {before}"
        ),
    );
}
