//! What waits to be written: bounded, and filled without waiting.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Bytes that may wait. A client that lets more come together does not read.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// How long a client may read nothing while something waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The lines that wait.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    changed: Notify,
    /// A line was taken to be written.
    taken: Notify,
    /// Cancelled when nobody reads what is written.
    gone: CancellationToken,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    n_bytes: usize,
    /// No more will come: what waits is written, then the writer ends.
    is_closed: bool,
}

impl Outbox {
    pub(crate) fn new(gone: CancellationToken) -> Self {
        Self {
            waiting: Mutex::default(),
            changed: Notify::new(),
            taken: Notify::new(),
            gone,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line, which has no end yet. When too much waits, the client is given up.
    pub(crate) fn push(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut waiting = self.waiting();
        if waiting.is_closed || self.gone.is_cancelled() {
            return;
        }
        waiting.n_bytes += line.len();
        waiting.lines.push_back(line);
        if waiting.n_bytes > WAITING_BYTES_MAX {
            tracing::warn!("the client does not read what it is sent");
            self.gone.cancel();
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// Takes no more lines.
    pub(crate) fn close(&self) {
        self.waiting().is_closed = true;
        self.changed.notify_one();
    }

    fn take(&self) -> Option<Vec<u8>> {
        let mut waiting = self.waiting();
        let line = waiting.lines.pop_front()?;
        waiting.n_bytes -= line.len();
        drop(waiting);
        self.taken.notify_waiters();
        Some(line)
    }

    /// Waits until less than `n_bytes` wait, or the client is gone.
    pub(crate) async fn has_less_than(&self, n_bytes: usize) {
        loop {
            let mut taken = std::pin::pin!(self.taken.notified());
            // Registered before it is looked at: what is taken in between is not missed.
            taken.as_mut().enable();
            if self.waiting().n_bytes < n_bytes {
                return;
            }
            tokio::select! {
                () = taken => {}
                () = self.gone.cancelled() => return,
            }
        }
    }

    /// Writes what comes until the outbox is closed and empty, or the client is gone.
    pub(crate) async fn write_to<W: AsyncWrite + Unpin>(&self, mut writer: W) {
        loop {
            let Some(line) = self.take() else {
                if self.waiting().is_closed {
                    return;
                }
                tokio::select! {
                    () = self.changed.notified() => continue,
                    () = self.gone.cancelled() => return,
                }
            };
            let written = async {
                writer.write_all(&line).await?;
                writer.flush().await
            };
            let is_written = tokio::select! {
                written = tokio::time::timeout(PATIENCE, written) => matches!(written, Ok(Ok(()))),
                () = self.gone.cancelled() => return,
            };
            if !is_written {
                tracing::debug!("the client reads no more");
                self.gone.cancel();
                return;
            }
        }
    }
}
