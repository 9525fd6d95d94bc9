//! The file, exactly: what may be written, of which type and in which range.
//!
//! The JSON Schema is derived from here and is the only place of types and ranges; the loader checks values against the
//! schema, so it cannot disagree with what editors are told. Defaults stand in `config/default.toml` and nowhere here.

mod agent;
mod compression;
mod egress;
mod filters;
mod governance;
mod registries;
mod rules;
mod scheduler;
mod search;
mod serve;
mod servers;
mod shaping;
mod shell;
mod signers;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::agent::{RawAgent, RawEmbedding, RawLlm, RawProvider, RawProviderKind};
pub(crate) use self::compression::{RawCompression, RawCompressionStrategy};
pub(crate) use self::egress::RawEgress;
pub(crate) use self::filters::RawFilters;
pub(crate) use self::governance::{RawFlow, RawGovernance, RawSequence, RawSequenceMode};
pub(crate) use self::registries::RawRegistry;
pub(crate) use self::rules::{
    RawAction, RawAnomaly, RawAuthorization, RawEffect, RawHook, RawHooks, RawMode, RawPermission,
    RawPolicy, RawPolicyFile, RawRule, RawScope, RawScoped, RawTrust,
};
pub(crate) use self::scheduler::{RawMissed, RawScheduler};
pub(crate) use self::search::{RawLsp, RawLspKind, RawSearch};
pub(crate) use self::serve::{RawExpose, RawMcp, RawOAuth, RawServe, RawWorkspace};
pub(crate) use self::servers::{
    RawArgumentRule, RawSecretValue, RawServer, RawServerValue, RawToolChoice, RawTrustLevel,
};
pub(crate) use self::shaping::{RawAdversarialPolicy, RawDependencies, RawSchemaFilter, RawTafc};
pub(crate) use self::shell::{RawExitHost, RawExitTls, RawSandbox, RawShell};
pub(crate) use self::signers::{RawPluginTrust, RawSigner, RawUnsigned};
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
    /// The agent: what `zeph-host run` does with a model.
    pub(crate) agent: RawAgent,
    /// The models.
    pub(crate) llm: RawLlm,
    /// The Model Context Protocol.
    pub(crate) mcp: RawMcp,
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
    #[schemars(extend("x-project" = "turn-off"))]
    pub(crate) enabled: bool,
    /// The file system.
    pub(crate) file: RawFile,
    /// Long outputs.
    pub(crate) overflow: RawOverflow,
    /// Results that are used again.
    pub(crate) result_cache: RawResultCache,
    /// Calls that are made again.
    pub(crate) retry: RawRetry,
    /// The record of every call.
    pub(crate) audit: RawAudit,
    /// Commands of the native shell.
    pub(crate) shell: RawShell,
    /// The jail of commands.
    pub(crate) sandbox: RawSandbox,
    /// Less text for the model.
    pub(crate) filters: RawFilters,
    /// Outputs beside the goal.
    pub(crate) compression: RawCompression,
    #[schemars(extend("x-project" = "never: models"))]
    pub(crate) summarize_output: bool,
    /// The way out to the network.
    pub(crate) egress: RawEgress,
    /// What compilers and linters say: what the plugin `diagnostics` is told as its settings.
    pub(crate) diagnostics: RawDiagnostics,
    /// Web pages.
    pub(crate) scrape: RawScrape,
    /// Code search: what the plugin `search` is told as its settings.
    pub(crate) search: RawSearch,
    #[schemars(range(min = 0, max = 1_000_000_000), extend("x-project" = "lower-from-unlimited"))]
    pub(crate) max_tool_calls_per_session: u32,
    /// Rules of each tool, by its name, first match wins.
    #[serde(default)]
    #[schemars(extend("x-project" = "add-denying"))]
    pub(crate) permissions: BTreeMap<String, Vec<RawPermission>>,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) permissions_preset: Preset,
    /// Rules over all tools, first match wins.
    pub(crate) policy: RawPolicy,
    /// More rules, tried after those of `tools.policy`.
    pub(crate) authorization: RawAuthorization,
    /// Which tools are offered, and with which arguments.
    pub(crate) scoped: RawScoped,
    /// On whose behalf tools run.
    pub(crate) scope: RawScope,
    /// What calls come to by what the conversation did before.
    pub(crate) governance: RawGovernance,
    /// When tools that fail are blocked.
    pub(crate) anomaly: RawAnomaly,
    /// Room to think in the schemas of complex tools.
    pub(crate) tafc: RawTafc,
    /// Which tools a model is shown.
    pub(crate) schema_filter: RawSchemaFilter,
    /// Work for later.
    pub(crate) scheduler: RawScheduler,
    /// Which tools come before which.
    pub(crate) dependencies: RawDependencies,
    /// A second model that judges calls before they run.
    pub(crate) adversarial_policy: RawAdversarialPolicy,
}

/// The file system.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFile {
    #[schemars(length(max = 100), extend("x-project" = "within"))]
    pub(crate) allowed_paths: Vec<String>,
    #[schemars(length(max = 4), extend("x-project" = "keep"))]
    pub(crate) rights: Vec<RawRight>,
    #[schemars(length(max = 1000), extend("x-project" = "hide"))]
    pub(crate) deny_read: Vec<String>,
    #[schemars(length(max = 1000), extend("x-project" = "keep"))]
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

/// What compilers and linters say: what the plugin `diagnostics` is told as its settings.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDiagnostics {
    #[schemars(range(min = 1, max = 1000), extend("x-project" = "lower"))]
    pub(crate) max_diagnostics: u32,
}

/// Web pages: what the plugin `scrape` is told as its settings.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawScrape {
    #[schemars(range(min = 1, max = 600), extend("x-project" = "lower"))]
    pub(crate) timeout: u32,
    #[schemars(range(min = 1024, max = 67_108_864), extend("x-project" = "lower"))]
    pub(crate) max_body_bytes: u32,
    #[schemars(range(min = 1024, max = 67_108_864), extend("x-project" = "lower"))]
    pub(crate) max_html_bytes: u32,
}

/// Long outputs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOverflow {
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-project" = "lower"))]
    pub(crate) threshold: u32,
    #[schemars(range(min = 1, max = 36_500), extend("x-project" = "never: record"))]
    pub(crate) retention_days: u32,
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64), extend("x-project" = "lower-from-unlimited"))]
    pub(crate) max_overflow_bytes: u64,
}

/// Results that are used again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawResultCache {
    #[schemars(extend("x-project" = "turn-off"))]
    pub(crate) enabled: bool,
    #[schemars(range(min = 0, max = 31_536_000), extend("x-project" = "lower-from-unlimited"))]
    pub(crate) ttl_secs: u32,
    #[schemars(range(min = 65_536, max = 4_294_967_296_u64), extend("x-project" = "lower"))]
    pub(crate) max_bytes: u64,
}

/// Calls that are made again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRetry {
    #[schemars(range(min = 1, max = 10), extend("x-project" = "lower"))]
    pub(crate) max_attempts: u32,
    #[schemars(range(min = 0, max = 3600), extend("x-project" = "lower-from-unlimited"))]
    pub(crate) budget_secs: u32,
    #[schemars(range(min = 0, max = 60_000), extend("x-project" = "never: machine"))]
    pub(crate) base_ms: u32,
    #[schemars(range(min = 0, max = 600_000), extend("x-project" = "never: machine"))]
    pub(crate) max_ms: u32,
}

/// The record of every call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAudit {
    #[schemars(extend("x-project" = "never: record"))]
    pub(crate) enabled: bool,
    #[schemars(extend("x-project" = "never: record"))]
    pub(crate) file: String,
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64), extend("x-project" = "never: record"))]
    pub(crate) file_max_bytes: u64,
    #[schemars(range(min = 0, max = 36_500), extend("x-project" = "never: record"))]
    pub(crate) retention_days: u32,
    #[schemars(range(min = 0, max = 1_000_000_000_000_u64), extend("x-project" = "never: record"))]
    pub(crate) max_rows: u64,
    #[schemars(extend("x-project" = "never: record"))]
    pub(crate) checkpoint_target: String,
    #[schemars(extend("x-project" = "never: record"))]
    pub(crate) checkpoint_every: String,
}

/// Plugins dropped into folders.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPlugins {
    #[schemars(extend("x-project" = "turn-off"))]
    pub(crate) enabled: bool,
    #[schemars(extend("x-project" = "never: machine"))]
    pub(crate) watch: bool,
    #[schemars(length(max = 64), extend("x-project" = "never: plugins"))]
    pub(crate) folders: Vec<String>,
    #[schemars(length(max = 16), extend("x-project" = "never: plugins"))]
    pub(crate) index: Vec<String>,
    #[schemars(length(max = 64), extend("x-project" = "never: plugins"))]
    pub(crate) registries: Vec<RawRegistry>,
    #[schemars(range(min = 65_536, max = 134_217_728), extend("x-project" = "never: plugins"))]
    pub(crate) download_bytes_max: u64,
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "never: plugins"))]
    pub(crate) download_timeout_secs: u32,
    /// What a plugin of the program holds until it is granted or revoked something, by its name: `PATH:RIGHTS`, with `.` for each
    /// of the allowed directories, `host HOST`, `program NAME ARGUMENTS`, `variable NAME` or `limit NAME=VALUE`.
    #[serde(default)]
    #[schemars(extend("x-project" = "never: plugins"))]
    pub(crate) default_grants: BTreeMap<String, Vec<String>>,
    /// What a plugin is told about how it is to work, by its name: any keys.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Map<String, serde_json::Value>>", extend("x-project" = "never: plugins"))]
    pub(crate) settings: BTreeMap<String, toml::Table>,
    /// Who may vouch for plugins.
    pub(crate) trust: RawPluginTrust,
}

/// The bounds of one call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLimits {
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "lower"))]
    pub(crate) wall_clock_secs: u32,
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "lower"))]
    pub(crate) cpu_secs: u32,
    #[schemars(range(min = 65_536, max = 4_294_967_296_u64), extend("x-project" = "lower"))]
    pub(crate) memory_bytes: u64,
    #[schemars(range(min = 1, max = 10_000_000), extend("x-project" = "lower"))]
    pub(crate) table_elements: u64,
    #[schemars(range(min = 1024, max = 1_073_741_824), extend("x-project" = "lower"))]
    pub(crate) output_bytes: u64,
    #[schemars(range(min = 0, max = 67_108_864), extend("x-project" = "lower"))]
    pub(crate) log_bytes: u64,
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64), extend("x-project" = "lower"))]
    pub(crate) host_calls: u64,
    #[schemars(range(min = 8, max = 1_000_000), extend("x-project" = "lower"))]
    pub(crate) handles: u32,
}

/// `zeph-host run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRun {
    #[schemars(range(min = 0, max = 1024), extend("x-project" = "never: machine"))]
    pub(crate) jobs: u32,
    #[schemars(range(min = 1024, max = 1_073_741_824), extend("x-project" = "never: machine"))]
    pub(crate) request_bytes: u32,
}

/// Guest threads and compiled components.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEngine {
    #[schemars(range(min = 1, max = 1024), extend("x-project" = "never: machine"))]
    pub(crate) guest_threads: u32,
    #[schemars(extend("x-project" = "never: machine"))]
    pub(crate) cache_dir: String,
    #[schemars(extend("x-project" = "never: machine"))]
    pub(crate) shared_cache_dir: String,
    #[schemars(extend("x-project" = "never: machine"))]
    pub(crate) shared_cache_keys: String,
}

/// The database.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStore {
    #[schemars(extend("x-project" = "never: record"))]
    pub(crate) path: String,
    #[schemars(extend("x-project" = "never: record"))]
    pub(crate) url: String,
    #[schemars(extend("x-project" = "never: record"))]
    pub(crate) password_secret: String,
    #[schemars(extend("x-project" = "never: machine"))]
    pub(crate) keyring: bool,
}
