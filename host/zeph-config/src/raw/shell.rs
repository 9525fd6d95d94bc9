//! `[tools.shell]` and `[tools.sandbox]`, exactly as written.

use schemars::JsonSchema;
use serde::Deserialize;

/// Commands of the native shell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawShell {
    /// Seconds a command may run when the call names no time.
    #[schemars(range(min = 1, max = 86_400))]
    pub(crate) timeout: u32,
    /// Seconds a call may ask for at most.
    #[schemars(range(min = 1, max = 86_400))]
    pub(crate) timeout_max: u32,
    /// Directories commands may run in; empty means the working directory.
    #[schemars(length(max = 100))]
    pub(crate) allowed_paths: Vec<String>,
    /// Patterns of commands that never run, in addition to the built-in ones.
    #[schemars(length(max = 1000))]
    pub(crate) blocked_commands: Vec<String>,
    /// Built-in `blocked_commands` that do not count.
    #[schemars(length(max = 1000))]
    pub(crate) allowed_commands: Vec<String>,
    /// Patterns of commands that ask.
    #[schemars(length(max = 1000))]
    pub(crate) confirm_patterns: Vec<String>,
    /// Background runs at one time in one session; 0 is none.
    #[schemars(range(min = 0, max = 1000))]
    pub(crate) max_background_runs: u32,
    /// Seconds a background run may last.
    #[schemars(range(min = 1, max = 604_800))]
    pub(crate) background_timeout_secs: u32,
    /// Tell commands and hooks the turn, the goal and the skill.
    pub(crate) enable_execution_context: bool,
    /// Snapshot the working directory before each command.
    pub(crate) transactional: bool,
    /// Globs of the files a snapshot holds; empty means all.
    #[schemars(length(max = 1000))]
    pub(crate) transaction_scope: Vec<String>,
    /// Restore the snapshot when a command fails.
    pub(crate) auto_rollback: bool,
    /// The exit codes that count as failure; empty means 2 and more.
    #[schemars(length(max = 255), inner(range(min = 1, max = 255)))]
    pub(crate) auto_rollback_exit_codes: Vec<u8>,
    /// Refuse a command whose snapshot cannot be taken.
    pub(crate) snapshot_required: bool,
    /// Bytes of the largest snapshot; 0 is unlimited.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub(crate) max_snapshot_bytes: u64,
    /// Snapshots kept for `/undo`.
    #[schemars(range(min = 0, max = 1000))]
    pub(crate) max_undo: u32,
    /// Beginnings of names of variables that commands do not see.
    #[schemars(length(max = 1000))]
    pub(crate) env_blocklist: Vec<String>,
    /// Names of variables that commands see in addition to the usual ones.
    #[schemars(length(max = 1000))]
    pub(crate) env_allow: Vec<String>,
}

/// The jail of commands.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSandbox {
    /// Run commands without a jail.
    pub(crate) disabled: bool,
    /// Paths commands may read; empty means `tools.shell.allowed_paths`.
    #[schemars(length(max = 1000))]
    pub(crate) allow_read: Vec<String>,
    /// Paths commands may change; empty means `tools.shell.allowed_paths`.
    #[schemars(length(max = 1000))]
    pub(crate) allow_write: Vec<String>,
    /// Let commands use the network.
    pub(crate) allow_network: bool,
    /// Paths commands cannot see.
    #[schemars(length(max = 1000))]
    pub(crate) hide: Vec<String>,
    /// Paths commands cannot change.
    #[schemars(length(max = 1000))]
    pub(crate) protect: Vec<String>,
    /// Processes and threads of one command at one time.
    #[schemars(range(min = 8, max = 1_000_000))]
    pub(crate) max_processes: u32,
    /// Bytes of memory of one command, all its processes together where the kernel can count them.
    #[schemars(range(min = 67_108_864, max = 1_099_511_627_776_u64))]
    pub(crate) max_memory_bytes: u64,
    /// Bytes of the largest file a command may write.
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776_u64))]
    pub(crate) max_file_bytes: u64,
    /// Files a process may have open at one time.
    #[schemars(range(min = 64, max = 1_048_576))]
    pub(crate) max_open_files: u32,
    /// Bytes of the private `/tmp`.
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776_u64))]
    pub(crate) tmp_bytes: u64,
    /// Bytes of the private `/dev/shm`.
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776_u64))]
    pub(crate) shm_bytes: u64,
}
