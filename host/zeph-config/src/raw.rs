//! The file, exactly: what may be written, of which type and in which range.
//!
//! The JSON Schema is derived from here and is the only place of types and ranges; the loader checks values against the
//! schema, so it cannot disagree with what editors are told. Defaults stand in `config/default.toml` and nowhere here.

mod filters;
mod rules;
mod shell;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::filters::RawFilters;
pub(crate) use self::rules::{
    RawAction, RawAuthorization, RawEffect, RawHook, RawHooks, RawPermission, RawPolicy,
    RawPolicyFile, RawRule, RawScope, RawScoped, RawTrust,
};
pub(crate) use self::shell::{RawSandbox, RawShell};
use super::presets::Preset;

/// Configuration of zeph-host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawConfig {
    /// What tools are offered and what they may touch.
    pub(crate) tools: RawTools,
    /// Plugins dropped into folders.
    pub(crate) plugins: RawPlugins,
    /// The bounds of one call.
    pub(crate) limits: RawLimits,
    /// `zeph-host run`.
    pub(crate) run: RawRun,
    /// Guest threads and compiled components.
    pub(crate) engine: RawEngine,
    /// The database.
    pub(crate) store: RawStore,
    /// Commands of the operator that run when something happens.
    pub(crate) hooks: RawHooks,
}

/// What tools are offered and what they may touch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTools {
    /// Offer tools at all.
    pub(crate) enabled: bool,
    /// The file system.
    pub(crate) file: RawFile,
    /// Long outputs.
    pub(crate) overflow: RawOverflow,
    /// The record of every call.
    pub(crate) audit: RawAudit,
    /// Commands of the native shell.
    pub(crate) shell: RawShell,
    /// The jail of commands.
    pub(crate) sandbox: RawSandbox,
    /// Less text for the model.
    pub(crate) filters: RawFilters,
    /// Calls of one session at most; 0 is unlimited.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) max_tool_calls_per_session: u32,
    /// Rules of each tool, by its name, first match wins.
    #[serde(default)]
    pub(crate) permissions: BTreeMap<String, Vec<RawPermission>>,
    /// Rules for `bash` that come with the program, used after those of `permissions`.
    pub(crate) permissions_preset: Preset,
    /// Rules over all tools, first match wins.
    pub(crate) policy: RawPolicy,
    /// More rules, tried after those of `tools.policy`.
    pub(crate) authorization: RawAuthorization,
    /// Which tools are offered, and with which arguments.
    pub(crate) scoped: RawScoped,
    /// On whose behalf tools run.
    pub(crate) scope: RawScope,
}

/// The file system.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFile {
    /// Directory trees the tools may touch; empty means the working directory.
    #[schemars(length(max = 100))]
    pub(crate) allowed_paths: Vec<String>,
    /// What may be done below them.
    #[schemars(length(max = 4))]
    pub(crate) rights: Vec<RawRight>,
    /// Globs over absolute paths that are as if they were not there.
    #[schemars(length(max = 1000))]
    pub(crate) deny_read: Vec<String>,
    /// Exceptions to `deny_read`.
    #[schemars(length(max = 1000))]
    pub(crate) allow_read: Vec<String>,
}

/// A right on a directory tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawRight {
    Read,
    Write,
    Create,
    Delete,
}

/// Long outputs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOverflow {
    /// Characters a result may have before it is cut and stored.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub(crate) threshold: u32,
    /// Days a stored original is kept.
    #[schemars(range(min = 1, max = 36_500))]
    pub(crate) retention_days: u32,
    /// Bytes of the longest original that is stored; 0 is unlimited.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub(crate) max_overflow_bytes: u64,
}

/// The record of every call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAudit {
    /// Record every call.
    pub(crate) enabled: bool,
    /// The JSON lines file; empty means the state directory, "none" no file.
    pub(crate) file: String,
    /// Bytes at which the file is begun anew; 0 is never.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub(crate) file_max_bytes: u64,
}

/// Plugins dropped into folders.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPlugins {
    /// Load them at all.
    pub(crate) enabled: bool,
    /// Notice changes of the folders while running.
    pub(crate) watch: bool,
    /// More folders of plugins, in front of the usual ones.
    #[schemars(length(max = 64))]
    pub(crate) folders: Vec<String>,
    /// What a plugin of the program holds until it is granted or revoked something, by its name: `PATH:RIGHTS`, with `.` for each
    /// of the allowed directories.
    #[serde(default)]
    pub(crate) default_grants: BTreeMap<String, Vec<String>>,
    /// What a plugin is told about how it is to work, by its name: any keys.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Map<String, serde_json::Value>>")]
    pub(crate) settings: BTreeMap<String, toml::Table>,
}

/// The bounds of one call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLimits {
    /// Seconds of real time.
    #[schemars(range(min = 1, max = 86_400))]
    pub(crate) wall_clock_secs: u32,
    /// Seconds of the guest's own work.
    #[schemars(range(min = 1, max = 86_400))]
    pub(crate) cpu_secs: u32,
    /// Bytes of linear memory. A 32-bit guest cannot use more than 4 GiB.
    #[schemars(range(min = 65_536, max = 4_294_967_296_u64))]
    pub(crate) memory_bytes: u64,
    /// Elements of all tables.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub(crate) table_elements: u64,
    /// Bytes of one result.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub(crate) output_bytes: u64,
    /// Bytes of log lines, standard output and standard error.
    #[schemars(range(min = 0, max = 67_108_864))]
    pub(crate) log_bytes: u64,
    /// Calls from the guest into the host.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub(crate) host_calls: u64,
    /// Open handles at one time.
    #[schemars(range(min = 8, max = 1_000_000))]
    pub(crate) handles: u32,
}

/// `zeph-host run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRun {
    /// Calls in progress at one time; 0 is one for each processor.
    #[schemars(range(min = 0, max = 1024))]
    pub(crate) jobs: u32,
    /// Bytes of the longest request line.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub(crate) request_bytes: u32,
}

/// Guest threads and compiled components.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEngine {
    /// Guests that run at one time.
    #[schemars(range(min = 1, max = 1024))]
    pub(crate) guest_threads: u32,
    /// The directory of compiled components; empty means the cache directory, "none" compiles at every start.
    pub(crate) cache_dir: String,
}

/// The database.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStore {
    /// The SQLite file; empty means the data directory, ":memory:" is gone at the end.
    pub(crate) path: String,
}
