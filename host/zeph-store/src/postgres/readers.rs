//! The threads that read, each with a connection of its own: one for what decides about calls, which is asked for many calls at once, and
//! some for the rest, started when all others have something to do.
//!
//! A thread waits for work as it waits for the server, so that it notices at rest when its connection ends. Where the server has no connection
//! left for it, the writer reads on its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, watch};

use super::connection::{FULL_PAUSE, Server};
use super::fault::Trouble;
use super::transaction::Transaction;
use crate::error::{StoreError, file};
use crate::operations::OperationFault;
use crate::store::{Job, Message};

/// Most connections that read what takes its time.
const READERS_MAX: usize = 4;

/// Most reads that wait. Beyond it the writer waits, and with it everything that is queued.
const READS_WAITING_MAX: usize = 256;

/// Most reads of rights that are answered from the same rows.
const GROUP_MAX: usize = 64;

/// How often a read is tried when others are in its way or the connection is lost.
const TRIES_MAX: u32 = 3;

/// The threads, and the queue they share.
pub(super) struct Readers {
    server: Arc<Server>,
    queue: mpsc::Sender<Box<dyn Job>>,
    source: Source,
    /// Reads that were given away and are not answered yet.
    n_open: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
    /// Reads that are queued elsewhere, until somebody says that it is over.
    rights: Option<(watch::Sender<bool>, JoinHandle<()>)>,
}

/// What makes the transaction of a thread.
type Connect = fn(Arc<Server>) -> Result<Transaction, StoreError>;

/// What a thread is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// The writer does its work while the server has no connection for it.
    First,
    /// It takes no work from the others before it has a connection.
    Further,
}

/// Where a thread takes its work from.
#[derive(Clone)]
struct Source {
    waiting: Arc<Mutex<mpsc::Receiver<Box<dyn Job>>>>,
    /// Whether all that waits is taken at once.
    in_groups: bool,
    n_open: Arc<AtomicUsize>,
    is_over: watch::Receiver<bool>,
    /// Leads to the writer.
    back: mpsc::WeakSender<Message>,
}

impl Readers {
    /// Reads what comes from `rights`, and what is given to it; `back` leads to the writer.
    ///
    /// Errors: [`StoreError::File`] when the kernel refuses a thread.
    pub(super) fn new(
        server: Arc<Server>,
        rights: mpsc::Receiver<Box<dyn Job>>,
        back: mpsc::WeakSender<Message>,
    ) -> Result<Self, StoreError> {
        let (queue, waiting) = mpsc::channel(READS_WAITING_MAX);
        let (over, is_over) = watch::channel(false);
        let n_open = Arc::default();
        let source = |waiting, in_groups| Source {
            waiting: Arc::new(Mutex::new(waiting)),
            in_groups,
            n_open: Arc::clone(&n_open),
            is_over: is_over.clone(),
            back: back.clone(),
        };
        let rights_source = source(rights, true);
        let thread = start(
            &server,
            rights_source,
            (Reader::First, Transaction::of_rights),
        )?;
        Ok(Self {
            server,
            queue,
            source: source(waiting, false),
            n_open: Arc::clone(&n_open),
            threads: Vec::new(),
            rights: Some((over, thread)),
        })
    }

    /// Lets a thread do `job`, which only reads.
    pub(super) fn read(&mut self, mut job: Box<dyn Job>) {
        let n_open = self.n_open.fetch_add(1, Ordering::AcqRel) + 1;
        if n_open > self.threads.len() && self.threads.len() < READERS_MAX {
            let reader = match self.threads.is_empty() {
                true => Reader::First,
                false => Reader::Further,
            };
            let source = self.source.clone();
            match start(&self.server, source, (reader, Transaction::new)) {
                Ok(thread) => self.threads.push(thread),
                Err(error) if self.threads.is_empty() => {
                    let site = &self.server.site;
                    job.fail(OperationFault::Told(error));
                    return site.answer(job);
                }
                Err(error) => tracing::warn!(%error, "a thread that reads cannot start"),
            }
        }
        // The receiver lives as long as this does.
        drop(self.queue.blocking_send(job));
    }

    /// Waits until everything that was given away is answered.
    pub(super) fn close(&mut self) {
        let (closed, _) = mpsc::channel(1);
        self.queue = closed;
        let rights = self.rights.take().map(|(over, thread)| {
            over.send_replace(true);
            thread
        });
        for thread in self.threads.drain(..).chain(rights) {
            if thread.join().is_err() {
                tracing::error!("a thread that reads the store panicked");
            }
        }
    }
}

fn start(
    server: &Arc<Server>,
    source: Source,
    (reader, connect): (Reader, Connect),
) -> Result<JoinHandle<()>, StoreError> {
    let place = Path::new(&server.site.server);
    let started = Arc::clone(server);
    thread::Builder::new()
        .name("zeph-store-read".to_owned())
        .spawn(move || work(started, source, (reader, connect)))
        .map_err(file("start a thread for", place))
}

/// The life of a thread: until nothing comes any more.
fn work(server: Arc<Server>, mut source: Source, (reader, connect): (Reader, Connect)) {
    let site = server.site.clone();
    let transaction = match connect(server) {
        Ok(transaction) => transaction,
        // What waits fails as closed.
        Err(error) => {
            tracing::error!(%error, "a thread that reads the store cannot start");
            return;
        }
    };
    let mut jobs = Vec::with_capacity(GROUP_MAX);
    let connection = transaction.connection();
    loop {
        if reader == Reader::Further && !connection.is_let_in() {
            match connection.block_on(source.is_over_within(FULL_PAUSE)) {
                true => return,
                false => continue,
            }
        }
        let taken = source.take(&mut jobs);
        if connection.block_on(taken) == 0 {
            return;
        }
        transaction.begin_group();
        let is_let_in = connection.is_let_in();
        for job in jobs.drain(..) {
            let kept = match is_let_in {
                true => Some(job),
                false => source.give_back(job),
            };
            let Some(mut job) = kept else {
                source.answered();
                continue;
            };
            read(&transaction, job.as_mut());
            site.answer(job);
            source.answered();
        }
    }
}

impl Source {
    /// Waits for work; none when there is none any more.
    async fn take(&mut self, jobs: &mut Vec<Box<dyn Job>>) -> usize {
        let mut waiting = self.waiting.lock().await;
        if !self.in_groups {
            return waiting.recv_many(jobs, 1).await;
        }
        let n_taken = tokio::select! {
            biased;
            n_taken = waiting.recv_many(jobs, GROUP_MAX) => n_taken,
            _ = self.is_over.wait_for(|is_over| *is_over) => 0,
        };
        if n_taken == 0 {
            waiting.close();
        }
        n_taken
    }

    /// Lets the writer read; gives back what it cannot take.
    fn give_back(&self, job: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let Some(back) = self.back.upgrade() else {
            return Some(job);
        };
        match back.try_send(Message::ReadHere(job)).err()?.into_inner() {
            Message::ReadHere(job) => Some(job),
            _ => None,
        }
    }

    /// Waits; says whether it is over by then.
    async fn is_over_within(&mut self, time: Duration) -> bool {
        let over = self.is_over.wait_for(|is_over| *is_over);
        tokio::time::timeout(time, over).await.is_ok()
    }

    fn answered(&self) {
        if !self.in_groups {
            self.n_open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Runs a job that only reads.
pub(super) fn read(transaction: &Transaction, job: &mut dyn Job) {
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
