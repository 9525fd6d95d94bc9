//! The one thread that owns the connection: it takes everything queued, runs it in one transaction, then answers.
//!
//! Committing together is what makes many parallel calls cheap: one lock, one write of the log for all of them. A job
//! that fails is undone alone. Nobody is answered before the commit. What can wait a moment shares the transaction of what comes next.

use std::path::Path;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::chain::ChainedConnection;
use super::checkpoint::{Checkpointer, spare_close};
use super::due;
use super::site::Site;
use crate::batch::{BATCH_JOBS_MAX, Batch};
use crate::error::StoreError;
use crate::lines;
use crate::operations::{OperationFault, Operations as _, Outcome};
use crate::place::FileId;
use crate::store::{Job, Message};
use crate::sweep::{Past, SweepReport};
use crate::sweeper::{Sweeper, SweptDatabase};

/// The connection and where it leads.
#[derive(Debug)]
pub(crate) struct Database {
    /// Used by the writer thread alone.
    pub(crate) connection: ChainedConnection,
    /// For messages.
    pub(crate) site: Site,
    /// The file that was opened; none in memory.
    pub(crate) file_id: Option<FileId>,
}

/// What the thread holds between two batches.
struct Writer {
    database: Database,
    checkpointer: Checkpointer,
    sweeper: Sweeper,
    batch: Batch,
    waiting_for_close: Vec<oneshot::Sender<Result<(), StoreError>>>,
}

/// The life of the writer thread: until every sender is gone or one asks to close, and the queue is empty.
pub(crate) fn run(database: Database, queue: mpsc::Receiver<Message>) {
    let mut timer = tokio::runtime::Builder::new_current_thread();
    match timer.enable_time().build() {
        Ok(timer) => timer.block_on(drain(database, queue)),
        // Every operation fails as closed.
        Err(error) => tracing::error!(%error, "the writer thread of the store cannot start"),
    }
}

async fn drain(database: Database, mut queue: mpsc::Receiver<Message>) {
    let checkpointer = Checkpointer::new(database.file_id.map(|_| database.site.clone()));
    let mut writer = Writer {
        database,
        checkpointer,
        sweeper: Sweeper::default(),
        batch: Batch::default(),
        waiting_for_close: Vec::new(),
    };
    let mut messages = Vec::with_capacity(BATCH_JOBS_MAX);
    loop {
        let wake_at = writer.sweeper.wake_at();
        let received = writer.batch.receive(&mut queue, &mut messages, wake_at);
        let received = received.await;
        for message in messages.drain(..) {
            writer.take(message, &mut queue);
        }
        match received {
            Some(0) => break,
            Some(_) if writer.batch.can_wait() => {}
            Some(_) => writer.run_jobs(),
            None if writer.batch.is_waiting() => writer.run_jobs(),
            None => writer.sweeper.step(&writer.database.connection),
        }
    }
    writer.end();
}

impl Writer {
    fn take(&mut self, message: Message, queue: &mut mpsc::Receiver<Message>) {
        match message {
            Message::Job(job) => self.batch.push(job),
            Message::Retain(retention, clock) => self.sweeper.start(retention, clock),
            // There is nobody to hear: others write to the file and say nothing.
            Message::Listen(_) => {}
            Message::Close(reply) => {
                queue.close();
                self.waiting_for_close.push(reply);
            }
        }
    }

    fn run_jobs(&mut self) {
        let mut jobs = self.batch.take();
        run_batch(&self.database, &mut jobs);
        let writes = jobs.iter().filter(|job| !job.access().only_reads());
        let n_writes = writes.count();
        let site = &self.database.site;
        for job in jobs.drain(..) {
            job.answer(&|operation, fault| site.told(operation, fault));
        }
        self.batch.reuse(jobs);
        self.checkpointer.count(n_writes);
        self.sweeper.count(n_writes, &self.database.connection);
    }

    fn end(mut self) {
        self.run_jobs();
        self.sweeper.close(&self.database.connection);
        self.checkpointer.stop();
        close(self.database, self.waiting_for_close);
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
        _ => run_together(connection, jobs),
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
        let written = lines::write(std::slice::from_mut(job));
        let committed = written
            .map_err(OperationFault::Line)
            .and_then(|()| Ok(execute(connection, "COMMIT")?));
        if let Err(fault) = committed {
            job.fail(fault);
        }
    }
    roll_back(connection);
}

/// One transaction for all jobs; when it is lost as a whole, one for each, so that only the culprit fails.
fn run_together(connection: &ChainedConnection, jobs: &mut [Box<dyn Job>]) {
    if let Err(error) = connection.begin() {
        jobs.iter_mut()
            .for_each(|job| job.fail(copy_of(&error).into()));
        return;
    }
    let all_run = jobs
        .iter_mut()
        .try_for_each(|job| run_in_savepoint(connection, job.as_mut()));
    let committed = all_run.map_err(OperationFault::from).and_then(|()| {
        lines::write(jobs).map_err(OperationFault::Line)?;
        Ok(execute(connection, "COMMIT")?)
    });
    if let Err(fault) = committed {
        tracing::debug!(
            ?fault,
            "a transaction of several jobs was lost: running them one by one"
        );
        roll_back(connection);
        jobs.iter_mut().for_each(|job| run_alone(connection, job));
    }
}

/// Runs a job so that its failure undoes nothing else. Fails when the whole transaction is lost.
fn run_in_savepoint(connection: &ChainedConnection, job: &mut dyn Job) -> rusqlite::Result<()> {
    execute(connection, "SAVEPOINT job")?;
    if !job.run(connection) {
        // After a full disk, for one, SQLite has rolled everything back and this fails, as it should.
        execute(connection, "ROLLBACK TO job")?;
        connection.forget_head();
    }
    execute(connection, "RELEASE job")
}

impl SweptDatabase for ChainedConnection {
    fn sweep_some(&self, past: &Past, n_max: u32) -> Outcome<SweepReport> {
        if !due::is_any(self, past)? {
            return Ok(SweepReport::default());
        }
        self.begin()?;
        let swept = self.sweep(past, n_max);
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
