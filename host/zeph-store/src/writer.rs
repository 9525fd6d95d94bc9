//! The one thread that owns the connection: it takes everything queued, runs it in one transaction, then answers.
//!
//! Committing together is what makes many parallel calls cheap: one lock, one write of the log for all of them. A job
//! that fails is undone alone. Nobody is answered before the commit.

use std::path::Path;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::checkpoint::{Checkpointer, spare_close};
use crate::error::{Site, StoreError};
use crate::place::FileId;

/// Most jobs in one transaction. It bounds how long the first of them waits for the last.
const BATCH_JOBS_MAX: usize = 128;

/// The connection and where it leads.
#[derive(Debug)]
pub(crate) struct Database {
    /// Used by the writer thread alone.
    pub(crate) connection: Connection,
    /// For messages.
    pub(crate) site: Site,
    /// The file that was opened; none in memory.
    pub(crate) file_id: Option<FileId>,
}

/// Whether a job changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It only reads: no lock is taken for it.
    Read,
    /// It writes.
    Write,
}

/// What the writer thread is sent.
pub(crate) enum Message {
    /// Work to do.
    Job(Box<dyn Job>),
    /// Finish what is queued, close the connection, answer, end.
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// Why a job has no result.
#[derive(Debug)]
pub(crate) enum Fault {
    /// SQLite refused.
    Sql(rusqlite::Error),
    /// The file is no longer the one that was opened.
    Moved,
}

/// A piece of work whose result type the writer need not know. [`Task`] is the only one.
pub(crate) trait Job: Send {
    /// Whether it writes.
    fn access(&self) -> Access;
    /// Does the work and keeps the result; says whether it succeeded. It may run again after a rollback.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Replaces the result by a fault.
    fn fail(&mut self, fault: Fault);
    /// Sends the result to whoever waits.
    fn answer(self: Box<Self>, site: &Site);
}

/// Work, its result, and who waits for it.
pub(crate) struct Task<T, W> {
    /// For messages.
    pub(crate) operation: &'static str,
    /// Whether it writes.
    pub(crate) access: Access,
    /// The work itself.
    pub(crate) work: W,
    /// Set by the writer.
    pub(crate) result: Option<Result<T, Fault>>,
    /// Who waits.
    pub(crate) reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, W> Job for Task<T, W>
where
    T: Send,
    W: FnMut(&Connection) -> rusqlite::Result<T> + Send,
{
    fn access(&self) -> Access {
        self.access
    }

    fn run(&mut self, connection: &Connection) -> bool {
        let result = (self.work)(connection).map_err(Fault::Sql);
        let succeeded = result.is_ok();
        self.result = Some(result);
        succeeded
    }

    fn fail(&mut self, fault: Fault) {
        self.result = Some(Err(fault));
    }

    fn answer(self: Box<Self>, site: &Site) {
        let operation = self.operation;
        let result = match self.result {
            Some(Ok(value)) => Ok(value),
            Some(Err(Fault::Sql(source))) => Err(site.error(operation, source)),
            Some(Err(Fault::Moved)) => Err(StoreError::Moved {
                operation,
                path: site.path.clone(),
            }),
            None => Err(StoreError::Closed { operation }),
        };
        // A caller that no longer waits has lost interest in the answer, not in the work.
        drop(self.reply.send(result));
    }
}

/// The life of the writer thread: until every sender is gone or one asks to close, and the queue is empty.
pub(crate) fn run(database: Database, mut queue: mpsc::Receiver<Message>) {
    let mut messages = Vec::with_capacity(BATCH_JOBS_MAX);
    let mut waiting_for_close = Vec::new();
    let mut checkpointer = Checkpointer::new(database.file_id.map(|_| database.site.clone()));
    while queue.blocking_recv_many(&mut messages, BATCH_JOBS_MAX) > 0 {
        let mut jobs = Vec::with_capacity(messages.len());
        for message in messages.drain(..) {
            match message {
                Message::Job(job) => jobs.push(job),
                Message::Close(reply) => {
                    queue.close();
                    waiting_for_close.push(reply);
                }
            }
        }
        run_batch(&database, &mut jobs);
        let n_writes = jobs
            .iter()
            .filter(|job| job.access() == Access::Write)
            .count();
        for job in jobs {
            job.answer(&database.site);
        }
        checkpointer.count(n_writes);
    }
    checkpointer.stop();
    close(database, waiting_for_close);
}

fn run_batch(database: &Database, jobs: &mut [Box<dyn Job>]) {
    if is_moved(database) {
        jobs.iter_mut().for_each(|job| job.fail(Fault::Moved));
        return;
    }
    let connection = &database.connection;
    let only_reads = jobs.iter().all(|job| job.access() == Access::Read);
    match jobs {
        _ if only_reads => {
            for job in jobs {
                job.run(connection);
            }
        }
        [job] => run_alone(connection, job.as_mut()),
        _ => run_together(connection, jobs),
    }
}

/// Whether the path leads elsewhere than at the start: what is written now would never be found again.
fn is_moved(database: &Database) -> bool {
    let opened_at = |path: &Path| FileId::of_path(path).ok();
    database.file_id.is_some() && database.file_id != opened_at(&database.site.path)
}

/// One transaction for one job.
fn run_alone(connection: &Connection, job: &mut dyn Job) {
    if let Err(error) = execute(connection, "BEGIN IMMEDIATE") {
        job.fail(Fault::Sql(error));
        return;
    }
    if job.run(connection)
        && let Err(error) = execute(connection, "COMMIT")
    {
        job.fail(Fault::Sql(error));
    }
    roll_back(connection);
}

/// One transaction for all jobs; when it is lost as a whole, one for each, so that only the culprit fails.
fn run_together(connection: &Connection, jobs: &mut [Box<dyn Job>]) {
    if let Err(error) = execute(connection, "BEGIN IMMEDIATE") {
        jobs.iter_mut()
            .for_each(|job| job.fail(Fault::Sql(copy_of(&error))));
        return;
    }
    let all_run = jobs
        .iter_mut()
        .try_for_each(|job| run_in_savepoint(connection, job.as_mut()));
    let committed = all_run.and_then(|()| execute(connection, "COMMIT"));
    if let Err(error) = committed {
        tracing::debug!(%error, "a transaction of several jobs was lost: running them one by one");
        roll_back(connection);
        jobs.iter_mut()
            .for_each(|job| run_alone(connection, job.as_mut()));
    }
}

/// Runs a job so that its failure undoes nothing else. Fails when the whole transaction is lost.
fn run_in_savepoint(connection: &Connection, job: &mut dyn Job) -> rusqlite::Result<()> {
    execute(connection, "SAVEPOINT job")?;
    if !job.run(connection) {
        // After a full disk, for one, SQLite has rolled everything back and this fails, as it should.
        execute(connection, "ROLLBACK TO job")?;
    }
    execute(connection, "RELEASE job")
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// Ends a transaction that is still open.
fn roll_back(connection: &Connection) {
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
    let closed = connection.close().map_err(|(_, error)| error);
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
