//! Trying a component outside the folders, exactly as one in a folder is loaded: nothing of it is run but the list of its tools,
//! without any grant.

use std::path::PathBuf;
use std::sync::Arc;

use zeph_core::id::PluginId;
use zeph_core::limit::CallLimits;
use zeph_engine::{ComponentBytes, Engine, EngineError, EngineOptions};

use crate::event::{Tell, compile_listener};
use crate::load::{self, LoadResult};
use crate::set::VettedPlugin;

/// An engine for a handful of components.
///
/// Shape:  without `cache_dir` nothing is left behind.
/// Errors: when this machine cannot run components at all.
pub fn engine(cache_dir: Option<PathBuf>, tell: Tell) -> Result<Engine, EngineError> {
    let options = EngineOptions {
        guest_threads: 1,
        pooled: false,
        cache_dir,
        on_compile: Some(compile_listener(tell)),
    };
    Engine::new(&options)
}

/// Loads a component.
///
/// Errors: one sentence that says why it is not a plugin.
pub async fn load(
    engine: &Engine,
    id: &PluginId,
    bytes: ComponentBytes,
    limits: CallLimits,
) -> Result<Arc<VettedPlugin>, String> {
    match load::load_bytes(engine, id, bytes, limits).await {
        LoadResult::Good(good, _) => Ok(good),
        LoadResult::Bad(reason) => Err(reason),
        LoadResult::Again => Err("it changed while it was read".to_owned()),
    }
}
