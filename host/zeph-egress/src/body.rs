//! The body of a response as it is handed on: decoded, bounded in bytes and in time.

mod decode;
mod redacted;
mod wire;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use http_body::{Body, Frame, SizeHint};
use zeph_core::redact::Redactor;

use self::decode::Decoded;
pub(crate) use self::decode::{ACCEPTED, Coding};
use self::redacted::Redacted;
pub(crate) use self::wire::{Wire, WireLimits};
use crate::error::EgressError;

/// The body of a response. Ends with an error where a limit is met; nothing runs on after it is dropped.
pub struct ResponseBody(Kind);

enum Kind {
    /// As it came.
    Wire(Box<Wire>),
    Decoded(Box<Decoded>),
    /// Either, without any known secret.
    Redacted(Box<Redacted>),
}

impl ResponseBody {
    /// A body that is handed on as it came.
    pub(crate) fn as_it_came(wire: Wire) -> Self {
        Self(Kind::Wire(Box::new(wire)))
    }

    /// A body without its content encoding. The header says no more that there was one.
    ///
    /// Errors: `Encoding` for one that is not decoded, and for more than one.
    pub(crate) fn decoded(wire: Wire, headers: &mut HeaderMap) -> Result<Self, EgressError> {
        let Some(coding) = Coding::of(headers)? else {
            return Ok(Self::as_it_came(wire));
        };
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        Ok(Self(Kind::Decoded(Box::new(Decoded::new(coding, wire)))))
    }

    /// This body without any secret that `known` finds; without anything when it `is_opaque`.
    pub(crate) fn redacted(self, known: &Redactor, is_opaque: bool) -> Self {
        Self(Kind::Redacted(Box::new(Redacted::new(
            self, known, is_opaque,
        ))))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = EgressError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, EgressError>>> {
        match &mut self.0 {
            Kind::Wire(wire) => wire.poll_frame(context),
            Kind::Redacted(redacted) => redacted.poll_frame(context),
            Kind::Decoded(decoded) => {
                let piece = std::task::ready!(decoded.poll_piece(context));
                Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Wire(wire) => wire.is_over(),
            Kind::Redacted(redacted) => redacted.is_end_stream(),
            Kind::Decoded(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Wire(wire) => wire.size_hint(),
            Kind::Redacted(redacted) => redacted.size_hint(),
            Kind::Decoded(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}
