//! Fetches the keys: one GET, with limits, over TLS unless it stays on this machine. No redirection is followed.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// How long it may take.
const FETCH_MAX: Duration = Duration::from_secs(5);

/// Most bytes of a set of keys.
const KEYS_BYTES_MAX: usize = 256 << 10;

type FetchError = Box<dyn Error + Send + Sync>;

/// Where the keys are.
#[derive(Debug, Clone)]
pub(super) struct Source {
    url: Uri,
    host: String,
    port: u16,
    is_tls: bool,
}

impl Source {
    /// Errors: the URL is not one that keys can be fetched from.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let bad =
            || format!("`{url}` is not an `https://` URL, nor an `http://` URL of this machine");
        let parsed: Uri = url.parse().map_err(|_| bad())?;
        let is_tls = match parsed.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad()),
        };
        let host = parsed.host().ok_or_else(bad)?;
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let address = host.parse::<IpAddr>();
        let is_local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        if !is_tls && !is_local {
            return Err(bad());
        }
        let port = parsed.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self {
            url: parsed,
            host,
            port,
            is_tls,
        })
    }

    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    /// The body of the answer.
    ///
    /// Errors: there is none, it takes too long, is too large, or has another status than 200.
    pub(super) async fn fetch(&self) -> Result<Bytes, FetchError> {
        timeout(FETCH_MAX, self.exchange()).await?
    }

    async fn exchange(&self) -> Result<Bytes, FetchError> {
        let stream = TcpStream::connect(self.addresses().await?.as_slice()).await?;
        if !self.is_tls {
            return self.get(stream).await;
        }
        let name = ServerName::try_from(self.host.clone())?;
        let stream = connector()?.connect(name, stream).await?;
        self.get(stream).await
    }

    /// What the name of the host leads to: without TLS, to this machine alone.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, FetchError> {
        let addresses = lookup_host((self.host.as_str(), self.port)).await?;
        let is_good = |address: &SocketAddr| self.is_tls || address.ip().is_loopback();
        Ok(addresses.filter(is_good).collect())
    }

    async fn get(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Bytes, FetchError> {
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let authority = self.url.authority().map_or("", |name| name.as_str());
        let request = Request::get(path)
            .header(HOST, authority)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "zeph-host")
            .body(Body::empty())?;
        let answer = async move {
            let response = sender.send_request(request).await?;
            if response.status() != StatusCode::OK {
                return Err(format!("the answer has status {}", response.status()).into());
            }
            let body = Limited::new(response.into_body(), KEYS_BYTES_MAX);
            Ok(body.collect().await?.to_bytes())
        };
        let (mut answer, mut connection) = (pin!(answer), pin!(connection));
        tokio::select! {
            answer = answer.as_mut() => answer,
            // What the connection brought before it ended still counts.
            _ = connection.as_mut() => answer.await,
        }
    }
}

/// TLS with the certificates this machine trusts.
fn connector() -> Result<TlsConnector, FetchError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn keys_come_over_tls_or_from_this_machine() {
        for url in [
            "https://id.example.com/keys",
            "https://id.example.com:8443/keys?a=b",
            "http://127.0.0.1:1/keys",
            "http://[::1]/keys",
            "http://localhost:1",
        ] {
            assert!(Source::new(url).is_ok(), "{url}");
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
            assert!(Source::new(url).is_err(), "{url}");
        }
    }
}
