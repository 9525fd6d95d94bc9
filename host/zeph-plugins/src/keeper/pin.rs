//! Writes into the locks of the folders what was met for the first time: plugins, and the names of their tools.

use std::path::Path;

use zeph_config::lock_of;
use zeph_core::id::PluginId;

use super::Keeper;
use crate::lock::{Lock, LockError, LockFile, LockedPlugin, Provenance};
use crate::owners::{NameClaim, Owners};
use crate::set::{CandidateState, FolderLock, ManifestBy, PluginCandidate, VettedPlugin};
use crate::signature::{Agreement, CheckedSignature, SignedPlugin};

impl Keeper {
    /// The lock of a folder, with every plugin in it that was not known before, where it can be changed.
    pub(super) fn pin_newcomers(&mut self, folder_idx: usize) -> FolderLock {
        let path = lock_of(&self.options.folders[folder_idx]);
        let lock = Lock::read(&path).map_err(|error| error.told())?;
        let now_ms = (self.options.clock)();
        self.check_signatures(folder_idx, &lock, now_ms);
        let newcomers: Vec<LockedPlugin> = self
            .files
            .range((folder_idx, PluginId(String::new()))..)
            .take_while(|((idx, _), _)| *idx == folder_idx)
            .filter_map(|(_, file)| newcomer(&file.candidate, &lock, now_ms))
            .collect();
        if newcomers.is_empty() {
            return Ok(lock);
        }
        let pinned = LockFile::edit(&path, |lock| {
            for newcomer in newcomers {
                // Another host may have pinned it in the meantime: then that is what counts.
                if lock.get(&newcomer.name).is_none() {
                    lock.put(newcomer);
                }
            }
            Ok::<_, LockError>(lock.clone())
        });
        match pinned {
            // What was accepted before is as good as ever where nothing can be written.
            Err(error) if !error.is_of_content() => Ok(lock.closed(&error)),
            pinned => pinned.map_err(|error| error.told()),
        }
    }

    /// What the signatures of a folder's plugins come to now.
    fn check_signatures(&mut self, folder_idx: usize, lock: &Lock, now_ms: i64) {
        let Some(check) = self.options.signatures.clone() else {
            return;
        };
        for ((_, name), file) in self
            .files
            .iter_mut()
            .filter(|((idx, _), _)| *idx == folder_idx)
        {
            let CandidateState::Good(good) = &file.candidate.state else {
                continue;
            };
            let plugin = signed_plugin(name, good, lock);
            let checked = CheckedSignature::of(&*check, &plugin, &file.candidate.path, now_ms);
            let expires_at_ms = checked.verdict.signed_by().and_then(|by| by.expires_at_ms);
            self.expires_at_ms = self.expires_at_ms.into_iter().chain(expires_at_ms).min();
            file.candidate.signature = Some(checked);
        }
    }

    /// Whether files, signatures and locks do not agree.
    pub(super) fn is_at_odds(&self, locks: &[FolderLock]) -> bool {
        let mut files = self.files.iter();
        files.any(|((folder_idx, name), file)| {
            let (CandidateState::Good(good), Ok(lock)) =
                (&file.candidate.state, &locks[*folder_idx])
            else {
                return false;
            };
            let signature = file.candidate.signature.as_ref();
            match lock.get(name) {
                None => signature
                    .is_some_and(|signature| signature.refusal(name, Agreement::Missing).is_some()),
                Some(locked) => {
                    let is_signed = signature.is_none_or(|signature| {
                        let signed_by = signature.verdict.signed_by();
                        signed_by.is_some() || locked.signer().is_none()
                    });
                    locked.pin.wasm != good.pin.wasm || !is_signed
                }
            }
        })
    }

    /// Writes down which plugin got which name. If that fails, the names still hold for as long as the pins are kept.
    pub(super) fn write_names(&self, locks: &mut [FolderLock]) {
        if !self.options.gives_names {
            return;
        }
        let (_, given) = Owners::of(&self.options.fixed, locks, self.options.n_typed);
        let news = given.into_iter().enumerate();
        for (folder_idx, given) in news.filter(|(_, given)| !given.is_empty()) {
            let path = lock_of(&self.options.folders[folder_idx]);
            let written = LockFile::edit(&path, |lock| {
                for NameClaim { name, plugin } in given {
                    lock.give(name, plugin);
                }
                Ok::<_, LockError>(lock.clone())
            });
            match written {
                Ok(lock) => locks[folder_idx] = Ok(lock),
                Err(error) => {
                    tracing::warn!(problem = %error.told(), "the names of tools cannot be recorded");
                }
            }
        }
    }
}

/// What to pin of a new file. A plugin of the host keeps its name, so a file of that name is not used.
///
/// What may not be used is not pinned: the signature it gets later, or its operator, decides about it.
fn newcomer(candidate: &PluginCandidate, lock: &Lock, now_ms: i64) -> Option<LockedPlugin> {
    let signature = candidate.signature.as_ref();
    let refusal =
        signature.and_then(|signature| signature.refusal(&candidate.name, Agreement::Missing));
    match &candidate.state {
        CandidateState::Good(good) if lock.get(&candidate.name).is_none() && refusal.is_none() => {
            let path = &candidate.path;
            Some(LockedPlugin {
                provenance: Provenance::checked(None, path, signature),
                ..locked(path, good, now_ms)
            })
        }
        _ => None,
    }
}

/// What the signatures of a plugin have to be over.
fn signed_plugin(name: &PluginId, good: &VettedPlugin, lock: &Lock) -> SignedPlugin {
    let locked = lock.get(name);
    let known = locked.and_then(|locked| locked.provenance_of(good.pin.wasm));
    SignedPlugin::of_source(name, known.map(|known| known.source).as_ref(), good)
}

/// A plugin as the lock keeps it, accepted at `now_ms`, in Unix milliseconds.
pub fn locked(path: &Path, good: &VettedPlugin, now_ms: i64) -> LockedPlugin {
    let file = path.file_name().unwrap_or_default();
    LockedPlugin {
        name: good.plugin.id().clone(),
        file: file.to_string_lossy().into_owned(),
        pin: good.pin,
        accepted_at_ms: now_ms,
        disabled: false,
        operator_wants: good.manifest_by == ManifestBy::Operator,
        provenance: None,
        next: None,
        definitions: good.definitions(),
    }
}
