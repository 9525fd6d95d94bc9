//! The handle callers hold: it queues operations for the thread that owns the database and waits for the answers.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tokio::sync::{mpsc, oneshot};
use zeph_core::id::ConversationId;

use crate::audit::file::AuditFile;
use crate::changes::Announcer;
use crate::error::{StoreError, file};
use crate::operations::{OperationFault, Operations, Outcome};
use crate::sqlite::desk::WriterDesk;
use crate::sweep::Retention;

mod link;

use self::link::StoreLink;

/// Most jobs that wait for the writer. Beyond it callers wait to queue, which bounds the memory that waits with them.
pub(crate) const QUEUE_JOBS_MAX: usize = 256;

/// A handle on the store; clones share one writer thread.
///
/// Every operation resolves after its commit. An operation whose future is dropped once queued still happens.
/// Commits survive the death of the process at any moment; a power failure may undo the last seconds but never damages
/// the file (`synchronous=NORMAL`). On a server, a crash of the server may undo the records of the last calls too, but nothing that a call used up
/// and nothing that a person decided. When the last handle is dropped, the drop waits until everything queued is
/// committed and the file is closed.
#[derive(Clone)]
pub struct Store {
    writer: Arc<StoreLink>,
    /// Where the begin and the end of calls are written as well.
    pub(crate) audit_file: Option<Arc<AuditFile>>,
    /// What the keys of the audit know the store by.
    pub(crate) chain_place: Arc<str>,
    /// What handles in this process hear of each other and of other hosts.
    pub(crate) announcer: Announcer,
}

/// Whether a job changes anything, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It only reads: no lock is taken for it.
    Read,
    /// It only reads, and nothing that a [`WriteSoon`](Self::WriteSoon) changes: it need not wait until that is written.
    ReadRights,
    /// It writes.
    Write,
    /// It writes a few rows, and every call waits for them: the caller runs it itself unless the writer is in use.
    WriteBriefly,
    /// It writes, and may wait a moment for others, to share their transaction.
    WriteSoon,
}

impl Access {
    /// Whether it changes nothing.
    pub(crate) fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadRights)
    }

    /// Whether it takes microseconds.
    pub(crate) fn is_brief(self) -> bool {
        !matches!(self, Self::Read | Self::Write)
    }

    /// Whether rights may be others after it.
    pub(crate) fn changes_rights(self) -> bool {
        matches!(self, Self::Write | Self::WriteBriefly)
    }
}

/// What the writer thread is sent.
pub(crate) enum Message {
    /// Work to do.
    Job(Box<dyn Job>),
    /// A read that a reader returns because it has no connection.
    ReadHere(Box<dyn Job>),
    /// Sweep from now on, when there is time.
    Retain(Retention, Clock),
    /// Tell what other hosts announce from now on.
    Listen(Announcer),
    /// Finish what is queued, close the database, answer, end.
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// Says what time it is, in Unix milliseconds.
pub(crate) type Clock = fn() -> i64;

/// A piece of work whose result type the writer need not know. [`Task`] is the only one.
pub(crate) trait Job: Send {
    /// Whether it writes.
    fn access(&self) -> Access;
    /// Whether its commit has to survive a crash of the server, where the database can tell.
    fn has_to_last(&self) -> bool;
    /// Does the work and keeps the result; says whether it succeeded. It may run again after a rollback.
    fn run(&mut self, operations: &dyn Operations) -> bool;
    /// The line for the audit file that goes with the result and is not written yet.
    fn line(&mut self) -> Option<&mut AuditLine>;
    /// Replaces the result by a fault.
    fn fail(&mut self, fault: OperationFault);
    /// The fault it ended with.
    fn fault(&self) -> Option<&OperationFault>;
    /// Whether it may run again, after its caller was told that it failed.
    fn may_run_later(&self) -> bool;
    /// Tells a caller that waits what it ended with. When it has run again, its result goes to the log.
    fn let_caller_go(&mut self, told: &dyn Fn(&'static str, OperationFault) -> StoreError);
    /// Sends the result to its caller; `told` puts a fault of the named operation into words.
    fn answer(self: Box<Self>, told: &dyn Fn(&'static str, OperationFault) -> StoreError);
}

/// A line of the audit file.
pub(crate) struct AuditLine {
    /// The file.
    pub(crate) file: Arc<AuditFile>,
    /// The line with its end; empty once it is written.
    pub(crate) bytes: Vec<u8>,
    /// Whether the operation must not happen without it.
    pub(crate) is_needed: bool,
    /// When it happened, in Unix milliseconds.
    pub(crate) at_ms: i64,
}

/// Where the result of a task goes.
pub(crate) enum StoreReply<T> {
    /// To a caller that waits.
    Waiting(oneshot::Sender<Result<T, StoreError>>),
    /// To nobody, but for what has to be logged.
    Logged(ResultLog<T>),
}

/// Logs what is worth it of a result.
pub(crate) type ResultLog<T> = Box<dyn FnOnce(Result<T, StoreError>) + Send>;

/// Work, its result, and where that goes.
pub(crate) struct Task<T, W> {
    /// For messages.
    pub(crate) operation: &'static str,
    pub(crate) access: Access,
    /// As [`Job::has_to_last`]: true but for what may be written soon.
    pub(crate) has_to_last: bool,
    pub(crate) work: W,
    /// Goes with a result for which `has_line` holds.
    pub(crate) line: Option<AuditLine>,
    pub(crate) has_line: fn(&T) -> bool,
    /// Set by the writer.
    pub(crate) result: Option<Outcome<T>>,
    pub(crate) reply: StoreReply<T>,
    /// Where the result goes when it runs again, because the server was away; none when it may not. To run twice has to be the same as once.
    pub(crate) later: Option<ResultLog<T>>,
}

impl<T, W> Task<T, W> {
    pub(crate) fn new(
        operation: &'static str,
        access: Access,
        work: W,
        reply: StoreReply<T>,
    ) -> Self {
        Self {
            operation,
            access,
            has_to_last: matches!(access, Access::Write | Access::WriteBriefly),
            work,
            line: None,
            has_line: |_| true,
            result: None,
            reply,
            later: None,
        }
    }
}

impl<T, W> Job for Task<T, W>
where
    T: Send,
    W: FnMut(&dyn Operations) -> Outcome<T> + Send,
{
    fn access(&self) -> Access {
        self.access
    }

    fn has_to_last(&self) -> bool {
        self.has_to_last
    }

    fn run(&mut self, operations: &dyn Operations) -> bool {
        let result = (self.work)(operations);
        let succeeded = result.is_ok();
        self.result = Some(result);
        succeeded
    }

    fn line(&mut self) -> Option<&mut AuditLine> {
        let has_line = matches!(&self.result, Some(Ok(value)) if (self.has_line)(value));
        let unwritten = self.line.as_mut().filter(|line| !line.bytes.is_empty());
        unwritten.filter(|_| has_line)
    }

    fn fail(&mut self, fault: OperationFault) {
        self.result = Some(Err(fault));
    }

    fn fault(&self) -> Option<&OperationFault> {
        self.result.as_ref()?.as_ref().err()
    }

    fn may_run_later(&self) -> bool {
        self.later.is_some()
    }

    fn let_caller_go(&mut self, told: &dyn Fn(&'static str, OperationFault) -> StoreError) {
        let Some(log) = self.later.take() else {
            return;
        };
        let reply = std::mem::replace(&mut self.reply, StoreReply::Logged(log));
        // One that waits for nobody tells the log in the end alone.
        if let (StoreReply::Waiting(reply), Some(result)) = (reply, self.result.take()) {
            drop(reply.send(result.map_err(|fault| told(self.operation, fault))));
        }
    }

    fn answer(self: Box<Self>, told: &dyn Fn(&'static str, OperationFault) -> StoreError) {
        let operation = self.operation;
        let result = match self.result {
            Some(result) => result.map_err(|fault| told(operation, fault)),
            None => Err(StoreError::Closed { operation }),
        };
        match self.reply {
            // A caller that no longer waits has lost interest in the answer, not in the work.
            StoreReply::Waiting(reply) => drop(reply.send(result)),
            StoreReply::Logged(log) => log(result),
        }
    }
}

impl Store {
    /// Starts the writer thread, which runs `drain` on the queue until it is closed; the other end is for its helpers. `rights`: where reads of rights go, if not there; `desk`: where
    /// the writer stands, if its thread has to be woken.
    pub(crate) fn start<D>(
        path: &Path,
        rights: Option<mpsc::Sender<Box<dyn Job>>>,
        desk: Option<Arc<WriterDesk>>,
        drain: D,
    ) -> Result<Self, StoreError>
    where
        D: FnOnce(mpsc::Receiver<Message>, mpsc::WeakSender<Message>) + Send + 'static,
    {
        let (queue, receiver) = mpsc::channel(QUEUE_JOBS_MAX);
        let back = queue.downgrade();
        let thread = thread::Builder::new()
            .name("zeph-store".to_owned())
            .spawn(move || drain(receiver, back))
            .map_err(file("start the writer thread of the store", path))?;
        Ok(Self {
            writer: Arc::new(StoreLink::new(queue, rights, desk, thread)),
            audit_file: None,
            chain_place: Arc::from(path.to_string_lossy()),
            announcer: Announcer::new(),
        })
    }

    /// A handle that also writes the begin and the end of calls as lines of `file`: a begin counts only with its line.
    #[must_use]
    pub fn with_audit_file(self, file: AuditFile) -> Self {
        Self {
            audit_file: Some(Arc::new(file)),
            ..self
        }
    }

    /// Sweeps from now on whenever there is time, by the clock `now_ms`; at the latest, a few rows when the store is closed.
    ///
    /// Errors: [`StoreError::Closed`].
    pub async fn retain(
        &self,
        retention: Retention,
        now_ms: fn() -> i64,
    ) -> Result<(), StoreError> {
        self.queue(Message::Retain(retention, now_ms), "sweep the store")
            .await
    }

    /// Gives back the memory that only spares work: pages and statements that are kept ready. `then` runs where they were, with a file on the
    /// thread of the store.
    ///
    /// Errors: [`StoreError::Closed`], and what the database says.
    pub async fn give_back_memory(&self, then: fn()) -> Result<(), StoreError> {
        self.run("give back memory", Access::Read, move |operations| {
            operations.give_back_memory()?;
            then();
            Ok(())
        })
        .await
    }

    /// Finishes everything queued, by any clone, and closes the file; later operations fail.
    ///
    /// Errors: [`StoreError::Closed`] when it is closed already, and what the database says about closing.
    pub async fn close(self) -> Result<(), StoreError> {
        const OPERATION: &str = "close the store";
        let (reply, answer) = oneshot::channel();
        self.queue(Message::Close(reply), OPERATION).await?;
        answer.await.unwrap_or(Err(StoreError::Closed {
            operation: OPERATION,
        }))
    }

    /// Whether it takes changes: tries one of a conversation that nobody has.
    ///
    /// Errors: what the database says, such as [`StoreError::ServerReadOnly`].
    pub async fn check_changes(&self) -> Result<(), StoreError> {
        let nobody = ConversationId::new();
        self.run("change anything", Access::Write, move |operations| {
            operations.forget_counted(nobody)
        })
        .await
    }

    /// Runs `work` on the writer thread. It may run twice when a transaction is lost, never in two that both count.
    pub(crate) async fn run<T, W>(
        &self,
        operation: &'static str,
        access: Access,
        work: W,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnMut(&dyn Operations) -> Outcome<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Task::new(operation, access, work, StoreReply::Waiting(reply));
        self.queue_task(task).await?;
        Self::answered(answer, operation).await
    }

    /// The answer to a queued task.
    pub(crate) async fn answered<T>(
        answer: oneshot::Receiver<Result<T, StoreError>>,
        operation: &'static str,
    ) -> Result<T, StoreError> {
        answer
            .await
            .unwrap_or(Err(StoreError::Closed { operation }))
    }

    /// Queues a task; waits only while the queue is full.
    pub(crate) async fn queue_task<T, W>(&self, task: Task<T, W>) -> Result<(), StoreError>
    where
        T: Send + 'static,
        W: FnMut(&dyn Operations) -> Outcome<T> + Send + 'static,
    {
        let (operation, access) = (task.operation, task.access);
        match (self.writer.rights(), access) {
            (Some(rights), Access::ReadRights) => {
                let queued = rights.send(Box::new(task)).await;
                queued.map_err(|_| StoreError::Closed { operation })
            }
            _ => {
                let job = Message::Job(Box::new(task));
                self.writer.send(job, operation).await?;
                self.writer.serve(access).await;
                Ok(())
            }
        }
    }

    /// Queues `work`, which writes, and goes on; its end is not reported. A full queue omits it: it is not worth waiting for.
    pub(crate) fn queue_and_go<W>(&self, operation: &'static str, work: W)
    where
        W: FnMut(&dyn Operations) -> Outcome<()> + Send + 'static,
    {
        let task = Task::new(
            operation,
            Access::WriteSoon,
            work,
            StoreReply::Logged(Box::new(drop)),
        );
        if !self.writer.try_send(Box::new(task)) {
            tracing::debug!(
                operation,
                "omitted: the store has too much to do, or is closed"
            );
        }
    }

    /// Queues something else than a job.
    pub(crate) async fn queue(
        &self,
        message: Message,
        operation: &'static str,
    ) -> Result<(), StoreError> {
        self.writer.send(message, operation).await?;
        self.writer.wake();
        Ok(())
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
