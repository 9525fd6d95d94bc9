//! Building a host inside another program.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_config::{Config, ConfigErrors, Flags, LoadedConfig, Surroundings, ValueOrigin};
use zeph_core::policy::{AllowRule, BadRule};
use zeph_plugins::component::Component;
use zeph_plugins::event::PluginEvent;

use super::backend::Backends;
use super::{DynExecutor, ToolExecutor};
use crate::host::{Host, StartError, StartOptions};

/// What a host is built from. The default is the built-in configuration over the working directory, with the first-party tools, and with
/// nothing kept on disk but compiled components.
///
/// Neither variables nor files of the user or of the project are read, unless [`of_user`](Self::of_user) says so.
///
/// ```no_run
/// # async fn build() -> Result<(), Box<dyn std::error::Error>> {
/// use zeph_host::{CallOptions, Caller, Host, ToolCall, ToolExecutor as _};
///
/// let host = Host::builder()
///     .config_text("[tools.shell]\ntimeout = 60\n")
///     .root("/srv/project")
///     .state_in("/var/lib/my-agent")
///     .allow("write:src/**")
///     .build()
///     .await?;
/// let tools = host.session(Caller::model()).await?;
/// let call = ToolCall::new("read", serde_json::json!({"path": "README.md"}));
/// println!("{}", tools.call(call, CallOptions::default()).await.for_model());
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct HostBuilder {
    source: ConfigSource,
    directory: Option<PathBuf>,
    state: Option<PathBuf>,
    flags: Flags,
    allow: Vec<String>,
    components: Vec<Component>,
    backends: Vec<DynExecutor>,
    tell: Option<Notify>,
}

/// Hears what a user should know.
type Notify = Arc<dyn Fn(&str) + Send + Sync>;

/// Where the configuration comes from, besides single values.
#[derive(Debug)]
enum ConfigSource {
    Text(String),
    File(PathBuf),
    User,
}

/// No host was built. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The configuration: every problem of it, one line each.
    #[error("the configuration cannot be used:\n{0}")]
    Config(ConfigErrors),
    /// A rule of [`HostBuilder::allow`].
    #[error("a rule cannot be used")]
    Rule(#[source] BadRule),
    /// What the host is made of cannot be had.
    #[error("the host cannot start")]
    Start(#[source] StartError),
}

/// Where state lies when nobody says so: nowhere.
const WITHOUT_STATE: [(&str, &str); 2] = [("store.path", ":memory:"), ("tools.audit.file", "none")];

impl Default for HostBuilder {
    fn default() -> Self {
        Self {
            source: ConfigSource::Text(String::new()),
            directory: None,
            state: None,
            flags: Flags {
                no_project: true,
                ..Flags::default()
            },
            allow: Vec::new(),
            components: Component::first_party(),
            backends: Vec::new(),
            tell: None,
        }
    }
}

impl Host {
    /// Begins to describe a host.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }
}

impl HostBuilder {
    /// Reads the configuration from this file: TOML, with the keys of `zeph-host config schema`. Replaces
    /// [`config_text`](Self::config_text).
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.source = ConfigSource::File(file.into());
        self
    }

    /// Takes this text as the configuration: TOML, as in a configuration file. Replaces [`config_file`](Self::config_file).
    pub fn config_text(mut self, text: impl Into<String>) -> Self {
        self.source = ConfigSource::Text(text.into());
        self
    }

    /// Reads what `zeph-host` itself would read here: the user's file, that of the project, and the variables `ZEPH_…`; its state lies
    /// where that of `zeph-host` lies, and its plugins are used.
    pub fn of_user(mut self) -> Self {
        self.source = ConfigSource::User;
        self.flags.no_project = false;
        self
    }

    /// Sets one value, over all that is read: `set("limits.wall_clock_secs", 60)`. A text is taken as it is, a list as TOML writes it. The
    /// last one of a key counts.
    pub fn set(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.flags.set.push(format!("{key}={value}"));
        self
    }

    /// Where relative paths start, and what tools may touch unless a root is given. The default is the working directory of the process,
    /// which is never changed.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Adds a directory that tools and commands may touch, in place of `tools.file.allowed_paths` and `tools.shell.allowed_paths`.
    pub fn root(mut self, directory: impl Into<PathBuf>) -> Self {
        self.flags.roots.push(directory.into());
        self
    }

    /// Adds a folder whose plugins are used, before those of `plugins.folders`. Without one, and without [`of_user`](Self::of_user), no
    /// plugin is used but those of the program.
    pub fn plugins(mut self, folder: impl Into<PathBuf>) -> Self {
        self.flags.plugins.push(folder.into());
        self
    }

    /// Keeps the store, the secrets and the audit file in this directory, which is made when it is missing. Several hosts may share
    /// one. Without it, and where the configuration says nothing, they end with the host.
    pub fn state_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.state = Some(directory.into());
        self
    }

    /// Lets calls run that would ask: `TOOL` or `TOOL:PATTERN`, as `zeph-host run --allow` takes it. May be repeated.
    pub fn allow(mut self, rule: impl Into<String>) -> Self {
        self.allow.push(rule.into());
        self
    }

    /// Adds a component that is part of this program: its tools keep their names, and it holds its default grants
    /// (`plugins.default_grants`).
    pub fn component(mut self, component: Component) -> Self {
        self.components.push(component);
        self
    }

    /// Leaves out the first-party components: the file tools, `fetch`, `web_scrape` and `diagnostics`. Commands and stored outputs stay.
    pub fn without_components(mut self) -> Self {
        self.components.clear();
        self
    }

    /// Adds an executor whose tools become tools of the host: their calls are authorised, recorded, redacted, filtered and cut like all
    /// others, and end within `limits.wall_clock_secs`. Its definitions are those of this moment, and are believed.
    pub fn backend(mut self, executor: impl ToolExecutor + 'static) -> Self {
        self.backends.push(DynExecutor::new(executor));
        self
    }

    /// Hears what a user should know, a sentence each: remarks about the configuration, what becomes of plugins and servers. Must not
    /// block. Without it they go to `tracing`, as warnings.
    pub fn on_notice(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.tell = Some(Arc::new(hear));
        self
    }

    /// Builds the host, within the runtime of the caller, and waits until its tools can be called. The first time on a machine the
    /// first-party components are compiled, which takes some seconds; later that takes milliseconds.
    ///
    /// Errors: [`BuildError`]; the first thing that cannot be had ends it, but all problems of the configuration are told together.
    pub async fn build(self) -> Result<Host, BuildError> {
        let notify = self.tell.clone().unwrap_or_else(|| Arc::new(warn));
        let LoadedConfig {
            config, warnings, ..
        } = self.load().map_err(BuildError::Config)?;
        warnings.iter().for_each(|warning| notify(warning));
        let allow = rules(&self.allow, &config).map_err(BuildError::Rule)?;
        let backends = Backends::new(self.backends);
        let backends = backends.map_err(|error| BuildError::Start(StartError::Backend(error)))?;
        let told = Arc::clone(&notify);
        let options = StartOptions {
            is_server: true,
            is_part: true,
            allow,
            components: self.components,
            backends,
            tell: Some(Arc::new(move |event: &PluginEvent| {
                told(&event.to_string());
            })),
            ..StartOptions::default()
        };
        let (host, notices) = Host::start(config, options)
            .await
            .map_err(BuildError::Start)?;
        notices.iter().for_each(|notice| notify(notice));
        host.has_plugins().await;
        Ok(host)
    }

    fn load(&self) -> Result<LoadedConfig, ConfigErrors> {
        let mut surroundings = Surroundings::of_process()?;
        if let Some(directory) = &self.directory {
            let directory = surroundings.working_directory.join(directory);
            surroundings.working_directory = directory.canonicalize().unwrap_or(directory);
            surroundings.typed_directory = None;
        }
        let is_users = matches!(self.source, ConfigSource::User);
        if !is_users {
            surroundings.env.clear();
        }
        let mut flags = self.flags.clone();
        let state = self
            .state
            .as_deref()
            .map(|state| surroundings.working_directory.join(state));
        let placed = state.as_deref().map(state_in).unwrap_or_default();
        flags.set.splice(..0, placed);
        let loaded = self.read(&surroundings, &flags)?;
        let unsaid = match is_users {
            true => Vec::new(),
            false => unsaid(&loaded),
        };
        if unsaid.is_empty() {
            return Ok(loaded);
        }
        flags.set.extend(unsaid);
        self.read(&surroundings, &flags)
    }

    fn read(
        &self,
        surroundings: &Surroundings,
        flags: &Flags,
    ) -> Result<LoadedConfig, ConfigErrors> {
        match &self.source {
            ConfigSource::Text(text) => Config::of_text(surroundings, flags, text),
            ConfigSource::User => Config::load(surroundings, flags),
            ConfigSource::File(file) => {
                let flags = Flags {
                    config: Some(file.clone()),
                    ..flags.clone()
                };
                Config::load(surroundings, &flags)
            }
        }
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder")
            .field("source", &self.source)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

/// The values that keep state in `directory`.
fn state_in(directory: &Path) -> Vec<String> {
    let place = |key: &str, file: &str| format!("{key}={}", directory.join(file).display());
    vec![
        place("store.path", "zeph.db"),
        place("tools.audit.file", "audit.jsonl"),
    ]
}

/// The values that leave nothing behind and use no plugin of the user, of keys that nobody said.
fn unsaid(loaded: &LoadedConfig) -> Vec<String> {
    let is_built_in = |key: &str| {
        let mut settings = loaded.origins.iter();
        let setting = settings.find(|setting| setting.key == key);
        let mut origins = setting.iter().flat_map(|setting| &setting.origins);
        origins.all(|origin| matches!(origin, ValueOrigin::BuiltIn { .. }))
    };
    let places = WITHOUT_STATE.iter().filter(|(key, _)| is_built_in(key));
    let mut unsaid: Vec<String> = places
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if is_built_in("plugins.folders") && is_built_in("plugins.enabled") {
        unsaid.push("plugins.enabled=false".to_owned());
    }
    unsaid
}

/// The rules of a program; relative patterns start where relative paths of a call do.
fn rules(texts: &[String], config: &Config) -> Result<Vec<AllowRule>, BadRule> {
    let root = config.file.roots.first().map(|root| root.path.as_path());
    let directory = root.unwrap_or(Path::new("/"));
    // Rules are matched against resolved paths.
    let resolved = directory.canonicalize();
    let directory = resolved.as_deref().unwrap_or(directory).to_string_lossy();
    let rules = texts.iter().map(|text| AllowRule::parse(text, &directory));
    rules.collect()
}

fn warn(notice: &str) {
    tracing::warn!("{notice}");
}
