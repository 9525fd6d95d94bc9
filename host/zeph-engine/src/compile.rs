//! Compiling, one component at a time per engine: a large one takes every core for seconds, two at once would take them for
//! longer and twice the memory. Guests have their own threads and go on meanwhile.

mod answer;
mod child;
#[cfg(target_os = "linux")]
mod confine;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rayon::ThreadPoolBuilder;
use tokio::sync::oneshot;
use wasmtime::Engine;
use zeph_core::id::PluginId;

use crate::cache::LOCK_WAIT;
use crate::engine;

pub(crate) use self::answer::AnswerFile;
pub use self::child::compile_if_asked;

/// The name of threads that compile.
const THREADS: &str = "zeph-compile";

/// How compiling a component is getting on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileEvent {
    /// Another process compiles it, and is waited for.
    Waits {
        /// Which plugin.
        plugin: PluginId,
        /// How long at most.
        at_most: Duration,
    },
    /// It has begun and may take seconds.
    Started {
        /// Which plugin.
        plugin: PluginId,
        /// The size of its component.
        n_bytes: usize,
    },
    /// It is done, and what was needed for it is freed; the next start finds the artifact in the cache.
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
    /// Held while a component is compiled; protects cores and memory, no data.
    turn: Mutex<()>,
    listener: Option<CompileListener>,
}

impl Compiler {
    pub(crate) fn new(listener: Option<CompileListener>) -> Self {
        Self {
            turn: Mutex::new(()),
            listener,
        }
    }

    /// The artifact of `bytes` and how long it took, once no other component is being compiled. Blocks for seconds. [`Self::is_over`] is
    /// to follow. A process that outlives this one leaves the artifact in `left`.
    ///
    /// Errors: the compiler's.
    pub(crate) fn compile(
        &self,
        plugin: &PluginId,
        bytes: &[u8],
        left: Option<&AnswerFile>,
    ) -> (wasmtime::Result<Vec<u8>>, Duration) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.tell(CompileEvent::Started {
            plugin: plugin.clone(),
            n_bytes: bytes.len(),
        });
        let started = Instant::now();
        let compiled = child::compile(bytes, left).unwrap_or_else(|| compile_here(bytes));
        (compiled, started.elapsed())
    }

    /// Tells that another process compiles the component.
    pub(crate) fn waits(&self, plugin: PluginId) {
        let at_most = LOCK_WAIT;
        self.tell(CompileEvent::Waits { plugin, at_most });
    }

    /// Tells that a component was compiled, or could not be, once nothing of that is held in memory any more.
    pub(crate) fn is_over(&self, plugin: PluginId, duration: Duration, is_compiled: bool) {
        self.tell(match is_compiled {
            true => CompileEvent::Finished { plugin, duration },
            false => CompileEvent::Failed { plugin, duration },
        });
    }

    fn tell(&self, event: CompileEvent) {
        if let Some(listener) = &self.listener {
            listener.tell(event);
        }
    }
}

/// Compiles in this process, with an engine and threads of its own, which go with all they needed for that: those that stay would keep
/// it, some 100 MB for a large component, in the engine and in what an allocator holds ready for each thread.
fn compile_here(bytes: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let threads = ThreadPoolBuilder::new().thread_name(|_| THREADS.to_owned());
    match threads.build() {
        Ok(threads) => threads.install(|| artifact(bytes)),
        Err(error) => {
            tracing::warn!(%error, "the threads that compile cannot start");
            artifact(bytes)
        }
    }
}

/// Compiles with the configuration of every engine, but for what an instance needs.
fn artifact(bytes: &[u8]) -> wasmtime::Result<Vec<u8>> {
    Engine::new(&engine::config(None))?.precompile_component(bytes)
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

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::thread;
    use std::time::{Duration, Instant};

    use zeph_core::id::PluginId;

    use super::Compiler;

    /// Threads of the process: each test is one of its own.
    fn n_threads() -> usize {
        fs::read_dir("/proc/self/task").unwrap().count()
    }

    #[test]
    fn threads_that_compile_end_with_it() {
        let component = wat::parse_str("(component (core module (func (export \"f\"))))").unwrap();
        let plugin = PluginId("compiled".to_owned());
        let before = n_threads();
        let compiler = Compiler::new(None);
        let (compiled, _duration) = compiler.compile(&plugin, &component, None);
        assert!(!compiled.unwrap().is_empty());
        let patience = Instant::now() + Duration::from_secs(60);
        while n_threads() > before {
            assert!(Instant::now() < patience, "{} threads", n_threads());
            thread::yield_now();
        }
    }
}
