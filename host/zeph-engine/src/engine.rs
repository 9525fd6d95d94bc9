//! The wasm engine, built once: configuration, guest threads, ticker, artifact cache.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};
use zeph_core::id::Digest;

use crate::cache::{ArtifactCache, SharedArtifacts};
use crate::compile::{CompileListener, Compiler};
use crate::error::EngineError;
use crate::limiter::LIMITS_MAX;

/// How often a running guest is looked at. A limit is noticed at most this much too late.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Ticks for which the ticker goes on once no guest runs: calls that follow each other do not wake it, each with a switch of threads.
const IDLE_TICKS_MAX: u32 = 20;

/// Bytes of a guest's memory that stay mapped between calls, so that the next call does not fault them in again.
///
/// Source: measured; with the kernel's pagemap scan a fresh instance of a 2 MB component costs a third of what it
/// costs without. More than 2 MiB gains nothing for the first-party guests and is paid once per pool slot.
const KEEP_RESIDENT_BYTES: usize = 2 * 1024 * 1024;

/// Core instances, memories and tables one component may consist of, per pool slot. A component of a JavaScript or Python
/// tool chain has a handful of each.
pub(crate) const CORE_PARTS_MAX: u32 = 24;

/// Memories one component may consist of.
pub(crate) const MEMORIES_MAX: u32 = 4;

/// Instances of filter strategies that wait for their session's next output, over all sessions. Sessions beyond pay for a fresh one
/// each time.
const FILTERS_KEPT_MAX: u32 = 32;

/// What the operator chooses about the engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Guests that run at the same time; each has a thread.
    pub guest_threads: u32,
    /// Slots are prepared ahead: right for a server, wasted time for a single call.
    pub pooled: bool,
    /// Where compiled components are kept; none compiles at every start.
    pub cache_dir: Option<PathBuf>,
    /// Called before a component is compiled, which may take seconds, and afterwards.
    pub on_compile: Option<CompileListener>,
}

/// The engine. Clones are handles to one engine.
#[derive(Clone)]
pub struct Engine(Arc<EngineState>);

struct EngineState {
    wasm: wasmtime::Engine,
    threads: Arc<Semaphore>,
    filters: Arc<Semaphore>,
    cache: ArtifactCache,
    compiler: Compiler,
    ticker: Ticker,
}

impl Engine {
    /// Builds the engine.
    ///
    /// Errors: [`EngineError`] when the platform lacks what wasm execution needs.
    pub fn new(options: &EngineOptions) -> Result<Self, EngineError> {
        Self::sharing(options, None)
    }

    /// Builds the engine; what it would have to compile it takes from `shared` where another host put it, and puts it there otherwise.
    /// Without a cache of its own it uses neither.
    ///
    /// Errors: those of [`new`](Self::new).
    pub fn sharing(
        options: &EngineOptions,
        shared: Option<SharedArtifacts>,
    ) -> Result<Self, EngineError> {
        let wasm = wasmtime::Engine::new(&config(Some(options))).map_err(EngineError::Start)?;
        let ticker = Ticker::start(wasm.clone()).map_err(EngineError::Ticker)?;
        let cache = ArtifactCache::new(options.cache_dir.clone(), shared, &wasm);
        Ok(Self(Arc::new(EngineState {
            wasm,
            threads: Arc::new(Semaphore::new(options.guest_threads as usize)),
            filters: Arc::new(Semaphore::new(FILTERS_KEPT_MAX as usize)),
            cache,
            compiler: Compiler::new(options.on_compile.clone()),
            ticker,
        })))
    }

    /// Whether the cache holds the compiled form of the component with this digest: then loading it takes milliseconds.
    pub fn has_compiled(&self, digest: Digest) -> bool {
        self.0.cache.has(digest)
    }

    /// Runs `work`, which lets strategies of a [`FilterSession`](crate::FilterSession) work, on a thread that may block, once one
    /// of the guest threads is free.
    ///
    /// None when `work` panicked. Dropping the future does not stop it; its limits do.
    pub async fn on_guest_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let thread = Arc::clone(&self.0.threads).acquire_owned().await.ok()?;
        let worked = tokio::task::spawn_blocking(move || {
            let worked = work();
            drop(thread);
            worked
        });
        match worked.await {
            Ok(worked) => Some(worked),
            Err(error) => {
                tracing::error!(%error, "filtering failed in the host");
                None
            }
        }
    }

    /// A place for an instance of strategies that is kept; none when all are taken.
    pub(crate) fn place_for_filter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.filters).try_acquire_owned().ok()
    }

    pub(crate) fn wasm(&self) -> &wasmtime::Engine {
        &self.0.wasm
    }

    pub(crate) fn threads(&self) -> &Arc<Semaphore> {
        &self.0.threads
    }

    pub(crate) fn cache(&self) -> &ArtifactCache {
        &self.0.cache
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.0.compiler
    }

    /// Keeps the ticker going while the returned value lives.
    pub(crate) fn running(&self) -> RunningGuest {
        RunningGuest::new(Arc::clone(&self.0.ticker.shared))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// That of an engine for these options, or for compiling alone: an artifact of one serves the other.
pub(crate) fn config(options: Option<&EngineOptions>) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        // The runtimes of some languages import the async built-ins for plain functions. A component that never waits runs.
        .wasm_component_model_async(true)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(20))
        // For debuggers of other programs: each function of a component would be registered for unwinding when it is loaded.
        .native_unwind_info(false)
        // Set for both allocators alike, so that one artifact serves both.
        .memory_reservation(4 << 30)
        .memory_may_move(false);
    if let Some(options) = options.filter(|options| options.pooled) {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(options)));
    }
    config
}

fn pool(options: &EngineOptions) -> PoolingAllocationConfig {
    // One slot more than threads: a guest's slot is returned a moment after its thread is. Kept filters hold theirs.
    let n_slots = options.guest_threads + 1 + FILTERS_KEPT_MAX;
    // Address space for the most a plugin can be granted; what is not used is never touched.
    let table_elements = usize::try_from(LIMITS_MAX.table_elements).unwrap_or(usize::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(n_slots)
        .total_stacks(n_slots)
        .total_core_instances(n_slots * CORE_PARTS_MAX)
        .total_memories(n_slots * MEMORIES_MAX)
        .total_tables(n_slots * CORE_PARTS_MAX)
        .max_core_instances_per_component(CORE_PARTS_MAX)
        .max_tables_per_component(CORE_PARTS_MAX)
        .max_memories_per_component(MEMORIES_MAX)
        .max_tables_per_module(CORE_PARTS_MAX)
        .table_elements(table_elements)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(64 * 1024)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Advances the epoch at a steady rate while a guest runs and for a moment longer, and sleeps otherwise.
struct Ticker {
    shared: Arc<TickerShared>,
    thread: Thread,
}

struct TickerShared {
    n_running: AtomicUsize,
    is_stopped: AtomicBool,
    /// Whether the thread has to be woken before it ticks.
    is_parked: AtomicBool,
    /// Set right after the thread has started.
    thread: std::sync::OnceLock<Thread>,
}

impl Ticker {
    fn start(wasm: wasmtime::Engine) -> std::io::Result<Self> {
        let shared = Arc::new(TickerShared {
            n_running: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            is_parked: AtomicBool::new(false),
            thread: std::sync::OnceLock::new(),
        });
        let of_thread = Arc::clone(&shared);
        let handle = thread::Builder::new()
            .name("zeph-ticker".to_owned())
            .spawn(move || tick(&wasm, &of_thread))?;
        let thread = handle.thread().clone();
        shared.thread.get_or_init(|| thread.clone());
        Ok(Self { shared, thread })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn tick(wasm: &wasmtime::Engine, shared: &TickerShared) {
    let mut n_idle = IDLE_TICKS_MAX;
    while !shared.is_stopped.load(Ordering::Acquire) {
        n_idle = match shared.n_running.load(Ordering::Acquire) {
            0 => n_idle + 1,
            _ => 0,
        };
        if n_idle > IDLE_TICKS_MAX {
            shared.wait_for_guest();
            n_idle = 0;
            continue;
        }
        thread::sleep(TICK);
        wasm.increment_epoch();
    }
}

impl TickerShared {
    /// Parks the thread of the ticker until a guest runs, or it has to end.
    fn wait_for_guest(&self) {
        // In one order with what a guest does when it starts: it sees the flag, or is seen here.
        self.is_parked.store(true, Ordering::SeqCst);
        if self.n_running.load(Ordering::SeqCst) == 0 && !self.is_stopped.load(Ordering::SeqCst) {
            thread::park();
        }
        self.is_parked.store(false, Ordering::SeqCst);
    }
}

/// A guest is running.
pub(crate) struct RunningGuest(Arc<TickerShared>);

impl RunningGuest {
    fn new(shared: Arc<TickerShared>) -> Self {
        shared.n_running.fetch_add(1, Ordering::SeqCst);
        if shared.is_parked.load(Ordering::SeqCst)
            && let Some(thread) = shared.thread.get()
        {
            thread.unpark();
        }
        Self(shared)
    }
}

impl Drop for RunningGuest {
    fn drop(&mut self) {
        self.0.n_running.fetch_sub(1, Ordering::AcqRel);
    }
}
