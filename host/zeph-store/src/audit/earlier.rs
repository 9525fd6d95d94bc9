//! Chains that begin where another one was sealed before: its seals were deleted, or the store was removed or replaced.
//!
//! Which chain was sealed in which store is remembered beside the keys. A chain that begins anew says so in each of its marks, until the operator
//! accepts it. Another host of the server may have removed the earlier one when it was past its time: that counts as far as its word can be verified.

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeph_core::failure::{chain, one_line};

use super::chain::{ChainMark, ChainReport, ForgottenChain};
use super::problem::{AuditPlace, AuditProblem, AuditProblemKind, PROBLEMS_MAX};
use crate::open::{Location, MEMORY};
use crate::secrets::audit_keys::{AuditKeyFolder, AuditKeys};

/// Most characters of a host's name that are kept and shown. Anyone who can write to the server may have chosen it.
pub const HOST_CHARS_MAX: usize = 100;

/// Characters of the reason why it is not known which chains were sealed.
const REASON_CHARS_MAX: usize = 600;

/// A chain that was sealed in a store before, and is not there, or was not when another began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierChain {
    /// Names it; none where it was not known whether there was one.
    pub origin: Option<Uuid>,
    /// Whether the operator said that it may be gone.
    pub is_accepted: bool,
    /// Which host says that it removed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<ChainRemoval>,
}

/// Who says that a chain was removed because it was past its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainRemoval {
    /// The host that says so.
    pub host: String,
    /// Whether its seal could be verified.
    pub is_verified: bool,
}

/// What a host says of the chain of another one that was gone: that it removed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovalStatement {
    /// The host that says so.
    pub by: String,
    /// What it removed.
    pub chain: ForgottenChain,
    /// Whether its seal could be verified.
    pub is_verified: bool,
}

/// What is remembered of the chain that was last sealed in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealedChain {
    /// There was none.
    None,
    /// Its name.
    Known(Uuid),
    /// What is remembered cannot be read.
    Unknown,
}

/// How a chain begins or goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainBegin {
    /// Now, in Unix milliseconds.
    pub(crate) at_ms: i64,
    /// The chain that was last sealed in this store.
    pub(crate) sealed: SealedChain,
    /// Whether the operator accepts that an earlier chain is gone.
    pub(crate) is_accepted: bool,
}

/// A chain that vouches for calls.
#[derive(Debug, Clone)]
pub struct BegunChain {
    /// The keys, for the audit file.
    pub keys: AuditKeys,
    /// What the operator should know, one sentence each.
    pub notices: Vec<String>,
}

impl ChainBegin {
    /// The chain that was sealed here before one that begins.
    pub(crate) fn earlier(&self) -> Option<EarlierChain> {
        let origin = match self.sealed {
            SealedChain::None => return None,
            SealedChain::Known(origin) => Some(origin),
            SealedChain::Unknown => None,
        };
        Some(EarlierChain {
            origin,
            is_accepted: self.is_accepted,
            removal: None,
        })
    }
}

impl RemovalStatement {
    /// What `statements` say of the chain `origin` of `host`: first what could be verified.
    pub(crate) fn find(statements: &[Self], host: &str, origin: Uuid) -> Option<ChainRemoval> {
        // No host removes the chain that it goes on with.
        let of_it = statements.iter().filter(|statement| {
            let chain = &statement.chain;
            statement.by != host && chain.host == host && chain.origin == origin
        });
        let best = of_it.max_by_key(|statement| statement.is_verified)?;
        Some(ChainRemoval {
            host: one_line(&best.by, HOST_CHARS_MAX),
            is_verified: best.is_verified,
        })
    }

    /// Whether it is of the chain that had event `n` with the code `head`, as far as that can be told.
    pub(super) fn covers(&self, origin: &str, (n, head): (i64, &str)) -> bool {
        let ForgottenChain {
            upto, upto_code, ..
        } = &self.chain;
        self.chain.origin.to_string() == origin && (n < *upto || n == *upto && head == upto_code)
    }
}

impl EarlierChain {
    /// Adds the newest report of its removal, if it counts as missing.
    pub(super) fn explained(mut self, removal: Option<ChainRemoval>) -> Self {
        if self.missed().is_some() {
            self.removal = removal.or(self.removal);
        }
        self
    }

    /// What is wrong, unless the operator accepted it or the chain was removed in its time; to follow "… and".
    pub(super) fn missed(&self) -> Option<(AuditProblemKind, String)> {
        if self.is_accepted {
            return None;
        }
        let Some(origin) = self.origin else {
            let what = "whether an earlier one was sealed in this store was not known then; if there was none, or you removed it, \
                        `zeph-host audit rekey` accepts it";
            return Some((AuditProblemKind::Damaged, what.to_owned()));
        };
        match &self.removal {
            Some(ChainRemoval {
                is_verified: true, ..
            }) => None,
            Some(ChainRemoval { host, .. }) => {
                let what = format!("an earlier one, which was past its time (log {origin})");
                Some((AuditProblemKind::KeyMissing, unverified(host, &what)))
            }
            None => Some((
                AuditProblemKind::Removed,
                format!(
                    "an earlier one is not in the store any more: its seals were deleted, or the store was removed or replaced (log {origin}); if you \
                     did that, `zeph-host audit rekey` accepts it"
                ),
            )),
        }
    }
}

/// What is wrong where `host` says that it removed `what`, and nobody here can verify that.
pub(super) fn unverified(host: &str, what: &str) -> String {
    let host = one_line(host, HOST_CHARS_MAX);
    format!(
        "host `{host}` says that it removed {what}; its key is not on this machine, so this cannot be verified here: `zeph-host audit verify` on \
         the machine of that host lists what it removed, and `zeph-host audit rekey` accepts it"
    )
}

/// What the operator should know of a chain with this mark.
pub(super) fn notice(mark: &ChainMark) -> Option<String> {
    let (_, what) = mark.earlier.as_ref()?.missed()?;
    Some(format!("the audit log was begun anew, and {what}"))
}

/// The folder that remembers the chain of the store at `place`: none for a store in memory, whose chain ends with its process.
fn lasting<'k>(keys: &'k AuditKeys, place: &str) -> Option<&'k AuditKeyFolder> {
    keys.folder().filter(|_| place != MEMORY)
}

/// What the keys remember of the store at `place`; and why not, as one sentence for the operator. No call waits for him to mend it.
pub(super) fn sealed(keys: &AuditKeys, place: &str) -> (SealedChain, Option<String>) {
    let Some(folder) = lasting(keys, place) else {
        return (SealedChain::None, None);
    };
    match folder.sealed_chain(place) {
        Ok(origin) => (origin.map_or(SealedChain::None, SealedChain::Known), None),
        Err(error) => {
            let why = chain(&error, REASON_CHARS_MAX);
            let hint = error.hint().map(|hint| format!("; {hint}"));
            let hint = hint.unwrap_or_default();
            let problem = format!("it is not known which audit logs were sealed: {why}{hint}");
            (SealedChain::Unknown, Some(problem))
        }
    }
}

/// Remembers the chain of a store, if another is remembered. A folder that cannot be written stops no call.
pub(super) fn remember(keys: &AuditKeys, place: &str, (sealed, origin): (SealedChain, Uuid)) {
    let Some(folder) = lasting(keys, place) else {
        return;
    };
    if ![SealedChain::Known(origin), SealedChain::Unknown].contains(&sealed)
        && let Err(error) = folder.remember_chain(place, origin)
    {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "it is not remembered that the audit log was sealed");
    }
}

/// Says of each of `reports` on the store at `location` whether it is of this host, and what is missed: seals that were there, and chains that
/// were there when another began, or that are remembered.
pub(super) fn tell_missed(
    reports: &mut Vec<ChainReport>,
    location: &Location,
    keys: Option<&AuditKeys>,
) {
    if let Some(keys) = keys {
        tell_remembered(reports, location, keys);
    }
    let statements: Vec<RemovalStatement> = reports
        .iter()
        .flat_map(|report| report.forgotten.clone())
        .collect();
    for report in reports.iter_mut() {
        report.is_own = report.host.as_deref() == own_host(location);
        let host = report.host.as_deref().unwrap_or_default();
        report.earlier = report.earlier.take().map(|earlier| {
            let origin = earlier.origin;
            let removal =
                origin.and_then(|origin| RemovalStatement::find(&statements, host, origin));
            earlier.explained(removal)
        });
        if let Some(missed) = missed(report, keys.is_some()) {
            let place = AuditPlace::Store {
                host: report.host.clone(),
                record: 1,
            };
            tell(report, place, missed);
        }
    }
}

/// Notes which chain is remembered where none is, or that it is not known which.
fn tell_remembered(reports: &mut Vec<ChainReport>, location: &Location, keys: &AuditKeys) {
    match sealed(keys, &location.chain_place()) {
        (SealedChain::None, _) => {}
        (SealedChain::Known(origin), _) => {
            let own = own_report(reports, location);
            if own.origin.is_empty() {
                own.earlier = Some(EarlierChain {
                    origin: Some(origin),
                    is_accepted: false,
                    removal: None,
                });
            }
        }
        (SealedChain::Unknown, problem) => {
            let file = keys.folder().map(AuditKeyFolder::chains_file);
            let file = file.unwrap_or_default();
            let place = AuditPlace::File { file, line: 0 };
            let told = (AuditProblemKind::Damaged, problem.unwrap_or_default());
            tell(own_report(reports, location), place, told);
        }
    }
}

/// The host whose chain a store at `location` goes on with, where several share it.
fn own_host(location: &Location) -> Option<&str> {
    match location {
        Location::Server(url) => Some(url.host()),
        Location::File(_) | Location::Memory => None,
    }
}

/// The report on the chain of this host; an empty one where nothing of it is there.
fn own_report<'a>(reports: &'a mut Vec<ChainReport>, location: &Location) -> &'a mut ChainReport {
    let host = own_host(location);
    let known = reports
        .iter()
        .position(|report| report.host.as_deref() == host);
    let at = known.unwrap_or(reports.len());
    if known.is_none() {
        reports.push(ChainReport {
            host: host.map(str::to_owned),
            ..ChainReport::default()
        });
    }
    &mut reports[at]
}

/// What was sealed and is not there.
fn missed(report: &ChainReport, has_keys: bool) -> Option<(AuditProblemKind, String)> {
    let is_sealed = !report.origin.is_empty();
    let beginning = match is_sealed {
        true => "the log begins anew here",
        false => "no log is sealed here any more",
    };
    let earlier = report.earlier.as_ref().and_then(EarlierChain::missed);
    if let Some((kind, what)) = earlier {
        return Some((kind, format!("{beginning}, and {what}")));
    }
    let what = match report.n_more {
        _ if is_sealed => return None,
        0 if report.is_own && has_keys && report.n_before > 0 => {
            "there is a key, and no call is sealed with it".to_owned()
        }
        0 => return None,
        n_sealed => format!("{n_sealed} calls were sealed, and the seals are not there"),
    };
    Some((AuditProblemKind::Removed, what))
}

fn tell(report: &mut ChainReport, place: AuditPlace, (kind, message): (AuditProblemKind, String)) {
    let problem = AuditProblem {
        kind,
        place,
        call_id: None,
        message,
    };
    match report.problems.len() < PROBLEMS_MAX {
        true => report.problems.insert(0, problem),
        false => report.n_more += 1,
    }
}
