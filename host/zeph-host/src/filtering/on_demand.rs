//! Strategies of plugins for commands that make no calls: the folders are looked at when a rule asks for one, and not before,
//! because most commands need none and have to start at once.
//!
//! What is in force there is what is in force in a host: the same folders, locks, pins and names. The nine run in this process.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use zeph_config::Config;
use zeph_core::failure::chain;
use zeph_core::id::PluginId;
use zeph_core::limit::CallLimits;
use zeph_core::manifest::Manifest;
use zeph_engine::{Engine, EngineOptions, Plugin, digest};
use zeph_filter::{Foreign, Input, Selection};
use zeph_plugins::event::{Tell, compile_listener};
use zeph_plugins::keeper::{self, Keeper};
use zeph_plugins::set::{PluginSet, ProgramParts, VettedPlugin, read_manifest};
use zeph_plugins::signature::SignatureCheck;

use super::wasm::{Components, Warm};
use crate::clock::now_ms;
use crate::signatures::Signatures;

/// Characters of why the engine does not start.
const REASON_CHARS_MAX: usize = 500;

/// The strategies of the plugins in the folders.
pub(crate) struct OnDemand {
    places: Places,
    /// Why nothing can be had is found out once, too.
    loaded: OnceLock<Result<Warm, String>>,
}

/// What it takes to look.
struct Places {
    folders: Vec<PathBuf>,
    /// How many of them, the last, were typed for this run.
    n_typed: usize,
    cache_dir: Option<PathBuf>,
    limits: CallLimits,
    /// Names that no file of a folder can have.
    first_party: Vec<PluginId>,
    program: String,
    signatures: Option<Arc<dyn SignatureCheck>>,
    tell: Tell,
}

impl OnDemand {
    /// Looks at nothing yet.
    ///
    /// Shape: `first_party` are the plugins of the program, `program` is how it is called here, and `tell` hears what takes time.
    pub(crate) fn new(
        config: &Config,
        first_party: Vec<PluginId>,
        program: String,
        tell: Tell,
    ) -> Self {
        let folders = match config.tools_enabled {
            true => config.plugins.folders.clone(),
            false => Vec::new(),
        };
        Self {
            places: Places {
                folders,
                n_typed: config.plugins.n_typed,
                cache_dir: config.engine.cache_dir.clone(),
                limits: config.limits,
                signatures: Signatures::of(config),
                first_party,
                program,
                tell,
            },
            loaded: OnceLock::new(),
        }
    }

    /// Blocks: only for a thread of a runtime that may.
    fn loaded(&self) -> Result<&Warm, &str> {
        let loaded = self.loaded.get_or_init(|| self.places.load());
        loaded.as_ref().map_err(String::as_str)
    }
}

impl Foreign for OnDemand {
    fn problem(&self, name: &str, options: &str) -> Option<String> {
        match self.loaded() {
            Ok(warm) => warm.problem(name, options),
            Err(why) => Some(why.to_owned()),
        }
    }

    fn apply(&self, name: &str, options: &str, input: &Input<'_>) -> Result<Selection, String> {
        self.loaded()?.apply(name, options, input)
    }
}

impl std::fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnDemand(…)")
    }
}

impl Places {
    fn load(&self) -> Result<Warm, String> {
        let engine = Engine::new(&EngineOptions {
            guest_threads: 1,
            pooled: false,
            cache_dir: self.cache_dir.clone(),
            on_compile: Some(compile_listener(Arc::clone(&self.tell))),
        })
        .map_err(|error| chain(&error, REASON_CHARS_MAX))?;
        let set = Handle::current().block_on(self.settled(&engine))?;
        let components = Components::new(&engine, &self.program);
        Ok(components.warm_of(&components.session(), set))
    }

    /// The plugins of the folders, each looked at.
    ///
    /// Errors: one sentence.
    async fn settled(&self, engine: &Engine) -> Result<Arc<PluginSet>, String> {
        // Their names are taken; they are neither loaded nor called here.
        let nothing = |id: &PluginId| {
            let file = PathBuf::new();
            let plugin = Plugin::recall(engine, id.clone(), digest(b""), file, Vec::new());
            Arc::new(VettedPlugin::of_program(
                plugin,
                read_manifest(Manifest::default()),
            ))
        };
        let kept = Keeper::start(keeper::KeeperOptions {
            engine: engine.clone(),
            limits: self.limits,
            clock: now_ms,
            folders: self.folders.clone(),
            n_typed: self.n_typed,
            cache_dir: self.cache_dir.clone(),
            fixed: ProgramParts {
                plugins: self.first_party.iter().map(nothing).collect(),
                builtin: Vec::new(),
            },
            gives_names: false,
            hints: None,
            watch: false,
            signatures: self.signatures.clone(),
            tell: Some(Arc::clone(&self.tell)),
        });
        let (keeper, mut plugins) = kept.map_err(|error| chain(&error, REASON_CHARS_MAX))?;
        let mut keeping = JoinSet::new();
        keeping.spawn(keeper.run());
        // An error means that the keeper has ended: then nothing will change any more.
        drop(plugins.wait_for(|set| set.is_settled).await);
        let set = Arc::clone(&plugins.borrow());
        Ok(set)
    }
}
