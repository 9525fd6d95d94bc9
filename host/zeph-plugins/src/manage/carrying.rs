//! What a plugin was granted, carried over to another pin of it.
//!
//! Grants count for a pin, whichever folder it is in: what others may use stays, and gives nothing to anything else.

use std::path::Path;

use zeph_config::{Config, StoreLocation};
use zeph_core::id::{Pin, PluginId};
use zeph_store::{OldGrants, Store, StoreError};

use super::names;

/// Whether something else than the plugin in `folder` may use what `name` was granted as `pin`: on a server every other host, because only it
/// knows its folders; beside a file what another folder of this run pins. Blocks.
///
/// Shape: a folder that cannot be read may.
pub fn is_used_elsewhere(config: &Config, (name, pin): (&PluginId, Pin), folder: &Path) -> bool {
    if matches!(config.store, StoreLocation::Server(_)) {
        return true;
    }
    let Ok(known) = names::removable(&config.plugins.typed_first()) else {
        return true;
    };
    let mut others = known.iter().filter(|other| other.folder != folder);
    others.any(|other| other.name == *name && other.pin() == Some(pin))
}

/// Lets what the plugin in `folder` was granted as `old` count for `new`, after that is pinned.
///
/// Errors: [`StoreError`]; then nothing is carried over.
pub async fn carry(
    (config, store): (&Config, &Store),
    folder: &Path,
    name: &PluginId,
    (old, new): (Pin, Pin),
) -> Result<(), StoreError> {
    let stay = match is_used_elsewhere(config, (name, old), folder) {
        true => OldGrants::Stay,
        false => OldGrants::Go,
    };
    let bound = store.rebind_grants(name.clone(), Some(old), new, stay);
    bound.await.map(drop)
}
