//! A body without any known secret. What may become one is held back until that is known; the length stays.

use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use zeph_core::redact::{RedactStream, RedactionMark, Redactor};

use super::ResponseBody;
use crate::error::EgressError;
use crate::secret::clean_headers;

/// A body and the search in it.
pub(super) struct Redacted {
    body: ResponseBody,
    known: Redactor,
    stream: RedactStream,
    /// Nothing of it can be searched, and nothing is handed on.
    is_opaque: bool,
    /// What comes behind the data.
    trailers: Option<Frame<Bytes>>,
    is_over: bool,
}

impl Redacted {
    pub(super) fn new(body: ResponseBody, known: &Redactor, is_opaque: bool) -> Self {
        Self {
            body,
            known: known.clone(),
            stream: known.stream(RedactionMark::Length),
            is_opaque,
            trailers: None,
            is_over: false,
        }
    }

    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, EgressError>>> {
        while !self.is_over {
            let frame = std::task::ready!(std::pin::pin!(&mut self.body).poll_frame(context));
            let clean = match frame {
                Some(Err(error)) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.is_over = true;
                    self.stream.finish()
                }
                Some(Ok(frame)) => self.pushed(frame),
            };
            if !clean.is_empty() && !self.is_opaque {
                return Poll::Ready(Some(Ok(Frame::data(clean.into()))));
            }
        }
        Poll::Ready(self.trailers.take().map(Ok))
    }

    /// What is certain with another frame; trailers are the last one.
    fn pushed(&mut self, frame: Frame<Bytes>) -> Vec<u8> {
        match frame.into_data() {
            Ok(data) => self.stream.push(&data),
            Err(frame) => {
                if let Ok(mut trailers) = frame.into_trailers() {
                    clean_headers(&self.known, &mut trailers);
                    self.trailers = Some(Frame::trailers(trailers));
                }
                self.is_over = true;
                self.stream.finish()
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let has_more = self.stream.n_held() > 0 || self.trailers.is_some();
        !has_more && (self.is_over || self.body.is_end_stream())
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let exact = self.body.size_hint().exact().filter(|_| !self.is_opaque);
        exact.map_or_else(SizeHint::default, |bytes| {
            SizeHint::with_exact(bytes + self.stream.n_held() as u64)
        })
    }
}
