//! The store of one call: what the guest finds there, and what ends it.

use wasmtime::component::ResourceTable;
use wasmtime::{Store, UpdateDeadline};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi_http::WasiHttpCtx;
use zeph_core::limit::CallLimits;

use super::CallGrant;
use crate::context::GuestContext;
use crate::fs::FsCtx;
use crate::limiter::Limiter;
use crate::log::GuestLog;
use crate::network::GuestNetwork;
use crate::process::Programs;
use crate::progress::Listener;
use crate::services::Services;
use crate::state::{GuestState, Inputs};

/// Most random bytes a guest gets at once.
pub(crate) const RANDOM_BYTES_MAX: u64 = 64 * 1024;

/// Handles of components at one time, those a guest makes of its own resources and each lent one counted. The host keeps a few
/// words for each; `limits.handles` is about what stands behind those it gives out.
pub(super) const COMPONENT_HANDLES_MAX: usize = 100_000;

/// Everything a guest finds: what `grant` holds, and nothing else.
pub(super) fn state(
    grant: &CallGrant,
    fs: FsCtx,
    limiter: Limiter,
    log: GuestLog,
    listener: Option<Listener>,
    context: GuestContext,
    (programs, services): (Programs, Services),
) -> GuestState {
    let mut wasi = WasiCtxBuilder::new();
    wasi.stdout(log.clone())
        .stderr(log.clone())
        .max_random_size(RANDOM_BYTES_MAX)
        .envs(&grant.variables);
    if let Some(directory) = grant.fs.working_directory() {
        wasi.initial_cwd(directory);
    }
    let mut table = ResourceTable::new();
    table.set_max_capacity(limiter.limits().handles as usize);
    GuestState {
        wasi: wasi.build(),
        http: WasiHttpCtx::new(),
        network: GuestNetwork::new(grant.http.clone()),
        table,
        fs,
        limiter,
        log,
        listener,
        context,
        programs,
        services,
        inputs: Inputs::default(),
    }
}

/// A store in which every tick and every host call is looked at.
pub(crate) fn store(
    engine: &wasmtime::Engine,
    state: GuestState,
    limits: CallLimits,
) -> Store<GuestState> {
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.limiter);
    store.call_hook(|mut store, hook| {
        if hook.entering_host() {
            store.data_mut().limiter.on_host_call()?;
        }
        Ok(())
    });
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut store| {
        let limiter = &mut store.data_mut().limiter;
        limiter.on_tick()?;
        Ok(match limiter.takes_yield() {
            true => UpdateDeadline::Yield(1),
            false => UpdateDeadline::Continue(1),
        })
    });
    store.set_hostcall_fuel(transfer_bytes_max(limits));
    store.set_max_component_handles(COMPONENT_HANDLES_MAX);
    store
}

/// Bytes a guest may hand to the host at once, as a result or as an argument (a file's content, mostly).
pub(super) fn transfer_bytes_max(limits: CallLimits) -> usize {
    const WRITE_BYTES: u64 = 64 * 1024 * 1024;
    usize::try_from(limits.output_bytes.max(WRITE_BYTES)).unwrap_or(usize::MAX)
}
