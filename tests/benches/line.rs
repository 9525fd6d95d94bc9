//! What the whole line costs beside the bare engine: a trivial tool call through [`Host::call`], with the store and audit file
//! on disk, against a fresh instance and one call of the same component on plain wasmtime with the same engine configuration.
//!
//! Both alternate in one process, so a busy machine slows both. Prints one row of the figures table for each figure.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use wasmtime::component::{Component as WasmComponent, Linker, ResourceTable};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
#[path = "echo/host.rs"]
mod host;

use host::{HOSTILE, call, session, start};

const N_ROUNDS: usize = 3_000;
const N_WARM: usize = 300;

mod bare {
    wasmtime::component::bindgen!({
        path: "../wit/zeph-plugin",
        world: "tool-plugin",
        imports: { default: trappable },
        exports: { default: async },
    });
}

struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory");
    let host = runtime.block_on(start(dir.path()));
    let session = runtime.block_on(session(&host));
    let bare = Bare::new();
    let (mut of_line, mut of_bare) = (Vec::new(), Vec::new());
    for round in 0..N_ROUNDS + N_WARM {
        let line = time(|| runtime.block_on(call(&host, &session)));
        let bare = time(|| runtime.block_on(bare.call()));
        if round >= N_WARM {
            of_line.push(line);
            of_bare.push(bare);
        }
    }
    let (line, bare) = (percentiles(&mut of_line), percentiles(&mut of_bare));
    println!(
        "| whole line, trivial call, p50 | {:.1?} | ≤ 4 × bare (10 before) | {:.1} × ({:.1?}) |",
        line.p50,
        ratio(line.p50, bare.p50),
        bare.p50
    );
    println!(
        "| whole line, trivial call, p99 | {:.1?} | ≤ 2 ms | |",
        line.p99
    );
}

/// Plain wasmtime with the engine configuration of the host.
struct Bare {
    engine: wasmtime::Engine,
    pre: bare::ToolPluginPre<Guest>,
}

impl Bare {
    fn new() -> Self {
        let mut pool = PoolingAllocationConfig::new();
        pool.linear_memory_keep_resident(2 << 20)
            .table_keep_resident(64 << 10)
            .total_component_instances(17)
            .total_memories(68)
            .pagemap_scan(Enabled::Auto);
        let mut config = Config::new();
        config
            .epoch_interruption(true)
            .concurrency_support(false)
            .memory_reservation(4 << 30)
            .memory_may_move(false)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = wasmtime::Engine::new(&config).expect("an engine");
        let component = WasmComponent::from_binary(&engine, HOSTILE).expect("a component");
        let mut linker = Linker::<Guest>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI links");
        linker
            .define_unknown_imports_as_traps(&component)
            .expect("the rest links");
        let pre = linker
            .instantiate_pre(&component)
            .and_then(bare::ToolPluginPre::new)
            .expect("the world fits");
        Self { engine, pre }
    }

    async fn call(&self) {
        let guest = Guest {
            wasi: WasiCtxBuilder::new().build(),
            table: ResourceTable::new(),
        };
        let mut store = Store::new(&self.engine, guest);
        store.set_epoch_deadline(1);
        let instance = self
            .pre
            .instantiate_async(&mut store)
            .await
            .expect("an instance");
        let arguments = json!({"text": "0123456789".repeat(10)}).to_string();
        let context = bare::zeph::plugin::types::CallContext {
            call_id: String::new(),
            conversation_id: String::new(),
            turn_id: None,
            goal_id: None,
            caller_id: None,
            remaining_ms: 1_000,
            answers: Vec::new(),
            state: None,
        };
        let result = instance
            .zeph_plugin_tools()
            .call_call_tool(&mut store, "echo", &arguments, &context)
            .await;
        result.expect("no trap").expect("no failure");
    }
}

struct Percentiles {
    p50: Duration,
    p99: Duration,
}

fn percentiles(times: &mut [Duration]) -> Percentiles {
    times.sort_unstable();
    Percentiles {
        p50: times[times.len() / 2],
        p99: times[times.len() * 99 / 100],
    }
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}
