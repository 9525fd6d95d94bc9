//! One request of the host and the header of its answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HOST, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};
use zeph_core::network::Destination;

use super::answer::OwnAnswer;
use super::error::{OwnError, OwnPhase};
use super::{Named, OwnPatience, Roads};
use crate::address::{forbidden, is_own};
use crate::body::{Wire, WireLimits};
use crate::connection::{Bill, Connection, RequestBody, Stream};
use crate::dial::{CheckedAddresses, DialError, Dialer};
use crate::error::EgressError;
use crate::hop;
use crate::ledger::Traffic;
use crate::metered::Metered;
use crate::pool::PoolKey;

/// Most bytes of the header of an answer.
const HEADER_BYTES_MAX: usize = 256 * 1024;

/// The handshakes after connecting.
const HANDSHAKE_MAX: Duration = Duration::from_secs(20);

/// What stands for no limit: half a year.
const FAR: Duration = Duration::from_secs(180 * 24 * 3600);

/// How a request is sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Way {
    /// On a connection of its own.
    pub(super) is_fresh: bool,
    /// Plain HTTP goes to this machine alone, whatever the operator wrote.
    pub(super) is_plain_local: bool,
}

/// One request.
pub(super) struct Exchange<'a> {
    pub(super) roads: &'a Roads,
    pub(super) named: &'a Named,
    pub(super) bytes: u64,
    pub(super) patience: OwnPatience,
    pub(super) way: Way,
}

/// Addresses, and the dialer that may connect to them.
type Road<'a> = (&'a Dialer, CheckedAddresses);

impl Exchange<'_> {
    /// Errors: [`OwnError`].
    pub(super) async fn send(&self, request: &Request<Bytes>) -> Result<OwnAnswer, OwnError> {
        let deadline = after(self.patience.total);
        // Also when a connection waits: what a name says now decides.
        let road = self.road(request.uri()).await?;
        let limit = deadline.min(after(self.patience.headers));
        let permit = timeout_at(limit, Arc::clone(&self.roads.open).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(self.late(OwnPhase::Connect, self.patience.headers));
        };
        let (response, connection, key) = self.response(request, &road, deadline).await?;
        let limits = WireLimits {
            bytes: self.bytes,
            idle: self.patience.idle.min(FAR),
            total: self.patience.total,
            deadline,
        };
        let pool = self.roads.pool.clone();
        let (parts, body) = Wire::of(response, (connection, key, pool), limits, permit);
        OwnAnswer::new(Response::from_parts(parts, body))
    }

    async fn response(
        &self,
        request: &Request<Bytes>,
        road: &Road<'_>,
        deadline: Instant,
    ) -> Result<(Response<Incoming>, Connection, PoolKey), OwnError> {
        let waiting = match self.way.is_fresh {
            true => None,
            false => self.waiting(&road.1),
        };
        let traffic = self.roads.account.ledger().of(self.destination());
        if let Some((mut connection, key)) = waiting {
            connection.count_for(&traffic);
            match self.exchange(&mut connection, request, deadline).await {
                Ok(response) => return Ok((response, connection, key)),
                Err(error) if can_repeat(request.method(), &error) => traffic.taken_back(),
                Err(error) => return Err(error),
            }
        }
        let (mut connection, key) = self.connect(road, &traffic, deadline).await?;
        connection.count_for(&traffic);
        let response = self.exchange(&mut connection, request, deadline).await?;
        Ok((response, connection, key))
    }

    /// What the operator named may be anywhere; a private address is not asked of a proxy.
    async fn road(&self, uri: &Uri) -> Result<Road<'_>, OwnError> {
        let Roads { public, opened, .. } = self.roads;
        let road = match self.named.is_anywhere {
            true => {
                let checked = self.checked(opened).await?;
                let is_public = checked.addresses().iter().all(is_public);
                (if is_public { public } else { opened }, checked)
            }
            false => (public, self.checked(public).await?),
        };
        match self.refuses_plain(&road.1) {
            Some(why) => Err(OwnError::Url {
                url: uri.to_string(),
                why: why.to_owned(),
            }),
            None => Ok(road),
        }
    }

    async fn checked(&self, dialer: &Dialer) -> Result<CheckedAddresses, DialError> {
        let checked = dialer.check(self.destination()).await;
        checked.inspect_err(|error| {
            if matches!(error, DialError::Forbidden { .. }) {
                self.roads.account.ledger().refused_at(self.destination());
            }
        })
    }

    /// Why plain HTTP is not spoken, when it is not and was asked for.
    fn refuses_plain(&self, checked: &CheckedAddresses) -> Option<&'static str> {
        if !self.named.origin.is_plain {
            return None;
        }
        let is_local = checked.addresses().iter().all(IpAddr::is_loopback);
        if self.way.is_plain_local && !is_local {
            return Some("plain HTTP is spoken with this machine only");
        }
        let opened = self.roads.public.private(self.destination());
        let is_opened = opened.is_some_and(|opened| opened.plain_http);
        let is_allowed = self.named.is_plain_allowed || is_opened;
        (!is_allowed).then_some("plain HTTP is spoken only where the operator wrote it")
    }

    fn destination(&self) -> &Destination {
        &self.named.origin.destination
    }

    fn key(&self, address: IpAddr) -> PoolKey {
        PoolKey {
            owner: Arc::default(),
            is_plain: self.named.origin.is_plain,
            destination: self.destination().clone(),
            address,
        }
    }

    fn waiting(&self, checked: &CheckedAddresses) -> Option<(Connection, PoolKey)> {
        checked.addresses().iter().find_map(|address| {
            let key = self.key(*address);
            Some((self.roads.pool.take(&key)?, key))
        })
    }

    async fn connect(
        &self,
        (dialer, checked): &Road<'_>,
        traffic: &Arc<Traffic>,
        deadline: Instant,
    ) -> Result<(Connection, PoolKey), OwnError> {
        let connecting = async {
            let dialed = dialer.connect(checked).await?;
            let bill = Bill::new(Arc::clone(traffic));
            let counted = Metered::new(dialed.stream, bill.clone());
            let stream: Box<dyn Stream> = match self.named.origin.is_plain {
                true => Box::new(counted),
                false => {
                    let tls = &self.roads.tls;
                    let securing = tls.handshake(self.destination(), counted);
                    let secured = timeout_at(after(HANDSHAKE_MAX), securing).await;
                    Box::new(
                        secured
                            .map_err(|_elapsed| self.late(OwnPhase::Connect, HANDSHAKE_MAX))??,
                    )
                }
            };
            let connection = Connection::new(stream, HEADER_BYTES_MAX).await;
            let connection = connection.map_err(|source| self.broken(source))?;
            let key = self.key(dialed.address.ip());
            Ok((connection.billed_to(bill), key))
        };
        let connected = timeout_at(deadline, connecting).await;
        connected.map_err(|_elapsed| self.late(OwnPhase::Connect, self.patience.total))?
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        request: &Request<Bytes>,
        deadline: Instant,
    ) -> Result<Response<Incoming>, OwnError> {
        let of_headers = after(self.patience.headers);
        let sending = connection.send(self.to_wire(request));
        match timeout_at(of_headers.min(deadline), sending).await {
            Ok(response) => response.map_err(|source| self.broken(source)),
            Err(_elapsed) if of_headers <= deadline => {
                Err(self.late(OwnPhase::Headers, self.patience.headers))
            }
            Err(_elapsed) => Err(self.late(OwnPhase::Total, self.patience.total)),
        }
    }

    fn to_wire(&self, request: &Request<Bytes>) -> Request<RequestBody> {
        let body = Full::new(request.body().clone()).map_err(|never| match never {});
        let mut wire = Request::new(body.boxed_unsync());
        *wire.method_mut() = request.method().clone();
        let path = request.uri().path_and_query().cloned();
        *wire.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        let mut headers = request.headers().clone();
        hop::strip(&mut headers, &[CONTENT_LENGTH]);
        let host = HeaderValue::from_str(&self.named.origin.authority());
        headers.insert(HOST, host.unwrap_or_else(|_| HeaderValue::from_static("")));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let agent = headers.entry(USER_AGENT);
        agent.or_insert(HeaderValue::from_static("zeph-host"));
        *wire.headers_mut() = headers;
        wire
    }

    fn broken(&self, source: hyper::Error) -> OwnError {
        OwnError::Protocol(EgressError::Http {
            destination: self.destination().clone(),
            source,
        })
    }

    fn late(&self, phase: OwnPhase, limit: Duration) -> OwnError {
        OwnError::TimedOut {
            destination: self.destination().clone(),
            phase,
            limit,
        }
    }
}

fn after(limit: Duration) -> Instant {
    Instant::now() + limit.min(FAR)
}

fn is_public(address: &IpAddr) -> bool {
    forbidden(*address).is_none() && !is_own(*address)
}

/// Whether a request on a connection that had waited can be sent again: nothing of it was sent, or it only fetches and the
/// connection was closed.
fn can_repeat(method: &Method, error: &OwnError) -> bool {
    let OwnError::Protocol(EgressError::Http { source, .. }) = error else {
        return false;
    };
    let is_closed = source.is_closed() || source.is_incomplete_message();
    source.is_canceled() || (method.is_safe() && is_closed)
}
