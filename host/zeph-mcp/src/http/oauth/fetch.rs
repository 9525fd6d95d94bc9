//! Where the keys are, and who fetches them: the host, whose way out this is.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http::Uri;

/// How long it may take.
pub const FETCH_MAX: Duration = Duration::from_secs(5);

/// Most bytes of a set of keys.
pub const KEYS_BYTES_MAX: usize = 256 << 10;

/// Why there are no keys.
pub type FetchError = Box<dyn Error + Send + Sync>;

type Fetching = Pin<Box<dyn Future<Output = Result<Bytes, FetchError>> + Send>>;

/// Makes one GET of the URL it was made for, within [`FETCH_MAX`] and [`KEYS_BYTES_MAX`], and follows no redirect.
#[derive(Clone)]
pub struct KeyFetcher(Arc<dyn Fn() -> Fetching + Send + Sync>);

impl KeyFetcher {
    /// One that fetches by this function.
    pub fn new<F>(fetch: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Bytes, FetchError>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(fetch())))
    }
}

impl fmt::Debug for KeyFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFetcher").finish_non_exhaustive()
    }
}

/// Where the keys are.
#[derive(Debug, Clone)]
pub(super) struct Source {
    url: Uri,
    fetcher: KeyFetcher,
}

impl Source {
    /// Errors: the URL is not one that keys can be fetched from.
    pub(super) fn new(url: &str, fetcher: KeyFetcher) -> Result<Self, String> {
        let bad =
            || format!("`{url}` is not an `https://` URL, nor an `http://` URL of this machine");
        let parsed: Uri = url.parse().map_err(|_| bad())?;
        let host = parsed.host().ok_or_else(bad)?;
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let address = literal.parse::<IpAddr>();
        let is_local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        match parsed.scheme_str() {
            Some("https") => {}
            Some("http") if is_local => {}
            _ => return Err(bad()),
        }
        Ok(Self {
            url: parsed,
            fetcher,
        })
    }

    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    /// The body of the answer.
    ///
    /// Errors: of the one who fetches.
    pub(super) async fn fetch(&self) -> Result<Bytes, FetchError> {
        (self.fetcher.0)().await
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyFetcher, Source};

    #[test]
    fn keys_come_over_tls_or_from_this_machine() {
        let source = |url| Source::new(url, KeyFetcher::new(|| async { Err("nobody".into()) }));
        for url in [
            "https://id.example.com/keys",
            "https://id.example.com:8443/keys?a=b",
            "http://127.0.0.1:1/keys",
            "http://[::1]/keys",
            "http://localhost:1",
        ] {
            assert!(source(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "/keys",
            "file:///etc/passwd",
            "http://id.example.com/keys",
            "http://localhost.example.com/keys",
            "http://192.0.2.1/keys",
            "ftp://localhost/keys",
        ] {
            assert!(source(url).is_err(), "{url}");
        }
    }
}
