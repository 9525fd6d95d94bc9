//! The network as a guest finds it: every interface is there, and every way to open a connection is refused and noted.
//!
//! For sockets the refusals stand before the stock implementations, so that no guest makes the host open a socket or ask a
//! name server. Sockets and streams of addresses never come to be: what their methods are linked to is never reached.

use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{self, ResolveAddressStream};
use wasmtime_wasi::p2::bindings::sockets::network::{
    self, ErrorCode, IpAddress, IpAddressFamily, Network,
};
use wasmtime_wasi::p2::bindings::sockets::{tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{DynPollable, SocketError, SocketResult, TcpSocket, UdpSocket};
use wasmtime_wasi_http::{RequestOptions, WasiBody, WasiHttpHooks};

use crate::refused::{Refusals, Refused};

/// Refuses every request and every socket: no guest has the network.
#[derive(Debug, Default)]
pub(crate) struct NoNetwork {
    refusals: Refusals,
}

impl NoNetwork {
    /// What was refused so far. Leaves nothing behind.
    pub(crate) fn take_refused(&mut self) -> Vec<Refused> {
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

impl WasiHttpHooks for NoNetwork {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _sent: Box<dyn Future<Output = wasmtime_wasi_http::Result<()>> + Send>,
    ) -> Sending {
        let authority = request.uri().authority();
        self.refusals
            .http(authority.map_or("", |authority| authority.as_str()));
        Box::new(async { Err(wasmtime_wasi_http::Error::HttpRequestDenied) })
    }
}

/// The refusals of a call together with its resources.
pub(crate) struct NoSockets<'a> {
    pub(crate) network: &'a mut NoNetwork,
    pub(crate) table: &'a mut ResourceTable,
}

/// Marks the refusals in a linker.
struct Refusing;

impl HasData for Refusing {
    type Data<'a> = NoSockets<'a>;
}

/// Links what makes sockets and looks up names.
pub(crate) fn add_to_linker<T: 'static + Send>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> NoSockets<'_>,
) -> wasmtime::Result<()> {
    ip_name_lookup::add_to_linker::<T, Refusing>(linker, view)?;
    tcp_create_socket::add_to_linker::<T, Refusing>(linker, view)?;
    udp_create_socket::add_to_linker::<T, Refusing>(linker, view)
}

impl NoSockets<'_> {
    fn refuse<T>(&mut self) -> SocketResult<T> {
        self.network.refusals.network();
        Err(ErrorCode::AccessDenied.into())
    }
}

impl tcp_create_socket::Host for NoSockets<'_> {
    fn create_tcp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.refuse()
    }
}

impl udp_create_socket::Host for NoSockets<'_> {
    async fn create_udp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        self.refuse()
    }
}

impl ip_name_lookup::Host for NoSockets<'_> {
    fn resolve_addresses(
        &mut self,
        _: Resource<Network>,
        _: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        self.refuse()
    }
}

impl ip_name_lookup::HostResolveAddressStream for NoSockets<'_> {
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
impl network::Host for NoSockets<'_> {
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

impl network::HostNetwork for NoSockets<'_> {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        self.table.delete(network)?;
        Ok(())
    }
}
