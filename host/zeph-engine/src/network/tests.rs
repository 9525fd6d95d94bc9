//! What a guest meets that looks for the network, through the same functions it would call.

use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::Host as _;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::bindings::sockets::tcp_create_socket::Host as _;
use wasmtime_wasi::p2::bindings::sockets::udp_create_socket::Host as _;
use wasmtime_wasi_http::p2::bindings::http::types::{
    ErrorCode as HttpErrorCode, HostFields, HostOutgoingRequest, HostRequestOptions,
};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView};

use super::{GuestNetwork, Refuser};
use crate::missing_grant::{MissingGrant, REFUSED_MAX};

/// One call of a guest.
#[derive(Default)]
struct Guest {
    network: GuestNetwork,
    http: WasiHttpCtx,
    table: ResourceTable,
}

impl Guest {
    fn refuser(&mut self) -> Refuser<'_> {
        Refuser {
            network: &mut self.network,
            table: &mut self.table,
        }
    }

    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.network,
            table: &mut self.table,
            ctx: &mut self.http,
        }
    }

    /// Sends a request and gives back what it comes to.
    fn request(&mut self, authority: Option<&str>) -> HttpErrorCode {
        let mut http = self.http();
        let headers = HostFields::new(&mut http).expect("fields");
        let request = HostOutgoingRequest::new(&mut http, headers)
            .expect("request")
            .rep();
        http.set_authority(Resource::new_borrow(request), authority.map(str::to_owned))
            .expect("no trap")
            .expect("an authority");
        let options = HostRequestOptions::new(&mut http).expect("options");
        let sent = self
            .refuser()
            .handle(Resource::new_own(request), Some(options));
        sent.expect("no trap").expect_err("refused")
    }
}

#[test]
fn requests_are_denied_and_noted_once_per_host() {
    let mut guest = Guest::default();
    let hosts = ["api.example.com", "api.example.com:8443", "api.example.com"];
    for authority in hosts.map(Some).into_iter().chain([None]) {
        let code = guest.request(authority);
        assert!(matches!(code, HttpErrorCode::HttpRequestDenied), "{code:?}");
    }
    guest.request(Some("user@[::1]:80"));
    // The stock resource takes no such authority; the record does not count on it.
    guest
        .network
        .refused()
        .no_exit("a.example`\u{202e}\u{1b}[2Jé");
    let http = |authority: &str| MissingGrant::Request {
        reason: format!("may not reach `{authority}`: no request can be made here"),
    };
    let refused = [
        "api.example.com",
        "api.example.com:8443",
        "",
        "user?[::1]:80",
        "a.example???[2J?",
    ];
    let refused = refused.map(http);
    assert_eq!(guest.network.take_refused(), refused);
    assert_eq!(guest.network.take_refused(), []);
    // Nothing of a request stays behind: a guest cannot fill the host with refused ones.
    assert!(guest.table.is_empty());
}

#[test]
fn however_many_hosts_are_tried_few_are_kept() {
    let mut guest = Guest::default();
    for n in 0..REFUSED_MAX * 4 {
        guest.request(Some(&format!("{n}.{}", "x".repeat(4_000))));
    }
    let refused = guest.network.take_refused();
    assert_eq!(refused.len(), REFUSED_MAX);
    for one in &refused {
        let MissingGrant::Request { reason } = one else {
            panic!("{one:?}");
        };
        assert!(reason.len() < 400, "{}", reason.len());
    }
}

#[tokio::test]
async fn no_socket_is_made_and_no_name_is_looked_up() {
    let mut guest = Guest::default();
    let family = IpAddressFamily::Ipv4;
    let mut codes = Vec::new();
    let mut sockets = guest.refuser();
    codes.push(sockets.create_tcp_socket(family).expect_err("refused"));
    codes.push(
        sockets
            .create_udp_socket(family)
            .await
            .expect_err("refused"),
    );
    let name = "example.com".to_owned();
    let looked_up = sockets.resolve_addresses(Resource::new_own(0), name);
    codes.push(looked_up.map(|_| ()).expect_err("refused"));
    for code in codes {
        assert_eq!(code.downcast().expect("a code"), ErrorCode::AccessDenied);
    }
    assert_eq!(guest.network.take_refused(), [MissingGrant::Network]);
    assert!(guest.table.is_empty());
}
