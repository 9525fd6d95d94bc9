//! Requests in progress: each holds a lease, which ends with the right it was let in by, or with the server.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::access::Credential;
use super::session::Requester;

/// Most streams of one caller that stay open.
const STREAMS_OF_CALLER_MAX: usize = 128;

/// What a request in progress is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It ends by itself.
    Call,
    /// It stays open for what may happen.
    Stream,
}

/// All requests in progress.
#[derive(Debug, Default)]
pub(super) struct Leases {
    held: Mutex<Held>,
    returned: Notify,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    entries: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    caller_id: Option<String>,
    credential: Credential,
    progress: Progress,
    ended: CancellationToken,
}

/// A caller has as many streams as one may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many streams are open; end one, or wait")]
pub(super) struct TooManyStreams;

/// One request in progress, until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    leases: Arc<Leases>,
    number: u64,
    ended: CancellationToken,
}

impl Leases {
    /// Begins a request.
    ///
    /// Errors: [`TooManyStreams`].
    pub(super) fn begin(
        self: &Arc<Self>,
        requester: &Requester,
        progress: Progress,
    ) -> Result<Lease, TooManyStreams> {
        let ended = CancellationToken::new();
        let entry = Entry {
            caller_id: requester.caller_id.clone(),
            credential: requester.credential,
            progress,
            ended: ended.clone(),
        };
        let mut held = self.held();
        let is_like_it = |other: &&Entry| {
            other.progress == Progress::Stream && other.caller_id == entry.caller_id
        };
        if progress == Progress::Stream
            && held.entries.values().filter(is_like_it).count() >= STREAMS_OF_CALLER_MAX
        {
            return Err(TooManyStreams);
        }
        let number = held.next;
        held.next += 1;
        held.entries.insert(number, entry);
        Ok(Lease {
            leases: Arc::clone(self),
            number,
            ended,
        })
    }

    /// Ends the requests for which `is_over` holds.
    pub(super) fn end(&self, is_over: impl Fn(&Credential, Progress) -> bool) {
        let held = self.held();
        let entries = held.entries.values();
        let over = entries.filter(|entry| is_over(&entry.credential, entry.progress));
        over.for_each(|entry| entry.ended.cancel());
    }

    /// How many requests of this kind are in progress.
    pub(super) fn count(&self, progress: Progress) -> usize {
        let held = self.held();
        let entries = held.entries.values();
        entries.filter(|entry| entry.progress == progress).count()
    }

    /// Resolves when no call is in progress.
    pub(super) async fn no_call(&self) {
        loop {
            let returned = self.returned.notified();
            if self.count(Progress::Call) == 0 {
                return;
            }
            returned.await;
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Resolves when the request has to end.
    pub(super) fn ended(&self) -> WaitForCancellationFutureOwned {
        self.ended.clone().cancelled_owned()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.held().entries.remove(&self.number);
        self.leases.returned.notify_waiters();
    }
}

/// A body that holds `guard` until it is sent or dropped, and ends early when `ended` resolves.
pub(super) struct HeldBody<G> {
    body: Body,
    ended: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Held, never read.
    _guard: G,
}

impl<G> HeldBody<G> {
    pub(super) fn new(body: Body, guard: G, ended: Option<WaitForCancellationFutureOwned>) -> Self {
        Self {
            body,
            ended: ended.map(Box::pin),
            _guard: guard,
        }
    }
}

impl<G: Unpin> http_body::Body for HeldBody<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(ended) = &mut self.ended
            && ended.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Leases, Progress, STREAMS_OF_CALLER_MAX, TooManyStreams};
    use crate::http::access::Credential;
    use crate::http::session::Requester;

    #[test]
    fn the_streams_of_a_caller_are_bounded_and_its_calls_are_not() {
        let leases = Arc::new(Leases::default());
        let begin = |name: &str, progress| {
            let requester = Requester {
                caller_id: Some(name.to_owned()),
                credential: Credential::None,
            };
            leases.begin(&requester, progress)
        };
        let streams = (0..STREAMS_OF_CALLER_MAX).map(|_| begin("ann", Progress::Stream));
        let mut held: Vec<_> = streams.map(|lease| lease.expect("a stream")).collect();
        let refused = begin("ann", Progress::Stream).map(drop);
        assert_eq!(refused, Err(TooManyStreams));
        assert!(begin("ann", Progress::Call).is_ok() && begin("bob", Progress::Stream).is_ok());
        held.pop();
        assert!(begin("ann", Progress::Stream).is_ok());
    }
}
