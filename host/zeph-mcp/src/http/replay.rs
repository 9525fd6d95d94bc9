//! The events of one stream of a session, kept for a client that resumes it: what was sent to a connection may never have arrived.
//!
//! One reader at a time, the newest, has the events. While there is none, [`Unread::drain`] keeps what comes, so that nothing of the
//! session waits for a client that is gone.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use futures_core::Stream;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;

/// Most events that are kept. Beyond it, the oldest that asks and answers nothing goes first.
const KEPT_MAX: usize = 16;

/// What a session has to say.
pub(super) type Events = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// One stream of a session.
pub(super) struct Replay(Mutex<State>);

struct State {
    /// None when no more events come.
    source: Option<Events>,
    /// The newest events, each with its number.
    kept: VecDeque<(u64, ServerSseMessage)>,
    /// The number of the next event.
    next: u64,
    /// What the ids of the events end with; none before the first event.
    stream: Option<String>,
    has_answer: bool,
    /// Grows with each reader that comes and each that leaves: the newest number goes on.
    turn: u64,
    /// Whoever waits for the next event.
    waiting: Option<Waker>,
}

/// What reads a stream, until a newer one does.
pub(super) struct Reader {
    replay: Arc<Replay>,
    turn: u64,
    /// The number of the next event it is given.
    next: u64,
}

/// A stream that nobody reads.
#[derive(Debug)]
pub(super) struct Unread {
    replay: Arc<Replay>,
    turn: u64,
}

/// The stream that an event belongs to: `INDEX/STREAM`.
pub(super) fn stream_of(event_id: &str) -> Option<&str> {
    event_id.split_once('/').map(|(_, stream)| stream)
}

/// The number of an event in its stream.
fn index_of(event_id: &str) -> Option<u64> {
    event_id.split('/').next()?.parse().ok()
}

/// Whether an event answers the request of its stream.
pub(super) fn is_answer(event: &ServerSseMessage) -> bool {
    matches!(
        event.message.as_deref(),
        Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
    )
}

impl Replay {
    pub(super) fn new(source: Events) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            source: Some(source),
            kept: VecDeque::new(),
            next: 0,
            stream: None,
            has_answer: false,
            turn: 0,
            waiting: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader of what comes after `event_id`, or of all that is kept. The one before it reads no further.
    pub(super) fn read(self: &Arc<Self>, event_id: Option<&str>) -> Reader {
        let mut state = self.state();
        state.turn += 1;
        state.wake();
        // The client chose the number.
        let after = event_id.and_then(index_of);
        let after = after.map(|index| index.saturating_add(1));
        Reader {
            replay: Arc::clone(self),
            turn: state.turn,
            next: after.unwrap_or_default(),
        }
    }

    /// Whether events with this ending are those of this stream.
    pub(super) fn is(&self, stream: &str) -> bool {
        self.state().stream.as_deref() == Some(stream)
    }

    /// Whether the answer has come.
    pub(super) fn has_answer(&self) -> bool {
        self.state().has_answer
    }

    /// Whether more may come.
    pub(super) fn is_open(&self) -> bool {
        self.state().source.is_some()
    }

    /// Ends the stream: its reader has its end, and nothing is kept.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.source = None;
        state.kept.clear();
        state.wake();
    }
}

impl Unread {
    /// Keeps what comes, until it ends or somebody reads again.
    pub(super) async fn drain(self) {
        poll_fn(|context| {
            let mut state = self.replay.state();
            while state.turn == self.turn {
                if ready!(state.poll_source(context)).is_none() {
                    break;
                }
            }
            Poll::Ready(())
        })
        .await;
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    /// The next event, which is kept.
    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let Some(source) = &mut self.source else {
            return Poll::Ready(None);
        };
        match source.as_mut().poll_next(context) {
            Poll::Ready(Some(event)) => {
                self.keep(event.clone());
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => {
                self.source = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                self.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn keep(&mut self, event: ServerSseMessage) {
        let id = event.event_id.as_deref().unwrap_or_default();
        if self.stream.is_none() {
            self.stream = stream_of(id).map(str::to_owned);
        }
        let number = index_of(id).unwrap_or(self.next);
        self.next = number + 1;
        self.has_answer |= is_answer(&event);
        if self.kept.len() >= KEPT_MAX {
            let is_told = |(_, event): &(u64, ServerSseMessage)| {
                !matches!(
                    event.message.as_deref(),
                    Some(ServerJsonRpcMessage::Request(_))
                )
            };
            let oldest = self.kept.iter().position(is_told).unwrap_or(0);
            self.kept.remove(oldest);
        }
        self.kept.push_back((number, event));
    }
}

impl Reader {
    /// Ends the stream that is read.
    pub(super) fn end(&self) {
        self.replay.end();
    }

    /// Whether no newer one reads.
    pub(super) fn is_newest(&self) -> bool {
        self.replay.state().turn == self.turn
    }

    /// Reads no further. Gives back what has to be kept from now on; none when a newer one reads, or when no more comes.
    pub(super) fn leave(&self) -> Option<Unread> {
        let mut state = self.replay.state();
        if state.turn != self.turn {
            return None;
        }
        state.turn += 1;
        state.source.as_ref()?;
        Some(Unread {
            replay: Arc::clone(&self.replay),
            turn: state.turn,
        })
    }
}

impl Stream for Reader {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let replay = Arc::clone(&self.replay);
        let mut state = replay.state();
        if state.turn != self.turn {
            return Poll::Ready(None);
        }
        let kept = state.kept.iter().find(|(number, _)| *number >= self.next);
        if let Some((number, event)) = kept {
            self.next = number + 1;
            return Poll::Ready(Some(event.clone()));
        }
        let event = ready!(state.poll_source(context));
        self.next = state.next.max(self.next);
        Poll::Ready(event)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use futures_core::Stream;
    use rmcp::model::ServerJsonRpcMessage;
    use rmcp::transport::streamable_http_server::session::ServerSseMessage;
    use serde_json::json;

    use super::{KEPT_MAX, Reader, Replay};

    /// Events that are there, and an end when the last was given.
    struct Ready(VecDeque<ServerSseMessage>);

    impl Stream for Ready {
        type Item = ServerSseMessage;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(self.0.pop_front())
        }
    }

    /// Progress, a form at the place `form`, and the answer.
    fn replay(n_events: usize, form: usize) -> Arc<Replay> {
        let event = |index| {
            let message = match index {
                index if index + 1 == n_events => {
                    json!({ "jsonrpc": "2.0", "id": 1, "result": {} })
                }
                index if index == form => {
                    json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })
                }
                index => json!({
                    "jsonrpc": "2.0", "method": "notifications/progress",
                    "params": { "progressToken": 1, "progress": index },
                }),
            };
            let message: ServerJsonRpcMessage = serde_json::from_value(message).unwrap();
            ServerSseMessage::new(format!("{index}/7"), message)
        };
        Replay::new(Box::pin(Ready((0..n_events).map(event).collect())))
    }

    fn next(reader: &mut Reader) -> Option<String> {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(reader).poll_next(&mut context) {
            Poll::Ready(event) => event?.event_id,
            Poll::Pending => panic!("all events are there"),
        }
    }

    /// Keeps the rest of the stream.
    async fn leave(reader: &Reader) {
        if let Some(unread) = reader.leave() {
            unread.drain().await;
        }
    }

    fn rest(reader: &mut Reader) -> Vec<String> {
        std::iter::from_fn(|| next(reader)).collect()
    }

    #[tokio::test]
    async fn whenever_a_stream_breaks_the_rest_of_it_comes_once() {
        for n_read in 1..=4 {
            for n_arrived in 1..=n_read {
                for drains in [false, true] {
                    let replay = replay(4, 2);
                    let mut first = replay.read(None);
                    for _ in 0..n_read {
                        assert!(next(&mut first).is_some());
                    }
                    assert!(replay.is("7") && !replay.is("8"));
                    if drains {
                        leave(&first).await;
                        assert!(replay.has_answer());
                    }
                    let last = format!("{}/7", n_arrived - 1);
                    let mut second = replay.read(Some(&last));
                    let expect: Vec<_> = (n_arrived..4).map(|index| format!("{index}/7")).collect();
                    assert_eq!(rest(&mut second), expect, "{n_read} {n_arrived} {drains}");
                    // The one before it has nothing more.
                    assert!(!first.is_newest() && next(&mut first).is_none());
                    assert!(first.leave().is_none() && second.is_newest());
                }
            }
        }
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded_and_forms_and_answers_are_in_it() {
        let replay = replay(1_000, 3);
        let first = replay.read(None);
        leave(&first).await;
        let kept = rest(&mut replay.read(Some("0/7")));
        assert_eq!(kept.len(), KEPT_MAX);
        assert_eq!(kept.first().map(String::as_str), Some("3/7"));
        assert_eq!(kept.last().map(String::as_str), Some("999/7"));
        let last = format!("{}/7", u64::MAX);
        assert!(rest(&mut replay.read(Some(&last))).is_empty());
        replay.end();
        assert!(rest(&mut replay.read(None)).is_empty() && replay.is("7"));
    }
}
