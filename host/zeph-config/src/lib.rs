//! What the operator decided: one checked [`Config`] out of five layers, each value with its origin.
//!
//! `config/default.toml` < the user's file < the project's file < `ZEPH_…` variables < flags. The first stage
//! (`raw`) is exactly the file; the second, [`Config`], is compiled and has no option left open that a default
//! can answer. A project file comes with a repository and is not trusted: it can only narrow (`project`).
//!
//! Only this crate reads the environment and the configuration files. It opens nothing else: whether the store,
//! the cache or the audit file can be written is found out by the rooms that write them.

mod agent;
mod audit;
mod compile;
mod compression;
mod environment;
mod file;
mod filters;
mod governance;
mod home_links;
mod keys;
mod known;
mod load;
mod locate;
mod merge;
mod origin;
mod own;
mod paths;
mod places;
mod presets;
mod project;
mod raw;
mod record;
mod rules;
mod scheduler;
mod serve;
mod servers;
mod shaping;
mod shell;
mod store;
mod store_url;
mod surroundings;
mod telemetry;
mod value;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use zeph_core::anomaly::AnomalySettings;
use zeph_core::capability::{Capability, FsGrant};
use zeph_core::git_config::GitUser;
use zeph_core::id::ServerName;
use zeph_core::limit::CallLimits;
use zeph_core::network::{Destination, EgressSettings};
use zeph_core::signer::SignaturePolicy;
use zeph_core::user::ToolUser;

pub use self::agent::{
    AgentSettings, ApiKey, EmbeddingSettings, Prices, ProviderKind, ProviderSettings,
};
pub use self::audit::{AuditConfig, CheckpointInterval, CheckpointTarget};
pub use self::compression::{CompressionSettings, CompressionStrategy};
pub use self::environment::CONFIG_VARIABLE;
pub use self::filters::{FilterSettings, RuleFile, RuleFileTrust};
pub use self::governance::GovernanceSettings;
pub use self::locate::{PLUGINS_FOLDER, UserFile, lock_of, user_file};
pub use self::origin::{ConfigErrors, Problem, Setting, ValueOrigin};
pub use self::paths::PathBase;
pub use self::rules::{HookCommand, HookSettings, RuleSettings};
pub use self::scheduler::{MissedRuns, SchedulerSettings};
pub use self::serve::{Expose, OAuthSettings, ServeSettings, Workspace};
pub use self::servers::{
    ArgumentRule, CommandServer, HttpServer, ListedTool, ServerConfig, ServerTransport,
    ServerValue, ToolChoice, TrustLevel,
};
pub use self::shaping::{
    DependencyRule, DependencySettings, JudgeSettings, SchemaFilterSettings, ShapingSettings,
};
pub use self::shell::{SandboxLimits, SandboxSettings, ShellSettings, TransactionSettings};
pub use self::store::{StoreLocation, StoreServer};
pub use self::store_url::StoreUrl;
pub use self::surroundings::{Flags, Surroundings, session_bus};
pub use self::surroundings::{process_environment, variable};
pub use self::telemetry::{Sampler, TelemetrySettings};

/// Everything the host is told before it starts, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whether any tool is offered at all (`tools.enabled`).
    pub tools_enabled: bool,
    /// What tools may touch of the file system (`tools.file`), the host's own files already hidden.
    pub file: FsGrant,
    /// Plugins dropped into folders (`plugins`).
    pub plugins: PluginsConfig,
    /// The bounds of one call (`limits`).
    pub limits: CallLimits,
    /// Guest threads and compiled components (`engine`).
    pub engine: EngineConfig,
    /// Long outputs (`tools.overflow`).
    pub overflow: OverflowConfig,
    /// Results that are used again (`tools.result_cache`); none when they are not.
    pub result_cache: Option<ResultCacheConfig>,
    /// Calls that are made again (`tools.retry`).
    pub retry: RetryConfig,
    /// The record of every call (`tools.audit`).
    pub audit: AuditConfig,
    /// How commands run (`tools.shell`).
    pub shell: ShellSettings,
    /// The jail of commands (`tools.sandbox`).
    pub sandbox: SandboxSettings,
    /// How outputs are shortened (`tools.filters`).
    pub filters: FilterSettings,
    /// How outputs beside the goal are compressed (`tools.compression`).
    pub compression: CompressionSettings,
    /// The way out to the network (`tools.egress`).
    pub egress: EgressSettings,
    /// Which calls may run (`tools.permissions` and its like).
    pub rules: RuleSettings,
    /// When tools that fail are blocked; none when nothing is counted (`tools.anomaly`).
    pub anomaly: Option<AnomalySettings>,
    /// Commands of the operator that run when something happens (`hooks`).
    pub hooks: HookSettings,
    /// Where the database is (`store.path`, `store.url`).
    pub store: StoreLocation,
    /// Whether values of secrets are kept in the keyring of the operating system where there is one (`store.keyring`).
    pub uses_keyring: bool,
    /// `zeph-host run` (`run`).
    pub run: RunConfig,
    /// `zeph-host serve` (`mcp.serve`).
    pub serve: ServeSettings,
    /// The MCP servers whose tools are used, by name; disabled ones too (`mcp.servers`).
    pub mcp_servers: BTreeMap<ServerName, ServerConfig>,
    /// Where MCP servers that are programs have their private homes, a directory for each; it need not exist yet. `None`: there is no
    /// data directory, so homes end with the server.
    pub mcp_homes: Option<PathBuf>,
    /// Where they are pinned: `zeph.lock` beside the user's configuration file; none without a place for that.
    pub mcp_lock: Option<PathBuf>,
    /// How long an MCP server may take to start and to answer its first request; installing it is not counted
    /// (`mcp.start_timeout`).
    pub mcp_start_timeout: Duration,
    /// How long a call of an MCP server may take whose configuration says nothing else (`mcp.tool_timeout`).
    pub mcp_tool_timeout: Duration,
    /// How the agent works (`agent`).
    pub agent: AgentSettings,
    /// The models it may use (`llm.providers`), in the order of the file.
    pub providers: Vec<ProviderSettings>,
    /// What a model is shown of the tools (`tools.tafc`, `tools.schema_filter`, `tools.dependencies`).
    pub shaping: ShapingSettings,
    /// Work for later; none where nothing is scheduled (`tools.scheduler`).
    pub scheduler: Option<SchedulerSettings>,
    /// The model that judges calls before they run; none when they are not judged (`tools.adversarial_policy`).
    pub judge: Option<JudgeSettings>,
    /// What sequences of calls are looked for (`tools.governance`).
    pub governance: GovernanceSettings,
    /// The person who starts the host, whose configuration of git and start-up files count.
    pub git_user: GitUser,
    /// The user that tools work as, looked up by the host when it starts; none is the host's own.
    pub tool_user: Option<ToolUser>,
}

impl Config {
    /// The folder of caches that programs of tools work with: the cache of the host, or one of the user that tools work as.
    pub fn cache_of_tools(&self) -> Option<&std::path::Path> {
        match &self.tool_user {
            Some(user) => user.facts().folder.as_deref(),
            None => self.engine.cache_dir.as_deref(),
        }
    }
}

/// Plugins dropped into folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginsConfig {
    /// Where plugins are looked for, absolute; none need exist. A name in an earlier folder wins. Empty when plugins are off
    /// (`plugins.enabled`).
    pub folders: Vec<PathBuf>,
    /// How many of them, the last, were typed for this run: what lies there has a name only where no plugin of the others has it, and
    /// what their locks say is not the operator's word.
    pub n_typed: usize,
    /// The one of them that new plugins are copied to; `None` when there is none.
    pub add_to: Option<PathBuf>,
    /// What the plugins of the program hold until they are granted or revoked something, by the plugin's name
    /// (`plugins.default_grants`); a directory as in a manifest: `.` for each of the allowed ones.
    pub default_grants: BTreeMap<String, Vec<Capability>>,
    /// What each plugin is told about how it is to work: a JSON object, by the plugin's name (`plugins.settings`).
    pub settings: BTreeMap<String, Arc<str>>,
    /// Who may vouch for plugins, and what becomes of those nobody vouches for (`plugins.trust`).
    pub signatures: SignaturePolicy,
    /// Where lists of plugins come from (`plugins.index`).
    pub indexes: Vec<IndexLocation>,
    /// Where plugins may be fetched from (`plugins.registries`).
    pub registries: Vec<RegistryConfig>,
    /// What bounds a download.
    pub downloads: DownloadLimits,
    /// Whether changes are noticed while running (`plugins.watch`).
    pub watch: bool,
    /// What `~` in a manifest stands for.
    pub home: Option<PathBuf>,
}

impl PluginsConfig {
    /// The folders in the order in which commands look for the plugin that a person names: first those typed with the command.
    pub fn typed_first(&self) -> Vec<PathBuf> {
        let n_own = self.folders.len().saturating_sub(self.n_typed);
        let (own, typed) = self.folders.split_at(n_own);
        [typed, own].concat()
    }
}

/// Where a list of plugins comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexLocation {
    /// A URL of `https` or `http`.
    Url(String),
    /// A file, absolute; it need not exist.
    File(PathBuf),
}

/// A registry of plugins that the operator allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryConfig {
    /// Host and port.
    pub destination: Destination,
    /// Speak plain HTTP with it.
    pub plain_http: bool,
    /// Its addresses may be private ones.
    pub private: bool,
}

/// What bounds a download or publication of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownloadLimits {
    /// Most bytes of a component (`plugins.download_bytes_max`).
    pub bytes_max: u64,
    /// The time for all of it (`plugins.download_timeout_secs`).
    pub timeout: Duration,
}

/// Guest threads and the cache of compiled components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineConfig {
    /// Guests that run at one time (`engine.guest_threads`).
    pub guest_threads: NonZeroUsize,
    /// The private directory of compiled components, absolute; it need not exist yet. `None`: compile at every start.
    pub cache_dir: Option<PathBuf>,
    /// From where servers fill it, and where they put what they compile.
    pub shared_cache: Option<SharedCacheConfig>,
}

/// Compiled components that several hosts share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCacheConfig {
    /// Their directory, absolute (`engine.shared_cache_dir`).
    pub dir: PathBuf,
    /// The file with the keys that seal them, absolute (`engine.shared_cache_keys`).
    pub keys: PathBuf,
}

/// What happens to outputs a model should not read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverflowConfig {
    /// Characters (not bytes) a result may have before it is cut (`tools.overflow.threshold`).
    pub threshold_chars: usize,
    /// How long a stored original is kept (`tools.overflow.retention_days`).
    pub retention: Duration,
    /// The longest original that is stored, in bytes; `u64::MAX` when unlimited (`tools.overflow.max_overflow_bytes`).
    pub max_bytes: u64,
}

/// Results of calls that only read, kept to answer the same call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultCacheConfig {
    /// How long a result is used; none for as long as nothing it depends on changes (`tools.result_cache.ttl_secs`).
    pub ttl: Option<Duration>,
    /// Bytes of all results that are kept (`tools.result_cache.max_bytes`).
    pub bytes_max: u64,
}

/// Calls that failed for a moment and are made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryConfig {
    /// How often a call is made at most; 1 means once (`tools.retry.max_attempts`).
    pub attempts_max: u32,
    /// How long after its begin a call may still be made again; none for as long as its own time lasts (`tools.retry.budget_secs`).
    pub budget: Option<Duration>,
    /// The first wait; each further one is twice as long (`tools.retry.base_ms`).
    pub base: Duration,
    /// The longest wait that nobody asked for (`tools.retry.max_ms`).
    pub longest: Duration,
}

/// How `zeph-host run` reads and makes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunConfig {
    /// Calls in progress at one time (`run.jobs`).
    pub jobs: NonZeroUsize,
    /// The longest request line, in bytes (`run.request_bytes`).
    pub request_bytes_max: usize,
}

/// A configuration and how it came about.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    /// What the host is built from.
    pub config: Config,
    /// Every key with its effective value and where that was said, sorted by key.
    pub origins: Vec<Setting>,
    /// One-line remarks for the operator: nothing is wrong, something may be meant differently.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads all layers and checks them.
    ///
    /// Errors: every problem of every layer together.
    pub fn load(surroundings: &Surroundings, flags: &Flags) -> Result<LoadedConfig, ConfigErrors> {
        load::load(surroundings, flags)
    }

    /// Reads `text` over the built-in layer, in place of the files of the user and of projects, and checks it with what variables and
    /// flags say. `flags.config` and `flags.no_project` say nothing here.
    ///
    /// Errors: every problem of every layer together.
    pub fn of_text(
        surroundings: &Surroundings,
        flags: &Flags,
        text: &str,
    ) -> Result<LoadedConfig, ConfigErrors> {
        load::of_text(surroundings, flags, text)
    }

    /// Checks one file by itself over the built-in layer, without the other layers.
    ///
    /// Shape: a `config.toml` in a `.zeph` folder is held to the rules of a project file, any other file to those of
    /// the user's.
    /// Errors: every problem of the file.
    pub fn check_file(
        surroundings: &Surroundings,
        file: &Path,
    ) -> Result<LoadedConfig, ConfigErrors> {
        load::check_file(surroundings, file)
    }
}

/// The JSON Schema of a configuration file, with the built-in defaults and what `config/default.toml` says of each key.
pub const SCHEMA: &str = include_str!("../../../config/schema.json");

#[cfg(test)]
mod tests;
