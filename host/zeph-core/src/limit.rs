//! The limits of a call. `config/default.toml` contains their defaults with reasons.

use std::time::Duration;

use serde::Serialize;

/// The resources that one call may use. A call that reaches a limit ends with a message that names its configuration key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallLimits {
    /// Elapsed time, including host functions and waiting (`limits.wall_clock_secs`).
    pub wall_clock: Duration,
    /// CPU time of the guest's thread (`limits.cpu_secs`).
    pub cpu: Duration,
    /// Total linear memory of a guest, in bytes (`limits.memory_bytes`).
    pub memory_bytes: u64,
    /// Total number of elements in a guest's tables (`limits.table_elements`).
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
