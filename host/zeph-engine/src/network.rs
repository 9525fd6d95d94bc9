//! The network as a guest finds it: every interface is there, and every way to open a connection is refused and noted.
//!
//! The refusals stand in place of the stock implementations, so that no guest makes the host open a socket, ask a name server
//! or start a task. Sockets and streams of addresses never come to be: what their methods are linked to is never reached.

use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{self, ResolveAddressStream};
use wasmtime_wasi::p2::bindings::sockets::network::{
    self, ErrorCode, IpAddress, IpAddressFamily, Network,
};
use wasmtime_wasi::p2::bindings::sockets::{tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{DynPollable, SocketError, SocketResult, TcpSocket, UdpSocket};
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode as HttpErrorCode;
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostOutgoingRequest};
use wasmtime_wasi_http::{RequestOptions, WasiBody, WasiHttpHooks};

use crate::missing_grant::{MissingGrant, Refusals};

/// Most bytes of a request's body that are kept until the request is refused. Each body may hold as much, and a guest as many
/// bodies as handles.
const BODY_CHUNK_BYTES: usize = 16 * 1024;

/// Refuses every request and every socket: no guest has the network.
#[derive(Debug, Default)]
pub(crate) struct NoNetwork {
    refusals: Refusals,
}

impl NoNetwork {
    /// What was refused so far. Leaves nothing behind.
    pub(crate) fn take_refused(&mut self) -> Vec<MissingGrant> {
        std::mem::take(&mut self.refusals).into_list()
    }
}

type Sending = Box<
    dyn Future<
            Output = wasmtime_wasi_http::Result<(
                http::Response<WasiBody>,
                Box<dyn Future<Output = wasmtime_wasi_http::Result<()>> + Send>,
            )>,
        > + Send,
>;

/// The hooks of the stock implementation, of which only the resources are linked: nothing is ever sent.
impl WasiHttpHooks for NoNetwork {
    fn send_request(
        &mut self,
        _request: http::Request<WasiBody>,
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
    pub(crate) network: &'a mut NoNetwork,
    pub(crate) table: &'a mut ResourceTable,
}

/// Marks the refusals in a linker.
struct Refusing;

impl HasData for Refusing {
    type Data<'a> = Refuser<'a>;
}

/// Links what makes sockets, looks up names, and sends requests.
pub(crate) fn add_to_linker<T: 'static + Send>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> Refuser<'_>,
) -> wasmtime::Result<()> {
    ip_name_lookup::add_to_linker::<T, Refusing>(linker, view)?;
    tcp_create_socket::add_to_linker::<T, Refusing>(linker, view)?;
    udp_create_socket::add_to_linker::<T, Refusing>(linker, view)?;
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
        self.network.refusals.network();
        Err(ErrorCode::AccessDenied.into())
    }

    /// `wasi:http/outgoing-handler.handle`: whatever the request is like, it is taken and refused.
    fn handle(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        options: Option<Resource<RequestOptions>>,
    ) -> wasmtime::Result<NetworkAnswer> {
        let request = self.table.delete(request)?;
        if let Some(options) = options {
            self.table.delete(options)?;
        }
        let authority = request.authority.as_deref().unwrap_or_default();
        self.network.refusals.http(authority);
        Ok(Err(HttpErrorCode::HttpRequestDenied))
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
