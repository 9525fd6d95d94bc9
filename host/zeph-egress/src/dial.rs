//! The only place where a name becomes a connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use zeph_core::category::ErrorCategory;
use zeph_core::network::{Destination, PrivateHost};

use crate::address::{ForbiddenAddress, forbidden, is_own};
use crate::connect::{Connect, SystemConnector};
use crate::resolve::{Resolve, SystemResolver};

mod race;

/// How long resolving may take, and then connecting, over all addresses together.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Resolves, checks and connects. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Dialer {
    resolver: Arc<dyn Resolve>,
    connector: Arc<dyn Connect>,
    proxy: Option<Arc<dyn Connect>>,
    private: Arc<[PrivateHost]>,
    limit: Duration,
}

/// A destination with addresses of it that were all checked. Made by [`Dialer::check`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedAddresses {
    destination: Destination,
    addresses: Vec<IpAddr>,
}

/// A connection, and where it goes.
#[derive(Debug)]
pub struct DialedStream {
    /// The connection; nothing was sent on it.
    pub stream: TcpStream,
    /// The checked address it goes to.
    pub address: SocketAddr,
}

/// Why there is no connection. No message holds an address that the caller did not name.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name has no address.
    #[error("`{0}` has no address")]
    NoAddress(Destination),
    /// The resolver failed.
    #[error("the address of `{destination}` cannot be found")]
    Resolve {
        /// What was to be reached.
        destination: Destination,
        /// Of the resolver.
        source: io::Error,
    },
    /// One of its addresses is forbidden.
    #[error(
        "`{destination}` is at {why}; the operator can open it with {}",
        private_host_entry(destination)
    )]
    Forbidden {
        /// What was to be reached.
        destination: Destination,
        /// What its address is.
        why: ForbiddenAddress,
    },
    /// No address of it took the connection.
    #[error("`{destination}` does not take the connection: {source}")]
    Connect {
        /// What was to be reached.
        destination: Destination,
        /// Of the last address that was tried.
        source: io::Error,
    },
    /// It took too long.
    #[error("connecting to `{destination}` took longer than {} s", limit.as_secs())]
    TimedOut {
        /// What was to be reached.
        destination: Destination,
        /// How long it may take.
        limit: Duration,
    },
}

/// What the operator writes to open a private destination.
pub fn private_host_entry(Destination { host, port }: &Destination) -> String {
    format!("`[[tools.egress.private]]` and `host = \"{host}\"`, `ports = [{port}]`")
}

impl DialError {
    /// The category of a call that fails by it.
    pub fn category(&self) -> ErrorCategory {
        match self {
            Self::Forbidden { .. } => ErrorCategory::PolicyBlocked,
            Self::TimedOut { .. } => ErrorCategory::Timeout,
            Self::NoAddress(_) | Self::Resolve { .. } | Self::Connect { .. } => {
                ErrorCategory::NetworkError
            }
        }
    }
}

impl CheckedAddresses {
    /// What they are the addresses of.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// The addresses, in the order in which they are tried; at least one.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

impl Dialer {
    /// One that uses the resolver and the network of the machine. `private`: what the operator opened.
    pub fn new(private: Arc<[PrivateHost]>) -> Self {
        Self::with(Arc::new(SystemResolver), Arc::new(SystemConnector), private)
    }

    /// One with another resolver or another way to connect.
    pub fn with(
        resolver: Arc<dyn Resolve>,
        connector: Arc<dyn Connect>,
        private: Arc<[PrivateHost]>,
    ) -> Self {
        Self {
            resolver,
            connector,
            proxy: None,
            private,
            limit: TIMEOUT,
        }
    }

    /// This egress with public hosts reached through a proxy. Private ones are reached as before: to the proxy their addresses may be others.
    #[must_use]
    pub fn through(self, proxy: Arc<dyn Connect>) -> Self {
        let proxy = Some(proxy);
        Self { proxy, ..self }
    }

    /// This egress with other private hosts opened.
    #[must_use]
    pub fn opening(self, private: Arc<[PrivateHost]>) -> Self {
        Self { private, ..self }
    }

    /// This dialer with another limit than 10 s for resolving, and for connecting.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// What the operator opened at a private destination, if anything.
    pub fn private(&self, destination: &Destination) -> Option<&PrivateHost> {
        self.private.iter().find(|one| one.opens(destination))
    }

    /// Why an address that is written out may not be reached. `None` for a name, whose addresses only a resolver knows.
    pub fn forbidden_literal(&self, destination: &Destination) -> Option<ForbiddenAddress> {
        let address = destination.host.address()?;
        match self.private(destination) {
            Some(_) => None,
            None => reason(address),
        }
    }

    /// Resolves a host and checks every answer: a single forbidden one refuses all of them, since nobody who answers honestly mixes
    /// public addresses with others.
    ///
    /// Errors: `NoAddress`, `Resolve`, `Forbidden`, `TimedOut`.
    pub async fn check(&self, destination: &Destination) -> Result<CheckedAddresses, DialError> {
        let resolved = timeout(self.limit, self.resolver.resolve(&destination.host)).await;
        let resolved = resolved.map_err(|_elapsed| DialError::TimedOut {
            destination: destination.clone(),
            limit: self.limit,
        })?;
        let addresses = resolved.map_err(|source| DialError::Resolve {
            destination: destination.clone(),
            source,
        })?;
        if addresses.is_empty() {
            return Err(DialError::NoAddress(destination.clone()));
        }
        if self.private(destination).is_none()
            && let Some((address, why)) = first_forbidden(&addresses)
        {
            tracing::info!(%destination, %address, "a forbidden address was not dialled: {why}");
            let destination = destination.clone();
            return Err(DialError::Forbidden { destination, why });
        }
        Ok(CheckedAddresses {
            destination: destination.clone(),
            addresses: race::in_order(addresses),
        })
    }

    /// Connects to the first of the checked addresses that takes it.
    ///
    /// Errors: `Connect`, `TimedOut`.
    pub async fn connect(&self, checked: &CheckedAddresses) -> Result<DialedStream, DialError> {
        let CheckedAddresses {
            destination,
            addresses,
        } = checked;
        let port = destination.port;
        let targets = addresses
            .iter()
            .map(|address| SocketAddr::new(*address, port));
        let proxy = self.proxy.as_ref();
        let proxy = proxy.filter(|_| self.private(destination).is_none());
        let racing = race::first(proxy.unwrap_or(&self.connector).as_ref(), targets);
        match timeout(self.limit, racing).await {
            Ok(Ok((stream, address))) => Ok(DialedStream { stream, address }),
            Ok(Err(source)) => Err(DialError::Connect {
                destination: destination.clone(),
                source,
            }),
            Err(_elapsed) => Err(DialError::TimedOut {
                destination: destination.clone(),
                limit: self.limit,
            }),
        }
    }

    /// Resolves, checks and connects.
    ///
    /// Errors: of [`Dialer::check`] and [`Dialer::connect`].
    pub async fn dial(&self, destination: &Destination) -> Result<DialedStream, DialError> {
        let checked = self.check(destination).await?;
        self.connect(&checked).await
    }
}

fn first_forbidden(addresses: &[IpAddr]) -> Option<(IpAddr, ForbiddenAddress)> {
    let mut found = addresses
        .iter()
        .filter_map(|address| Some((*address, reason(*address)?)));
    found.next()
}

/// Why an address may not be reached.
fn reason(address: IpAddr) -> Option<ForbiddenAddress> {
    forbidden(address).or_else(|| is_own(address).then_some(ForbiddenAddress::OwnMachine))
}

#[cfg(test)]
mod tests;
