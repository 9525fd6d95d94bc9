//! A connection whose bytes are counted, and end at a limit.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ledger::Traffic;

/// What one run may still send and receive, in bytes.
#[derive(Debug)]
pub(super) struct Allowance(AtomicU64);

impl Allowance {
    pub(super) fn new(n_bytes: u64) -> Self {
        Self(AtomicU64::new(n_bytes))
    }

    /// Takes some of it.
    ///
    /// Errors: there is not so much left.
    fn take(&self, n_bytes: usize) -> io::Result<()> {
        let less = |left: u64| left.checked_sub(n_bytes as u64);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let over = |_| io::Error::other("one command may not send and receive that much");
        taken.map(drop).map_err(over)
    }
}

/// How far a connection has come, for the task that waits for it to go on.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Returns once nothing has moved for that long, at most twice that time after the last byte.
    pub(super) async fn stands_still(self, patience: Duration) {
        let mut before = None;
        loop {
            let now = self.0.load(Ordering::Relaxed);
            if before == Some(now) {
                return;
            }
            before = Some(now);
            tokio::time::sleep(patience).await;
        }
    }

    fn moved(&self, n_bytes: usize) {
        self.0.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }
}

/// A connection to a host.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    traffic: Arc<Traffic>,
    allowance: Arc<Allowance>,
    progress: Progress,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, traffic: Arc<Traffic>, allowance: Arc<Allowance>) -> Self {
        Self {
            stream,
            traffic,
            allowance,
            progress: Progress::default(),
        }
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let n_bytes = buffer.filled().len() - before;
        self.traffic.received(n_bytes);
        self.progress.moved(n_bytes);
        Poll::Ready(self.allowance.take(n_bytes))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let n_bytes = std::task::ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.traffic.sent(n_bytes);
        self.progress.moved(n_bytes);
        Poll::Ready(self.allowance.take(n_bytes).map(|()| n_bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
