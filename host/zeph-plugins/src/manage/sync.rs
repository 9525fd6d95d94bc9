//! Making a folder match its lock: what is missing, what differs, and what is there beyond it.
//!
//! The folder is opened once and held: what was looked at is what is changed, wherever a path leads meanwhile. Each plugin is put in place
//! whole or not at all, while the lock is held and says what it said when the plan was made. Where bytes come from is not known here:
//! only those with the digest of the lock are taken.

mod adoption;
mod held;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use zeph_config::lock_of;
use zeph_core::id::{Digest, Pin, PluginId};
use zeph_engine::ComponentBytes;

pub use self::adoption::{Adoption, AdoptionItem};
pub(super) use self::held::only_one;
pub(crate) use self::held::undisturbed;
use self::held::{HeldFolder, Written};
use super::ManageError;
use super::provenance::learn;
use crate::lock::{Lock, LockFile, LockedPlugin};
use crate::signature::{FoundSignatures, SignatureFile};

/// A folder that is compared with its lock, and in which one command at a time changes something.
#[derive(Debug)]
pub struct SyncFolder {
    folder: PathBuf,
    held: HeldFolder,
}

/// What stood in the place of a plugin when its operator was asked about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeenPlugin {
    /// What the lock pinned under its name.
    pub pin: Option<Pin>,
    /// The digest of its file.
    pub wasm: Option<Digest>,
}

/// What is to be done.
#[derive(Debug)]
pub struct SyncPlan {
    /// The plugins of the lock, in its order, then what is beyond it by the names of the files.
    pub items: Vec<SyncItem>,
}

/// One plugin or file.
#[derive(Debug, Clone)]
pub struct SyncItem {
    /// The file, without folders.
    pub file: OsString,
    /// What is to be done with it.
    pub action: SyncAction,
    /// What the lock says of it; `None` for what is beyond it.
    pub locked: Option<LockedPlugin>,
}

/// What is to be done with a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncAction {
    /// It is what the lock says.
    Keep,
    /// It is the file that the lock says, and its signatures do not count.
    Renew,
    /// It is missing.
    Install,
    /// It is another file.
    Replace,
    /// It stands in no lock. It is removed only where that was asked for.
    Beyond,
}

impl SyncFolder {
    /// Opens a folder, which is made where it is missing. Nobody is kept out: each change says what it was planned upon, and keeps other
    /// commands out while it is made.
    ///
    /// Errors: `Folder` for one that must not be used; `File`.
    pub fn open(folder: &Path) -> Result<Self, ManageError> {
        Ok(Self {
            held: HeldFolder::open(folder)?,
            folder: folder.to_owned(),
        })
    }

    /// The folder, as it was named.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Its lock.
    ///
    /// Errors: `Lock`.
    pub fn lock(&self) -> Result<Lock, ManageError> {
        Ok(Lock::read(&lock_of(&self.folder))?)
    }

    /// Compares the folder with a lock. Reads every component.
    ///
    /// Errors: `Folder` for a lock with names that no plugin can have, or a folder with too many files; `File`.
    pub fn plan(&self, lock: &Lock) -> Result<SyncPlan, ManageError> {
        let mut files = self.held.components()?;
        let mut items = Vec::new();
        for locked in lock.plugins() {
            self.check_name(&locked.name)?;
            let file = file_of(&locked.name);
            let is_there = files.remove(&file);
            let action = match is_there.then(|| self.held.digest(&file)) {
                None => SyncAction::Install,
                Some(Some(digest)) if digest == locked.pin.wasm => SyncAction::Keep,
                Some(_) => SyncAction::Replace,
            };
            let locked = Some(locked.clone());
            items.push(SyncItem {
                file,
                action,
                locked,
            });
        }
        items.extend(files.into_iter().map(|file| SyncItem {
            file,
            action: SyncAction::Beyond,
            locked: None,
        }));
        Ok(SyncPlan { items })
    }

    /// The component of a plugin as it is in the folder, if it is the one with this digest, and what lies beside it.
    ///
    /// Errors: a file of signatures that cannot be read, in one sentence.
    pub fn component(
        &self,
        name: &PluginId,
        wasm: Digest,
    ) -> Result<Option<(ComponentBytes, FoundSignatures)>, String> {
        let file = file_of(name);
        let bytes = self.held.read(&file).ok();
        let Some(bytes) = bytes.filter(|bytes| zeph_engine::digest(bytes) == wasm) else {
            return Ok(None);
        };
        let beside = |kind: SignatureFile| self.held.beside(&file, kind);
        Ok(Some((
            bytes,
            FoundSignatures {
                minisign: beside(SignatureFile::Minisign)?,
                bundles: beside(SignatureFile::Bundles)?,
                manifest: beside(SignatureFile::Manifest)?,
                unread: Vec::new(),
            },
        )))
    }

    /// What stands in the place of a plugin now. Reads its file.
    ///
    /// Errors: `Lock`.
    pub fn seen(&self, name: &PluginId) -> Result<SeenPlugin, ManageError> {
        Ok(self.seen_beside(&self.lock()?, name))
    }

    fn seen_beside(&self, lock: &Lock, name: &PluginId) -> SeenPlugin {
        SeenPlugin {
            pin: lock.get(name).map(|locked| locked.pin),
            wasm: self.held.digest(&file_of(name)),
        }
    }

    /// Puts a component and its signatures in their places, if it is the one that the lock pins and the lock still pins it. Blocks, for
    /// some seconds where another command changes the folder.
    ///
    /// Errors: `Bad` for other bytes, `Meanwhile` when the lock changed, `Folder` for one that is full or that another command changes,
    /// `File`, `Lock`; then the folder is as it was.
    pub fn install(
        &self,
        locked: &LockedPlugin,
        (bytes, signatures): (&[u8], &FoundSignatures),
    ) -> Result<(), ManageError> {
        let _only_one = only_one(&self.folder)?;
        let delivery = self.prepared(locked, bytes, signatures)?;
        LockFile::edit_then(
            &lock_of(&self.folder),
            |lock| must_be(lock, &locked.name, Some(locked.pin)),
            || delivery.put_in_place(),
        )
    }

    /// Puts a new plugin, or another version of one, in its place and pins it, in one step for everybody who respects the lock. Blocks.
    ///
    /// Shape:  `old` is what was pinned when its operator agreed, if anything; a plugin that is switched off stays so.
    /// Errors: as [`install`](Self::install).
    pub fn update(
        &self,
        old: Option<&LockedPlugin>,
        new: &LockedPlugin,
        (bytes, signatures): (&[u8], &FoundSignatures),
    ) -> Result<(), ManageError> {
        let _only_one = only_one(&self.folder)?;
        let delivery = self.prepared(new, bytes, signatures)?;
        let change = |lock: &mut Lock| {
            must_be(lock, &new.name, old.map(|old| old.pin))?;
            let disabled = lock.get(&new.name).is_some_and(|locked| locked.disabled);
            lock.put(LockedPlugin {
                disabled,
                ..new.clone()
            });
            Ok(())
        };
        // A host that looks between the two finds a plugin that is not what was accepted, and waits.
        LockFile::edit_then(&lock_of(&self.folder), change, || delivery.put_in_place())
    }

    /// Puts a component and its signatures in their places as `plugin add` does: what is new is pinned; what takes the place of another
    /// plugin waits for its approval, and the lock remembers where it comes from. Blocks.
    ///
    /// Shape:  `seen` is what was there when its operator agreed. A host that pinned meanwhile the very file that was there changed nothing.
    /// Errors: as [`install`](Self::install).
    pub fn add(
        &self,
        seen: SeenPlugin,
        new: &LockedPlugin,
        (bytes, signatures): (&[u8], &FoundSignatures),
    ) -> Result<(), ManageError> {
        let _only_one = only_one(&self.folder)?;
        let delivery = self.prepared(new, bytes, signatures)?;
        let change = |lock: &mut Lock| {
            let now = self.seen_beside(lock, &new.name);
            let was_pinned = seen.pin.is_none() && now.pin.map(|pin| pin.wasm) == now.wasm;
            if now.wasm != seen.wasm || (now.pin != seen.pin && !was_pinned) {
                return Err(ManageError::Meanwhile(new.name.clone()));
            }
            match lock.get_mut(&new.name) {
                Some(locked) => {
                    if let Some(provenance) = new.provenance.clone() {
                        learn(locked, new.pin.wasm, provenance);
                    }
                }
                None => lock.put(new.clone()),
            }
            Ok(())
        };
        LockFile::edit_then(&lock_of(&self.folder), change, || delivery.put_in_place())
    }

    /// Writes a component and its signatures beside their places.
    fn prepared(
        &self,
        locked: &LockedPlugin,
        bytes: &[u8],
        signatures: &FoundSignatures,
    ) -> Result<Delivery<'_>, ManageError> {
        self.check_name(&locked.name)?;
        let file = file_of(&locked.name);
        self.held.check_room(&file)?;
        self.held.remove_leftovers()?;
        if zeph_engine::digest(bytes) != locked.pin.wasm {
            return Err(ManageError::Bad {
                path: self.folder.join(&file),
                reason: "what was fetched is not what the lock pins".to_owned(),
            });
        }
        let mut beside = Vec::new();
        for kind in SignatureFile::ALL {
            let name = kind.beside(Path::new(&file)).into_os_string();
            let content = signatures.get(kind);
            let written = content.map(|content| self.held.write(&name, content));
            beside.push((name, written.transpose()?));
        }
        Ok(Delivery {
            held: &self.held,
            // What is there already stays as it is, such as a link that its operator made.
            component: match self.held.digest(&file) == Some(locked.pin.wasm) {
                true => None,
                false => Some(self.held.write(&file, bytes)?),
            },
            beside,
        })
    }

    /// Removes a file that the lock does not name. Blocks.
    ///
    /// Errors: `Meanwhile` when the lock names it by now; `File`, `Lock`.
    pub fn remove(&self, file: &OsString) -> Result<(), ManageError> {
        LockFile::edit(&lock_of(&self.folder), |lock| {
            let mut plugins = lock.plugins().iter();
            match plugins.find(|plugin| file_of(&plugin.name) == *file) {
                Some(plugin) => Err(ManageError::Meanwhile(plugin.name.clone())),
                None => {
                    for kind in SignatureFile::ALL {
                        self.held.remove(kind.beside(Path::new(file)).as_os_str())?;
                    }
                    self.held.remove(file)
                }
            }
        })
    }

    /// A lock may have been written by another user: what it calls a plugin becomes the name of a file.
    fn check_name(&self, name: &PluginId) -> Result<(), ManageError> {
        match PluginId::problem(&name.0) {
            None => Ok(()),
            Some(_) => Err(ManageError::BadName(name.0.clone())),
        }
    }
}

impl SyncPlan {
    /// Whether the folder is what the lock says.
    pub fn is_done(&self) -> bool {
        let mut items = self.items.iter();
        items.all(|item| item.action == SyncAction::Keep)
    }
}

impl SyncItem {
    /// The name of the plugin, or of the file beyond the lock.
    pub fn name(&self) -> String {
        match &self.locked {
            Some(locked) => locked.name.0.clone(),
            None => self.file.to_string_lossy().into_owned(),
        }
    }
}

/// A component and what lies beside it, written and not in their places yet.
struct Delivery<'a> {
    held: &'a HeldFolder,
    /// `None` for one that is in its place.
    component: Option<Written<'a>>,
    /// By the names of the files; `None` for one that must not be there.
    beside: Vec<(OsString, Option<Written<'a>>)>,
}

impl Delivery<'_> {
    /// Puts all of it in place, or none.
    fn put_in_place(self) -> Result<(), ManageError> {
        let held = self.held;
        let names = self.beside.iter().map(|(name, _)| name.clone());
        let before = names.map(|name| Ok((held.kept(&name)?, name)));
        let before = before.collect::<Result<Vec<_>, ManageError>>()?;
        self.moved().inspect_err(|_| {
            for (kept, name) in before {
                // What was moved there goes first: two names of one file would both stay. What cannot be put back is not worse than the error.
                let removed = held.remove(&name);
                drop(kept.map_or(removed, Written::put_in_place));
            }
        })
    }

    /// The component last: a look at it finds its signatures.
    fn moved(self) -> Result<(), ManageError> {
        for (name, written) in self.beside {
            match written {
                Some(written) => written.put_in_place()?,
                None => self.held.remove(&name)?,
            }
        }
        match self.component {
            Some(component) => component.put_in_place(),
            None => Ok(()),
        }
    }
}

/// The names of files in a folder.
type Files = BTreeSet<OsString>;

fn file_of(name: &PluginId) -> OsString {
    OsString::from(format!("{name}.wasm"))
}

/// That the lock pins the plugin as it did.
fn must_be(lock: &Lock, name: &PluginId, pin: Option<Pin>) -> Result<(), ManageError> {
    match lock.get(name).map(|locked| locked.pin) == pin {
        true => Ok(()),
        false => Err(ManageError::Meanwhile(name.clone())),
    }
}

/// The plugins of a lock by name.
fn by_name(lock: &Lock) -> BTreeMap<&PluginId, &LockedPlugin> {
    let plugins = lock.plugins().iter();
    plugins.map(|plugin| (&plugin.name, plugin)).collect()
}

#[cfg(test)]
mod tests;
