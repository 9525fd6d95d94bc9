//! `[tools.shell]` and `[tools.sandbox]`, exactly as written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::RawMode;

/// Commands of the native shell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawShell {
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "lower"))]
    pub(crate) timeout: u32,
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "lower"))]
    pub(crate) timeout_max: u32,
    #[schemars(length(max = 100), extend("x-project" = "within"))]
    pub(crate) allowed_paths: Vec<String>,
    #[schemars(length(max = 1000), extend("x-project" = "add"))]
    pub(crate) blocked_commands: Vec<String>,
    #[schemars(length(max = 1000), extend("x-project" = "keep"))]
    pub(crate) allowed_commands: Vec<String>,
    #[schemars(length(max = 1000), extend("x-project" = "add"))]
    pub(crate) confirm_patterns: Vec<String>,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) blocked_mode: RawMode,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) confirm_mode: RawMode,
    #[schemars(range(min = 0, max = 1000), extend("x-project" = "lower"))]
    pub(crate) max_background_runs: u32,
    #[schemars(range(min = 1, max = 604_800), extend("x-project" = "lower"))]
    pub(crate) background_timeout_secs: u32,
    #[schemars(extend("x-project" = "never: record"))]
    pub(crate) enable_execution_context: bool,
    #[schemars(extend("x-project" = "never: snapshot"))]
    pub(crate) transactional: bool,
    #[schemars(length(max = 1000), extend("x-project" = "never: snapshot"))]
    pub(crate) transaction_scope: Vec<String>,
    #[schemars(extend("x-project" = "never: snapshot"))]
    pub(crate) auto_rollback: bool,
    #[schemars(length(max = 255), inner(range(min = 1, max = 255)), extend("x-project" = "never: snapshot"))]
    pub(crate) auto_rollback_exit_codes: Vec<u8>,
    #[schemars(extend("x-project" = "never: snapshot"))]
    pub(crate) snapshot_required: bool,
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64), extend("x-project" = "never: snapshot"))]
    pub(crate) max_snapshot_bytes: u64,
    #[schemars(range(min = 0, max = 1000), extend("x-project" = "never: snapshot"))]
    pub(crate) max_undo: u32,
    #[schemars(length(max = 1000), extend("x-project" = "add"))]
    pub(crate) env_blocklist: Vec<String>,
    #[schemars(length(max = 1000), extend("x-project" = "keep"))]
    pub(crate) env_allow: Vec<String>,
}

/// The jail of commands.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSandbox {
    #[schemars(extend("x-project" = "never: jail"))]
    pub(crate) disabled: bool,
    #[schemars(length(max = 1000), extend("x-project" = "within-paths"))]
    pub(crate) allow_read: Vec<String>,
    #[schemars(length(max = 1000), extend("x-project" = "within-paths"))]
    pub(crate) allow_write: Vec<String>,
    #[schemars(extend("x-project" = "turn-off"))]
    pub(crate) allow_network: bool,
    #[schemars(length(max = 1000), extend("x-project" = "keep"))]
    pub(crate) allow_hosts: Vec<String>,
    #[schemars(length(max = 1000), extend("x-project" = "never: jail"))]
    pub(crate) hosts: Vec<RawExitHost>,
    #[schemars(length(max = 1000), extend("x-project" = "add-paths"))]
    pub(crate) hide: Vec<String>,
    #[schemars(length(max = 1000), extend("x-project" = "add-paths"))]
    pub(crate) protect: Vec<String>,
    #[schemars(range(min = 8, max = 1_000_000), extend("x-project" = "lower"))]
    pub(crate) max_processes: u32,
    #[schemars(range(min = 67_108_864, max = 1_099_511_627_776_u64), extend("x-project" = "lower"))]
    pub(crate) max_memory_bytes: u64,
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776_u64), extend("x-project" = "lower"))]
    pub(crate) max_file_bytes: u64,
    #[schemars(range(min = 64, max = 1_048_576), extend("x-project" = "lower"))]
    pub(crate) max_open_files: u32,
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776_u64), extend("x-project" = "lower"))]
    pub(crate) tmp_bytes: u64,
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776_u64), extend("x-project" = "lower"))]
    pub(crate) shm_bytes: u64,
}

/// What may pass at some of the hosts that commands reach.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawExitHost {
    /// The hosts, in the form of `allow_hosts`. Those that are not among them are not reached.
    pub(crate) host: String,
    /// Whether anything may be spoken there, such as SSH; else only TLS.
    #[serde(default)]
    pub(crate) raw: bool,
    /// `inspect`: TLS ends in the host, which passes on what is allowed. Else it goes through as it is, to the server that was asked for.
    #[serde(default)]
    #[schemars(with = "RawExitTls")]
    pub(crate) tls: Option<RawExitTls>,
    /// The methods of requests that pass; empty means any. Only where requests are looked at.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub(crate) methods: Vec<String>,
    /// The paths of requests that pass, each exactly or as a beginning that ends in `*`; empty means any. Only where requests are
    /// looked at.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub(crate) paths: Vec<String>,
    /// Stored secrets that are added to requests as the value of a header, as `NAME=HEADER`; or, as `NAME`, take the place of the text in the
    /// variable `NAME` of commands. Only where requests are looked at, and for one host.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub(crate) secrets: Vec<String>,
}

/// What becomes of TLS between a command and a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawExitTls {
    Opaque,
    Inspect,
}
