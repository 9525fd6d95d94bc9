//! One loaded component and the tools it offers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use zeph_core::capability::FsGrant;
use zeph_core::failure::chain;
use zeph_core::id::{Digest, PluginId};
use zeph_core::limit::CallLimits;
use zeph_core::text::plain_line;
use zeph_core::tool::Tool;

use crate::call::{CallGrant, NO_SETTINGS};
use crate::cancel::Cancel;
use crate::compile::on_own_thread;
use crate::component::{self, ComponentBytes};
use crate::definition;
use crate::engine::Engine;
use crate::error::LoadError;
use crate::filter::{self, StrategyDefinition};
use crate::fs::FsPolicy;
use crate::lazy::{Compiled, ComponentOrigin, Lazy};
use crate::plain::{Plain, SkippedExport};
use crate::state::GuestState;

/// Most characters of the reason why tools cannot be listed: a guest may give one of many megabytes.
const REASON_CHARS_MAX: usize = 1_000;

/// Most processor time listing its tools may take a plugin, whatever its calls may take. Python needs a tenth.
const LIST_CPU_MAX: Duration = Duration::from_secs(5);

/// A plugin and its tools. Clones are handles to one.
#[derive(Clone)]
pub struct Plugin(pub(crate) Arc<LoadedPlugin>);

pub(crate) struct LoadedPlugin {
    pub(crate) id: PluginId,
    pub(crate) engine: Engine,
    component: Arc<Lazy>,
    origin: ComponentOrigin,
    tools: Vec<Tool>,
    strategies: Vec<StrategyDefinition>,
    /// Whether its last call was over in a moment.
    pub(crate) was_brief: Arc<AtomicBool>,
}

impl Plugin {
    /// Compiles `bytes` (or takes them from the cache), checks the world, and asks the component for its tools, without any
    /// grant and within `limits`. Of a component without our world the exported functions are the tools; one of filters has strategies
    /// and no tools.
    ///
    /// Errors: [`LoadError`] says what an author or operator has to mend.
    pub async fn load(
        engine: &Engine,
        id: PluginId,
        bytes: impl Into<ComponentBytes>,
        limits: CallLimits,
    ) -> Result<Self, LoadError> {
        let bytes = bytes.into();
        let digest = component::digest(&bytes);
        let loaded = LoadedPlugin::new(engine, id, digest, ComponentOrigin::Bytes(bytes));
        Self::of(loaded, limits).await
    }

    async fn of(mut loaded: LoadedPlugin, limits: CallLimits) -> Result<Self, LoadError> {
        let compiled = loaded.compiled().await?;
        // From here on it is ready: the bytes are needed for what they say of a plain component, and no more.
        let origin = ComponentOrigin::Bytes(Vec::new().into());
        let origin = std::mem::replace(&mut loaded.origin, origin);
        loaded.tools = match (compiled, origin) {
            (Compiled::Tools(_), _) => list_tools(&loaded, limits).await?,
            (Compiled::Plain(plain), ComponentOrigin::Bytes(bytes)) => {
                describe(&loaded, plain, bytes).await?
            }
            (Compiled::Filter(_), _) => {
                loaded.strategies = list_strategies(&loaded, limits).await?;
                Vec::new()
            }
            (Compiled::Plain(_), ComponentOrigin::File(_) | ComponentOrigin::Embedded(_)) => {
                Vec::new()
            }
        };
        Ok(Self(Arc::new(loaded)))
    }

    /// A plugin whose tools are known from a record of an earlier load: nothing is read before its first call, or
    /// [`Plugin::warm`].
    ///
    /// Shape: `digest` is that of the component `tools` were asked from, `file` where its bytes are when the cache has no artifact.
    pub fn recall(
        engine: &Engine,
        id: PluginId,
        digest: Digest,
        file: PathBuf,
        tools: Vec<Tool>,
    ) -> Self {
        let mut loaded = LoadedPlugin::new(engine, id, digest, ComponentOrigin::File(file));
        loaded.tools = tools;
        Self(Arc::new(loaded))
    }

    /// Like [`Plugin::recall`], of a component that is part of the program, with the tools that were made with it.
    pub fn embedded(
        engine: &Engine,
        id: PluginId,
        digest: Digest,
        bytes: fn() -> Vec<u8>,
        tools: Vec<Tool>,
    ) -> Self {
        let mut loaded = LoadedPlugin::new(engine, id, digest, ComponentOrigin::Embedded(bytes));
        loaded.tools = tools;
        Self(Arc::new(loaded))
    }

    /// Loads a filter component.
    pub fn recall_filter(
        engine: &Engine,
        id: PluginId,
        digest: Digest,
        file: PathBuf,
        strategies: Vec<StrategyDefinition>,
    ) -> Self {
        let mut loaded = LoadedPlugin::new(engine, id, digest, ComponentOrigin::File(file));
        loaded.strategies = strategies;
        Self(Arc::new(loaded))
    }

    /// A component of filters that is part of the program, by its digest: loaded when it is first needed, or by [`Plugin::warm`].
    pub fn embedded_filter(
        engine: &Engine,
        id: PluginId,
        digest: Digest,
        bytes: fn() -> Vec<u8>,
        strategies: Vec<StrategyDefinition>,
    ) -> Self {
        let mut loaded = LoadedPlugin::new(engine, id, digest, ComponentOrigin::Embedded(bytes));
        loaded.strategies = strategies;
        Self(Arc::new(loaded))
    }

    /// Makes a recalled plugin ready, so that its first call does not wait for that.
    ///
    /// Errors: [`LoadError`], among them that the file is no longer the one of the record. A call would fail as `server_error`.
    pub async fn warm(&self) -> Result<(), LoadError> {
        self.0.compiled().await.map(drop)
    }

    /// Whether it is ready, or can be in milliseconds because its compiled form is in the cache.
    pub fn is_at_hand(&self) -> bool {
        self.0.component.is_at_hand()
    }

    /// The plugin's name.
    pub fn id(&self) -> &PluginId {
        &self.0.id
    }

    /// The SHA-256 of its component.
    pub fn digest(&self) -> Digest {
        self.0.component.digest()
    }

    /// The functions of a plain component that are no tools, and why; none of a typed plugin, nor before it was loaded.
    pub fn skipped(&self) -> &[SkippedExport] {
        self.0.component.skipped()
    }

    /// The tools it offers; none of a component of filters.
    pub fn tools(&self) -> &[Tool] {
        &self.0.tools
    }

    /// The filter strategies it offers; none of any other component.
    pub fn strategies(&self) -> &[StrategyDefinition] {
        &self.0.strategies
    }
}

impl LoadedPlugin {
    fn new(engine: &Engine, id: PluginId, digest: Digest, origin: ComponentOrigin) -> Self {
        Self {
            component: Arc::new(Lazy::new(engine.clone(), id.clone(), digest)),
            id,
            engine: engine.clone(),
            origin,
            tools: Vec::new(),
            strategies: Vec::new(),
            was_brief: Arc::default(),
        }
    }

    /// The plugin's own name for a tool that is offered as `plugin__tool`, or under its own name when that holds no `__`.
    pub(crate) fn own_name(&self, offered: &str) -> String {
        let own = offered.strip_prefix(&format!("{}__", self.id));
        own.unwrap_or(offered).to_owned()
    }

    /// Whether the component is part of the program.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.origin, ComponentOrigin::Embedded(_))
    }

    /// The compiled form, loaded now if need be.
    pub(crate) async fn compiled(&self) -> Result<Compiled, LoadError> {
        self.component.get(&self.origin).await
    }
}

/// The tools of a plain component, in its author's words.
async fn describe(
    loaded: &LoadedPlugin,
    plain: Arc<Plain<GuestState>>,
    bytes: ComponentBytes,
) -> Result<Vec<Tool>, LoadError> {
    let id = loaded.id.clone();
    let tools = on_own_thread(move || plain.tools(&id, &bytes)).await;
    tools.ok_or_else(|| LoadError::Crashed {
        plugin: loaded.id.clone(),
    })
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Plugin").field(&self.0.id).finish()
    }
}

async fn list_tools(loaded: &LoadedPlugin, limits: CallLimits) -> Result<Vec<Tool>, LoadError> {
    let bad = |reason: String| LoadError::Tools {
        plugin: loaded.id.clone(),
        reason: plain_line(&reason, REASON_CHARS_MAX),
    };
    let id = loaded.id.clone();
    let read = move |definitions| definition::tools(&id, definitions);
    let grant = nothing(limits).map_err(bad)?;
    let listed = loaded.list_tools(grant, Cancel::new(), read).await;
    listed.map_err(bad)
}

async fn list_strategies(
    loaded: &LoadedPlugin,
    limits: CallLimits,
) -> Result<Vec<StrategyDefinition>, LoadError> {
    let bad = |reason: String| LoadError::Strategies {
        plugin: loaded.id.clone(),
        reason: plain_line(&reason, REASON_CHARS_MAX),
    };
    let grant = nothing(limits).map_err(bad)?;
    let listed = loaded.list_strategies(grant, Cancel::new(), filter::strategies);
    listed.await.map_err(bad)
}

/// No grant at all, for the time in which a plugin says what it offers.
fn nothing(limits: CallLimits) -> Result<CallGrant, String> {
    let nothing = FsPolicy::new(&FsGrant::default());
    let nothing = nothing.map_err(|error| chain(&error, REASON_CHARS_MAX))?;
    Ok(CallGrant {
        fs: Arc::new(nothing),
        limits: CallLimits {
            cpu: limits.cpu.min(LIST_CPU_MAX),
            ..limits
        },
        variables: Arc::default(),
        settings: NO_SETTINGS.into(),
        http: None,
    })
}
