//! A remote server, reached through the host's own way out.

mod announcement;
mod events;
mod exchange;

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, StatusCode};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpClientWorker, StreamableHttpError,
};
use rmcp::transport::worker::WorkerTransport;
use url::Url;
use zeph_core::failure::{chain, one_line};
use zeph_egress::{Egress, HostAccount, OwnClient, OwnError, OwnLimits, Pending};

pub(super) use self::exchange::Exchange;
use super::ending::EndReason;
use super::error::McpError;
use super::guard::Link;
use super::{Connection, ServerTransport};

/// Most bytes that one answer or stream of a server may come to.
const ANSWER_BYTES_MAX: usize = 4 << 30;

/// How often a stream that broke is opened again.
const RECONNECTS_MAX: usize = 12;

/// The longest pause before that.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Where a remote server is and how it is spoken to.
#[derive(Clone)]
pub struct HttpServer {
    /// Made for this URL alone.
    pub client: OwnClient,
    /// The endpoint.
    pub url: Url,
    /// Headers of every request, such as a key the operator configured.
    pub headers: HeaderMap,
    /// What the `Authorization` header is, where it changes.
    pub credentials: Option<Arc<dyn Credentials>>,
}

/// Without the values of headers, which are secrets.
impl Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

impl HttpServer {
    /// One at a URL that the operator wrote.
    ///
    /// Errors: `InvalidInput` for a URL that is not one of a host.
    pub fn new(
        egress: &Egress,
        url: Url,
        headers: HeaderMap,
        credentials: Option<Arc<dyn Credentials>>,
    ) -> Result<Self, McpError> {
        let limits = OwnLimits {
            time: Duration::from_secs(30),
            bytes: ANSWER_BYTES_MAX,
        };
        let client = OwnClient::new(egress, &[url.as_str()], limits)
            .map_err(|error| McpError::InvalidInput(one_line(&error.to_string(), 300)))?;
        Ok(Self {
            client,
            url,
            headers,
            credentials,
        })
    }
}

impl ServerTransport {
    /// What requests to a remote server are counted in.
    pub(super) fn account(&self) -> Option<HostAccount> {
        match self {
            Self::Pipes { .. } => None,
            Self::Http(server) => Some(server.client.account().clone()),
        }
    }
}

impl Connection {
    /// What the host sends to and receives from a remote server, and from where it logs in; none of a server over pipes.
    pub fn account(&self) -> Option<&HostAccount> {
        self.0.account.as_ref()
    }
}

/// Where the `Authorization` header of a remote server comes from.
pub trait Credentials: Debug + Send + Sync + 'static {
    /// The header for a request made now, refreshed if it is about to expire. `None`: the request goes without.
    ///
    /// Errors: `Authorization` when a person has to log in again; `Unreachable` when refreshing failed for now.
    fn header(&self) -> Pending<'_, Result<Option<HeaderValue>, McpError>>;

    /// The server refused `used` with status 401, or 403 for want of scope. `challenge`: the value of `WWW-Authenticate`.
    ///
    /// True when there is another header, with which the request is made once more.
    fn refused<'a>(
        &'a self,
        used: Option<&'a HeaderValue>,
        status: u16,
        challenge: Option<&'a str>,
    ) -> Pending<'a, bool>;
}

/// The transport to `server`.
pub(super) fn transport(
    server: HttpServer,
    bytes_max: usize,
) -> StreamableHttpClientTransport<Exchange> {
    let mut backoff = ExponentialBackoff::default();
    backoff.max_times = Some(RECONNECTS_MAX);
    backoff.max_delay = Some(RECONNECT_PAUSE_MAX);
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    config.retry_config = Arc::new(backoff);
    config.max_sse_event_size = bytes_max;
    StreamableHttpClientTransport::with_client(Exchange::new(server, bytes_max), config)
}

impl Link for WorkerTransport<StreamableHttpClientWorker<Exchange>> {
    fn explain(error: StreamableHttpError<McpError>) -> McpError {
        match error {
            StreamableHttpError::Client(error) => error,
            StreamableHttpError::HttpStatus(error) => McpError::Http {
                status: error.status,
                retry_after_ms: None,
            },
            StreamableHttpError::TransportChannelClosed => McpError::Ended(Self::end_of_stream()),
            StreamableHttpError::SessionExpired => McpError::Http {
                status: StatusCode::NOT_FOUND.as_u16(),
                retry_after_ms: None,
            },
            error => McpError::Unreachable(one_line(&error.to_string(), 300)),
        }
    }

    fn end_of_stream() -> EndReason {
        EndReason::Broken("the session with the server has ended".to_owned())
    }
}

/// What a failure of the way out comes to.
fn unreachable(error: &OwnError) -> McpError {
    match error {
        OwnError::Status(status) => McpError::Http {
            status: *status,
            retry_after_ms: None,
        },
        error => McpError::Unreachable(chain(error, 400)),
    }
}
