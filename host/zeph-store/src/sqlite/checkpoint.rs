//! Moves committed pages from the write-ahead log into the database file, beside the writer and never in its way.
//!
//! A checkpoint waits for the disk twice, some 10 ms, which a call on its way must not. So it has its own thread and
//! connection, started when enough was written; a host that makes one call never pays for it. SQLite's own checkpoint
//! inside a commit remains as a backstop.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::open::open_connection;
use super::site::Site;
use crate::place::with_suffix;

/// Writes between two checkpoints: about 1,000 pages, SQLite's own interval.
const CHECKPOINT_WRITES: usize = 256;

/// Pages in the log at which a commit makes the checkpoint itself: 64 MiB. Bursts of stored outputs get there, and calls without a pause: the
/// log begins anew only where nothing is written meanwhile.
pub(crate) const BACKSTOP_PAGES: u32 = 16_384;

/// Pages in the log at which a caller does not commit itself any more. What it writes between two checkpoints is less than what is left to
/// `BACKSTOP_PAGES`.
const PAGES_BEHIND: u32 = BACKSTOP_PAGES / 8 * 7;

/// Bytes of log that a closing host leaves to the next one, which reads them in about a millisecond when it starts.
/// More are moved into the database, for some 10 ms.
const LOG_BYTES_LEFT_MAX: u64 = 1 << 20;

/// Counts writes and wakes the checkpoint thread.
pub(crate) struct Checkpointer {
    /// None when there is no file.
    site: Option<Site>,
    n_writes: usize,
    /// What the last checkpoint left.
    is_behind: Arc<AtomicBool>,
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
}

impl Checkpointer {
    /// For the database at `site`; `None` for one in memory.
    pub(crate) fn new(site: Option<Site>) -> Self {
        Self {
            site,
            n_writes: 0,
            is_behind: Arc::default(),
            thread: None,
        }
    }

    /// Whether a commit may have to make a checkpoint itself, as far as the last one saw.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Relaxed)
    }

    /// Notes committed writes, and asks for a checkpoint when there are enough.
    pub(crate) fn count(&mut self, n_writes: usize) {
        self.n_writes += n_writes;
        if self.n_writes < CHECKPOINT_WRITES {
            return;
        }
        self.n_writes = 0;
        if self.thread.is_none() {
            let site = self.site.clone();
            self.thread = site.and_then(|site| start(site, Arc::clone(&self.is_behind)));
        }
        if let Some((requests, _)) = &self.thread {
            // Full: a checkpoint is asked for already.
            let _ = requests.try_send(());
        }
    }

    /// Ends the thread, so that the writer's connection is the last to be closed.
    pub(crate) fn stop(self) {
        let Some((requests, thread)) = self.thread else {
            return;
        };
        drop(requests);
        if thread.join().is_err() {
            tracing::error!("the checkpoint thread of the store panicked");
        }
    }
}

/// Lets the coming close leave a short log as it is.
pub(crate) fn spare_close(connection: &Connection, path: &Path) {
    let leave = log_bytes(path) <= LOG_BYTES_LEFT_MAX;
    let config = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    if let Err(error) = connection.set_db_config(config, leave) {
        tracing::debug!(%error, "the store is closed with a checkpoint");
    }
}

fn log_bytes(path: &Path) -> u64 {
    fs::metadata(with_suffix(path, "-wal")).map_or(0, |metadata| metadata.len())
}

fn start(site: Site, is_behind: Arc<AtomicBool>) -> Option<(SyncSender<()>, JoinHandle<()>)> {
    let (requests, receiver) = mpsc::sync_channel(1);
    let thread = thread::Builder::new()
        .name("zeph-checkpoint".to_owned())
        .spawn(move || run(&site, &receiver, &is_behind));
    match thread {
        Ok(thread) => Some((requests, thread)),
        Err(error) => {
            tracing::warn!(%error, "cannot start the checkpoint thread of the store");
            None
        }
    }
}

fn run(site: &Site, requests: &Receiver<()>, is_behind: &AtomicBool) {
    let connection = match open_connection(site) {
        Ok(connection) => connection,
        Err(error) => {
            tracing::warn!(%error, path = %site.path.display(), "cannot open the store for checkpoints");
            return;
        }
    };
    for () in requests {
        match checkpoint(&connection) {
            Ok(log) => is_behind.store(log.is_behind(), Ordering::Relaxed),
            Err(error) => {
                tracing::warn!(%error, path = %site.path.display(), "cannot checkpoint the store");
            }
        }
    }
}

/// The log as a checkpoint leaves it, in pages; negative without a log.
struct LogLeft {
    n_pages: i64,
    n_moved: i64,
}

impl LogLeft {
    /// A log of which all is moved is written from its beginning again, however long its file is.
    fn is_behind(&self) -> bool {
        self.n_moved < self.n_pages && self.n_pages >= PAGES_BEHIND.into()
    }
}

fn checkpoint(connection: &Connection) -> rusqlite::Result<LogLeft> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        Ok(LogLeft {
            n_pages: row.get(1)?,
            n_moved: row.get(2)?,
        })
    })
}
