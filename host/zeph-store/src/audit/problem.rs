//! What is wrong with the audit, as its verification finds it.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use zeph_core::failure::one_line;

use super::earlier::HOST_CHARS_MAX;

/// Problems that are told one by one; more are only counted.
pub(crate) const PROBLEMS_MAX: usize = 1_000;

/// What was done to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditProblemKind {
    /// It says something else than it did.
    Changed,
    /// It is not there any more.
    Removed,
    /// It stands in another place.
    Reordered,
    /// It was not made by a host that has the key.
    Inserted,
    /// There are fewer than there were.
    Truncated,
    /// A key holder wrote it anew.
    Rewritten,
    /// The key it was made with is missing.
    KeyMissing,
    /// It cannot be read.
    Damaged,
}

/// Where a problem is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum AuditPlace {
    /// In the table of the store.
    Store {
        /// The host whose chain it is, in a store that several share.
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        /// The number of the event in the chain.
        record: i64,
    },
    /// In a file.
    File {
        /// Which.
        file: PathBuf,
        /// Its line, from 1.
        line: u64,
    },
}

/// Something that is wrong with the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditProblem {
    /// What was done.
    #[serde(rename = "problem")]
    pub kind: AuditProblemKind,
    /// Where.
    #[serde(flatten)]
    pub place: AuditPlace,
    /// The call it is about, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What it is, in a sentence.
    pub message: String,
}

/// The problems of one verification, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Problems {
    pub(crate) list: Vec<AuditProblem>,
    pub(crate) n_more: u64,
}

impl Problems {
    pub(crate) fn add(&mut self, problem: AuditProblem) {
        match self.list.len() < PROBLEMS_MAX {
            true => self.list.push(problem),
            false => self.n_more += 1,
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        other.list.into_iter().for_each(|problem| self.add(problem));
        self.n_more += other.n_more;
    }
}

impl AuditProblemKind {
    /// As in JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Reordered => "reordered",
            Self::Inserted => "inserted",
            Self::Truncated => "truncated",
            Self::Rewritten => "rewritten",
            Self::KeyMissing => "key missing",
            Self::Damaged => "damaged",
        }
    }
}

impl fmt::Display for AuditPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { host: None, record } => write!(f, "store, record {record}"),
            Self::Store {
                host: Some(host),
                record,
            } => {
                let host = one_line(host, HOST_CHARS_MAX);
                write!(f, "store, host {host}, record {record}")
            }
            Self::File { file, line } => write!(f, "{}:{line}", file.display()),
        }
    }
}

/// `PLACE: call ID: KIND: MESSAGE`.
impl fmt::Display for AuditProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(call) = &self.call_id {
            write!(f, "call {call}: ")?;
        }
        write!(f, "{}: {}", self.kind.label(), self.message)
    }
}
