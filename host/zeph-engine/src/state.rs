//! Everything the store of one call holds.

use wasmtime::component::ResourceTable;
use wasmtime_wasi::clocks::{WasiClocksCtxView, WasiClocksView as _};
use wasmtime_wasi::random::WasiRandomCtx;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::bindings::zeph::plugin::types;
use crate::context::GuestContext;
use crate::fs::{FsCtx, FsCtxView};
use crate::limiter::Limiter;
use crate::log::GuestLog;
use crate::missing_grant::MissingGrant;
use crate::network::{GuestNetwork, Refuser};
use crate::process::Programs;
use crate::progress::Listener;
use crate::services::Services;

/// The host's side of one guest.
pub(crate) struct GuestState {
    pub(crate) wasi: WasiCtx,
    pub(crate) http: WasiHttpCtx,
    pub(crate) network: GuestNetwork,
    pub(crate) table: ResourceTable,
    pub(crate) fs: FsCtx,
    pub(crate) limiter: Limiter,
    pub(crate) log: GuestLog,
    pub(crate) listener: Option<Listener>,
    pub(crate) context: GuestContext,
    pub(crate) programs: Programs,
    pub(crate) services: Services,
    pub(crate) inputs: Inputs,
}

/// What a guest learned besides its arguments, its settings and what the guard of files told it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inputs {
    /// The date.
    pub(crate) has_date: bool,
    /// Random numbers, its frame: they differ from call to call.
    pub(crate) has_others: bool,
    /// How long something takes.
    pub(crate) has_durations: bool,
}

impl GuestState {
    /// The clock that tells the date.
    pub(crate) fn calendar(&mut self) -> WasiClocksCtxView<'_> {
        self.inputs.has_date = true;
        self.clocks()
    }

    /// The clock that tells how long something takes.
    pub(crate) fn stopwatch(&mut self) -> WasiClocksCtxView<'_> {
        self.inputs.has_durations = true;
        self.clocks()
    }

    /// Random numbers. The seed of hash tables is not among them: by its contract no result depends on it.
    pub(crate) fn random(&mut self) -> &mut WasiRandomCtx {
        self.inputs.has_others = true;
        self.wasi.random()
    }

    pub(crate) fn fs(&mut self) -> FsCtxView<'_> {
        FsCtxView {
            ctx: &mut self.fs,
            table: &mut self.table,
        }
    }

    pub(crate) fn refuser(&mut self) -> Refuser<'_> {
        Refuser {
            network: &mut self.network,
            table: &mut self.table,
        }
    }

    /// Everything refused so far. Leaves nothing behind.
    pub(crate) fn take_refused(&mut self) -> Vec<MissingGrant> {
        let mut refused = self.fs.take_refused();
        refused.extend(self.network.take_refused());
        refused.extend(self.programs.take_refused());
        refused.extend(self.services.take_refused());
        refused
    }
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for GuestState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.network,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }
}

impl types::Host for GuestState {}
