//! Connections: taken, bounded, and ended.
//!
//! There is a bound on their number. At the bound, the connection that has been idle longest makes room for the next. One whose request
//! was refused, or not let in yet, is as good as idle: what needs no token takes no place from others. Where all that may be answered at one
//! time are, the next request is refused with a line that says so; the places beyond are for requests of those who watch the server. A
//! request for `/metrics` with a valid token counts like one of a client. Requests for `/readyz` and `/healthz` need no token: their
//! connections may be closed at any time, and their clients connect again.

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

use super::writing::Writing;

/// Most connections at one time.
pub(super) const CONNECTIONS_MAX: usize = 512;

/// Most connections of which a request is being answered.
const ANSWERED_MAX: usize = CONNECTIONS_MAX - 32;

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
    /// Requests that were let in, and are being read.
    n_let_in: usize,
    /// Requests that are being answered.
    n_answered: usize,
    idle_since: Instant,
    ended: CancellationToken,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
struct Held {
    connections: Arc<Connections>,
    number: u64,
}

/// One request of a connection, until its answer is sent. Nothing is held for it until it is let in.
#[derive(Debug)]
pub(super) struct InUse {
    held: Arc<Held>,
    standing: Mutex<Standing>,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Unknown,
    LetIn,
    Answered,
}

/// More requests are being answered than there are places for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many connections")]
pub(super) struct NoPlace;

impl Connections {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.open().places.len()
    }

    /// A place for another connection, and what ends it. There is always one that makes room: not all can be answered at one time.
    fn take(self: &Arc<Self>) -> (Held, CancellationToken) {
        let mut open = self.open();
        if open.places.len() >= CONNECTIONS_MAX {
            let unanswered = open.places.iter().filter(|(_, one)| one.n_answered == 0);
            let longest = unanswered.min_by_key(|(_, one)| (one.n_let_in > 0, one.idle_since));
            let longest = longest.map(|(number, _)| *number);
            if let Some(place) = longest.and_then(|number| open.places.remove(&number)) {
                place.ended.cancel();
            }
        }
        let ended = CancellationToken::new();
        let place = Place {
            n_let_in: 0,
            n_answered: 0,
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
        (held, ended)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InUse {
    fn begin(held: &Arc<Held>) -> Self {
        Self {
            held: Arc::clone(held),
            standing: Mutex::new(Standing::Unknown),
        }
    }

    /// The request was let in: it gives way after those that were not.
    pub(super) fn let_in(&self) {
        let mut standing = self.standing();
        let mut open = self.held.connections.open();
        if let Some(place) = open.places.get_mut(&self.held.number) {
            place.n_let_in += 1;
            *standing = Standing::LetIn;
        }
    }

    /// The request, which was let in, is answered from now on: it keeps its place until it ends.
    ///
    /// Errors: [`NoPlace`], also when the connection has just lost its own.
    pub(super) fn answer(&self) -> Result<(), NoPlace> {
        let mut standing = self.standing();
        let mut open = self.held.connections.open();
        let is_answered = |place: &&Place| place.n_answered > 0;
        let n_answered = open.places.values().filter(is_answered).count();
        let place = open.places.get_mut(&self.held.number).ok_or(NoPlace)?;
        if n_answered >= ANSWERED_MAX && place.n_answered == 0 {
            return Err(NoPlace);
        }
        if *standing == Standing::LetIn {
            place.n_let_in -= 1;
        }
        place.n_answered += 1;
        *standing = Standing::Answered;
        Ok(())
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let standing = *self.standing();
        let mut open = self.held.connections.open();
        let Some(place) = open.places.get_mut(&self.held.number) else {
            return;
        };
        match standing {
            Standing::Unknown => return,
            Standing::LetIn => place.n_let_in -= 1,
            Standing::Answered => place.n_answered -= 1,
        }
        place.idle_since = Instant::now();
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
        let (held, evicted) = connections.take();
        let app = app.clone();
        let stream = Writing::new(stream, reader_patience);
        tasks.spawn(run(stream, app, held, evicted, stop.child_token()));
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
        let mut request = request.map(Body::new);
        request
            .extensions_mut()
            .insert(Arc::new(InUse::begin(&held)));
        app.clone().call(request)
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

    use super::{ANSWERED_MAX, CONNECTIONS_MAX, Connections, InUse, NoPlace};

    #[test]
    fn the_longest_idle_connection_makes_room() {
        let connections = Arc::new(Connections::default());
        let take = || {
            let (held, ended) = connections.take();
            (Arc::new(held), ended)
        };
        let places: Vec<_> = (0..CONNECTIONS_MAX).map(|_| take()).collect();
        assert_eq!(connections.count(), CONNECTIONS_MAX);
        // The first is being answered, and the second was let in. The third was refused, so it makes room.
        let requests: Vec<_> = places[..3]
            .iter()
            .map(|place| InUse::begin(&place.0))
            .collect();
        requests[0].let_in();
        assert_eq!(requests[0].answer(), Ok(()));
        requests[1].let_in();
        let next = take();
        let is_ended = |n: usize| places[n].1.is_cancelled();
        assert!(!is_ended(0) && !is_ended(1) && is_ended(2) && !is_ended(3));
        requests[2].let_in();
        assert_eq!(requests[2].answer(), Err(NoPlace));
        assert_eq!(connections.count(), CONNECTIONS_MAX);
        drop((requests, next));
        // When the one without a place goes, no other loses its own.
        let n_before = connections.count();
        drop(places.into_iter().nth(2));
        assert!(connections.count() < n_before);
    }

    #[test]
    fn nobody_makes_room_who_is_being_answered_and_some_places_are_for_others() {
        let connections = Arc::new(Connections::default());
        let (mut answered, mut others) = (Vec::new(), Vec::new());
        for n in 0..CONNECTIONS_MAX + 100 {
            let (held, ended) = connections.take();
            let request = InUse::begin(&Arc::new(held));
            request.let_in();
            match request.answer() {
                Ok(()) => answered.push((request, ended)),
                Err(NoPlace) => others.push(request),
            }
            assert_eq!(answered.len(), ANSWERED_MAX.min(n + 1));
        }
        assert!(answered.iter().all(|(_, ended)| !ended.is_cancelled()));
        assert_eq!(connections.count(), CONNECTIONS_MAX);
        // One that goes makes room for a request that is there already.
        answered.pop();
        assert_eq!(others.last().map(InUse::answer), Some(Ok(())));
    }
}
