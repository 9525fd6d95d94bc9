//! Everything the store of one call holds.

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{
    RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView,
};

use crate::bindings::zeph::plugin::{log, progress, types};

use crate::fs::{FsCtx, FsCtxView};
use crate::limiter::Limiter;
use crate::log::GuestLog;
use crate::progress::{Listener, Progress};

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
}

impl GuestState {
    pub(crate) fn fs(&mut self) -> FsCtxView<'_> {
        FsCtxView {
            ctx: &mut self.fs,
            table: &mut self.table,
        }
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

/// Refuses every request: no guest has the network.
pub(crate) struct NoNetwork;

type Sending = Box<
    dyn Future<
            Output = wasmtime_wasi_http::Result<(
                http::Response<WasiBody>,
                Box<dyn Future<Output = wasmtime_wasi_http::Result<()>> + Send>,
            )>,
        > + Send,
>;

impl WasiHttpHooks for NoNetwork {
    fn send_request(
        &mut self,
        _request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = wasmtime_wasi_http::Result<()>> + Send>,
    ) -> Sending {
        Box::new(async { Err(wasmtime_wasi_http::Error::HttpRequestDenied) })
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
                message,
                completed,
                total,
            });
        }
        Ok(())
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
