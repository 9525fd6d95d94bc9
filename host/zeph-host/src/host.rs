//! Everything that is built once at start and never changes afterwards.

use std::sync::Arc;
use std::time::Duration;

use zeph_core::call::{Caller, ToolRequest};
use zeph_core::catalog::{Catalog, DuplicateTool};
use zeph_core::id::{ConversationId, PluginId};
use zeph_core::policy::Policy;
use zeph_core::tool::Backend;
use zeph_engine::fs::{FsPolicy, FsPolicyError};
use zeph_engine::{
    CallGrant, CompileListener, Engine, EngineError, EngineOptions, LoadError, Plugin,
};
use zeph_store::{Location, Opened, Store, StoreError, StoreOptions};

use crate::audit::Audit;
use crate::builtin;
use crate::clock::now_ms;
use crate::config::{Config, StoreLocation};
use crate::pipeline::{self, CallControl, CallReport};
use crate::session::Session;

/// The running host. Clones are handles to one.
#[derive(Debug, Clone)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) catalog: Catalog,
    pub(crate) policy: Policy,
    pub(crate) plugins: Vec<Plugin>,
    pub(crate) grant: CallGrant,
    pub(crate) store: Store,
    pub(crate) audit: Audit,
}

/// How this process will use the host.
#[derive(Debug, Clone, Default)]
pub struct StartOptions {
    /// Many calls are expected: prepare for them.
    pub is_server: bool,
    /// The rules of this run.
    pub policy: Policy,
    /// The components that offer tools.
    pub components: Vec<Component>,
    /// Told when a component has to be compiled, which may take seconds, once.
    pub on_compile: Option<CompileListener>,
}

/// A component that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// The plugin's name.
    pub name: &'static str,
    /// Its binary.
    pub bytes: &'static [u8],
}

impl Component {
    /// The components that come with the host.
    pub fn first_party() -> Vec<Self> {
        zeph_bundle::COMPONENTS
            .iter()
            .map(|(name, bytes)| Self { name, bytes })
            .collect()
    }
}

/// How long an operation waits for another process that holds the store.
const STORE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The host could not start. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The wasm engine.
    #[error("the engine cannot start")]
    Engine(#[source] EngineError),
    /// A first-party component.
    #[error("a first-party plugin cannot be loaded")]
    Plugin(#[source] LoadError),
    /// Two plugins offer one name.
    #[error("the catalog cannot be built")]
    Catalog(#[source] DuplicateTool),
    /// A granted directory.
    #[error("the granted directories cannot be opened")]
    Files(#[source] FsPolicyError),
    /// The store.
    #[error("the store cannot be opened")]
    Store(#[source] StoreError),
}

impl Host {
    /// Builds the host: engine, plugins, catalog, store, audit.
    ///
    /// Returns it with what the operator should know, one sentence each.
    /// Errors: [`StartError`]; the first thing that cannot be had stops the start.
    pub async fn start(
        config: Config,
        options: StartOptions,
    ) -> Result<(Self, Vec<String>), StartError> {
        let engine = Engine::new(&EngineOptions {
            guest_threads: u32::try_from(config.engine.guest_threads.get()).unwrap_or(u32::MAX),
            pooled: options.is_server,
            cache_dir: config.engine.cache_dir.clone(),
            limits: config.limits,
            on_compile: options.on_compile,
        })
        .map_err(StartError::Engine)?;
        let fs = FsPolicy::new(&config.file).map_err(StartError::Files)?;
        let grant = CallGrant {
            fs: Arc::new(fs),
            limits: config.limits,
            variables: Arc::default(),
        };
        let plugins = load(&engine, &config, options.components).await?;
        let catalog = catalog(&plugins, &config)?;
        let Opened { store, notices } = open_store(&config)?;
        store
            .sweep(config.overflow.retention, now_ms())
            .await
            .map_err(StartError::Store)?;
        let directory = config.file.roots.first().map(|root| root.path.clone());
        let audit =
            Audit::open(&config.audit, store.clone(), directory).map_err(StartError::Store)?;
        let inner = Inner {
            catalog,
            policy: options.policy,
            plugins,
            grant,
            store,
            audit,
            config,
        };
        Ok((Self(Arc::new(inner)), notices))
    }

    /// The tools.
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The store, for listings.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Begins a session: in `conversation`, or in a new one.
    ///
    /// Errors: [`StoreError`] when the conversation cannot be recorded.
    pub async fn open_session(
        &self,
        conversation: Option<ConversationId>,
        caller: Caller,
    ) -> Result<Session, StoreError> {
        let conversation = conversation.unwrap_or_else(ConversationId::new);
        self.0
            .store
            .begin_conversation(conversation, now_ms())
            .await?;
        Ok(Session {
            conversation,
            caller,
        })
    }

    /// Makes one call: the whole line from request to audit. Never fails: whatever happens is in the report.
    pub async fn call(
        &self,
        session: &Session,
        request: ToolRequest,
        control: CallControl,
    ) -> CallReport {
        pipeline::call(&self.0, session, request, control).await
    }
}

/// Opens the store where the configuration says.
pub(crate) fn open_store(config: &Config) -> Result<Opened, StartError> {
    let location = match &config.store {
        StoreLocation::File(path) => Location::File(path.clone()),
        StoreLocation::Memory => Location::Memory,
    };
    let options = StoreOptions {
        at_ms: now_ms(),
        busy_timeout: STORE_BUSY_TIMEOUT,
    };
    Store::open(location, options).map_err(StartError::Store)
}

async fn load(
    engine: &Engine,
    config: &Config,
    components: Vec<Component>,
) -> Result<Vec<Plugin>, StartError> {
    let mut plugins = Vec::with_capacity(components.len());
    for Component { name, bytes } in components {
        let id = PluginId(name.to_owned());
        let plugin = Plugin::load(engine, id, bytes, config.limits)
            .await
            .map_err(StartError::Plugin)?;
        plugins.push(plugin);
    }
    Ok(plugins)
}

fn catalog(plugins: &[Plugin], config: &Config) -> Result<Catalog, StartError> {
    if !config.tools_enabled {
        return Ok(Catalog::default());
    }
    let of_plugins = plugins
        .iter()
        .flat_map(|plugin| plugin.tools().iter().cloned());
    Catalog::new(of_plugins.chain(builtin::tools())).map_err(StartError::Catalog)
}

impl Inner {
    /// The plugin behind a backend.
    pub(crate) fn plugin(&self, backend: &Backend) -> Option<&Plugin> {
        match backend {
            Backend::Wasm(id) => self.plugins.iter().find(|plugin| plugin.id() == id),
            Backend::Builtin => None,
        }
    }
}
