//! One loaded component and the tools it offers.

use std::collections::HashSet;
use std::sync::Arc;

use zeph_core::capability::FsGrant;
use zeph_core::id::{PluginId, ToolName};
use zeph_core::limit::CallLimits;
use zeph_core::tool::Tool;

use crate::bindings::ToolPluginPre;
use crate::call::CallGrant;
use crate::cancel::Cancel;
use crate::convert;
use crate::engine::Engine;
use crate::error::LoadError;
use crate::fs::FsPolicy;
use crate::state::GuestState;

/// Most tools of one plugin. More than a model can choose from; bounds what a hostile list costs.
const TOOLS_MAX: usize = 256;

/// A loaded plugin. Clones are handles to one.
#[derive(Clone)]
pub struct Plugin(pub(crate) Arc<Loaded>);

pub(crate) struct Loaded {
    pub(crate) id: PluginId,
    pub(crate) engine: Engine,
    pub(crate) pre: ToolPluginPre<GuestState>,
    tools: Vec<Tool>,
}

impl Plugin {
    /// Compiles `bytes` (or takes them from the cache), checks the world, and asks the component for its tools, without any
    /// grant and within `limits`.
    ///
    /// Errors: [`LoadError`] says what an author or operator has to mend.
    pub async fn load(
        engine: &Engine,
        id: PluginId,
        bytes: &'static [u8],
        limits: CallLimits,
    ) -> Result<Self, LoadError> {
        let pre = {
            let (engine, id) = (engine.clone(), id.clone());
            let prepared = tokio::task::spawn_blocking(move || prepare(&engine, &id, bytes)).await;
            match prepared {
                Ok(prepared) => prepared?,
                Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
            }
        };
        let mut loaded = Loaded {
            id,
            engine: engine.clone(),
            pre,
            tools: Vec::new(),
        };
        loaded.tools = list_tools(&loaded, limits).await?;
        Ok(Self(Arc::new(loaded)))
    }

    /// The plugin's name.
    pub fn id(&self) -> &PluginId {
        &self.0.id
    }

    /// The tools it offers.
    pub fn tools(&self) -> &[Tool] {
        &self.0.tools
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Plugin").field(&self.0.id).finish()
    }
}

fn prepare(
    engine: &Engine,
    id: &PluginId,
    bytes: &[u8],
) -> Result<ToolPluginPre<GuestState>, LoadError> {
    let component = engine
        .cache()
        .component(engine.wasm(), bytes)
        .map_err(|source| LoadError::Compile {
            plugin: id.clone(),
            source,
        })?;
    engine
        .linker()
        .instantiate_pre(&component)
        .and_then(ToolPluginPre::new)
        .map_err(|source| LoadError::World {
            plugin: id.clone(),
            source,
        })
}

async fn list_tools(loaded: &Loaded, limits: CallLimits) -> Result<Vec<Tool>, LoadError> {
    let bad = |reason: String| LoadError::Tools {
        plugin: loaded.id.clone(),
        reason,
    };
    let grant = CallGrant {
        fs: Arc::new(FsPolicy::new(&FsGrant::default()).map_err(|error| bad(error.to_string()))?),
        limits,
    };
    let definitions = loaded
        .list_tools(grant, Cancel::new())
        .await
        .map_err(|failure| bad(failure.message))?
        .map_err(bad)?;
    if definitions.len() > TOOLS_MAX {
        let n_tools = definitions.len();
        return Err(bad(format!(
            "it lists {n_tools} tools; the most is {TOOLS_MAX}"
        )));
    }
    let mut names: HashSet<ToolName> = HashSet::new();
    let mut tools = Vec::with_capacity(definitions.len());
    for definition in definitions {
        let tool = convert::tool(&loaded.id, definition).map_err(bad)?;
        if !names.insert(tool.name.clone()) {
            return Err(bad(format!("it lists `{}` twice", tool.name)));
        }
        tools.push(tool);
    }
    Ok(tools)
}
