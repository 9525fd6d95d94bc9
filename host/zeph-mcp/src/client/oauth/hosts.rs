//! Which hosts a login may reach: the server's own, and those that the operator named.
//!
//! Metadata of a server names further hosts (its authorization server, endpoints). They are used only if the operator named them, too:
//! otherwise a server could have the host send requests, and the user's browser, wherever it likes.

use std::sync::Arc;

use url::{Host as UrlHost, Url};
use zeph_core::network::{Destination, HTTPS_PORT, HostPattern};
use zeph_egress::HostAccount;

use super::LoginError;
use super::error::foreign;

/// A remote server as the operator configured it.
#[derive(Debug, Clone)]
pub struct RemoteServer {
    name: String,
    url: Url,
    /// `mcp.servers.NAME.hosts`.
    hosts: Arc<[HostPattern]>,
    challenge: Option<Arc<str>>,
    account: HostAccount,
}

impl RemoteServer {
    /// The server `name` at `url`, whose login may reach the single hosts among `hosts`; patterns for several hosts count for nothing here.
    pub fn new(name: impl Into<String>, url: Url, hosts: impl Into<Arc<[HostPattern]>>) -> Self {
        Self {
            name: name.into(),
            url,
            hosts: hosts.into(),
            challenge: None,
            account: HostAccount::default(),
        }
    }

    /// The server, for which requests to it and to the hosts of its login are counted in `account`.
    #[must_use]
    pub fn counted_in(self, account: HostAccount) -> Self {
        Self { account, ..self }
    }

    pub(super) fn account(&self) -> &HostAccount {
        &self.account
    }

    /// The server, which answered a request with this value of `WWW-Authenticate`: the login begins with what that names.
    #[must_use]
    pub fn challenged(self, challenge: Option<String>) -> Self {
        Self {
            challenge: challenge.map(Arc::from),
            ..self
        }
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn challenge(&self) -> Option<&str> {
        self.challenge.as_deref()
    }

    /// Its endpoint.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether the login may reach `url`: with TLS, or on this machine, at the server's own host and port or at one that was named.
    ///
    /// Errors: `Host` names what is missing, `Unsupported` for what is no URL of HTTP with TLS.
    pub(super) fn allows(&self, url: &Url) -> Result<(), LoginError> {
        let is_secure = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url));
        if !is_secure || !url.username().is_empty() || url.password().is_some() {
            return Err(LoginError::Unsupported(format!(
                "`{}` is not an `https` URL",
                foreign(url.as_str())
            )));
        }
        if url.origin() == self.url.origin() || self.names(url) {
            return Ok(());
        }
        Err(LoginError::Host {
            server: self.name.clone(),
            host: shown(url),
        })
    }

    /// [`Self::allows`] for a URL in text.
    pub(super) fn allowed(&self, url: &str) -> Result<Url, LoginError> {
        let parsed = Url::parse(url)
            .map_err(|_| LoginError::Unsupported(format!("`{}` is not a URL", foreign(url))))?;
        self.allows(&parsed)?;
        Ok(parsed)
    }

    fn names(&self, url: &Url) -> bool {
        let destination = url.host_str().zip(url.port_or_known_default());
        let destination = destination.and_then(|(host, port)| {
            let host = host.parse().ok()?;
            Some(Destination { host, port })
        });
        destination.is_some_and(|destination| {
            let mut single = self.hosts.iter().filter(|pattern| pattern.host().is_some());
            single.any(|pattern| pattern.matches(&destination))
        })
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(UrlHost::Domain(name)) => name == "localhost",
        Some(UrlHost::Ipv4(address)) => address.is_loopback(),
        Some(UrlHost::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The host as the operator would write it.
fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(HTTPS_PORT) | None => foreign(host),
        Some(port) => foreign(&format!("{host}:{port}")),
    }
}
