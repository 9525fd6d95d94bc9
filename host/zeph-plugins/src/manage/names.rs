//! What is known under the name of a plugin without looking into any file: its file and its pin.

use std::path::{Path, PathBuf};

use zeph_config::lock_of;
use zeph_core::id::{Pin, PluginId};
use zeph_core::nearest::nearest;
use zeph_core::tool::Backend;

use super::ManageError;
use crate::folder::{self, FolderEntry};
use crate::lock::{Lock, LockedPlugin};
use crate::set::{InForce, PluginOrigin, PluginSet, PluginStanding};

/// A name with a file, a pin, or both.
#[derive(Debug, Clone)]
pub struct KnownPlugin {
    /// The name.
    pub name: PluginId,
    /// The folder its file is in, or was.
    pub folder: PathBuf,
    /// Its file, when there is one.
    pub file: Option<PathBuf>,
    /// Its pin, when it has one.
    pub locked: Option<LockedPlugin>,
}

impl KnownPlugin {
    /// What its lock pins.
    pub fn pin(&self) -> Option<Pin> {
        self.locked.as_ref().map(|locked| locked.pin)
    }
}

/// Every name of the folders, in their order; files first, then pins whose file is gone.
///
/// Errors: no folder, one that must not be used, or a lock that cannot be read.
pub fn known(folders: &[PathBuf]) -> Result<Vec<KnownPlugin>, ManageError> {
    if folders.is_empty() {
        return Err(ManageError::Off);
    }
    let known = folders
        .iter()
        .map(|folder| in_folder(folder, folder::scan(folder)));
    Ok(known.collect::<Result<Vec<_>, _>>()?.concat())
}

/// The same, of folders whose plugins need not be used: to switch one off or to remove it.
///
/// Errors: no folder, one that cannot be read, or a lock that cannot be read.
pub fn removable(folders: &[PathBuf]) -> Result<Vec<KnownPlugin>, ManageError> {
    if folders.is_empty() {
        return Err(ManageError::Off);
    }
    let known = folders
        .iter()
        .map(|folder| in_folder(folder, folder::everything(folder)));
    Ok(known.collect::<Result<Vec<_>, _>>()?.concat())
}

fn in_folder(
    folder: &Path,
    found: Result<Vec<FolderEntry>, String>,
) -> Result<Vec<KnownPlugin>, ManageError> {
    let found = found.map_err(|problem| ManageError::Folder {
        folder: folder.to_owned(),
        problem,
    })?;
    let lock = Lock::read(&lock_of(folder))?;
    let mut known: Vec<KnownPlugin> = found
        .into_iter()
        .map(|found| KnownPlugin {
            locked: lock.get(&found.name).cloned(),
            name: found.name,
            folder: folder.to_owned(),
            file: Some(found.path),
        })
        .collect();
    for locked in lock.plugins() {
        if !known.iter().any(|known| known.name == locked.name) {
            known.push(KnownPlugin {
                name: locked.name.clone(),
                folder: folder.to_owned(),
                file: None,
                locked: Some(locked.clone()),
            });
        }
    }
    Ok(known)
}

/// The first of `known` with this name.
///
/// Shape:  `host` holds the names of the host's own plugins; a file or pin of such a name can still be found.
/// Errors: `FirstParty`, or `Unknown` with the nearest name.
pub fn find<'a>(
    known: &'a [KnownPlugin],
    name: &str,
    host: &[PluginId],
) -> Result<&'a KnownPlugin, ManageError> {
    match known.iter().find(|known| known.name.0 == name) {
        Some(known) => Ok(known),
        None => Err(not_found(name, known.iter().map(|known| &known.name), host)),
    }
}

/// How the plugin of this name stands: of several the one that [`find`] finds among folders of which those that were typed are the first.
///
/// Errors: `FirstParty`, or `Unknown` with the nearest name.
pub fn standing<'a>(
    set: &'a PluginSet,
    name: &str,
    host: &[PluginId],
) -> Result<&'a PluginStanding, ManageError> {
    let of_name = |standing: &&PluginStanding| standing.name.0 == name;
    let mut typed = set.standings.iter().filter(|standing| standing.is_typed);
    match typed.find(of_name).or_else(|| set.standing(name)) {
        Some(standing) => Ok(standing),
        None => {
            let names = set.standings.iter().map(|standing| &standing.name);
            Err(not_found(name, names, host))
        }
    }
}

/// The host's own plugin of this name.
pub fn first_party<'a>(set: &'a PluginSet, name: &str) -> Option<&'a InForce> {
    let backend = Backend::Wasm(PluginId(name.to_owned()));
    let in_force = set.plugin(&backend)?;
    (in_force.origin == PluginOrigin::Program).then_some(in_force)
}

fn not_found<'a>(
    name: &str,
    names: impl Iterator<Item = &'a PluginId>,
    host: &'a [PluginId],
) -> ManageError {
    if let Some(own) = host.iter().find(|own| own.0 == name) {
        return ManageError::FirstParty(own.clone());
    }
    let names = names.chain(host).map(|known| known.0.as_str());
    ManageError::Unknown {
        name: name.to_owned(),
        near: nearest(name, names).map(str::to_owned),
    }
}
