//! The files of the folders, and how each of them stands: active or not, and why.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use zeph_core::id::{PluginId, ToolName};
use zeph_core::signer::SignatureRefusal;

use super::{ManifestBy, VettedPlugin};
use crate::folder::FileStamp;
use crate::lock::{Lock, LockedPlugin, PluginSource};
use crate::signature::{Agreement, CheckedSignature};

/// A file of a plugin directory and its state.
#[derive(Debug, Clone)]
pub(crate) struct PluginCandidate {
    pub(crate) name: PluginId,
    pub(crate) path: PathBuf,
    /// Which folder, by its place in the configuration.
    pub(crate) folder_idx: usize,
    pub(crate) stamp: Option<FileStamp>,
    pub(crate) state: CandidateState,
    /// What its signatures come to; none where no signatures are checked, and for what is no plugin.
    pub(crate) signature: Option<CheckedSignature>,
}

/// The state of a file.
#[derive(Debug, Clone)]
pub(crate) enum CandidateState {
    /// It is being read, checked or compiled.
    Loading,
    /// It is a plugin.
    Good(Arc<VettedPlugin>),
    /// It is none, or cannot be used.
    Bad(String),
}

/// How a plugin stands, for listings.
#[derive(Debug, Clone)]
pub struct PluginStanding {
    /// Its name.
    pub name: PluginId,
    /// Its file.
    pub path: PathBuf,
    /// Which of the folders that is in, counted from 0.
    pub folder_idx: usize,
    /// Whether that folder was typed for this run.
    pub is_typed: bool,
    /// Bytes of the file.
    pub n_bytes: u64,
    /// Whether it can be called.
    pub status: Status,
    /// None while it loads, and if it is not a plugin.
    pub good: Option<Arc<VettedPlugin>>,
    /// Its tools under the names they are offered by; empty if it is not active.
    pub tools: Vec<ToolName>,
    /// The tools it had when it was accepted, under its own names.
    pub accepted: Vec<ToolName>,
    /// Its filter strategies as rules name them, `PLUGIN/STRATEGY`; empty if it is not active.
    pub strategies: Vec<String>,
    /// What its signatures come to; none while it loads, and if it is not a plugin.
    pub signature: Option<CheckedSignature>,
    /// Whether it is off only because its operator has not agreed to a plugin that nobody signed.
    pub awaits_agreement: bool,
    /// Whether it is not what was accepted, on or off: another file, other definitions, or without the signature that was to be there.
    pub has_changed: bool,
}

/// Whether a plugin is active, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "reason", rename_all = "snake_case")]
pub enum Status {
    /// Its tools can be called.
    Active,
    /// It is being checked or compiled.
    Loading,
    /// File or definitions are not those that were accepted, or nobody signs it any more.
    Changed,
    /// Switched off by the operator.
    Disabled,
    /// It cannot be used.
    Quarantined(String),
}

/// A lock that could be read, or why its folder is off.
pub(crate) type FolderLock = Result<Lock, String>;

impl PluginStanding {
    /// Shape: `is_typed` says that the folder was typed for this run. Its lock may have come with it, and is nobody's agreement.
    pub(super) fn of(candidate: PluginCandidate, lock: &FolderLock, is_typed: bool) -> Self {
        let PluginCandidate {
            name,
            path,
            folder_idx,
            stamp,
            state,
            signature,
        } = candidate;
        let locked = lock.as_ref().ok().and_then(|lock| lock.get(&name));
        let accepted = locked.iter().flat_map(|locked| locked.definitions.tools());
        let accepted = accepted.map(|tool| tool.name.clone()).collect();
        let needs_agreement = signature
            .as_ref()
            .is_some_and(CheckedSignature::is_for_operator);
        let mut agreement = Agreement::Given;
        let mut has_changed = false;
        let (status, good) = match state {
            CandidateState::Loading => (Status::Loading, None),
            CandidateState::Bad(reason) => (Status::Quarantined(reason), None),
            CandidateState::Good(good) => {
                let good = match locked {
                    Some(locked)
                        if locked.operator_wants && good.manifest_by == ManifestBy::Nobody =>
                    {
                        Arc::new(good.with_wants(locked.definitions.wants()))
                    }
                    _ => good,
                };
                agreement = match (needs_agreement, is_typed, locked) {
                    (true, true, _) => Agreement::Elsewhere,
                    (true, false, None) => Agreement::Missing,
                    // To what changed its operator agrees by approving it.
                    (true, false, Some(_)) | (false, ..) => Agreement::Given,
                };
                has_changed = locked.is_some_and(|locked| {
                    let has_lost_signer = needs_agreement && locked.signer().is_some();
                    locked.pin != good.pin || has_lost_signer
                });
                let refusal = signature
                    .as_ref()
                    .and_then(|signature| signature.refusal(&name, agreement));
                match (status(&name, has_changed, lock), refusal) {
                    (Status::Disabled, _) => (Status::Disabled, Some(good)),
                    (_, Some(refusal)) => (
                        Status::Quarantined(told(&refusal, locked, &good)),
                        Some(good),
                    ),
                    (status, None) => (status, Some(good)),
                }
            }
        };
        Self {
            name,
            path,
            folder_idx,
            is_typed,
            n_bytes: stamp.map_or(0, |stamp| stamp.n_bytes),
            status,
            good,
            tools: Vec::new(),
            accepted,
            strategies: Vec::new(),
            signature,
            awaits_agreement: agreement == Agreement::Missing,
            has_changed,
        }
    }
}

/// Why a plugin is refused, and what brings it back where it was had from elsewhere. What is not pinned there was left by an update that was
/// interrupted, or put there by hand: whose signature counts for a file of this machine is beside the point.
fn told(refusal: &SignatureRefusal, locked: Option<&LockedPlugin>, good: &VettedPlugin) -> String {
    let is_fetched = |locked: &&LockedPlugin| {
        let source = locked.source();
        source.is_some_and(|source| !matches!(source, PluginSource::File { .. }))
    };
    let Some(locked) = locked.filter(is_fetched) else {
        return refusal.to_string();
    };
    match locked.provenance_of(good.pin.wasm) {
        Some(_) if locked.pin.wasm == good.pin.wasm => {
            format!("{refusal}; `zeph-host plugin sync` asks its source for other signatures")
        }
        Some(_) => refusal.to_string(),
        None => format!(
            "it is not the file that the lock pins, and {}; `zeph-host plugin sync` brings that file back",
            refusal.problem
        ),
    }
}

fn status(name: &PluginId, has_changed: bool, lock: &FolderLock) -> Status {
    let lock = match lock {
        Ok(lock) => lock,
        Err(problem) => return Status::Quarantined(problem.clone()),
    };
    match lock.get(name) {
        None => Status::Quarantined(lock.why_unpinned()),
        Some(locked) if locked.disabled => Status::Disabled,
        Some(_) if has_changed => Status::Changed,
        Some(_) => Status::Active,
    }
}

/// Folder, then the place in its lock, then the name.
pub(super) fn order(candidate: &PluginCandidate, locks: &[FolderLock]) -> (usize, usize, PluginId) {
    let lock = locks[candidate.folder_idx].as_ref().ok();
    let place = lock.and_then(|lock| {
        let mut pinned = lock.plugins().iter();
        pinned.position(|locked| locked.name == candidate.name)
    });
    let place = place.unwrap_or(usize::MAX);
    (candidate.folder_idx, place, candidate.name.clone())
}
