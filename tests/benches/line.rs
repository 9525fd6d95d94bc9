//! What the whole line costs beside the bare engine: a trivial tool call, with the store and audit file on disk, against a fresh
//! instance and one call of the same component on plain wasmtime with the same engine configuration. And what the library adds to the line:
//! the same call through a [`DynExecutor`], with a listener, against the line alone.
//!
//! All alternate in one process, so a busy machine slows all, and the line and the library take turns at coming after the bare engine, which
//! leaves cold caches. Prints one row of the figures table for each figure.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component as WasmComponent, Linker, ResourceTable, ResourceType};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
#[path = "echo/host.rs"]
mod host;

use host::{HOSTILE, arguments, call, session, start};
use zeph_host::{CallOptions, DynExecutor, EventSink, ToolCall, ToolExecutor as _};

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
    let library = DynExecutor::new(session.clone());
    let (mut of_line, mut of_bare, mut of_library) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..N_ROUNDS + N_WARM {
        let line = || time(|| runtime.block_on(call(&session)));
        let library = || time(|| runtime.block_on(library_call(&library)));
        let (line, library) = match round % 2 {
            0 => (line(), library()),
            _ => {
                let library = library();
                (line(), library)
            }
        };
        let bare = time(|| runtime.block_on(bare.call()));
        if round >= N_WARM {
            of_line.push(line);
            of_bare.push(bare);
            of_library.push(library);
        }
    }
    let added = added_us(&of_library, &of_line);
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
    println!(
        "| library call over the line alone, p50 of the differences | {added:.1} µs | ≤ 5 µs | {} |",
        if added <= 5.0 { "met" } else { "missed" }
    );
}

/// The trivial call as a program makes it that holds any executor.
async fn library_call(tools: &DynExecutor) {
    let options = CallOptions {
        events: Some(EventSink::new(drop)),
        ..CallOptions::default()
    };
    let report = tools
        .call(ToolCall::new("echo", arguments()), options)
        .await;
    assert_eq!(report.failure(), None, "{}", report.output.text);
}

/// What the one took longer than the other, round by round: the middle of all, in microseconds.
fn added_us(longer: &[Duration], shorter: &[Duration]) -> f64 {
    let pairs = longer.iter().zip(shorter);
    let mut added: Vec<f64> = pairs
        .map(|(longer, shorter)| (longer.as_secs_f64() - shorter.as_secs_f64()) * 1e6)
        .collect();
    added.sort_unstable_by(f64::total_cmp);
    added[added.len() / 2]
}

/// Links what is not of WASI, which the trivial call never asks for. The library's own way takes interfaces of a later WASI, which the linker
/// knows under an earlier version, for unknown ones.
fn trap_the_rest(linker: &mut Linker<Guest>, component: &WasmComponent) {
    let engine = component.engine().clone();
    let imports = component.component_type();
    for (name, import) in imports.imports(&engine) {
        let ComponentItem::ComponentInstance(interface) = import.ty else {
            continue;
        };
        if name.starts_with("wasi:") && !name.starts_with("wasi:http/") {
            continue;
        }
        let mut linked = linker.instance(name).expect("an interface of its own");
        for (name, item) in interface.exports(&engine) {
            let defined = match item.ty {
                ComponentItem::ComponentFunc(_) => {
                    linked.func_new(name, |_, _, _, _| Err(wasmtime::format_err!("not there")))
                }
                ComponentItem::Resource(_) => {
                    linked.resource(name, ResourceType::host::<()>(), |_, _| Ok(()))
                }
                _ => Ok(()),
            };
            defined.expect("the rest links");
        }
    }
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
        trap_the_rest(&mut linker, &component);
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
