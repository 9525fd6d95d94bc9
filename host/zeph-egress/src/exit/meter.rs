//! What is counted of a connection of a command: bytes by host, how much a run may still move, and whether it moves at all.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::ledger::Traffic;
use crate::metered::Meter;

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

/// The meter of one connection of a run.
#[derive(Debug)]
pub(super) struct RunMeter {
    traffic: Arc<Traffic>,
    allowance: Arc<Allowance>,
    progress: Progress,
}

impl RunMeter {
    pub(super) fn new(traffic: Arc<Traffic>, allowance: Arc<Allowance>) -> Self {
        Self {
            traffic,
            allowance,
            progress: Progress::default(),
        }
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

impl Meter for RunMeter {
    fn sent(&self, n_bytes: usize) -> io::Result<()> {
        self.traffic.sent(n_bytes);
        self.progress.moved(n_bytes);
        self.allowance.take(n_bytes)
    }

    fn received(&self, n_bytes: usize) -> io::Result<()> {
        self.traffic.received(n_bytes);
        self.progress.moved(n_bytes);
        self.allowance.take(n_bytes)
    }
}
