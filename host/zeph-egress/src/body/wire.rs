//! A body as it comes over the connection.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::connection::Connection;
use crate::error::EgressError;
use crate::pool::{Pool, PoolKey};

/// What bounds a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireLimits {
    pub(crate) bytes: u64,
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
    pub(crate) deadline: Instant,
}

/// A body with its connection, which goes back to the pool when the body is over.
pub(crate) struct Wire {
    body: Incoming,
    connection: Option<(Connection, PoolKey, Pool)>,
    limits: WireLimits,
    bytes: u64,
    idle: Pin<Box<Sleep>>,
    deadline: Pin<Box<Sleep>>,
    destination: zeph_core::network::Destination,
    is_over: bool,
    /// One of the requests that a call may have at one time.
    permit: Option<OwnedSemaphorePermit>,
}

impl Wire {
    pub(crate) fn new(
        body: Incoming,
        connection: (Connection, PoolKey, Pool),
        limits: WireLimits,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let destination = connection.1.destination.clone();
        let mut wire = Self {
            is_over: body.is_end_stream(),
            body,
            connection: Some(connection),
            limits,
            bytes: 0,
            idle: Box::pin(sleep(limits.idle)),
            deadline: Box::pin(sleep_until(limits.deadline)),
            destination,
            permit: Some(permit),
        };
        if wire.is_over {
            wire.give_back();
        }
        wire
    }

    /// Splits a response into what stands before its body, and the body.
    pub(crate) fn of(
        response: Response<Incoming>,
        connection: (Connection, PoolKey, Pool),
        limits: WireLimits,
        permit: OwnedSemaphorePermit,
    ) -> (http::response::Parts, Self) {
        let (parts, body) = response.into_parts();
        (parts, Self::new(body, connection, limits, permit))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    pub(crate) fn byte_limit(&self) -> u64 {
        self.limits.bytes
    }

    /// The next piece.
    ///
    /// Errors: `TooLarge`, `TimedOut`, `Http`; after one of them nothing comes.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, EgressError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        // What comes in small pieces for ever meets the deadline although it is never idle.
        if self.deadline.as_mut().poll(context).is_ready() {
            return self.failed(self.timed_out("the request", "timeout_secs", self.limits.total));
        }
        let Self {
            body, connection, ..
        } = self;
        let frame = match connection {
            Some((connection, ..)) => {
                connection.poll_with(context, |context| pin!(&mut *body).poll_frame(context))
            }
            None => pin!(&mut *body).poll_frame(context),
        };
        match frame {
            Poll::Pending if self.idle.as_mut().poll(context).is_ready() => {
                let idle =
                    self.timed_out("a pause in the body", "idle_timeout_secs", self.limits.idle);
                self.failed(idle)
            }
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.is_over = true;
                self.give_back();
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(source))) => self.failed(EgressError::Http {
                destination: self.destination.clone(),
                source,
            }),
            Poll::Ready(Some(Ok(frame))) => self.counted(frame),
        }
    }

    fn counted(&mut self, frame: Frame<Bytes>) -> Poll<Option<Result<Frame<Bytes>, EgressError>>> {
        self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        if self.bytes > self.limits.bytes {
            return self.failed(too_large(self.limits.bytes));
        }
        let idle = Instant::now() + self.limits.idle;
        self.idle.as_mut().reset(idle);
        Poll::Ready(Some(Ok(frame)))
    }

    fn failed<T>(&mut self, error: EgressError) -> Poll<Option<Result<T, EgressError>>> {
        self.is_over = true;
        self.connection = None;
        self.permit = None;
        Poll::Ready(Some(Err(error)))
    }

    fn timed_out(&self, what: &'static str, key: &'static str, limit: Duration) -> EgressError {
        EgressError::TimedOut {
            destination: self.destination.clone(),
            what,
            key,
            limit,
        }
    }

    fn give_back(&mut self) {
        self.permit = None;
        if let Some((mut connection, key, pool)) = self.connection.take()
            && connection.is_reusable()
        {
            pool.put(key, connection);
        }
    }
}

pub(super) fn too_large(limit: u64) -> EgressError {
    EgressError::TooLarge {
        what: "the body",
        key: "max_body_bytes",
        limit,
    }
}
