//! The threads that read: each with a connection of its own, started when all others have something to do.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::connection::Server;
use super::fault::Trouble;
use super::transaction::Transaction;
use crate::error::{StoreError, file};
use crate::operations::OperationFault;
use crate::store::Job;

/// Most connections that read.
const READERS_MAX: usize = 4;

/// Most reads that wait. Beyond it the writer waits, and with it everything that is queued.
const READS_WAITING_MAX: usize = 256;

/// How often a read is tried when others are in its way or the connection is lost.
const TRIES_MAX: u32 = 3;

/// The threads, and the queue they share.
pub(super) struct Readers {
    server: Arc<Server>,
    queue: SyncSender<Box<dyn Job>>,
    waiting: Arc<Mutex<Receiver<Box<dyn Job>>>>,
    /// Reads that were given away and are not answered yet.
    n_open: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn new(server: Arc<Server>) -> Self {
        let (queue, waiting) = sync_channel(READS_WAITING_MAX);
        Self {
            server,
            queue,
            waiting: Arc::new(Mutex::new(waiting)),
            n_open: Arc::default(),
            threads: Vec::new(),
        }
    }

    /// Lets a thread do `job`, which only reads.
    pub(super) fn read(&mut self, job: Box<dyn Job>) {
        let n_open = self.n_open.fetch_add(1, Ordering::AcqRel) + 1;
        if n_open > self.threads.len() && self.threads.len() < READERS_MAX {
            match self.start() {
                Ok(thread) => self.threads.push(thread),
                Err(error) if self.threads.is_empty() => {
                    let site = &self.server.site;
                    let mut job = job;
                    job.fail(OperationFault::Told(error));
                    return job.answer(&|operation, fault| site.told(operation, fault));
                }
                Err(error) => tracing::warn!(%error, "a thread that reads cannot start"),
            }
        }
        // The receiver lives as long as this does.
        drop(self.queue.send(job));
    }

    fn start(&self) -> Result<JoinHandle<()>, StoreError> {
        let (server, waiting) = (Arc::clone(&self.server), Arc::clone(&self.waiting));
        let n_open = Arc::clone(&self.n_open);
        thread::Builder::new()
            .name("zeph-store-read".to_owned())
            .spawn(move || work(server, &waiting, &n_open))
            .map_err(file(
                "start a thread for",
                Path::new(&self.server.site.server),
            ))
    }

    /// Waits until everything that was given away is answered.
    pub(super) fn close(&mut self) {
        let (closed, _) = sync_channel(0);
        self.queue = closed;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread that reads the store panicked");
            }
        }
    }
}

fn work(server: Arc<Server>, waiting: &Mutex<Receiver<Box<dyn Job>>>, n_open: &AtomicUsize) {
    let site = server.site.clone();
    let transaction = Transaction::new(server);
    loop {
        let next = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(mut job) = next else { return };
        match &transaction {
            Ok(transaction) => read(transaction, job.as_mut()),
            Err(error) => job.fail(OperationFault::Database(error.to_string().into())),
        }
        job.answer(&|operation, fault| site.told(operation, fault));
        n_open.fetch_sub(1, Ordering::AcqRel);
    }
}

fn read(transaction: &Transaction, job: &mut dyn Job) {
    for _ in 0..TRIES_MAX {
        transaction.read_on();
        let done = job.run(transaction);
        let trouble = transaction.trouble();
        transaction.roll_back();
        if done || !matches!(trouble, Some(Trouble::Lost | Trouble::Passing)) {
            return;
        }
    }
}
