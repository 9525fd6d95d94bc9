//! The exit as an HTTP proxy: `CONNECT host:port`, and requests of plain HTTP with the whole URL.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use zeph_core::network::Passage;

use super::forward::{self, Body, RequestSecrets};
use super::inspect::not_allowed;
use super::{Opening, Run, tunnel};

/// Most bytes of the head of a request.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A tunnel that begins when the answer to its request was sent.
type NextTunnel = Mutex<Option<(OnUpgrade, Opening)>>;

/// Serves one connection.
///
/// Errors: it ended early, or was refused.
pub(super) async fn serve(run: &Arc<Run>, stream: TcpStream) -> io::Result<()> {
    let next = Arc::new(NextTunnel::default());
    let service = service_fn(|request| {
        let (run, next) = (Arc::clone(run), Arc::clone(&next));
        async move { Ok::<_, Infallible>(answer(&run, request, &next).await) }
    });
    server(run)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await
        .map_err(io::Error::other)?;
    let opened = next.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((upgrade, opening)) = opened else {
        return Ok(());
    };
    let client = upgrade.await.map_err(io::Error::other)?;
    tunnel::run(run, TokioIo::new(client), opening).await
}

/// A server with the bounds of an exit.
pub(super) fn server(run: &Run) -> http1::Builder {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(run.shared.limits.request_timeout)
        .max_buf_size(HEAD_BYTES_MAX);
    server
}

async fn answer(run: &Arc<Run>, request: Request<Incoming>, next: &NextTunnel) -> Response<Body> {
    let given = request.headers().get(PROXY_AUTHORIZATION);
    if given.is_none_or(|given| given.as_bytes() != run.credentials.as_bytes()) {
        let mut refusal = told(
            StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            "this proxy serves one command, by the name and password in that command's HTTPS_PROXY",
        );
        let wanted = HeaderValue::from_static("Basic realm=\"zeph\"");
        refusal.headers_mut().insert(PROXY_AUTHENTICATE, wanted);
        return refusal;
    }
    match *request.method() {
        Method::CONNECT => connect(run, request, next).await,
        _ => pass_on(run, request).await,
    }
}

async fn connect(run: &Arc<Run>, request: Request<Incoming>, next: &NextTunnel) -> Response<Body> {
    let Some(authority) = request.uri().authority() else {
        return told(StatusCode::BAD_REQUEST, "CONNECT takes host:port");
    };
    match run.opening(authority.as_str()).await {
        Ok(opening) => {
            let upgrade = hyper::upgrade::on(request);
            *next.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, opening));
            Response::new(forward::empty())
        }
        Err(refusal) => told(StatusCode::FORBIDDEN, &refusal),
    }
}

/// A request of plain HTTP. Its `Host` becomes that of its URL.
async fn pass_on(run: &Arc<Run>, request: Request<Incoming>) -> Response<Body> {
    let uri = request.uri();
    let (scheme, authority) = (uri.scheme_str(), uri.authority());
    let (Some("http"), Some(authority)) = (scheme, authority) else {
        return told(
            StatusCode::BAD_REQUEST,
            "this is a proxy: it takes CONNECT host:port, and http:// URLs of hosts on port 80",
        );
    };
    let opening = match run.plain_opening(authority.as_str()).await {
        Ok(opening) => opening,
        Err(refusal) => return told(StatusCode::FORBIDDEN, &refusal),
    };
    if let Passage::Inspected(inspection) = &opening.granted.passage
        && let Some(why) = not_allowed(inspection, &request)
    {
        let refusal = run.refused(&opening.granted.destination, &why);
        return told(StatusCode::FORBIDDEN, &refusal.to_string());
    }
    match send(run, request, &opening).await {
        Ok(response) => response,
        Err(error) => told(StatusCode::BAD_GATEWAY, &error.to_string()),
    }
}

async fn send(
    run: &Arc<Run>,
    request: Request<Incoming>,
    opening: &Opening,
) -> io::Result<Response<Body>> {
    let host = &opening.granted.destination;
    let stream = run.connect(&opening.addresses).await?;
    let progress = stream.meter().progress();
    let secrets = RequestSecrets::default();
    let passed = forward::pass_on(run, (stream, progress), request, host, &secrets).await;
    passed.map_err(|error| run.refused(host, &error.to_string()))
}

/// An answer of the exit itself: one line of text.
pub(super) fn told(status: StatusCode, text: &str) -> Response<Body> {
    let line = Full::new(Bytes::from(format!("{text}\n")));
    let mut response = Response::new(line.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, plain);
    response
}
