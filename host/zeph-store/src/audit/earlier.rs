//! Chains that begin where another one was sealed before: its seals were deleted, or the store was removed or replaced.
//!
//! Which chain was sealed in which store is remembered beside the keys. A chain that begins anew says so in each of its marks, until the operator
//! accepts it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::chain::{ChainMark, ChainReport};
use super::problem::{AuditPlace, AuditProblem, AuditProblemKind, PROBLEMS_MAX};
use crate::open::Location;
use crate::secrets::SecretsError;
use crate::secrets::audit_keys::AuditKeys;

/// A chain that was sealed in a store before, and was not there when another began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierChain {
    /// Names it.
    pub origin: Uuid,
    /// Whether the operator said that it may be gone.
    pub is_accepted: bool,
}

/// How a chain begins or goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainBegin {
    /// Now, in Unix milliseconds.
    pub(crate) at_ms: i64,
    /// The chain that was last sealed in this store.
    pub(crate) sealed: Option<Uuid>,
    /// Whether the operator accepts that an earlier chain is gone.
    pub(crate) is_accepted: bool,
}

/// A chain that vouches for calls.
#[derive(Debug, Clone)]
pub struct BegunChain {
    /// The keys, for the audit file.
    pub keys: AuditKeys,
    /// What the operator should know, as one sentence.
    pub notice: Option<String>,
}

impl ChainBegin {
    /// The chain that was sealed here before one that begins.
    pub(crate) fn earlier(&self) -> Option<EarlierChain> {
        let is_accepted = self.is_accepted;
        self.sealed.map(|origin| EarlierChain {
            origin,
            is_accepted,
        })
    }
}

/// What the operator should know of a chain with this mark.
pub(super) fn notice(mark: &ChainMark) -> Option<String> {
    let earlier = mark.earlier.filter(|earlier| !earlier.is_accepted)?;
    Some(format!(
        "the audit log was begun anew, because an earlier one that was sealed in this store is not in it any more (log {}); \
         `zeph-host audit verify` says more",
        earlier.origin
    ))
}

/// What the keys remember of the store at `place`.
///
/// Errors: [`SecretsError`].
pub(super) fn sealed(keys: &AuditKeys, place: &str) -> Result<Option<Uuid>, SecretsError> {
    match keys.folder() {
        Some(folder) => folder.sealed_chain(place),
        None => Ok(None),
    }
}

/// Remembers the chain of a store, if another is remembered. A folder that cannot be written stops no call.
pub(super) fn remember(keys: &AuditKeys, place: &str, (sealed, origin): (Option<Uuid>, Uuid)) {
    let Some(folder) = keys.folder() else {
        return;
    };
    if sealed != Some(origin)
        && let Err(error) = folder.remember_chain(place, origin)
    {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "it is not remembered that the audit log was sealed");
    }
}

/// Adds to `reports` on the store at `location` which chains are missed: those that were there when another began, and the one that is remembered.
///
/// Errors: [`SecretsError`].
pub(super) fn tell_missed(
    reports: &mut Vec<ChainReport>,
    location: &Location,
    keys: Option<&AuditKeys>,
) -> Result<(), SecretsError> {
    // What a host said that it removed is not missed.
    let told: Vec<String> = reports
        .iter()
        .flat_map(|report| report.forgotten.clone())
        .collect();
    for report in reports.iter_mut() {
        let earlier = report.earlier.filter(|earlier| !earlier.is_accepted);
        let missed = earlier.filter(|earlier| !told.contains(&earlier.origin.to_string()));
        if let Some(EarlierChain { origin, .. }) = missed {
            let message = format!(
                "the log begins anew here, and an earlier one is not in the store any more: its seals were deleted, or the store was removed \
                 or replaced (log {origin}); if you did that, `zeph-host audit rekey` accepts it"
            );
            tell(report, message);
        }
    }
    let sealed = keys.map(|keys| sealed(keys, &location.chain_place()));
    let sealed = sealed.transpose()?.flatten();
    let missed = sealed.filter(|origin| !told.contains(&origin.to_string()));
    if let Some(origin) = missed {
        tell_empty(reports, location, origin);
    }
    Ok(())
}

/// Tells that the chain `origin` was sealed where nothing is recorded.
fn tell_empty(reports: &mut Vec<ChainReport>, location: &Location, origin: Uuid) {
    let host = match location {
        Location::Server(url) => Some(url.host().to_owned()),
        Location::File(_) | Location::Memory => None,
    };
    if !reports.iter().any(|report| report.host == host) {
        reports.push(ChainReport {
            host: host.clone(),
            ..ChainReport::default()
        });
    }
    let is_empty = |report: &&mut ChainReport| {
        report.host == host
            && report.origin.is_empty()
            && report.n_before == 0
            && report.n_more == 0
    };
    if let Some(report) = reports.iter_mut().find(is_empty) {
        let message =
            format!("a log was sealed in this store, and nothing of it is there (log {origin})");
        tell(report, message);
    }
}

fn tell(report: &mut ChainReport, message: String) {
    let problem = AuditProblem {
        kind: AuditProblemKind::Removed,
        place: AuditPlace::Store {
            host: report.host.clone(),
            record: 1,
        },
        call_id: None,
        message,
    };
    match report.problems.len() < PROBLEMS_MAX {
        true => report.problems.insert(0, problem),
        false => report.n_more += 1,
    }
}
