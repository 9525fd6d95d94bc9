//! The bounds of one call. Their defaults stand in `config/default.toml`, each with its reason.

use std::time::Duration;

use serde::Serialize;

/// What one call may use. Every limit that is hit ends the call with a message that names its configuration key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallLimits {
    /// Real time, host functions and waiting included (`limits.wall_clock_secs`).
    pub wall_clock: Duration,
    /// Processor time of the guest's thread (`limits.cpu_secs`).
    pub cpu: Duration,
    /// Linear memory of all of a guest's memories together, in bytes (`limits.memory_bytes`).
    pub memory_bytes: u64,
    /// Elements of all of a guest's tables together (`limits.table_elements`).
    pub table_elements: u64,
    /// Bytes of the result (`limits.output_bytes`).
    pub output_bytes: u64,
    /// Bytes of log lines, standard output and standard error (`limits.log_bytes`).
    pub log_bytes: u64,
    /// Calls from the guest into the host (`limits.host_calls`).
    pub host_calls: u64,
    /// Open files, directories, streams and other handles at one time (`limits.handles`).
    pub handles: u32,
}
