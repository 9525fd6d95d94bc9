//! The compiled form of one component, had at once or when it is first needed.
//!
//! A plugin that is known from a record costs a start nothing: the first call maps its artifact from the cache, or reads its file
//! again and compiles it. Callers that need it wait; loading continues even if all of them give up.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;
use wasmtime::component::Component;
use zeph_core::id::{Digest, PluginId};

use crate::bindings::ToolPluginPre;
use crate::compile::{AnswerFile, on_own_thread};
use crate::component::{self, ComponentBytes};
use crate::engine::Engine;
use crate::error::{LoadError, reason};
use crate::filter::FilterPluginPre;
use crate::inspect::inspect;
use crate::linker::linker_for;
use crate::plain::{Plain, SkippedExport};
use crate::state::GuestState;

/// A component ready to be instantiated, by the world it fits.
#[derive(Clone)]
pub(crate) enum Compiled {
    /// It exports `zeph:plugin/tools`.
    Tools(ToolPluginPre<GuestState>),
    /// It exports `zeph:filter/strategies`.
    Filter(FilterPluginPre<GuestState>),
    /// It exports plain functions only.
    Plain(Arc<Plain<GuestState>>),
}

/// A component's compiled form, perhaps yet to be loaded.
pub(crate) struct Lazy {
    engine: Engine,
    plugin: PluginId,
    digest: Digest,
    ready: OnceLock<Compiled>,
    /// Taken by the one who loads, so that it is done once.
    turn: Arc<Semaphore>,
}

/// Where the bytes are when no artifact is in the cache.
#[derive(Clone)]
pub(crate) enum ComponentOrigin {
    Bytes(ComponentBytes),
    /// Part of the program, where they may have to be unpacked.
    Embedded(fn() -> Vec<u8>),
    File(PathBuf),
}

impl Lazy {
    pub(crate) fn new(engine: Engine, plugin: PluginId, digest: Digest) -> Self {
        Self {
            engine,
            plugin,
            digest,
            ready: OnceLock::new(),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether it is loaded, or can be without compiling.
    pub(crate) fn is_at_hand(&self) -> bool {
        self.ready.get().is_some() || self.engine.has_compiled(self.digest)
    }

    /// See [`crate::Plugin::skipped`].
    pub(crate) fn skipped(&self) -> &[SkippedExport] {
        match self.ready.get() {
            Some(Compiled::Plain(plain)) => plain.skipped(),
            Some(Compiled::Tools(_) | Compiled::Filter(_)) | None => &[],
        }
    }

    /// The compiled form. The first who asks loads it, the others wait for that.
    ///
    /// Errors: [`LoadError`]; the next who asks tries again. Dropping the future does not stop the loading.
    pub(crate) async fn get(
        self: &Arc<Self>,
        origin: &ComponentOrigin,
    ) -> Result<Compiled, LoadError> {
        if let Some(ready) = self.ready.get() {
            return Ok(ready.clone());
        }
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        if let Some(ready) = self.ready.get() {
            return Ok(ready.clone());
        }
        let (this, origin) = (Arc::clone(self), origin.clone());
        let loaded = on_own_thread(move || {
            let loaded = this.load(&origin)?;
            let ready = this.ready.get_or_init(|| loaded).clone();
            drop(turn);
            Ok(ready)
        });
        let crashed = || LoadError::Crashed {
            plugin: self.plugin.clone(),
        };
        loaded.await.unwrap_or_else(|| Err(crashed()))
    }

    /// Blocks, for seconds when it has to compile.
    fn load(&self, origin: &ComponentOrigin) -> Result<Compiled, LoadError> {
        let (engine, plugin) = (&self.engine, &self.plugin);
        let component = match engine.cache().get(engine.wasm(), self.digest) {
            Some(component) => component,
            None => self.compile(&self.bytes(origin)?)?,
        };
        let world = |error| LoadError::World {
            plugin: plugin.clone(),
            reason: reason(&error),
        };
        let linker = linker_for(&component).map_err(world)?;
        let pre = linker.instantiate_pre(&component).map_err(world)?;
        match our_world(&component) {
            Some(OurWorld::Filter) => {
                return FilterPluginPre::new(pre)
                    .map(Compiled::Filter)
                    .map_err(world);
            }
            Some(OurWorld::Tools) => {
                return ToolPluginPre::new(pre).map(Compiled::Tools).map_err(world);
            }
            None => {}
        }
        let plain = Plain::new(pre).map_err(|source| LoadError::Plain {
            plugin: plugin.clone(),
            source,
        })?;
        Ok(Compiled::Plain(Arc::new(plain)))
    }

    fn bytes(&self, origin: &ComponentOrigin) -> Result<ComponentBytes, LoadError> {
        let path = match origin {
            ComponentOrigin::Bytes(bytes) => return Ok(bytes.clone()),
            ComponentOrigin::Embedded(bytes) => return Ok(bytes().into()),
            ComponentOrigin::File(path) => path,
        };
        let bytes = ComponentBytes::read(path).map_err(|source| LoadError::Read {
            plugin: self.plugin.clone(),
            path: path.clone(),
            source,
        })?;
        if component::digest(&bytes) != self.digest {
            return Err(LoadError::Changed {
                plugin: self.plugin.clone(),
                path: path.clone(),
            });
        }
        Ok(bytes)
    }

    /// Nothing is compiled that was not inspected, so an artifact in the cache is one of a component that was.
    fn compile(&self, bytes: &[u8]) -> Result<Component, LoadError> {
        let plugin = || self.plugin.clone();
        let inspected = inspect(bytes).map_err(|source| LoadError::Component {
            plugin: plugin(),
            source,
        })?;
        if !inspected.is_usable() {
            return Err(LoadError::Unusable {
                plugin: plugin(),
                problems: inspected.problems,
            });
        }
        let (engine, wasm) = (&self.engine, self.engine.wasm());
        let mut took = None;
        let compile = |left: Option<&AnswerFile>| {
            let (compiled, duration) = engine.compiler().compile(&self.plugin, bytes, left);
            took = Some(duration);
            compiled
        };
        let waits = || engine.compiler().waits(plugin());
        let cache = engine.cache();
        let compiled = cache.get_or_compile(wasm, self.digest, waits, compile);
        if let Some(took) = took {
            engine.compiler().is_over(plugin(), took, compiled.is_ok());
        }
        compiled.map_err(|error| LoadError::Compile {
            plugin: plugin(),
            reason: reason(&error),
        })
    }
}

/// What a component that is meant for this host offers.
enum OurWorld {
    Tools,
    Filter,
}

/// Which of our worlds it is made for, in whatever version.
fn our_world(component: &Component) -> Option<OurWorld> {
    let ty = component.component_type();
    let mut exports = ty.exports(component.engine()).map(|(name, _)| name);
    let ours = exports.find(|name| name.starts_with("zeph:"))?;
    match ours.starts_with("zeph:filter/") {
        true => Some(OurWorld::Filter),
        false => Some(OurWorld::Tools),
    }
}
