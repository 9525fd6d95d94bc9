//! One request over `wasi:http`, and the reading of its body, within one deadline.

use std::fmt;

use wasip2::clocks::monotonic_clock::{now, subscribe_instant};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method,
    OutgoingBody, OutgoingRequest, RequestOptions, Scheme, http_error_code,
};
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::{InputStream, StreamError};

use super::{Request, failure, parts, shown};
use crate::{Category, ToolError};

/// Bytes read at once.
const PIECE_BYTES: u64 = 64 * 1024;
/// Bytes `wasi:io` takes in one blocking write.
const WRITTEN_BYTES: usize = 4096;

type Head = (u16, Vec<(String, Vec<u8>)>, Body);

/// A body that comes in.
pub(super) struct Body {
    // Dropped before what it belongs to.
    stream: InputStream,
    _body: IncomingBody,
    deadline: Deadline,
}

/// The moment at which a request is given up.
struct Deadline {
    /// Nanoseconds of the monotonic clock.
    at: u64,
    secs: u64,
}

/// Sends a request and waits for the head of its response.
pub(super) fn send(request: &Request) -> Result<Head, ToolError> {
    if !cfg!(target_family = "wasm") {
        let message = "there is no host in a native build, so nothing is sent";
        return Err(ToolError::network(message));
    }
    let nanos = u64::try_from(request.timeout.as_nanos()).unwrap_or(u64::MAX);
    let deadline = Deadline {
        at: now().saturating_add(nanos),
        secs: request.timeout.as_secs(),
    };
    let outgoing = outgoing(request)?;
    // A request that never had a body is followed where it is redirected.
    let body = match request.body.is_empty() {
        true => None,
        false => Some(
            outgoing
                .body()
                .map_err(|()| bug("a request has one body"))?,
        ),
    };
    let response = handle(outgoing, Some(options(nanos)?)).map_err(|code| refused(&code))?;
    if let Some(body) = body {
        write(body, &request.body)?;
    }
    let response = wait(&response, &deadline)?;
    let status = response.status();
    let headers = response.headers().entries();
    let body = response
        .consume()
        .map_err(|()| bug("a response has one body"))?;
    let stream = body.stream().map_err(|()| bug("a body has one stream"))?;
    Ok((
        status,
        headers,
        Body {
            stream,
            _body: body,
            deadline,
        },
    ))
}

fn outgoing(request: &Request) -> Result<OutgoingRequest, ToolError> {
    let (scheme, authority, path) = parts(&request.url)?;
    let fields = Fields::new();
    for (name, value) in &request.headers {
        fields.append(name, value).map_err(|error| {
            ToolError::invalid_parameters(format!(
                "the header `{}` cannot be sent: {error:?}",
                shown(name)
            ))
        })?;
    }
    let outgoing = OutgoingRequest::new(fields);
    let path = match path {
        "" => "/".to_owned(),
        path if path.starts_with('?') => format!("/{path}"),
        path => path.to_owned(),
    };
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        other => Scheme::Other(other.to_owned()),
    };
    outgoing
        .set_method(&method(&request.method))
        .and_then(|()| outgoing.set_scheme(Some(&scheme)))
        .and_then(|()| outgoing.set_authority(Some(authority)))
        .and_then(|()| outgoing.set_path_with_query(Some(&path)))
        .map_err(|()| {
            ToolError::invalid_parameters(format!(
                "`{}` cannot be requested: its method, host or path is not valid",
                shown(&request.url)
            ))
        })?;
    Ok(outgoing)
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

/// What the host waits for each step; the deadline over all is this side's.
fn options(nanos: u64) -> Result<RequestOptions, ToolError> {
    let options = RequestOptions::new();
    options
        .set_connect_timeout(Some(nanos))
        .and_then(|()| options.set_first_byte_timeout(Some(nanos)))
        .and_then(|()| options.set_between_bytes_timeout(Some(nanos)))
        .map_err(|()| bug("the host takes no timeouts"))?;
    Ok(options)
}

fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), ToolError> {
    let stream = body.write().map_err(|()| bug("a body is written once"))?;
    for piece in bytes.chunks(WRITTEN_BYTES) {
        stream.blocking_write_and_flush(piece).map_err(broken)?;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(|code| refused(&code))
}

fn wait(
    response: &FutureIncomingResponse,
    deadline: &Deadline,
) -> Result<IncomingResponse, ToolError> {
    loop {
        if let Some(answer) = response.get() {
            let answer = answer.map_err(|()| bug("a response is taken once"))?;
            return answer.map_err(|code| refused(&code));
        }
        deadline.wait(&response.subscribe())?;
    }
}

impl Body {
    pub(super) fn read(&mut self) -> Result<Vec<u8>, ToolError> {
        loop {
            match self.stream.read(PIECE_BYTES) {
                Ok(piece) if piece.is_empty() => self.deadline.wait(&self.stream.subscribe())?,
                Ok(piece) => return Ok(piece),
                Err(StreamError::Closed) => return Ok(Vec::new()),
                Err(error) => return Err(broken(error)),
            }
        }
    }
}

impl Deadline {
    /// Waits until something can be done, or the time is over.
    fn wait(&self, ready: &Pollable) -> Result<(), ToolError> {
        poll(&[ready, &subscribe_instant(self.at)]);
        match now() >= self.at {
            true => Err(ToolError::timeout(format!(
                "the server did not finish its answer within {} seconds",
                self.secs
            ))),
            false => Ok(()),
        }
    }
}

/// A stream that broke off.
fn broken(error: StreamError) -> ToolError {
    match error {
        StreamError::Closed => ToolError::network("the server closed the connection"),
        StreamError::LastOperationFailed(error) => match http_error_code(&error) {
            Some(code) => refused(&code),
            None => {
                ToolError::network(format!("the connection broke: {}", error.to_debug_string()))
            }
        },
    }
}

/// A request the host did not make, or that came to nothing, in plain words.
fn refused(code: &ErrorCode) -> ToolError {
    use Category::{InvalidParameters, NetworkError, PermanentFailure, PolicyBlocked, Timeout};
    let (category, message) = match code {
        ErrorCode::DnsTimeout => (Timeout, "the name of the server was not resolved in time"),
        ErrorCode::ConnectionTimeout => {
            (Timeout, "the server did not accept the connection in time")
        }
        ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout => {
            (Timeout, "the server did not answer in time")
        }
        ErrorCode::ConnectionWriteTimeout => {
            (Timeout, "the server did not take the request in time")
        }
        ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => {
            (NetworkError, "the name of the server does not resolve")
        }
        ErrorCode::DestinationUnavailable | ErrorCode::DestinationIpUnroutable => {
            (NetworkError, "the server cannot be reached")
        }
        ErrorCode::ConnectionRefused => (NetworkError, "the server refused the connection"),
        ErrorCode::ConnectionTerminated | ErrorCode::HttpResponseIncomplete => (
            NetworkError,
            "the server closed the connection before its answer was complete",
        ),
        ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => (
            NetworkError,
            "no TLS connection to the server could be made: it ended the handshake, speaks something else there, or no version of TLS that is supported",
        ),
        ErrorCode::TlsCertificateError => (
            PermanentFailure,
            "the certificate of the server is not trusted (`tools.egress.ca_file` adds authorities), has expired, is for another host, or is that of an authority itself",
        ),
        ErrorCode::HttpRequestDenied => (PolicyBlocked, "this request is not allowed"),
        ErrorCode::DestinationIpProhibited => (
            PolicyBlocked,
            "the host resolves to an address that may not be reached",
        ),
        ErrorCode::HttpRequestMethodInvalid => {
            (InvalidParameters, "the method of the request is not valid")
        }
        ErrorCode::HttpRequestUriInvalid => {
            (InvalidParameters, "the URL of the request is not valid")
        }
        ErrorCode::HttpRequestUriTooLong => (PolicyBlocked, "the URL of the request is too long"),
        ErrorCode::HttpResponseBodySize(_) => (
            PermanentFailure,
            "the body of the response exceeds the limit of the host (`tools.egress.max_body_bytes`)",
        ),
        ErrorCode::HttpResponseHeaderSectionSize(_) | ErrorCode::HttpResponseHeaderSize(_) => (
            PermanentFailure,
            "the headers of the response exceed the limit of the host (`tools.egress.max_header_bytes`)",
        ),
        ErrorCode::HttpResponseContentCoding(_) | ErrorCode::HttpResponseTransferCoding(_) => (
            PermanentFailure,
            "the response is encoded in a way that is not supported, or its encoding is damaged",
        ),
        ErrorCode::LoopDetected => (
            PermanentFailure,
            "the server redirects more often than `tools.egress.max_redirects` allows, or to an address that is not followed",
        ),
        ErrorCode::HttpProtocolError => (NetworkError, "the server does not speak HTTP correctly"),
        ErrorCode::ConnectionLimitReached => {
            (Category::RateLimited, "too many connections are open")
        }
        ErrorCode::InternalError(Some(text)) => return failure(NetworkError, shown(text)),
        other => return failure(NetworkError, format!("the request failed: {other:?}")),
    };
    failure(category, message)
}

/// Something that only a host that breaks the contract does.
fn bug(message: &str) -> ToolError {
    ToolError::server(format!("bug: {message}"))
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("deadline", &self.deadline.at)
            .finish_non_exhaustive()
    }
}
