//! One request of HTTP, passed on over a connection of its own.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, IF_RANGE,
    PROXY_AUTHENTICATE, RANGE, TRANSFER_ENCODING,
};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use zeph_core::network::{Destination, HTTP_PORT, HTTPS_PORT};
use zeph_core::redact::{RedactStream, RedactionMark};

use super::Run;
use super::front::HEAD_BYTES_MAX;
use super::meter::Progress;
use super::placeholders::{self, Filling};
use crate::body::Coding;
use crate::hop;
use crate::secret::{self, CallSecrets, RequestHop};

/// What is answered.
pub(super) type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// What a request gets of secrets, and what its answer must not hold.
#[derive(Default)]
pub(super) struct RequestSecrets {
    /// What is added to it.
    pub(super) call: CallSecrets,
    /// What takes the place of placeholders in it.
    pub(super) fillings: Vec<Filling>,
}

impl RequestSecrets {
    /// Whether there is nothing that an answer could repeat.
    fn is_empty(&self) -> bool {
        self.call.granted.is_empty() && self.fillings.is_empty()
    }
}

pub(super) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Sends `request` to `destination` over `stream`, whose other end that is and whose bytes are `progress`, and gives the answer, whose
/// body is still to come.
///
/// Errors: the host is gone, or answers something else.
pub(super) async fn pass_on<S>(
    run: &Arc<Run>,
    (stream, progress): (S, Progress),
    request: Request<Incoming>,
    destination: &Destination,
    secrets: &RequestSecrets,
) -> io::Result<Response<Body>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    let patience = run.shared.limits.idle_timeout;
    run.beside(async move {
        tokio::select! {
            ended = connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a request of a command ended early");
                }
            }
            () = progress.stands_still(patience) => {}
        }
    });
    let mut request = addressed(request, destination)?;
    add_secrets(&mut request, destination, secrets)?;
    let answered = sender.send_request(request).await;
    let mut response = answered.map_err(io::Error::other)?;
    if !secrets.is_empty() && !is_readable(response.headers()) {
        return Err(io::Error::other(
            "the answer to a request with a secret is compressed, so it cannot be searched for that",
        ));
    }
    hop::strip(response.headers_mut(), &[PROXY_AUTHENTICATE]);
    Ok(clean(response, secrets))
}

/// Adds what this host gets of secrets. What is answered must be readable then, and whole: a secret is not recognised in parts.
///
/// Errors: there is a placeholder of a secret without a value.
fn add_secrets(
    request: &mut Request<Incoming>,
    destination: &Destination,
    secrets: &RequestSecrets,
) -> io::Result<()> {
    placeholders::fill(request.headers_mut(), &secrets.fillings).map_err(io::Error::other)?;
    let method = request.method().to_string();
    let hop = RequestHop {
        destination,
        method: &method,
        is_exposed: false,
        has_left_origin: false,
    };
    for (name, value) in secret::headers(&secrets.call.granted, hop) {
        request.headers_mut().insert(name, value);
    }
    if !secrets.is_empty() {
        let readable = HeaderValue::from_static("identity");
        let headers = request.headers_mut();
        headers.insert(ACCEPT_ENCODING, readable);
        headers.remove(RANGE);
        headers.remove(IF_RANGE);
    }
    Ok(())
}

/// The answer without the secrets that it may echo. What is not searched is not passed on: it is made anew of its status, its headers and
/// its body, without what hyper keeps beside them, such as the words behind the status.
fn clean(response: Response<Incoming>, secrets: &RequestSecrets) -> Response<Body> {
    if secrets.is_empty() {
        return response.map(|body| body.boxed_unsync());
    }
    let known = &secrets.call.known;
    let (mut parts, body) = response.into_parts();
    secret::clean_headers(known, &mut parts.headers);
    let redactor = known.stream(RedactionMark::Length);
    let mut clean = Response::new(Searched { body, redactor }.boxed_unsync());
    *clean.status_mut() = parts.status;
    *clean.headers_mut() = parts.headers;
    clean
}

/// Whether the bytes of a body are its text: all fields that say how it is encoded are looked at.
fn is_readable(headers: &HeaderMap) -> bool {
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    let mut transfer = headers.get_all(TRANSFER_ENCODING).iter();
    matches!(Coding::of(headers), Ok(None)) && transfer.all(is_chunked)
}

/// A body whose secrets become stars.
struct Searched {
    body: Incoming,
    redactor: RedactStream,
}

impl hyper::body::Body for Searched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            let frame = match std::task::ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(frame) => frame?,
                None => {
                    let last = self.redactor.finish();
                    let last = (!last.is_empty()).then(|| Ok(Frame::data(last.into())));
                    return Poll::Ready(last);
                }
            };
            // Trailers are not passed on: they are not searched.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let clean = self.redactor.push(&data);
            if !clean.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(clean.into()))));
            }
        }
    }
}

/// The request as its host gets it: only the path in its first line, and the host that was decided about in `Host`.
fn addressed(
    mut request: Request<Incoming>,
    destination: &Destination,
) -> io::Result<Request<Incoming>> {
    let path = request.uri().path_and_query().cloned();
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    let headers = request.headers_mut();
    // The length of a body in chunks is not known (RFC 9112, 6.3).
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    hop::strip(headers, &[PROXY_AUTHENTICATE]);
    let host = HeaderValue::try_from(host_of(destination)).map_err(io::Error::other)?;
    headers.insert(HOST, host);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// As it stands in `Host`: without the port where that is the usual one.
fn host_of(destination: &Destination) -> String {
    match destination.port {
        HTTP_PORT | HTTPS_PORT => destination.host.to_string(),
        _ => destination.to_string(),
    }
}
