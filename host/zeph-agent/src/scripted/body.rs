//! The body of a scripted answer.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

/// What happens next.
#[derive(Debug)]
pub(super) enum Delivery {
    Bytes(Bytes),
    Pause(Duration),
    /// What was said so far leaves, then the connection breaks.
    Abort,
    /// The connection breaks.
    AbortNow,
    /// Nothing more.
    Hang,
}

/// A body that does what it is told.
#[derive(Debug)]
pub(super) struct ScriptedBody {
    deliveries: VecDeque<Delivery>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl ScriptedBody {
    pub(super) fn new(deliveries: Vec<Delivery>) -> Self {
        Self {
            deliveries: deliveries.into(),
            pause: None,
        }
    }
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match self.deliveries.pop_front() {
                None => return Poll::Ready(None),
                Some(Delivery::Bytes(bytes)) if bytes.is_empty() => {}
                Some(Delivery::Bytes(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Delivery::Pause(pause)) => self.pause = Some(Box::pin(sleep(pause))),
                Some(Delivery::Abort) => {
                    self.deliveries.push_front(Delivery::AbortNow);
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Delivery::AbortNow) => {
                    let error = io::Error::other("the script breaks the connection");
                    return Poll::Ready(Some(Err(error)));
                }
                Some(Delivery::Hang) => {
                    self.deliveries.push_front(Delivery::Hang);
                    return Poll::Pending;
                }
            }
        }
    }
}
