//! Trust: how far tools and their owners are trusted beyond what follows from what they are, and the windows over their last executions.
//!
//! It is kept for owners and their tools, by everybody or by one caller alone, until it is reset. Every change has a new version, so that a
//! host keeps in memory what it read and finds out with the begin of a call whether that still holds ([`crate::SingleUseRights`]).

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};
use zeph_core::anomaly::{AnomalySettings, CriticalRate, ToolOutcome};
use zeph_core::policy::{TrustLevel, TrustSubject};

use crate::error::StoreError;
use crate::operations::Operations;
use crate::store::{Access, Store, StoreReply, Task};

pub(crate) mod window;

/// The caller of what holds for everybody. No caller has an empty name.
pub(crate) const EVERYBODY: &str = "";

/// Most windows that are kept; the one that was changed longest ago goes first. A host with a thousand callers whose tools all fail has
/// other worries.
pub(crate) const WINDOWS_MAX: u32 = 1_024;

/// Most automatic blocks that are kept; the oldest goes first, and is there again when its tool goes on failing.
pub(crate) const BLOCKS_MAX: u32 = 4_096;

const NOTE: &str = "note the outcome of a call";

/// How far something is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustRecord {
    /// The tool, or the owner with all of its tools.
    #[serde(serialize_with = "as_text")]
    pub subject: TrustSubject,
    /// For the calls of whom; none for everybody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// How far.
    pub level: TrustLevel,
    /// Why, as the end of a sentence; empty when a person set it.
    pub reason: String,
    /// Whether the host set it itself, because of what is known of failures.
    pub is_automatic: bool,
    /// When, in Unix milliseconds.
    pub at_ms: i64,
}

/// All that is kept of trust.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustState {
    /// Which state of it this is.
    pub version: i64,
    /// By subject and caller.
    pub records: Vec<TrustRecord>,
    /// The subjects and callers in whose windows something has failed.
    pub windows: BTreeSet<(TrustSubject, String)>,
}

/// An execution to be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeNote {
    /// The tool.
    pub subject: TrustSubject,
    /// Who called it.
    pub caller: String,
    /// What came of it.
    pub outcome: ToolOutcome,
    /// When it is too much.
    pub settings: AnomalySettings,
    /// When, in Unix milliseconds.
    pub at_ms: i64,
}

/// A rate of failures that has become critical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustAlert {
    /// Of what.
    pub subject: TrustSubject,
    /// The rate.
    pub rate: CriticalRate,
    /// Whether it is blocked from now on, for the caller.
    pub is_blocked: bool,
}

impl TrustRecord {
    /// What an operator sets for every caller.
    pub(crate) fn of_everybody(subject: &TrustSubject, level: TrustLevel, at_ms: i64) -> Self {
        Self {
            subject: subject.clone(),
            caller: None,
            level,
            reason: String::new(),
            is_automatic: false,
            at_ms,
        }
    }
}

impl TrustAlert {
    /// The block that follows from it, for the caller of `note`.
    pub(crate) fn record(&self, note: &OutcomeNote) -> TrustRecord {
        TrustRecord {
            subject: self.subject.clone(),
            caller: Some(note.caller.clone()),
            level: TrustLevel::Blocked,
            reason: self.rate.to_string(),
            is_automatic: true,
            at_ms: note.at_ms,
        }
    }
}

impl Store {
    /// All that is kept of trust.
    ///
    /// Errors: what the database says.
    pub async fn trust(&self) -> Result<TrustState, StoreError> {
        self.run("read the trust in tools", Access::Read, |operations| {
            operations.trust()
        })
        .await
    }

    /// Which state of trust there is.
    ///
    /// Errors: what the database says.
    pub async fn trust_version(&self) -> Result<i64, StoreError> {
        self.run("read the trust in tools", Access::Read, |operations| {
            operations.trust_version()
        })
        .await
    }

    /// Sets how far a subject is trusted by everybody, in place of what was kept of it.
    ///
    /// Errors: what the database says.
    pub async fn set_trust(
        &self,
        subject: TrustSubject,
        level: TrustLevel,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        self.run(
            "set the trust in a tool",
            Access::Write,
            move |operations| operations.set_trust(&subject, level, at_ms),
        )
        .await
    }

    /// Forgets what is kept of a subject, for every caller, its window too; says how many records that were.
    ///
    /// Errors: what the database says.
    pub async fn reset_trust(&self, subject: TrustSubject) -> Result<usize, StoreError> {
        self.run(
            "reset the trust in a tool",
            Access::Write,
            move |operations| operations.reset_trust(&subject),
        )
        .await
    }

    /// Counts an execution in the windows of its tool and of the owner; says which rates have become critical by it, and blocks what is to
    /// be blocked in the same transaction.
    ///
    /// Errors: what the database says.
    pub async fn note_outcome(&self, note: OutcomeNote) -> Result<Vec<TrustAlert>, StoreError> {
        self.run(NOTE, Access::Write, move |operations| {
            operations.note_outcome(&note)
        })
        .await
    }

    /// As [`Store::note_outcome`] for an execution that succeeded: resolves when it is queued, and what goes wrong then is in the log.
    ///
    /// Errors: [`StoreError::Closed`].
    pub async fn note_outcome_soon(&self, note: OutcomeNote) -> Result<(), StoreError> {
        let work = move |operations: &dyn Operations| operations.note_outcome(&note).map(drop);
        let log = |noted: Result<(), StoreError>| {
            if let Err(error) = noted {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the outcome of a call cannot be counted");
            }
        };
        let reply = StoreReply::Logged(Box::new(log));
        self.queue_task(Task::new(NOTE, Access::WriteSoon, work, reply))
            .await
    }
}

fn as_text<S: Serializer>(subject: &TrustSubject, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(subject)
}
