//! The one thread that writes: it takes everything queued, runs the writes in one transaction, then answers; reads go on to other threads
//! after that, so that they see what was queued before them.
//!
//! Committing together is what makes many parallel calls cheap: one journey to the server and one write of its log for all of them. A
//! transaction that is lost runs again, one job at a time, so that only the culprit fails. Nobody is answered before the commit.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::connection::Server;
use super::fault::{Away, Trouble, copy_of, is_disk_full};
use super::listener::Listener;
use super::readers::{self, Readers};
use super::schema;
use super::transaction::{Transaction, trouble_of};
use super::url::ServerUrl;
use crate::batch::{BATCH_JOBS_MAX, Batch};
use crate::changes::Announcer;
use crate::error::StoreError;
use crate::kept::{KeepingDatabase, KeptJobs};
use crate::lines::{self, FileWait};
use crate::open::StoreOptions;
use crate::operations::{OperationFault, Operations as _, Outcome};
use crate::store::{Job, Message};
use crate::sweep::{Retention, SweepClock, SweepReport};
use crate::sweeper::{STEP_MAX_FAR, Sweeper, SweptDatabase};

/// How long what may wait does: the end of a call and the begin of the next then cost one journey to the server.
const SOON: Duration = Duration::from_millis(5);

/// How often a job is tried when others are in its way or the connection is lost.
const TRIES_MAX: u32 = 3;

/// How many jobs the last transaction had, at least, for others to be let go first.
const MANY_JOBS: usize = 3;

/// A server whose schema is the newest.
#[derive(Debug)]
pub(crate) struct Database {
    server: Arc<Server>,
}

impl Database {
    /// Brings the schema of the server to the newest version.
    pub(crate) fn open(url: ServerUrl, options: &StoreOptions) -> Result<Self, StoreError> {
        let server = Server::new(url, options)?;
        schema::migrate(&server)?;
        Ok(Self { server })
    }
}

/// What the thread holds between two batches.
struct Writer {
    transaction: Transaction,
    readers: Readers,
    listener: Option<Listener>,
    sweeper: Sweeper,
    batch: Batch,
    kept: KeptJobs,
    /// The jobs of the last transaction.
    n_last: usize,
    /// What is given to the readers when the batch is written.
    reads: Vec<Box<dyn Job>>,
    waiting_for_close: Vec<oneshot::Sender<Result<(), StoreError>>>,
}

/// The life of the writer thread: until every sender is gone or one asks to close, and the queue is empty. `rights`: reads that do not wait
/// for it.
pub(crate) fn run(
    database: Database,
    (mut queue, back): (mpsc::Receiver<Message>, mpsc::WeakSender<Message>),
    rights: mpsc::Receiver<Box<dyn Job>>,
) {
    let transaction = Transaction::of_writer(Arc::clone(&database.server));
    let readers = Readers::new(database.server, rights, back);
    let (transaction, readers) = match (transaction, readers) {
        (Ok(transaction), Ok(readers)) => (transaction, readers),
        // Every operation fails as closed.
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "the threads of the store cannot start");
            return;
        }
    };
    let mut writer = Writer {
        transaction,
        readers,
        listener: None,
        sweeper: Sweeper::default(),
        batch: Batch::new(SOON),
        kept: KeptJobs::default(),
        n_last: 0,
        reads: Vec::new(),
        waiting_for_close: Vec::new(),
    };
    while writer.turn(&mut queue) {}
    writer.end();
}

impl Writer {
    /// Waits for what comes, and does it; false when nothing comes any more.
    fn turn(&mut self, queue: &mut mpsc::Receiver<Message>) -> bool {
        let mut messages = Vec::with_capacity(BATCH_JOBS_MAX);
        let times = [self.sweeper.wake_at(), self.kept.retry_at()];
        let wake_at = times.into_iter().flatten().min();
        let received = self.batch.receive(queue, &mut messages, wake_at);
        let received = self.transaction.connection().block_on(received);
        for message in messages {
            self.take(message, queue);
        }
        match received {
            Some(0) => return false,
            Some(_) if self.reads.is_empty() && self.batch.can_wait() => {}
            Some(_) => {
                self.gather(queue);
                self.run_jobs();
            }
            None if self.batch.is_waiting() => self.run_jobs(),
            // Not woken for them.
            None if !self.kept.are_due() => self.sweeper.step(&self.transaction),
            None => {}
        }
        if self.kept.are_due() {
            self.kept.retry(&self.transaction);
        }
        true
    }

    /// Lets callers that are ready to run queue theirs first, where several called before: one transaction holds them all. While a processor is
    /// free, nobody is waited for.
    fn gather(&mut self, queue: &mut mpsc::Receiver<Message>) {
        if self.n_last < MANY_JOBS {
            return;
        }
        thread::yield_now();
        while self.batch.has_room() {
            let Ok(message) = queue.try_recv() else {
                break;
            };
            self.take(message, queue);
        }
    }

    fn take(&mut self, message: Message, queue: &mut mpsc::Receiver<Message>) {
        match message {
            Message::Job(job) if job.access().only_reads() => self.reads.push(job),
            Message::Job(job) => self.batch.push(job),
            Message::ReadHere(mut job) => {
                readers::read(&self.transaction, job.as_mut());
                self.transaction.site().answer(job);
            }
            Message::Retain(retention, clock) => self.sweeper.start(retention, clock),
            Message::Listen(announcer) => self.listen(announcer),
            Message::Close(reply) => {
                queue.close();
                self.waiting_for_close.push(reply);
            }
        }
    }

    fn listen(&mut self, announcer: Announcer) {
        if self.listener.is_some() {
            return;
        }
        let server = Arc::clone(&self.transaction.connection().server);
        match Listener::start(server, announcer) {
            Ok(listener) => self.listener = Some(listener),
            // Who waits for announcements looks from time to time, too.
            Err(error) => tracing::warn!(%error, "other hosts are not heard"),
        }
    }

    fn run_jobs(&mut self) {
        let mut jobs = self.batch.take();
        if !jobs.is_empty() {
            run_batch(&self.transaction, &mut jobs);
            let n_writes = jobs.len();
            self.n_last = n_writes;
            for job in jobs.drain(..) {
                self.kept.answer_or_keep(job, &self.transaction);
            }
            self.batch.reuse(jobs);
            if self.sweeper.count(n_writes) {
                self.sweeper.step(&self.transaction);
            }
        }
        for read in self.reads.drain(..) {
            self.readers.read(read);
        }
    }

    fn end(mut self) {
        self.run_jobs();
        self.kept.close(&self.transaction);
        drop(self.listener.take());
        self.readers.close();
        self.sweeper.close(&self.transaction);
        for reply in self.waiting_for_close {
            drop(reply.send(Ok(())));
        }
    }
}

/// Runs all of them, together if that works.
fn run_batch(transaction: &Transaction, jobs: &mut [Box<dyn Job>]) {
    match jobs {
        [job] => run_alone(transaction, job),
        _ => run_together(transaction, jobs),
    }
}

/// One transaction for one job; another when others were in the way or the connection was lost before the end.
pub(super) fn run_alone(transaction: &Transaction, job: &mut Box<dyn Job>) {
    for n_try in 1..=TRIES_MAX {
        let done = attempt(transaction, std::slice::from_mut(job));
        let trouble = transaction.trouble();
        transaction.roll_back();
        let may_help = can_be_repeated(trouble);
        match done {
            Attempt::Committed | Attempt::JobFailed if !may_help => return,
            Attempt::Lost(fault) if !may_help || n_try == TRIES_MAX => return job.fail(fault),
            _ => {}
        }
    }
}

/// One transaction for all jobs; when it is lost as a whole, one for each, so that only the culprit fails.
fn run_together(transaction: &Transaction, jobs: &mut [Box<dyn Job>]) {
    let done = attempt(transaction, jobs);
    let trouble = transaction.trouble();
    transaction.roll_back();
    match done {
        Attempt::Committed => return,
        // It may have lasted: again would be twice.
        Attempt::Lost(fault) if !can_be_repeated(trouble) => {
            return jobs.iter_mut().for_each(|job| job.fail(copy_of(&fault)));
        }
        Attempt::JobFailed | Attempt::Lost(_) => {}
    }
    tracing::debug!("a transaction of several jobs was lost: running them one by one");
    let mut is_away = false;
    for job in jobs {
        // Once nobody is there, each further try would take its time.
        match is_away {
            true => job.fail(Away::new("it does not answer").into()),
            false => run_alone(transaction, job),
        }
        is_away |= transaction.trouble() == Some(Trouble::Lost);
    }
}

/// Whether a transaction that ended so changed nothing, and may well succeed.
fn can_be_repeated(trouble: Option<Trouble>) -> bool {
    matches!(
        trouble,
        Some(Trouble::Lost | Trouble::Passing | Trouble::Apart)
    )
}

/// What became of a transaction.
enum Attempt {
    Committed,
    /// A job keeps its own fault.
    JobFailed,
    /// No job is to blame.
    Lost(OperationFault),
}

fn attempt(transaction: &Transaction, jobs: &mut [Box<dyn Job>]) -> Attempt {
    let has_to_last = jobs.iter().any(|job| job.has_to_last());
    if let Err(fault) = transaction.begin_for(jobs.len() > 1, has_to_last) {
        return Attempt::Lost(fault);
    }
    if !jobs.iter_mut().all(|job| job.run(transaction)) {
        return Attempt::JobFailed;
    }
    // What is recorded has its rows before it has its lines.
    let committed = transaction
        .settle()
        .and_then(|()| lines::write(jobs, FileWait::Long).map_err(OperationFault::Line))
        .and_then(|()| transaction.commit());
    match committed {
        Ok(()) => Attempt::Committed,
        Err(fault) => Attempt::Lost(fault),
    }
}

impl KeepingDatabase for Transaction {
    fn may_pass(&self, fault: &OperationFault) -> bool {
        trouble_of(fault) == Trouble::Lost || is_disk_full(fault)
    }

    fn run(&self, jobs: &mut [Box<dyn Job>]) {
        run_batch(self, jobs);
    }

    fn told(&self, operation: &'static str, fault: OperationFault) -> StoreError {
        self.site().told(operation, fault)
    }
}

impl SweptDatabase for Transaction {
    fn step_max(&self) -> Duration {
        STEP_MAX_FAR
    }

    fn sweep_some(
        &self,
        retention: &Retention,
        clock: SweepClock,
        n_max: u32,
    ) -> Outcome<SweepReport> {
        let swept = self.begin().and_then(|()| {
            let past = retention.past(self.sweep_time(clock)?);
            self.sweep(&past, n_max)
        });
        let committed = swept.and_then(|swept| self.commit().map(|()| swept));
        self.roll_back();
        committed
    }
}
