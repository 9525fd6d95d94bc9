//! Jobs that are kept while the database cannot take them, and run when it can: the ends of calls that began before.

use std::time::{Duration, Instant};

use crate::batch::BATCH_JOBS_MAX;
use crate::error::StoreError;
use crate::operations::OperationFault;
use crate::store::Job;

/// Most that are kept. Where an end cannot be recorded, no call begins: there are no more than calls that ran before.
const KEPT_JOBS_MAX: usize = 4096;

/// How long after a failure they are tried again, at least: as long as they have waited, up to `RETRY_MAX`.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(15);

/// How long they are tried.
const KEEP: Duration = Duration::from_secs(60 * 60);

/// What jobs are kept for.
pub(crate) trait KeepingDatabase {
    /// Whether the same may well succeed later: a server that is away, a disk that is full.
    fn may_pass(&self, fault: &OperationFault) -> bool;
    /// Runs jobs, together if that works.
    fn run(&self, jobs: &mut [Box<dyn Job>]);
    /// Puts the fault of the named operation into words.
    fn told(&self, operation: &'static str, fault: OperationFault) -> StoreError;
}

/// What is kept, and since when.
#[derive(Default)]
pub(crate) struct KeptJobs {
    jobs: Vec<Box<dyn Job>>,
    since: Option<Instant>,
    retry_at: Option<Instant>,
}

impl KeptJobs {
    /// When the next try is due; none while nothing is kept.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    pub(crate) fn are_due(&self) -> bool {
        self.retry_at.is_some_and(|at| at <= Instant::now())
    }

    /// Answers a job, or keeps one that failed for now and may run later: its caller is told that it failed.
    pub(crate) fn answer_or_keep(
        &mut self,
        mut job: Box<dyn Job>,
        database: &impl KeepingDatabase,
    ) {
        let is_kept = job.may_run_later() && self.jobs.len() < KEPT_JOBS_MAX;
        if !is_kept || !may_pass(job.as_ref(), database) {
            return answer(job, database);
        }
        job.let_caller_go(&|operation, fault| database.told(operation, fault));
        self.jobs.push(job);
        let now = Instant::now();
        if self.since.is_none() {
            tracing::warn!(
                "the store cannot be written: the ends of calls are kept until it can be again"
            );
        }
        self.since.get_or_insert(now);
        self.retry_at.get_or_insert(now + RETRY);
    }

    /// Tries some of them again.
    pub(crate) fn retry(&mut self, database: &impl KeepingDatabase) {
        let waited = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        let is_over = waited > KEEP;
        let n = self.jobs.len().min(BATCH_JOBS_MAX);
        let mut jobs: Vec<_> = self.jobs.drain(..n).collect();
        database.run(&mut jobs);
        let (waiting, done): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|job| may_pass(job.as_ref(), database) && !is_over);
        done.into_iter().for_each(|job| answer(job, database));
        let pause = match waiting.is_empty() {
            true => Duration::ZERO,
            false => waited.clamp(RETRY, RETRY_MAX),
        };
        self.jobs.extend(waiting);
        self.retry_at = (!self.jobs.is_empty()).then(|| Instant::now() + pause);
        if self.jobs.is_empty() {
            tracing::info!("no end of a call waits to be recorded any more");
            self.since = None;
        }
    }

    /// Tries all of them for the last time.
    pub(crate) fn close(self, database: &impl KeepingDatabase) {
        let mut jobs = self.jobs;
        if !jobs.is_empty() {
            database.run(&mut jobs);
        }
        jobs.into_iter().for_each(|job| answer(job, database));
    }
}

fn answer(job: Box<dyn Job>, database: &impl KeepingDatabase) {
    job.answer(&|operation, fault| database.told(operation, fault));
}

fn may_pass(job: &dyn Job, database: &impl KeepingDatabase) -> bool {
    job.fault().is_some_and(|fault| database.may_pass(fault))
}
