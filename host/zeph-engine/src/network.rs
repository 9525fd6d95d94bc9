//! The network as a guest finds it: HTTP requests go to the exit of its call (`http`), every other way to open a connection is refused
//! and noted.
//!
//! The refusals stand in place of the stock implementations, so that no guest makes the host open a socket or ask a name server.
//! Sockets and streams of addresses never come to be: what their methods are linked to is never reached.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{self, ResolveAddressStream};
use wasmtime_wasi::p2::bindings::sockets::network::{
    self, ErrorCode, IpAddress, IpAddressFamily, Network,
};
use wasmtime_wasi::p2::bindings::sockets::{tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{DynPollable, SocketError, SocketResult, TcpSocket, UdpSocket};
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode as HttpErrorCode;
use wasmtime_wasi_http::p2::types::HostFutureIncomingResponse;
use wasmtime_wasi_http::{RequestOptions, WasiBody, WasiHttpHooks};

use crate::http_exit::HttpExit;
use crate::missing_grant::{MissingGrant, Refusals};

mod http;

/// Most bytes of a request's body that are kept until they are sent. Each body may hold as much, and a guest as many
/// bodies as handles.
const BODY_CHUNK_BYTES: usize = 16 * 1024;

/// What requests on their way are refused too.
type SharedRefusals = Arc<Mutex<Refusals>>;

fn lock(refusals: &SharedRefusals) -> MutexGuard<'_, Refusals> {
    refusals.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The network of one call.
#[derive(Debug, Default)]
pub(crate) struct GuestNetwork {
    /// Where requests go; without one all are refused.
    exit: Option<Arc<dyn HttpExit>>,
    refusals: SharedRefusals,
    is_used: bool,
}

impl GuestNetwork {
    pub(crate) fn new(exit: Option<Arc<dyn HttpExit>>) -> Self {
        Self {
            exit,
            ..Self::default()
        }
    }

    /// What was refused so far. Leaves nothing behind.
    pub(crate) fn take_refused(&mut self) -> Vec<MissingGrant> {
        std::mem::take(&mut *self.refused()).into_list()
    }

    /// Whether a request was let out.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Until when what came back may be used again; none when something may not.
    pub(crate) fn fresh_until(&self) -> Option<Instant> {
        self.exit.as_ref()?.fresh_until()
    }

    fn refused(&self) -> MutexGuard<'_, Refusals> {
        lock(&self.refusals)
    }
}

type Sending = Box<
    dyn Future<
            Output = wasmtime_wasi_http::Result<(
                ::http::Response<WasiBody>,
                Box<dyn Future<Output = wasmtime_wasi_http::Result<()>> + Send>,
            )>,
        > + Send,
>;

/// The hooks of the stock implementation, of which only the resources are linked: it never sends.
impl WasiHttpHooks for GuestNetwork {
    fn send_request(
        &mut self,
        _request: ::http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = wasmtime_wasi_http::Result<()>> + Send>,
    ) -> Sending {
        Box::new(async { Err(wasmtime_wasi_http::Error::HttpRequestDenied) })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK_BYTES
    }
}

/// The refusals of a call together with its resources.
pub(crate) struct Refuser<'a> {
    pub(crate) network: &'a mut GuestNetwork,
    pub(crate) table: &'a mut ResourceTable,
}

/// Marks the refusals in a linker.
struct Refusing;

impl HasData for Refusing {
    type Data<'a> = Refuser<'a>;
}

/// Links what makes sockets and looks up names.
pub(crate) fn add_sockets_to_linker<T: 'static + Send>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> Refuser<'_>,
) -> wasmtime::Result<()> {
    ip_name_lookup::add_to_linker::<T, Refusing>(linker, view)?;
    tcp_create_socket::add_to_linker::<T, Refusing>(linker, view)?;
    udp_create_socket::add_to_linker::<T, Refusing>(linker, view)
}

/// Links what sends requests.
pub(crate) fn add_http_to_linker<T: 'static + Send>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> Refuser<'_>,
) -> wasmtime::Result<()> {
    let mut handler = linker.instance(OUTGOING_HANDLER)?;
    handler.func_wrap("handle", move |mut store, (request, options)| {
        Ok((view(store.data_mut()).handle(request, options)?,))
    })
}

/// The interface that sends requests. The linker serves any 0.2 by it.
const OUTGOING_HANDLER: &str = "wasi:http/outgoing-handler@0.2.0";

type NetworkAnswer = Result<Resource<HostFutureIncomingResponse>, HttpErrorCode>;

impl Refuser<'_> {
    fn refuse<T>(&mut self) -> SocketResult<T> {
        self.network.refused().network();
        Err(ErrorCode::AccessDenied.into())
    }
}

impl tcp_create_socket::Host for Refuser<'_> {
    fn create_tcp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.refuse()
    }
}

impl udp_create_socket::Host for Refuser<'_> {
    async fn create_udp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        self.refuse()
    }
}

impl ip_name_lookup::Host for Refuser<'_> {
    fn resolve_addresses(
        &mut self,
        _: Resource<Network>,
        _: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        self.refuse()
    }
}

impl ip_name_lookup::HostResolveAddressStream for Refuser<'_> {
    fn resolve_next_address(
        &mut self,
        stream: Resource<ResolveAddressStream>,
    ) -> SocketResult<Option<IpAddress>> {
        self.table.get(&stream)?;
        self.refuse()
    }

    fn subscribe(
        &mut self,
        stream: Resource<ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        wasmtime_wasi::p2::subscribe(self.table, stream)
    }

    fn drop(&mut self, stream: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        self.table.delete(stream)?;
        Ok(())
    }
}

/// The errors of the functions above, as the bindings want them.
impl network::Host for Refuser<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn network_error_code(
        &mut self,
        _: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(None)
    }
}

impl network::HostNetwork for Refuser<'_> {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        self.table.delete(network)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
