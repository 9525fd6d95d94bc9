//! Everything the store of one call holds.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use zeph_core::failure::one_line;

use crate::bindings::zeph::plugin::{context, log, progress, types};
use crate::fs::{FsCtx, FsCtxView};
use crate::limiter::Limiter;
use crate::log::GuestLog;
use crate::network::{NoNetwork, Refuser};
use crate::progress::{Listener, Progress};
use crate::refused::Refused;

/// Most characters of a progress message that are passed on: a line of a terminal, twice.
const PROGRESS_CHARS_MAX: usize = 200;

/// The host's side of one guest.
pub(crate) struct GuestState {
    pub(crate) wasi: WasiCtx,
    pub(crate) http: WasiHttpCtx,
    pub(crate) network: NoNetwork,
    pub(crate) table: ResourceTable,
    pub(crate) fs: FsCtx,
    pub(crate) limiter: Limiter,
    pub(crate) log: GuestLog,
    pub(crate) listener: Option<Listener>,
    /// A JSON object.
    pub(crate) settings: Arc<str>,
}

impl GuestState {
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
    pub(crate) fn take_refused(&mut self) -> Vec<Refused> {
        let mut refused = self.fs.take_refused();
        refused.extend(self.network.take_refused());
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

impl progress::Host for GuestState {
    fn report(
        &mut self,
        message: String,
        completed: Option<u64>,
        total: Option<u64>,
    ) -> wasmtime::Result<()> {
        if let Some(listener) = &self.listener {
            listener.send(Progress {
                message: one_line(&message, PROGRESS_CHARS_MAX),
                completed,
                total,
            });
        }
        Ok(())
    }
}

impl context::Host for GuestState {
    fn settings(&mut self) -> wasmtime::Result<String> {
        Ok(self.settings.to_string())
    }
}

impl log::Host for GuestState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            log::Level::Trace => tracing::Level::TRACE,
            log::Level::Debug => tracing::Level::DEBUG,
            log::Level::Info => tracing::Level::INFO,
            log::Level::Warn => tracing::Level::WARN,
            log::Level::Error => tracing::Level::ERROR,
        };
        self.log.line(level, &message);
        Ok(())
    }
}
