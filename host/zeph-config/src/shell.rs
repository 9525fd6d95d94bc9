//! What the shell and its jail are told: checked values without an option left open.
//!
//! Nothing here is enforced; the rooms that run commands read it.

use std::path::PathBuf;
use std::time::Duration;

use zeph_core::network::ExitHost;

/// How commands run (`tools.shell`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellSettings {
    /// How long a command may run when the call names no time (`timeout`).
    pub timeout: Duration,
    /// The longest time a call can ask for; never less than `timeout` (`timeout_max`).
    pub timeout_max: Duration,
    /// Where commands may have their working directory: canonical, existing directories, each once, never empty. The
    /// first is where a session starts (`allowed_paths`).
    pub allowed_paths: Vec<PathBuf>,
    /// Other names of these directories, as the operator and the terminal spell them, and the canonical path of each.
    pub spellings: Vec<(PathBuf, PathBuf)>,
    /// Background runs of one session at one time; 0 is none (`max_background_runs`).
    pub background_runs_max: usize,
    /// How long a background run may last (`background_timeout_secs`).
    pub background_timeout: Duration,
    /// Whether commands and hooks are told the turn, the goal and the skill (`enable_execution_context`).
    pub execution_context: bool,
    /// Snapshots and rollback.
    pub transaction: TransactionSettings,
    /// Beginnings of names of variables that commands do not see, unless `env_allow` has the whole name (`env_blocklist`).
    pub env_blocklist: Vec<String>,
    /// Whole names of variables that commands see in addition to the usual ones (`env_allow`).
    pub env_allow: Vec<String>,
}

/// Snapshots of the working directory and what they are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionSettings {
    /// Whether a snapshot is taken before each command (`transactional`).
    pub enabled: bool,
    /// Globs of the files a snapshot holds, relative to the working directory and known to compile; empty means all
    /// (`transaction_scope`).
    pub scope: Vec<String>,
    /// Whether a failed command is undone by itself (`auto_rollback`).
    pub auto_rollback: bool,
    /// The exit codes that count as failure, each 1 to 255; empty means 2 and more (`auto_rollback_exit_codes`).
    pub rollback_exit_codes: Vec<u8>,
    /// Whether a command is refused when its snapshot cannot be taken; otherwise it runs with a warning
    /// (`snapshot_required`).
    pub snapshot_required: bool,
    /// The largest snapshot, in bytes; `u64::MAX` when unlimited (`max_snapshot_bytes`).
    pub snapshot_bytes_max: u64,
    /// Snapshots kept for `/undo`; 0 is none (`max_undo`).
    pub undo_max: usize,
}

/// The jail of commands (`tools.sandbox`).
///
/// Shape: every path is absolute. Those of `read` and `write` exist, are canonical and each there once; those of `hide` and
/// `protect` need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    /// Whether commands run without a jail; every result then says so (`disabled`).
    pub disabled: bool,
    /// Files and directory trees commands may read, besides what a toolchain needs and `write` (`allow_read`, else
    /// `tools.shell.allowed_paths`).
    pub read: Vec<PathBuf>,
    /// Files and directory trees commands may read and change (`allow_write`, else `tools.shell.allowed_paths`).
    pub write: Vec<PathBuf>,
    /// Whether commands may use the network (`allow_network`).
    pub network: bool,
    /// The hosts that commands reach although they may not use the network (`allow_hosts` and `hosts`); a host that is there by its
    /// name goes before a wildcard, else the first one counts. What a rule says of several entries is there for each of them.
    pub hosts: Vec<ExitHost>,
    /// What commands cannot see, whatever is allowed above: the host's own files, and `hide`.
    pub hide: Vec<PathBuf>,
    /// What commands can read and not change, whatever is allowed above: the `.zeph` folders, the file of rules, and
    /// `protect`.
    pub protect: Vec<PathBuf>,
    /// What one command may use up.
    pub limits: SandboxLimits,
}

/// What one command may use up, with all its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Processes and threads at one time (`max_processes`).
    pub processes: u32,
    /// Bytes of memory (`max_memory_bytes`).
    pub memory_bytes: u64,
    /// Bytes of the largest file that is written (`max_file_bytes`).
    pub file_bytes: u64,
    /// Open files of one process (`max_open_files`).
    pub open_files: u32,
    /// Bytes of the private `/tmp` (`tmp_bytes`).
    pub tmp_bytes: u64,
    /// Bytes of the private `/dev/shm` (`shm_bytes`).
    pub shm_bytes: u64,
}
