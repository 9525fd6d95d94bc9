//! The host's own requests: to the hosts of URLs that the operator wrote down, and to public hosts that one of them named.

mod answer;
mod error;
mod exchange;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::ACCEPT;
use tokio::sync::Semaphore;
use url::Url;
use zeph_core::network::{Destination, HTTP_PORT, HTTPS_PORT, PrivateHost};

pub use self::answer::{OwnAnswer, OwnBody};
pub use self::error::{OwnError, OwnPhase};
use self::exchange::{Exchange, Way};
use crate::client::Egress;
use crate::dial::Dialer;
use crate::ledger::HostAccount;
use crate::pool::Pool;
use crate::request::{Origin, origin_of};
use crate::tls::Tls;

/// Most requests of one client at one time; others wait, as long as they wait for the header of an answer.
const OPEN_MAX: usize = 64;

/// Requests to the origins it was made for, with the checks of every other request. No redirect is followed: the caller sees it.
/// Connections are kept for later requests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OwnClient {
    origins: Arc<[Named]>,
    roads: Roads,
    limits: OwnLimits,
}

/// An origin, and how it may be reached.
#[derive(Debug, Clone)]
struct Named {
    origin: Origin,
    /// At any address; else at public ones.
    is_anywhere: bool,
    /// Over plain HTTP, where its URL says so.
    is_plain_allowed: bool,
}

/// A host that the operator named, and how it may be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnHost {
    /// Host and port.
    pub destination: Destination,
    /// Speak plain HTTP with it.
    pub plain_http: bool,
    /// Its addresses may be private ones.
    pub private: bool,
}

/// How hosts are reached.
#[derive(Debug, Clone)]
struct Roads {
    /// With the checks of tools, and through the operator's proxy.
    public: Dialer,
    /// Any address of what the operator named here.
    opened: Dialer,
    tls: Tls,
    pool: Pool,
    open: Arc<Semaphore>,
    account: HostAccount,
}

/// What bounds every request of a client.
#[derive(Debug, Clone, Copy)]
pub struct OwnLimits {
    /// The whole of a `get`.
    pub time: Duration,
    /// Bytes of the body.
    pub bytes: usize,
}

/// What bounds one request in time. `Duration::MAX` stands for no limit.
#[derive(Debug, Clone, Copy)]
pub struct OwnPatience {
    /// Until the header of the answer, from when there is a connection.
    pub headers: Duration,
    /// Between two pieces of the body, of whatever size.
    pub idle: Duration,
    /// From the beginning to the end of the body.
    pub total: Duration,
}

impl OwnClient {
    /// One for the hosts and ports of `urls`. The operator named them, so that they may be private, and plain HTTP where that was written.
    ///
    /// Errors: `Url`.
    pub fn new(egress: &Egress, urls: &[&str], limits: OwnLimits) -> Result<Self, OwnError> {
        let origins = named(urls, true)?;
        Ok(Self::over(egress.dialer().clone(), egress, origins, limits))
    }

    /// One for `hosts`, each as its operator said. What is opened for tools (`[[tools.egress.private]]`) is not opened here.
    pub fn of_hosts(egress: &Egress, hosts: &[OwnHost], limits: OwnLimits) -> Self {
        let named = |host: &OwnHost| Named {
            origin: Origin {
                is_plain: host.plain_http,
                destination: host.destination.clone(),
            },
            is_anywhere: host.private,
            is_plain_allowed: host.plain_http,
        };
        let public = egress.dialer().clone().opening(Arc::default());
        let origins = hosts.iter().map(named).collect();
        Self::over(public, egress, origins, limits)
    }

    fn over(public: Dialer, egress: &Egress, origins: Vec<Named>, limits: OwnLimits) -> Self {
        let private = origins.iter().filter(|named| named.is_anywhere);
        let private = private.map(|Named { origin, .. }| PrivateHost {
            host: origin.destination.host.clone(),
            ports: vec![origin.destination.port],
            plain_http: origin.is_plain,
        });
        Self {
            roads: Roads {
                public,
                opened: egress.dialer().clone().opening(private.collect()),
                tls: egress.tls().clone(),
                pool: Pool::default(),
                open: Arc::new(Semaphore::new(OPEN_MAX)),
                account: HostAccount::default(),
            },
            origins: origins.into(),
            limits,
        }
    }

    /// This client for the hosts and ports of `urls` too, which another party than the operator named: they are reached at public
    /// addresses and over TLS, or as `[[tools.egress.private]]` says, unless it was made of hosts.
    ///
    /// Errors: `Url`.
    pub fn also(&self, urls: &[&str]) -> Result<Self, OwnError> {
        let others = named(urls, false)?;
        Ok(Self {
            origins: self.origins.iter().cloned().chain(others).collect(),
            ..self.clone()
        })
    }

    /// This client, which counts its requests in `account`. To be called before it makes any: connections that wait are not moved.
    #[must_use]
    pub fn counted_in(mut self, account: HostAccount) -> Self {
        self.roads.account = account;
        self
    }

    /// What its requests, and those of its clones, are counted in.
    pub fn account(&self) -> &HostAccount {
        &self.roads.account
    }

    /// The body of the answer, which has the status 200.
    ///
    /// Errors: [`OwnError`]; `Url` for a host it was not made for, and for plain HTTP that would leave this machine.
    pub async fn get(&self, url: &str) -> Result<Bytes, OwnError> {
        let request = Request::get(url).header(ACCEPT, "application/json");
        let request = request.body(Bytes::new()).map_err(|error| OwnError::Url {
            url: url.to_owned(),
            why: error.to_string(),
        })?;
        let patience = OwnPatience {
            headers: self.limits.time,
            idle: self.limits.time,
            total: self.limits.time,
        };
        let way = Way {
            is_plain_local: true,
            ..Way::default()
        };
        let answer = self.exchange(request, patience, way).await?;
        match answer.status.as_u16() {
            200 => answer.bytes(self.limits.bytes).await,
            status => Err(OwnError::Status(status)),
        }
    }

    /// Sends a request, whose URI is a whole URL, and waits for the header of the answer.
    ///
    /// `Host`, `Accept-Encoding` and the fields of a connection are set here, `User-Agent` where there is none.
    /// A connection may have waited for this request. When it turns out to be closed, the request is sent again on a fresh one if
    /// nothing of it was sent, or if its method only fetches.
    ///
    /// Errors: [`OwnError`]; `Url` for a host it was not made for. Dropping the future ends everything.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        patience: OwnPatience,
    ) -> Result<OwnAnswer, OwnError> {
        self.exchange(request, patience, Way::default()).await
    }

    /// [`OwnClient::send`] on a connection made for it: after a failure that may have been one of the connection.
    ///
    /// Errors: of [`OwnClient::send`].
    pub async fn send_fresh(
        &self,
        request: Request<Bytes>,
        patience: OwnPatience,
    ) -> Result<OwnAnswer, OwnError> {
        let way = Way {
            is_fresh: true,
            ..Way::default()
        };
        self.exchange(request, patience, way).await
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        patience: OwnPatience,
        way: Way,
    ) -> Result<OwnAnswer, OwnError> {
        let url = request.uri().to_string();
        let (_, origin) = read(&url)?;
        if self.is_for_tls(&origin) {
            let destination = origin.destination;
            return Err(OwnError::Plain { url, destination });
        }
        let named = self.origins.iter().find(|named| named.origin == origin);
        let Some(named) = named else {
            let why = "the operator named another host".to_owned();
            return Err(OwnError::Url { url, why });
        };
        let exchange = Exchange {
            roads: &self.roads,
            named,
            bytes: self.limits.bytes as u64,
            patience,
            way,
        };
        exchange.send(&request).await
    }

    /// Whether plain HTTP is asked of a host that is to be spoken with over TLS. Known before its name is looked up: what its addresses are
    /// would be told otherwise, and is not what is wrong.
    fn is_for_tls(&self, origin: &Origin) -> bool {
        let destination = &origin.destination;
        let named = self.origins.iter();
        let mut named = named.filter(|named| is_meant(&named.origin.destination, destination));
        let is_opened = self.roads.public.private(destination);
        origin.is_plain
            && !is_opened.is_some_and(|opened| opened.plain_http)
            && named.clone().any(|named| !named.origin.is_plain)
            && !named.any(|named| named.is_plain_allowed)
    }
}

/// Whether `asked` is the host that was `named`. One that was named without a port is named with that of TLS.
fn is_meant(named: &Destination, asked: &Destination) -> bool {
    named.host == asked.host
        && (named.port == asked.port || (named.port, asked.port) == (HTTPS_PORT, HTTP_PORT))
}

/// Errors: `Url`.
fn named(urls: &[&str], is_operators: bool) -> Result<Vec<Named>, OwnError> {
    let named = urls.iter().map(|url| {
        let (_, origin) = read(url)?;
        Ok(Named {
            origin,
            is_anywhere: is_operators,
            is_plain_allowed: is_operators,
        })
    });
    named.collect()
}

/// Errors: `Url`.
fn read(url: &str) -> Result<(Url, Origin), OwnError> {
    let bad = |why: String| OwnError::Url {
        url: url.to_owned(),
        why,
    };
    let parsed = Url::parse(url).map_err(|error| bad(error.to_string()))?;
    let origin = origin_of(&parsed).map_err(bad)?;
    Ok((parsed, origin))
}

#[cfg(test)]
mod tests;
