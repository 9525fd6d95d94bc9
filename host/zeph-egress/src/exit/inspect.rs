//! A host whose requests are looked at: TLS of the command ends here, and another one begins that the command does not see.
//!
//! Every request must be for the host of the tunnel, by its `Host` and by its first line. Only then is a method or a path worth
//! anything, and only then may a value be put into a request that is for this host alone.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio_rustls::rustls::{self, pki_types::ServerName};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use zeph_core::network::{Destination, HTTPS_PORT, Inspection};

use super::forward::{self, Body, RequestSecrets};
use super::front::{server, told};
use super::{Run, authority};
use crate::CheckedAddresses;

/// What a command is told that speaks no other HTTP than the second, as gRPC does.
const ONLY_HTTP_1: &str = "the command offers HTTP/2 only, and `tls = \"inspect\"` takes HTTP/1.1; let the command use that (`curl --http1.1`), \
                           or let the host pass without `tls = \"inspect\"` in [[tools.sandbox.hosts]]";

/// One tunnel whose requests are looked at.
#[derive(Debug)]
struct Inspected {
    run: Arc<Run>,
    inspection: Inspection,
    addresses: CheckedAddresses,
}

/// Serves the requests of a command to a host, which begin with TLS and with bytes that were read already.
///
/// Errors: it ended early, or was refused.
pub(super) async fn serve<S>(
    run: &Arc<Run>,
    (begun, client): (Vec<u8>, S),
    inspection: Inspection,
    addresses: CheckedAddresses,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let destination = addresses.destination().clone();
    let acceptor = acceptor(run, &destination)?;
    let (client, to_client) = tokio::io::split(client);
    let client = io::Cursor::new(begun).chain(client);
    let client = acceptor.accept(tokio::io::join(client, to_client)).await;
    let client = client.map_err(|error| run.refused(&destination, &not_begun(&error)))?;
    let inspected = Arc::new(Inspected {
        run: Arc::clone(run),
        inspection,
        addresses,
    });
    let service = service_fn(|request| {
        let inspected = Arc::clone(&inspected);
        async move { Ok::<_, Infallible>(inspected.answer(request).await) }
    });
    let served = server(run).serve_connection(TokioIo::new(client), service);
    served
        .await
        .map_err(|error| match error.is_parse_version_h2() {
            true => run.refused(&destination, ONLY_HTTP_1),
            false => io::Error::other(error),
        })
}

/// Why a request to an inspected host does not pass, when it does not.
pub(super) fn not_allowed(inspection: &Inspection, request: &Request<Incoming>) -> Option<String> {
    let (method, path) = (request.method().as_str(), request.uri().path());
    let is_allowed = inspection.allows(method, path);
    (!is_allowed).then(|| {
        let path = zeph_core::failure::one_line(path, 100);
        format!(
            "`{method} {path}` is not among the `methods` and `paths` of its [[tools.sandbox.hosts]]"
        )
    })
}

/// Why TLS with a command did not begin.
fn not_begun(error: &io::Error) -> String {
    let of_tls = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<rustls::Error>());
    match of_tls {
        Some(rustls::Error::NoApplicationProtocol) => ONLY_HTTP_1.to_owned(),
        _ => format!(
            "the command did not take the certificate for `tls = \"inspect\"` ({error}); it must trust the file that SSL_CERT_FILE names"
        ),
    }
}

fn late(waited: Duration) -> io::Error {
    let message = format!(
        "the host did not begin TLS within {} s",
        waited.as_secs_f64()
    );
    io::Error::new(io::ErrorKind::TimedOut, message)
}

fn acceptor(run: &Run, destination: &Destination) -> io::Result<TlsAcceptor> {
    let config = authority(run)?.server(&destination.host);
    Ok(TlsAcceptor::from(config.map_err(io::Error::other)?))
}

fn authority(run: &Run) -> io::Result<&authority::Authority> {
    let authority = run.shared.authority.as_ref();
    authority.ok_or_else(|| io::Error::other("no host is inspected"))
}

impl Inspected {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let destination = self.addresses.destination();
        let (status, why) = match self.refusal(&request) {
            Some(why) => (StatusCode::FORBIDDEN, why),
            None => match self.pass_on(request).await {
                Ok(response) => return response,
                Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
            },
        };
        told(status, &self.run.refused(destination, &why).to_string())
    }

    /// Why a request may not pass.
    fn refusal(&self, request: &Request<Incoming>) -> Option<String> {
        let destination = self.addresses.destination();
        let is_meant = |text: &str| {
            let named = Destination::parse(text, HTTPS_PORT);
            named.is_ok_and(|named| named == *destination)
        };
        let mut hosts = request.headers().get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let by_line = request.uri().authority();
        if !host.is_some_and(is_meant)
            || hosts.next().is_some()
            || !by_line.is_none_or(|named| is_meant(named.as_str()))
        {
            return Some("a request in this connection was for another host".to_owned());
        }
        not_allowed(&self.inspection, request)
    }

    fn secrets(&self) -> RequestSecrets {
        let shared = &self.run.shared;
        let Inspection {
            secrets,
            placeholders,
            ..
        } = &self.inspection;
        // One look: a response must hold none of the values that its request was given.
        let (call, values) = shared.secrets.of_request(secrets, placeholders);
        RequestSecrets {
            call,
            fillings: shared.placeholders.fillings(placeholders, &values),
        }
    }

    async fn pass_on(&self, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let destination = self.addresses.destination();
        let secrets = self.secrets();
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str());
        let url = format!("https://{destination}{path}");
        let method = request.method().as_str();
        let checked = secrets.call.check(&url, destination, method);
        checked.map_err(io::Error::other)?;
        let stream = self.run.connect(&self.addresses).await?;
        let progress = stream.meter().progress();
        let connector = TlsConnector::from(Arc::clone(authority(&self.run)?.trust()));
        let name = ServerName::try_from(destination.host.to_string()).map_err(io::Error::other)?;
        let patience = self.run.shared.limits.request_timeout;
        let stream = tokio::time::timeout(patience, connector.connect(name, stream))
            .await
            .map_err(|_| late(patience))??;
        forward::pass_on(
            &self.run,
            (stream, progress),
            request,
            destination,
            &secrets,
        )
        .await
    }
}
