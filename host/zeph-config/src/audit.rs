//! The record of every call, as the operator wants it.

use std::path::PathBuf;
use std::time::Duration;

/// The record of every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// Whether calls are recorded (`tools.audit.enabled`).
    pub enabled: bool,
    /// The JSON lines file, absolute; it need not exist yet. `None`: only the table in the store (`tools.audit.file`).
    pub file: Option<PathBuf>,
    /// The size at which the file is rotated, in bytes (`tools.audit.file_max_bytes`).
    pub file_max_bytes: u64,
    /// How long a call is kept in the store; zero means without limit (`tools.audit.retention_days`).
    pub retention: Duration,
    /// Most calls kept in the store; zero means no limit (`tools.audit.max_rows`).
    pub rows_max: u64,
    /// The folder with the keys that vouch for the records: beside the database. `None`: nothing is kept.
    pub keys: Option<PathBuf>,
    /// Where checkpoints go (`tools.audit.checkpoint_target`).
    pub checkpoint_target: Option<CheckpointTarget>,
    /// How often they are made without being asked for (`tools.audit.checkpoint_every`).
    pub checkpoint_every: Option<CheckpointInterval>,
}

/// Where checkpoints of the audit go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckpointTarget {
    /// The journal of the system.
    Journald,
    /// The end of this file.
    File(PathBuf),
    /// A server, by POST.
    Url(String),
}

/// How often checkpoints are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointInterval {
    /// After so many records.
    Records(u64),
    /// After so much time, when anything was recorded.
    Time(Duration),
}
