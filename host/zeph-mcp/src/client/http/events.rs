//! A stream of server-sent events, bounded: the bytes of one event, and what is in it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame};
use sse_stream::{Error as SseError, Sse, SseStream};
use zeph_egress::{OwnBody, OwnError};

use crate::client::error::McpError;
use crate::client::message::{Incoming, read};

/// The body of an answer, as far as no event is too long.
struct Bounded {
    body: OwnBody,
    bytes_max: usize,
    /// Bytes since the last empty line.
    n_bytes: usize,
    line_bytes: usize,
}

impl Bounded {
    /// Counts `bytes`; false when an event has too many.
    fn count(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            match byte {
                b'\r' => {}
                b'\n' if self.line_bytes == 0 => self.n_bytes = 0,
                b'\n' => self.line_bytes = 0,
                _ => {
                    self.line_bytes += 1;
                    self.n_bytes += 1;
                }
            }
            if self.n_bytes > self.bytes_max {
                return false;
            }
        }
        true
    }
}

impl Body for Bounded {
    type Data = Bytes;
    type Error = McpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, McpError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let frame = frame.map(|frame| frame.map_err(|error: OwnError| super::unreachable(&error)));
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
            && !self.count(bytes)
        {
            let max = self.bytes_max;
            let error = McpError::BadAnswer(format!("an event has more than {max} bytes"));
            return Poll::Ready(Some(Err(error)));
        }
        Poll::Ready(frame)
    }
}

/// The events, with what the library could not use made into what it can.
struct Events(Pin<Box<SseStream<Bounded>>>);

impl Stream for Events {
    type Item = Result<Sse, SseError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Sse, SseError>>> {
        let event = ready!(self.0.as_mut().poll_next(context));
        Poll::Ready(event.map(|event| event.map(usable)))
    }
}

/// The stream of an answer.
pub(super) fn events(
    body: OwnBody,
    bytes_max: usize,
) -> Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>> {
    let bounded = Bounded {
        body,
        bytes_max,
        n_bytes: 0,
        line_bytes: 0,
    };
    Box::pin(Events(Box::pin(SseStream::new(bounded))))
}

fn usable(mut event: Sse) -> Sse {
    let read = event.data.as_deref().map(|data| read(data.as_bytes()));
    match read {
        Some(Incoming::Message(message)) => event.data = serde_json::to_string(&message).ok(),
        Some(Incoming::Nothing | Incoming::Garbage(_)) => event.data = None,
        None => {}
    }
    event
}
