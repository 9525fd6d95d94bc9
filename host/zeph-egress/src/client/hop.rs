//! One request to one address.

use std::sync::Arc;

use http::header::{CONTENT_LENGTH, LOCATION};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use url::Url;
use zeph_core::network::{Destination, EgressLimits};

use super::{Call, URL_FIELD};
use crate::body::{ACCEPTED, ResponseBody, Wire, WireLimits};
use crate::connection::{Bill, Connection, RequestBody, Stream};
use crate::dial::{CheckedAddresses, DialError};
use crate::error::EgressError;
use crate::ledger::Traffic;
use crate::metered::Metered;
use crate::pool::PoolKey;
use crate::request::{self, CheckedRequest, Origin};
use crate::secret::{self, CallSecrets, RequestHop, clean_headers};

/// What one hop works with.
pub(super) struct Hop<'a> {
    pub(super) call: &'a Call,
    pub(super) limits: EgressLimits,
    /// Of the whole request, redirects included.
    pub(super) deadline: Instant,
    /// Whether it, or one before it, goes elsewhere than the request did.
    pub(super) has_left_origin: bool,
}

/// A response whose body was not looked at.
pub(super) struct Received {
    parts: http::response::Parts,
    body: Wire,
}

impl Hop<'_> {
    /// Resolves, checks, connects and sends, and waits for the header of the response.
    pub(super) async fn send(
        &self,
        request: &CheckedRequest,
        body: Option<RequestBody>,
    ) -> Result<Received, EgressError> {
        let permit = self.permit(request).await?;
        let destination = request.origin.destination.clone();
        // Also when a connection waits: what a name says now decides.
        let checked = self.call.egress.0.dialer.check(&destination).await;
        let checked = checked.inspect_err(|error| {
            if matches!(error, DialError::Forbidden { .. }) {
                self.call.ledger.refused_at(&destination);
            }
        })?;
        let traffic = self.call.ledger.of(&destination);
        let is_replayable = body.is_none();
        let waiting = is_replayable
            .then(|| self.waiting(request, &checked))
            .flatten();
        if let Some((mut connection, key)) = waiting {
            connection.count_for(&traffic);
            match self.exchange(&mut connection, request, None).await {
                Ok(response) => return self.received(response, (connection, key), permit),
                // It was closed while it waited. Nothing was changed by a request that only fetches.
                Err(EgressError::Http { source, .. }) if is_stale(&source) => traffic.taken_back(),
                Err(error) => return Err(error),
            }
        }
        let (mut connection, key) = self.connect(request, &checked, &traffic).await?;
        connection.count_for(&traffic);
        let response = self.exchange(&mut connection, request, body).await?;
        self.received(response, (connection, key), permit)
    }

    async fn permit(&self, request: &CheckedRequest) -> Result<OwnedSemaphorePermit, EgressError> {
        let open = Arc::clone(&self.call.open);
        match timeout_at(self.deadline, open.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(self.late(
                &request.origin.destination,
                "waiting for another request of the call (`tools.egress.max_connections`)",
            )),
        }
    }

    fn late(&self, destination: &Destination, what: &'static str) -> EgressError {
        EgressError::TimedOut {
            destination: destination.clone(),
            what,
            key: "timeout_secs",
            limit: self.limits.total,
        }
    }

    fn key(&self, request: &CheckedRequest, address: std::net::IpAddr) -> PoolKey {
        PoolKey {
            owner: Arc::clone(&self.call.owner),
            is_plain: request.origin.is_plain,
            destination: request.origin.destination.clone(),
            address,
        }
    }

    fn waiting(
        &self,
        request: &CheckedRequest,
        checked: &CheckedAddresses,
    ) -> Option<(Connection, PoolKey)> {
        checked.addresses().iter().find_map(|address| {
            let key = self.key(request, *address);
            let connection = self.call.egress.0.pool.take(&key)?;
            Some((connection, key))
        })
    }

    async fn connect(
        &self,
        request: &CheckedRequest,
        checked: &CheckedAddresses,
        traffic: &Arc<Traffic>,
    ) -> Result<(Connection, PoolKey), EgressError> {
        let destination = &request.origin.destination;
        let dialer = self
            .call
            .egress
            .0
            .dialer
            .clone()
            .within(self.limits.connect);
        let limit = self.deadline.min(Instant::now() + self.limits.connect * 2);
        let connecting = async {
            let dialed = dialer.connect(checked).await?;
            let bill = Bill::new(Arc::clone(traffic));
            let stream = Metered::new(dialed.stream, bill.clone());
            let stream = self.secured(request, stream).await?;
            let connection = Connection::new(stream, self.limits.header_bytes).await;
            let connection = connection.map_err(|source| EgressError::Http {
                destination: destination.clone(),
                source,
            })?;
            Ok((
                connection.billed_to(bill),
                self.key(request, dialed.address.ip()),
            ))
        };
        match timeout_at(limit, connecting).await {
            Ok(connected) => connected,
            Err(_elapsed) => Err(EgressError::TimedOut {
                destination: destination.clone(),
                what: "connecting",
                key: "connect_timeout_secs",
                limit: self.limits.connect,
            }),
        }
    }

    async fn secured(
        &self,
        request: &CheckedRequest,
        stream: impl Stream + 'static,
    ) -> Result<Box<dyn Stream>, EgressError> {
        if request.origin.is_plain {
            return Ok(Box::new(stream));
        }
        let destination = &request.origin.destination;
        let stream = self
            .call
            .egress
            .0
            .tls
            .handshake(destination, stream)
            .await?;
        Ok(Box::new(stream))
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        request: &CheckedRequest,
        body: Option<RequestBody>,
    ) -> Result<Response<Incoming>, EgressError> {
        let destination = request.origin.destination.clone();
        let mut wire = bounded(request.to_wire(body, ACCEPTED), self.limits.body_bytes);
        self.add_secrets(request, &mut wire);
        let limit = self.deadline.min(Instant::now() + self.limits.header);
        match timeout_at(limit, connection.send(wire)).await {
            Ok(Ok(response)) => self.with_checked_head(response, destination),
            Ok(Err(source)) => Err(EgressError::Http {
                destination,
                source,
            }),
            Err(_elapsed) => Err(EgressError::TimedOut {
                destination,
                what: "the header of the response",
                key: "header_timeout_secs",
                limit: self.limits.header,
            }),
        }
    }

    /// A response whose head is one that a request can have.
    fn with_checked_head(
        &self,
        response: Response<Incoming>,
        destination: Destination,
    ) -> Result<Response<Incoming>, EgressError> {
        // Nobody asks for another protocol: what follows is none of HTTP.
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(EgressError::Upgrade(destination));
        }
        // The connection reads in pieces, and a head that came in one of them may be larger than its limit.
        let limit = self.limits.header_bytes;
        match request::header_bytes(response.headers()) > limit {
            true => Err(EgressError::TooLarge {
                what: "the header of the response",
                key: "max_header_bytes",
                limit: limit as u64,
            }),
            false => Ok(response),
        }
    }

    /// The last thing before a request is sent: every check has passed, and the connection is the one it was made for.
    fn add_secrets(&self, request: &CheckedRequest, wire: &mut Request<RequestBody>) {
        let Origin {
            is_plain,
            destination,
        } = &request.origin;
        let private = self.call.egress.0.dialer.private(destination);
        let is_opened = private.is_some_and(|private| private.plain_http);
        let hop = RequestHop {
            destination,
            method: request.method.as_str(),
            is_exposed: *is_plain && !is_opened,
            has_left_origin: self.has_left_origin,
        };
        for (name, value) in secret::headers(&self.call.secrets.granted, hop) {
            wire.headers_mut().insert(name, value);
        }
    }

    fn received(
        &self,
        response: Response<Incoming>,
        (connection, key): (Connection, PoolKey),
        permit: OwnedSemaphorePermit,
    ) -> Result<Received, EgressError> {
        let limits = WireLimits {
            bytes: self.limits.body_bytes,
            idle: self.limits.idle,
            total: self.limits.total,
            deadline: self.deadline,
        };
        let pool = self.call.egress.0.pool.clone();
        let (parts, body) = Wire::of(response, (connection, key, pool), limits, permit);
        Ok(Received { parts, body })
    }
}

/// A request whose body ends with an error beyond the limit.
fn bounded(request: Request<RequestBody>, body_bytes: u64) -> Request<RequestBody> {
    let bytes_max = usize::try_from(body_bytes).unwrap_or(usize::MAX);
    request.map(|body| Limited::new(body, bytes_max).boxed_unsync())
}

/// Whether the peer closed a connection before it read anything of the request.
fn is_stale(error: &hyper::Error) -> bool {
    error.is_canceled() || error.is_closed() || error.is_incomplete_message()
}

impl Received {
    /// Where it sends the request; `None` when it is an answer.
    pub(super) fn redirect(&self, request: &CheckedRequest) -> Result<Option<Url>, EgressError> {
        let follows = [
            StatusCode::MOVED_PERMANENTLY,
            StatusCode::FOUND,
            StatusCode::SEE_OTHER,
            StatusCode::TEMPORARY_REDIRECT,
            StatusCode::PERMANENT_REDIRECT,
        ];
        let is_redirect = follows.contains(&self.parts.status);
        let Some(location) = self.parts.headers.get(LOCATION).filter(|_| is_redirect) else {
            return Ok(None);
        };
        let here = Url::parse(&request.url());
        let location = std::str::from_utf8(location.as_bytes()).ok();
        let target = here
            .ok()
            .zip(location)
            .and_then(|(here, to)| here.join(to).ok());
        let target = target.map(|mut target| {
            target.set_fragment(None);
            target
        });
        target.map(Some).ok_or_else(|| EgressError::Redirect {
            destination: request.origin.destination.clone(),
            why: "its `location` is no URL".to_owned(),
        })
    }

    /// As the caller gets it, without any known secret.
    ///
    /// Errors: `Encoding`, `TooLarge`.
    pub(super) fn into_response(
        self,
        method: &Method,
        secrets: &CallSecrets,
    ) -> Result<Response<ResponseBody>, EgressError> {
        let Self { mut parts, body } = self;
        parts.headers.remove(URL_FIELD);
        // Errors may quote a header, too.
        clean_headers(&secrets.known, &mut parts.headers);
        let status = parts.status;
        let has_body = method != Method::HEAD
            && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
            && !status.is_redirection();
        let body = match has_body {
            true => {
                check_length(&parts, &body)?;
                ResponseBody::decoded(body, &mut parts.headers)?
            }
            false => ResponseBody::as_it_came(body),
        };
        Ok(secrets.clean(Response::from_parts(parts, body)))
    }
}

/// A body that announces more than it may have is not begun.
fn check_length(parts: &http::response::Parts, body: &Wire) -> Result<(), EgressError> {
    let announced = parts.headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    match announced.is_some_and(|bytes| bytes > body.byte_limit()) {
        true => Err(EgressError::TooLarge {
            what: "the body",
            key: "max_body_bytes",
            limit: body.byte_limit(),
        }),
        false => Ok(()),
    }
}
