//! Jobs that are kept while the server is away, and run when it is back: the ends of calls that began before.

use std::time::{Duration, Instant};

use super::fault::Trouble;
use super::transaction::{Transaction, trouble_of};
use super::writer::run_batch;
use crate::batch::BATCH_JOBS_MAX;
use crate::store::Job;

/// Most that are kept. No call begins while the server is away: there are no more than calls that ran when it went.
const KEPT_JOBS_MAX: usize = 4096;

/// How long after a failure they are tried again. A connection that cannot be made is tried less often by itself.
const RETRY: Duration = Duration::from_secs(1);

/// How long they are tried.
const KEEP: Duration = Duration::from_secs(60 * 60);

/// What is kept, and since when.
#[derive(Default)]
pub(super) struct KeptJobs {
    jobs: Vec<Box<dyn Job>>,
    since: Option<Instant>,
    retry_at: Option<Instant>,
}

impl KeptJobs {
    /// When the next try is due; none while nothing is kept.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    pub(super) fn are_due(&self) -> bool {
        self.retry_at.is_some_and(|at| at <= Instant::now())
    }

    /// Keeps a job that failed because the server is away and may run later; its caller is told that it failed. Any other is given back.
    pub(super) fn keep(
        &mut self,
        mut job: Box<dyn Job>,
        transaction: &Transaction,
    ) -> Option<Box<dyn Job>> {
        if !is_away(job.as_ref()) || !job.may_run_later() || self.jobs.len() >= KEPT_JOBS_MAX {
            return Some(job);
        }
        job.let_caller_go(&|operation, fault| transaction.site().told(operation, fault));
        self.jobs.push(job);
        let now = Instant::now();
        if self.since.is_none() {
            tracing::warn!(
                "the server of the store is away: the ends of calls are kept until it is back"
            );
        }
        self.since.get_or_insert(now);
        self.retry_at.get_or_insert(now + RETRY);
        None
    }

    /// Tries some of them again.
    pub(super) fn retry(&mut self, transaction: &Transaction) {
        let is_over = self.since.is_some_and(|since| since.elapsed() > KEEP);
        let n = self.jobs.len().min(BATCH_JOBS_MAX);
        let mut jobs: Vec<_> = self.jobs.drain(..n).collect();
        run_batch(transaction, &mut jobs);
        let (away, done): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|job| is_away(job.as_ref()) && !is_over);
        done.into_iter()
            .for_each(|job| transaction.site().answer(job));
        let pause = match away.is_empty() {
            true => Duration::ZERO,
            false => RETRY,
        };
        self.jobs.extend(away);
        self.retry_at = (!self.jobs.is_empty()).then(|| Instant::now() + pause);
        if self.jobs.is_empty() {
            tracing::info!("no end of a call waits to be recorded any more");
            self.since = None;
        }
    }

    /// Tries all of them for the last time.
    pub(super) fn close(self, transaction: &Transaction) {
        let mut jobs = self.jobs;
        if !jobs.is_empty() {
            run_batch(transaction, &mut jobs);
        }
        jobs.into_iter()
            .for_each(|job| transaction.site().answer(job));
    }
}

fn is_away(job: &dyn Job) -> bool {
    job.fault()
        .is_some_and(|fault| trouble_of(fault) == Trouble::Lost)
}
