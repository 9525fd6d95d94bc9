//! A connection whose bytes are counted.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counts what goes over a connection.
pub(crate) trait Meter {
    /// Counts bytes that were sent.
    ///
    /// Errors: no more may be sent or received.
    fn sent(&self, n_bytes: usize) -> io::Result<()>;

    /// Counts bytes that were received.
    ///
    /// Errors: no more may be sent or received.
    fn received(&self, n_bytes: usize) -> io::Result<()>;
}

/// A connection and what counts its bytes.
#[derive(Debug)]
pub(crate) struct Metered<S, M> {
    stream: S,
    meter: M,
}

impl<S, M> Metered<S, M> {
    pub(crate) fn new(stream: S, meter: M) -> Self {
        Self { stream, meter }
    }

    pub(crate) fn meter(&self) -> &M {
        &self.meter
    }
}

impl<S: AsyncRead + Unpin, M: Meter + Unpin> AsyncRead for Metered<S, M> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let n_bytes = buffer.filled().len() - before;
        Poll::Ready(self.meter.received(n_bytes))
    }
}

impl<S: AsyncWrite + Unpin, M: Meter + Unpin> AsyncWrite for Metered<S, M> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let n_bytes = std::task::ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        Poll::Ready(self.meter.sent(n_bytes).map(|()| n_bytes))
    }

    /// A header and a body leave together, without a copy of the body that lasts as long as the connection.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        let n_bytes = std::task::ready!(stream.poll_write_vectored(context, parts))?;
        Poll::Ready(self.meter.sent(n_bytes).map(|()| n_bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
