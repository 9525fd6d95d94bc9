//! Connections: taken, bounded, and ended.
//!
//! There is a bound on their number. At the bound, the connection that has been idle longest makes room for the next; where all are
//! being used, the next is refused with a line that says so.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::lease::HeldBody;
use super::writing::Writing;
use crate::metrics::Metrics;

/// Most connections at one time.
pub(super) const CONNECTIONS_MAX: usize = 512;

/// How long the headers of a request may take; an idle connection is kept this long.
const HEADERS_MAX: Duration = Duration::from_secs(30);

/// Most bytes of the headers of a request.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Most headers of a request.
const HEADER_FIELDS_MAX: usize = 100;

/// How long connections have for their last answer when the server ends.
const LAST_ANSWER_MAX: Duration = Duration::from_secs(2);

/// How long a connection that was just made has for its first request when the server ends: a load balancer sends it at once, and would not
/// send it again.
const FIRST_REQUEST_MAX: Duration = Duration::from_millis(250);

/// Most connections that are taken when the server ends.
const LAST_CONNECTIONS_MAX: usize = 64;

/// What a connection is told that finds no place.
const NO_PLACE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
    content-type: text/plain\r\ncontent-length: 21\r\n\r\ntoo many connections\n";

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    places: HashMap<u64, Place>,
}

#[derive(Debug)]
struct Place {
    n_requests: usize,
    idle_since: Instant,
    ended: CancellationToken,
}

/// The place of one connection, until it is dropped.
struct Held {
    connections: Arc<Connections>,
    number: u64,
}

/// One request of a connection, until its answer is sent.
struct InUse(Arc<Held>);

impl Connections {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.open().places.len()
    }

    /// A place for another connection, and what ends it. None when all places are being used.
    fn take(self: &Arc<Self>) -> Option<(Held, CancellationToken)> {
        let mut open = self.open();
        if open.places.len() >= CONNECTIONS_MAX {
            let idle = open
                .places
                .iter()
                .filter(|(_, place)| place.n_requests == 0);
            let (&longest, place) = idle.min_by_key(|(_, place)| place.idle_since)?;
            place.ended.cancel();
            open.places.remove(&longest);
        }
        let ended = CancellationToken::new();
        let place = Place {
            n_requests: 0,
            idle_since: Instant::now(),
            ended: ended.clone(),
        };
        let number = open.next;
        open.next += 1;
        open.places.insert(number, place);
        let connections = Arc::clone(self);
        let held = Held {
            connections,
            number,
        };
        Some((held, ended))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InUse {
    /// None when the connection has just lost its place.
    fn begin(held: &Arc<Held>) -> Option<Self> {
        held.connections
            .open()
            .places
            .get_mut(&held.number)?
            .n_requests += 1;
        Some(Self(Arc::clone(held)))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut open = self.0.connections.open();
        if let Some(place) = open.places.get_mut(&self.0.number) {
            place.n_requests -= 1;
            place.idle_since = Instant::now();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.connections.open().places.remove(&self.number);
    }
}

/// Serves connections until `stop`; then the last answers are sent and all are closed.
pub(super) async fn serve(
    listener: TcpListener,
    app: Router,
    connections: Arc<Connections>,
    metrics: &Metrics,
    reader_patience: Duration,
    stop: CancellationToken,
) {
    let mut tasks = JoinSet::new();
    let mut n_last = LAST_CONNECTIONS_MAX;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = tasks.join_next() => continue,
            // What waits in the queue of the kernel would be closed under its request: it is taken, as far as there is any.
            () = stop.cancelled(), if n_last > 0 => {
                n_last -= 1;
                let Ok(accepted) = tokio::time::timeout(Duration::ZERO, listener.accept()).await else {
                    break;
                };
                accepted
            }
            () = stop.cancelled(), if n_last == 0 => break,
        };
        let Some(stream) = usable(accepted).await else {
            continue;
        };
        match connections.take() {
            Some((held, evicted)) => {
                let app = app.clone();
                let stream = Writing::new(stream, reader_patience);
                tasks.spawn(run(stream, app, held, evicted, stop.child_token()));
            }
            None => {
                metrics.connection_refused();
                // Where this does not fit, the closed connection has to say it.
                drop(stream.try_write(NO_PLACE));
            }
        }
    }
    drop(listener);
    let all = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_ANSWER_MAX, all).await.is_err() {
        tasks.shutdown().await;
    }
}

/// The connection, unless it could not be taken.
async fn usable(accepted: io::Result<(TcpStream, SocketAddr)>) -> Option<TcpStream> {
    match accepted {
        Ok((stream, _)) => {
            // Answers are small and wanted at once.
            drop(stream.set_nodelay(true));
            Some(stream)
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            // What is missing, such as a free descriptor, is not there again at once.
            tokio::time::sleep(Duration::from_millis(20)).await;
            None
        }
    }
}

async fn run(
    stream: Writing<TcpStream>,
    app: Router,
    held: Held,
    evicted: CancellationToken,
    stop: CancellationToken,
) {
    let held = Arc::new(held);
    let asked = CancellationToken::new();
    let has_asked = asked.clone();
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        has_asked.cancel();
        let in_use = InUse::begin(&held);
        let mut app = app.clone();
        async move {
            let response = app.call(request.map(Body::new)).await?;
            Ok::<_, std::convert::Infallible>(
                response.map(|body| Body::new(HeldBody::new(body, in_use, None))),
            )
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_MAX)
        .max_headers(HEADER_FIELDS_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = evicted.cancelled() => return,
        () = async {
            stop.cancelled().await;
            // A deadline, and not a wait: a client that has asked before is not waited for.
            let _ = tokio::time::timeout(FIRST_REQUEST_MAX, asked.cancelled()).await;
        } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{CONNECTIONS_MAX, Connections, InUse};

    #[test]
    fn the_longest_idle_connection_makes_room() {
        let connections = Arc::new(Connections::default());
        let take = || {
            connections
                .take()
                .map(|(held, ended)| (Arc::new(held), ended))
        };
        let places: Vec<_> = std::iter::from_fn(take).take(CONNECTIONS_MAX).collect();
        assert_eq!(connections.count(), CONNECTIONS_MAX);
        // The first is being used, so the second makes room.
        let in_use = InUse::begin(&places[0].0).expect("a place");
        let next = take().expect("a place");
        assert!(!places[0].1.is_cancelled() && places[1].1.is_cancelled());
        assert!(InUse::begin(&places[1].0).is_none());
        assert_eq!(connections.count(), CONNECTIONS_MAX);
        drop((in_use, next));
        // When the one without a place goes, no other loses its own.
        let n_before = connections.count();
        drop(places.into_iter().nth(1));
        assert!(connections.count() < n_before);
    }

    #[test]
    fn nobody_makes_room_who_is_being_answered() {
        let connections = Arc::new(Connections::default());
        let mut answered = Vec::new();
        while let Some((held, _)) = connections.take() {
            answered.extend(InUse::begin(&Arc::new(held)));
        }
        assert_eq!(answered.len(), CONNECTIONS_MAX);
        answered.pop();
        assert!(connections.take().is_some());
    }
}
