//! Where the HTTP requests of a guest go. The engine neither knows hosts nor opens connections: who makes the engine's calls hands in an
//! [`HttpExit`] with each of them, and a guest without one is refused.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use wasmtime_wasi_http::p2::bindings::http::types::{DnsErrorPayload, ErrorCode};
use zeph_core::execution::HostUse;

use crate::missing_grant::MissingGrant;

/// The body of a request.
pub type HttpRequestBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// The body of a response.
pub type HttpResponseBody = UnsyncBoxBody<Bytes, HttpFailure>;

/// A request on its way.
pub type HttpSending =
    Pin<Box<dyn Future<Output = Result<http::Response<HttpResponseBody>, HttpFailure>> + Send>>;

/// Takes the HTTP requests of one call out to the network.
pub trait HttpExit: Debug + Send + Sync {
    /// Checks a request and counts it. The future sends it; dropping it ends everything.
    ///
    /// Shape:  the URI has scheme and authority as the guest wrote them, which may be any.
    /// Errors: [`HttpFailure`]; then nothing was sent.
    fn send(
        &self,
        request: http::Request<HttpRequestBody>,
        patience: HttpPatience,
    ) -> Result<HttpSending, HttpFailure>;

    /// Until when the same requests may be answered from what came back; none when one of them may not.
    fn fresh_until(&self) -> Option<Instant> {
        None
    }

    /// The hosts that requests of the call were sent to, or were refused at, until now.
    fn hosts(&self) -> Vec<HostUse> {
        Vec::new()
    }

    /// The requests of the call that were let out until now, each once: host with port, and method.
    fn requests(&self) -> Vec<SentRequest> {
        Vec::new()
    }
}

/// Where a request went, and by which method.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SentRequest {
    /// The host with its port, such as `example.org:443`.
    pub host: String,
    /// The method, such as `GET`.
    pub method: String,
    /// Whether it was sent without TLS.
    pub plain_http: bool,
}

/// How long a guest wants to wait. It is never waited longer than the exit allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HttpPatience {
    /// For the connection.
    pub connect: Option<Duration>,
    /// For the header of the response.
    pub header: Option<Duration>,
    /// Between two pieces of the body.
    pub idle: Option<Duration>,
}

/// Why there is no response, or no more of it.
#[derive(Debug, thiserror::Error)]
#[error("{kind:?}")]
pub struct HttpFailure {
    /// What the guest is told.
    pub kind: HttpFailureKind,
    /// What its user is told, when a right is missing or a rule forbids it.
    pub refused: Option<Box<MissingGrant>>,
}

/// What a guest is told, in the words of `wasi:http`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpFailureKind {
    /// Not permitted.
    Denied,
    /// The URL has too many bytes.
    UriTooLong,
    /// The name has no address.
    NoAddress,
    /// The address is none that may be reached.
    Prohibited,
    /// Nobody took the connection.
    NotConnected,
    /// The connection took too long.
    ConnectTimeout,
    /// The response took too long.
    ResponseTimeout,
    /// The certificate is not trusted, has expired, or is for another host.
    Certificate,
    /// There was no handshake: the peer speaks something else, or nothing in common.
    Tls,
    /// The header is larger than it may be.
    HeaderTooLarge,
    /// The body has more bytes than this.
    BodyTooLarge(u64),
    /// It was redirected too often, or to what is no place.
    Redirect,
    /// The body has an encoding that is not decoded.
    Encoding(String),
    /// More requests than a call may make.
    TooMany,
    /// The response ended before it was whole.
    Incomplete,
    /// The peer does not keep to the protocol.
    Protocol,
    /// Something else, in a sentence.
    Other(String),
}

impl From<HttpFailureKind> for ErrorCode {
    fn from(kind: HttpFailureKind) -> Self {
        match kind {
            HttpFailureKind::Denied => Self::HttpRequestDenied,
            HttpFailureKind::UriTooLong => Self::HttpRequestUriTooLong,
            HttpFailureKind::NoAddress => Self::DnsError(DnsErrorPayload {
                rcode: None,
                info_code: None,
            }),
            HttpFailureKind::Prohibited => Self::DestinationIpProhibited,
            HttpFailureKind::NotConnected => Self::ConnectionRefused,
            HttpFailureKind::ConnectTimeout => Self::ConnectionTimeout,
            HttpFailureKind::ResponseTimeout => Self::HttpResponseTimeout,
            HttpFailureKind::Certificate => Self::TlsCertificateError,
            HttpFailureKind::Tls => Self::TlsProtocolError,
            HttpFailureKind::HeaderTooLarge => Self::HttpResponseHeaderSectionSize(None),
            HttpFailureKind::BodyTooLarge(limit) => Self::HttpResponseBodySize(Some(limit)),
            HttpFailureKind::Redirect => Self::LoopDetected,
            HttpFailureKind::Encoding(coding) => Self::HttpResponseContentCoding(Some(coding)),
            HttpFailureKind::TooMany => Self::ConnectionLimitReached,
            HttpFailureKind::Incomplete => Self::HttpResponseIncomplete,
            HttpFailureKind::Protocol => Self::HttpProtocolError,
            HttpFailureKind::Other(sentence) => Self::InternalError(Some(sentence)),
        }
    }
}

/// The code of an error by which a body of [`HttpExit`] ended early; `None` for an error of another origin.
pub(crate) fn body_error_code(error: &wasmtime_wasi_http::Error) -> Option<ErrorCode> {
    use wasmtime_wasi_http::Error as BodyError;
    Some(match error {
        BodyError::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
        BodyError::HttpResponseBodySize(limit) => ErrorCode::HttpResponseBodySize(*limit),
        BodyError::HttpResponseContentCoding(coding) => {
            ErrorCode::HttpResponseContentCoding(coding.clone())
        }
        BodyError::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        BodyError::HttpProtocolError => ErrorCode::HttpProtocolError,
        BodyError::InternalError(text) => ErrorCode::InternalError(text.clone()),
        _ => return None,
    })
}
