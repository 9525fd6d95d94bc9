//! A connection whose client has to read: one that takes nothing of an answer for too long is ended.
//!
//! What waits to be written holds memory of the server, and the place of the connection. A client that is slow but reads is waited for;
//! so is an answer that has nothing to say.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream, and how long it waits for its reader.
pub(super) struct Writing<S> {
    stream: S,
    patience: Duration,
    /// Since the reader took nothing; none while it takes.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Writing<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            waits: None,
        }
    }

    /// What came of a try to write; an error once it was tried in vain for too long.
    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        tried: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.waits = None;
            return tried;
        }
        let patience = self.patience;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waits.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Writing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Writing<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, tried)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watched(context, tried)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(context, tried)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watched(context, tried)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::Writing;

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_given_up() {
        let (ours, _theirs) = duplex(8);
        let mut writing = Writing::new(ours, Duration::from_millis(20));
        let ended = writing.write_all(&[0; 100]).await;
        assert_eq!(
            ended.map_err(|error| error.kind()),
            Err(ErrorKind::TimedOut)
        );
    }

    #[tokio::test]
    async fn a_reader_that_takes_something_is_waited_for() {
        let (ours, mut theirs) = duplex(8);
        let mut writing = Writing::new(ours, Duration::from_secs(600));
        let reader = async {
            let mut bytes = [0; 8];
            for _ in 0..12 {
                tokio::task::yield_now().await;
                assert_eq!(theirs.read(&mut bytes).await.ok(), Some(8));
            }
        };
        let (written, ()) = tokio::join!(writing.write_all(&[0; 96]), reader);
        assert!(written.is_ok() && writing.waits.is_none());
    }
}
