//! Compiling, one component at a time per engine: a large one takes every core for seconds, two at once would take them for
//! longer and twice the memory. Guests have their own threads and go on meanwhile.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use wasmtime::{Config, Engine};
use zeph_core::id::PluginId;

/// How compiling a component is getting on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileEvent {
    /// It has begun and may take seconds.
    Started {
        /// Which plugin.
        plugin: PluginId,
        /// The size of its component.
        n_bytes: usize,
    },
    /// It is done; the next start finds the artifact in the cache.
    Finished {
        /// Which plugin.
        plugin: PluginId,
        /// How long it took.
        duration: Duration,
    },
    /// The compiler refused the component.
    Failed {
        /// Which plugin.
        plugin: PluginId,
        /// How long it took.
        duration: Duration,
    },
}

/// Listens to compilation events. Called on the compiling thread, which waits, so it should only forward the event.
#[derive(Clone)]
pub struct CompileListener(Arc<dyn Fn(CompileEvent) + Send + Sync>);

impl CompileListener {
    /// Tells `listener`.
    pub fn new(listener: impl Fn(CompileEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Tells it an event.
    pub fn tell(&self, event: CompileEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for CompileListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompileListener(…)")
    }
}

/// The compiler of one engine.
pub(crate) struct Compiler {
    /// That of the engine, but for what an instance needs.
    config: Config,
    /// Held while a component is compiled; protects cores and memory, no data.
    turn: Mutex<()>,
    listener: Option<CompileListener>,
}

impl Compiler {
    pub(crate) fn new(config: Config, listener: Option<CompileListener>) -> Self {
        Self {
            config,
            turn: Mutex::new(()),
            listener,
        }
    }

    /// The artifact of `bytes`, once no other component is being compiled. Blocks for seconds.
    ///
    /// Errors: the compiler's.
    pub(crate) fn compile(&self, plugin: &PluginId, bytes: &[u8]) -> wasmtime::Result<Vec<u8>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let tell = |event| {
            if let Some(listener) = &self.listener {
                listener.tell(event);
            }
        };
        tell(CompileEvent::Started {
            plugin: plugin.clone(),
            n_bytes: bytes.len(),
        });
        let started = Instant::now();
        let compiled = self.artifact(bytes);
        let (plugin, duration) = (plugin.clone(), started.elapsed());
        tell(match compiled {
            Ok(_) => CompileEvent::Finished { plugin, duration },
            Err(_) => CompileEvent::Failed { plugin, duration },
        });
        compiled
    }
}

impl Compiler {
    /// Compiles with an engine of its own, which goes with all it needed for that: one that stays would keep it, some 100 MB for a large
    /// component.
    fn artifact(&self, bytes: &[u8]) -> wasmtime::Result<Vec<u8>> {
        Engine::new(&self.config)?.precompile_component(bytes)
    }
}

/// Runs `work` on a thread of its own. Compiling cannot be stopped: on a thread of the runtime it would hold up the end of the
/// process, here the process ends without it. A caller that goes away leaves `work` to finish.
///
/// None when the thread could not be started or panicked.
pub(crate) async fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    let thread = thread::Builder::new()
        .name("zeph-load".to_owned())
        .spawn(move || {
            // Nobody waits any more when the caller has gone; what `work` left behind is found by the next one.
            drop(sender.send(work()));
        });
    if let Err(error) = thread {
        tracing::error!(%error, "the thread that loads a plugin cannot start");
    }
    receiver.await.ok()
}
