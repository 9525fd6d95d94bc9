//! A remote server, reached through the host's own way out.

use std::fmt::Debug;

use http::{HeaderMap, HeaderValue};
use url::Url;
use zeph_egress::{OwnClient, Pending};

use super::error::McpError;

/// Where a remote server is and how it is spoken to.
#[derive(Debug, Clone)]
pub struct HttpServer {
    /// Made for this URL alone.
    pub client: OwnClient,
    /// The endpoint.
    pub url: Url,
    /// Headers of every request, such as a key the operator configured.
    pub headers: HeaderMap,
    /// What the `Authorization` header is, where it changes.
    pub credentials: Option<std::sync::Arc<dyn Credentials>>,
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
