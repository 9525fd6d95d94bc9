//! The files of the folders, and how each of them stands: active or not, and why.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use zeph_core::id::{PluginId, ToolName};

use super::{ManifestBy, VettedPlugin};
use crate::folder::FileStamp;
use crate::lock::Lock;
use crate::signature::CheckedSignature;

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
}

/// Whether a plugin is active, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "reason", rename_all = "snake_case")]
pub enum Status {
    /// Its tools can be called.
    Active,
    /// It is being checked or compiled.
    Loading,
    /// File or definitions are not those that were accepted.
    Changed,
    /// Switched off by the operator.
    Disabled,
    /// It cannot be used.
    Quarantined(String),
}

/// A lock that could be read, or why its folder is off.
pub(crate) type FolderLock = Result<Lock, String>;

impl PluginStanding {
    pub(super) fn of(candidate: PluginCandidate, lock: &FolderLock) -> Self {
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
        let mut awaits_agreement = false;
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
                // To what changed its operator agrees by approving it.
                let refusal = signature.as_ref().and_then(|signature| {
                    let is_agreed = locked.is_some() || !signature.is_for_operator();
                    awaits_agreement = !is_agreed;
                    signature.refusal(&name, is_agreed)
                });
                match (status(&name, &good, lock), refusal) {
                    (Status::Disabled, _) => (Status::Disabled, Some(good)),
                    (_, Some(refusal)) => (Status::Quarantined(refusal.to_string()), Some(good)),
                    (status, None) => (status, Some(good)),
                }
            }
        };
        Self {
            name,
            path,
            folder_idx,
            n_bytes: stamp.map_or(0, |stamp| stamp.n_bytes),
            status,
            good,
            tools: Vec::new(),
            accepted,
            strategies: Vec::new(),
            signature,
            awaits_agreement,
        }
    }
}

fn status(name: &PluginId, good: &VettedPlugin, lock: &FolderLock) -> Status {
    let lock = match lock {
        Ok(lock) => lock,
        Err(problem) => return Status::Quarantined(problem.clone()),
    };
    match lock.get(name) {
        None => Status::Quarantined(lock.why_unpinned()),
        Some(locked) if locked.disabled => Status::Disabled,
        Some(locked) if locked.pin != good.pin => Status::Changed,
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
