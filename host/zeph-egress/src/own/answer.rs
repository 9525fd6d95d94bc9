//! What comes back.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use super::error::OwnError;
use crate::body::{ResponseBody, Wire};

/// An answer whose body was not read. Redirects are answers too.
#[derive(Debug)]
pub struct OwnAnswer {
    /// The status, whatever it is.
    pub status: StatusCode,
    /// The fields.
    pub headers: HeaderMap,
    /// The body, as it arrives.
    pub body: OwnBody,
}

impl OwnAnswer {
    /// Errors: `Protocol` for an encoding of the body that is not decoded.
    pub(super) fn new(response: Response<Wire>) -> Result<Self, OwnError> {
        let (mut parts, body) = response.into_parts();
        let body = ResponseBody::decoded(body, &mut parts.headers)?;
        Ok(Self {
            status: parts.status,
            headers: parts.headers,
            body: OwnBody(body),
        })
    }

    /// The whole body.
    ///
    /// Errors: `TooLarge` beyond `bytes_max`, and those of the body.
    pub async fn bytes(mut self, bytes_max: usize) -> Result<Bytes, OwnError> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.body.next().await? {
            if whole.len() + piece.len() > bytes_max {
                return Err(OwnError::TooLarge(bytes_max));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// As much of the body as there is, at most `bytes_max` bytes: for the text of an error.
    pub async fn beginning(mut self, bytes_max: usize) -> Bytes {
        let mut beginning = BytesMut::new();
        while beginning.len() < bytes_max {
            let Ok(Some(piece)) = self.body.next().await else {
                break;
            };
            beginning.extend_from_slice(&piece);
        }
        beginning.truncate(bytes_max);
        beginning.freeze()
    }
}

/// The body of an answer: bounded in bytes, in pauses and in total time. Dropping it closes the connection, unless it was read to its end.
pub struct OwnBody(ResponseBody);

impl OwnBody {
    /// The next piece; `None` at the end. Dropping the future loses nothing.
    ///
    /// Errors: `TimedOut`, `TooLarge`, `Protocol` (a connection that ends before the body does, too); afterwards nothing comes.
    pub async fn next(&mut self) -> Result<Option<Bytes>, OwnError> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut *self).poll_frame(context)).await;
            let Some(frame) = frame.transpose()? else {
                return Ok(None);
            };
            if let Ok(piece) = frame.into_data() {
                return Ok(Some(piece));
            }
        }
    }
}

impl Body for OwnBody {
    type Data = Bytes;
    type Error = OwnError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, OwnError>>> {
        let frame = Pin::new(&mut self.0).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map_err(OwnError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for OwnBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnBody").finish_non_exhaustive()
    }
}
