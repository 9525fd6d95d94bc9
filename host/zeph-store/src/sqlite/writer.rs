//! The one writer that owns the connection: it takes everything queued, runs it in one transaction, then answers. Its thread works with it, and
//! callers do for a moment (`desk`).
//!
//! Committing together is what makes many parallel calls cheap: one lock, one write of the log for all of them. A job
//! that fails is undone alone. Nobody is answered before the commit. What can wait a moment shares the transaction of what comes next.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::chain::ChainedConnection;
use super::checkpoint::{Checkpointer, spare_close};
use super::desk::{SOON, Turn, WriterDesk};
use super::due;
use super::site::{Site, is_passing};
use crate::batch::Batch;
use crate::error::StoreError;
use crate::kept::{KeepingDatabase, KeptJobs};
use crate::lines::{self, FileWait};
use crate::operations::{OperationFault, Operations as _, Outcome};
use crate::place::FileId;
use crate::store::{Access, Job, Message};
use crate::sweep::{Retention, SweepClock, SweepReport};
use crate::sweeper::{Sweeper, SweptDatabase};

/// The connection and where it leads.
#[derive(Debug)]
pub(crate) struct Database {
    /// Used by the writer alone.
    pub(crate) connection: ChainedConnection,
    /// For messages.
    pub(crate) site: Site,
    /// The file that was opened; none in memory.
    pub(crate) file_id: Option<FileId>,
}

/// What is held between two batches.
pub(super) struct Writer {
    database: Database,
    queue: mpsc::Receiver<Message>,
    /// Whether nothing more can come.
    is_over: bool,
    checkpointer: Checkpointer,
    sweeper: Sweeper,
    batch: Batch,
    kept: KeptJobs,
    /// Whether the last transaction of callers was that of several, until it is told.
    is_shared: Option<bool>,
    waiting_for_close: Vec<oneshot::Sender<Result<(), StoreError>>>,
}

/// The life of the writer thread: until every sender is gone or one asks to close, and the queue is empty.
pub(crate) fn run(database: Database, queue: mpsc::Receiver<Message>, desk: &WriterDesk) {
    desk.attend(Writer::new(database, queue));
}

impl Writer {
    fn new(database: Database, queue: mpsc::Receiver<Message>) -> Self {
        Self {
            checkpointer: Checkpointer::new(database.file_id.map(|_| database.site.clone())),
            database,
            queue,
            is_over: false,
            sweeper: Sweeper::default(),
            batch: Batch::new(SOON),
            kept: KeptJobs::default(),
            is_shared: None,
            waiting_for_close: Vec::new(),
        }
    }

    /// Does what is queued and due; for the thread.
    pub(super) fn turn(&mut self) -> Turn {
        loop {
            let is_full = self.take_queued();
            self.run_rights();
            if self.is_over {
                return Turn::Over;
            }
            if !self.batch.can_wait() || is_past(self.batch.run_at()) {
                self.run_jobs();
            }
            if is_past(self.sweeper.wake_at()) {
                self.sweeper.step(&self.database.connection);
            }
            if self.kept.are_due() {
                self.kept.retry(&self.database);
            }
            if is_full {
                continue;
            }
            let times = [
                self.batch.run_at(),
                self.sweeper.wake_at(),
                self.kept.retry_at(),
            ];
            let next = times.into_iter().flatten().min();
            return next.map_or(Turn::Woken, Turn::At);
        }
    }

    /// Does what is queued, for a caller, which cannot wait. False when the thread has to: it does what is left then.
    pub(super) fn run_briefly(&mut self) -> bool {
        // Callers without a pause would keep the thread from sweeping, and from what is kept.
        if is_past(self.sweeper.wake_at()) || self.kept.are_due() {
            return false;
        }
        let is_done = !self.take_queued() && !self.is_over && self.run_rights();
        // What may wait has woken the thread, or finds it looking.
        is_done && (self.batch.can_wait() || self.run_jobs_at_once())
    }

    /// Whether jobs wait for others to share their transaction.
    pub(super) fn has_waiting(&self) -> bool {
        self.batch.run_at().is_some()
    }

    /// Whether the last transaction of callers was that of several; none when there was none since it was told.
    pub(super) fn take_is_shared(&mut self) -> Option<bool> {
        self.is_shared.take()
    }

    /// Takes what is queued into the batch. True when there is no room for more.
    fn take_queued(&mut self) -> bool {
        while self.batch.has_room() {
            match self.queue.try_recv() {
                Ok(message) => self.take(message),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => {
                    self.is_over = true;
                    return false;
                }
            }
        }
        true
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Job(job) | Message::ReadHere(job) => self.batch.push(job),
            Message::Retain(retention, clock) => self.sweeper.start(retention, clock),
            // There is nobody to hear: others write to the file and say nothing.
            Message::Listen(_) => {}
            Message::Close(reply) => {
                self.queue.close();
                self.waiting_for_close.push(reply);
            }
        }
    }

    /// Answers reads that depend on nothing in the batch. False when one failed and is left in it.
    fn run_rights(&mut self) -> bool {
        let connection = &self.database.connection;
        let reads = self.batch.take_reads_of_rights();
        if reads.is_empty() {
            return true;
        }
        let is_moved = is_moved(&self.database);
        let mut all_read = true;
        let _at_once = AtOnce::on(connection, &self.database.site);
        for mut read in reads {
            match !is_moved && read.run(connection) {
                true => answer(&self.database.site, read),
                false => {
                    all_read = false;
                    self.batch.push(read);
                }
            }
        }
        all_read
    }

    fn run_jobs(&mut self) {
        let mut jobs = self.batch.take();
        run_batch(&self.database, &mut jobs);
        self.answer(jobs);
    }

    /// Runs the batch if it takes microseconds and nobody is in the way. False when it is left as it is.
    fn run_jobs_at_once(&mut self) -> bool {
        let is_brief = self.batch.is_brief() && !self.checkpointer.is_behind();
        if !is_brief || is_moved(&self.database) {
            return false;
        }
        let connection = &self.database.connection;
        let mut jobs = self.batch.take();
        let done = {
            let _at_once = AtOnce::on(connection, &self.database.site);
            run_together(connection, &mut jobs, FileWait::None)
        };
        if done.is_err() {
            self.batch.put_back(jobs);
            return false;
        }
        !self.answer(jobs)
    }

    /// Answers what was run. Returns whether sweeping is due.
    fn answer(&mut self, mut jobs: Vec<Box<dyn Job>>) -> bool {
        let writes = jobs.iter().filter(|job| !job.access().only_reads());
        let n_writes = writes.count();
        let accesses = jobs.iter().map(|job| job.access());
        match accesses
            .filter(|access| *access == Access::WriteBriefly)
            .count()
        {
            0 => {}
            n => self.is_shared = Some(n > 1),
        }
        for job in jobs.drain(..) {
            self.kept.answer_or_keep(job, &self.database);
        }
        self.batch.reuse(jobs);
        self.checkpointer.count(n_writes);
        self.sweeper.count(n_writes)
    }

    /// Finishes what is queued, and closes the database.
    pub(super) fn end(mut self) {
        self.run_jobs();
        self.kept.close(&self.database);
        self.sweeper.close(&self.database.connection);
        self.checkpointer.stop();
        close(self.database, self.waiting_for_close);
    }
}

fn is_past(at: Option<Instant>) -> bool {
    at.is_some_and(|at| at <= Instant::now())
}

fn answer(site: &Site, job: Box<dyn Job>) {
    job.answer(&|operation, fault| site.told(operation, fault));
}

/// While it lives, what others hold fails at once.
struct AtOnce<'a>(&'a Connection, Duration);

impl<'a> AtOnce<'a> {
    fn on(connection: &'a Connection, site: &Site) -> Self {
        // A handler that cannot be set is the one that waits.
        drop(connection.busy_timeout(Duration::ZERO));
        Self(connection, site.busy_timeout)
    }
}

impl Drop for AtOnce<'_> {
    fn drop(&mut self) {
        drop(self.0.busy_timeout(self.1));
    }
}

fn run_batch(database: &Database, jobs: &mut [Box<dyn Job>]) {
    if is_moved(database) {
        jobs.iter_mut()
            .for_each(|job| job.fail(OperationFault::Moved));
        return;
    }
    let connection = &database.connection;
    let only_reads = jobs.iter().all(|job| job.access().only_reads());
    match jobs {
        _ if only_reads => {
            for job in jobs {
                job.run(connection);
            }
        }
        [job] => run_alone(connection, job),
        _ => match run_together(connection, jobs, FileWait::Long) {
            Ok(()) => {}
            Err(TogetherFault::Begin(error)) => {
                let faults = jobs.iter_mut();
                faults.for_each(|job| job.fail(copy_of(&error).into()));
            }
            Err(TogetherFault::Later) => {
                tracing::debug!("a transaction of several jobs was lost: running them one by one");
                jobs.iter_mut().for_each(|job| run_alone(connection, job));
            }
        },
    }
}

/// Whether the path leads elsewhere than at the start: what is written now would never be found again.
fn is_moved(database: &Database) -> bool {
    let opened_at = |path: &Path| FileId::of_path(path).ok();
    database.file_id.is_some() && database.file_id != opened_at(&database.site.path)
}

/// One transaction for one job.
fn run_alone(connection: &ChainedConnection, job: &mut Box<dyn Job>) {
    if let Err(error) = connection.begin() {
        job.fail(error.into());
        return;
    }
    if job.run(connection) {
        let written = lines::write(std::slice::from_mut(job), FileWait::Long);
        let committed = written
            .map_err(OperationFault::Line)
            .and_then(|()| Ok(execute(connection, "COMMIT")?));
        if let Err(fault) = committed {
            job.fail(fault);
        }
    }
    roll_back(connection);
}

/// One transaction for all jobs.
///
/// Errors: what was in the way, and a job that failed; nothing has happened then.
fn run_together(
    connection: &ChainedConnection,
    jobs: &mut [Box<dyn Job>],
    wait: FileWait,
) -> Result<(), TogetherFault> {
    let done = attempt(connection, jobs, wait);
    roll_back(connection);
    done
}

fn attempt(
    connection: &ChainedConnection,
    jobs: &mut [Box<dyn Job>],
    wait: FileWait,
) -> Result<(), TogetherFault> {
    connection.begin().map_err(TogetherFault::Begin)?;
    if !jobs.iter_mut().all(|job| job.run(connection)) {
        return Err(TogetherFault::Later);
    }
    let written = lines::write(jobs, wait);
    written.map_err(|_| TogetherFault::Later)?;
    execute(connection, "COMMIT").map_err(|_| TogetherFault::Later)
}

/// Why several jobs have no transaction in common.
enum TogetherFault {
    /// None can have one now.
    Begin(rusqlite::Error),
    /// Something else, which each that is to blame meets again alone.
    Later,
}

impl KeepingDatabase for Database {
    fn may_pass(&self, fault: &OperationFault) -> bool {
        is_passing(fault)
    }

    fn run(&self, jobs: &mut [Box<dyn Job>]) {
        run_batch(self, jobs);
    }

    fn told(&self, operation: &'static str, fault: OperationFault) -> StoreError {
        self.site.told(operation, fault)
    }
}

impl SweptDatabase for ChainedConnection {
    fn sweep_some(
        &self,
        retention: &Retention,
        clock: SweepClock,
        n_max: u32,
    ) -> Outcome<SweepReport> {
        if !due::is_any(self, &retention.past_at(clock.now_ms))? {
            return Ok(SweepReport::default());
        }
        let past = retention.past(self.sweep_time(clock)?);
        self.begin()?;
        let swept = self.sweep(&past, n_max);
        let committed = swept.and_then(|swept| Ok(execute(self, "COMMIT").map(|()| swept)?));
        roll_back(self);
        committed
    }
}

pub(super) fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// Ends a transaction that is still open.
pub(super) fn roll_back(connection: &Connection) {
    if connection.is_autocommit() {
        return;
    }
    if let Err(error) = execute(connection, "ROLLBACK") {
        tracing::error!(%error, "cannot roll back a transaction of the store");
    }
}

/// The same error again: `rusqlite::Error` cannot be cloned, and several callers need it.
fn copy_of(error: &rusqlite::Error) -> rusqlite::Error {
    match error.sqlite_error() {
        Some(code) => rusqlite::Error::SqliteFailure(*code, Some(error.to_string())),
        None => rusqlite::Error::ToSqlConversionFailure(error.to_string().into()),
    }
}

fn close(database: Database, waiting: Vec<oneshot::Sender<Result<(), StoreError>>>) {
    let Database {
        connection, site, ..
    } = database;
    spare_close(&connection, &site.path);
    let closed = connection.into_inner().close().map_err(|(_, error)| error);
    if let Err(error) = &closed {
        tracing::error!(%error, path = %site.path.display(), "cannot close the store");
    }
    for reply in waiting {
        let result = closed.as_ref().copied().map_err(copy_of);
        drop(reply.send(result.map_err(|source| site.error("close the store", source))));
    }
}

#[cfg(test)]
mod tests;
