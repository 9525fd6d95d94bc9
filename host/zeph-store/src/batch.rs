//! The jobs that a writer thread runs in one transaction, whatever the database.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::store::{Access, Job, Message};

/// Most jobs in one transaction. It bounds how long the first of them waits for the last.
pub(crate) const BATCH_JOBS_MAX: usize = 128;

/// How long what may wait does: the end of a call and the begin of the next then cost one transaction.
const SOON: Duration = Duration::from_millis(5);

/// What was taken from the queue and not run yet.
#[derive(Default)]
pub(crate) struct Batch {
    jobs: Vec<Box<dyn Job>>,
    run_at: Option<Instant>,
}

impl Batch {
    pub(crate) fn push(&mut self, job: Box<dyn Job>) {
        self.jobs.push(job);
    }

    /// Whether all of it may wait for more, until a moment that is set.
    pub(crate) fn is_waiting(&self) -> bool {
        self.run_at.is_some()
    }

    /// Waits for messages until the batch has to run, or until `wake_at` while no batch waits. Returns how many came, 0 when no more can
    /// come; `None` when the time is up.
    pub(crate) async fn receive(
        &self,
        queue: &mut mpsc::Receiver<Message>,
        messages: &mut Vec<Message>,
        wake_at: Option<Instant>,
    ) -> Option<usize> {
        let received = queue.recv_many(messages, BATCH_JOBS_MAX);
        match self.run_at.or(wake_at) {
            Some(at) => timeout_at(at, received).await.ok(),
            None => Some(received.await),
        }
    }

    /// Whether nothing in it is waited for; sets the moment until which it may wait.
    pub(crate) fn can_wait(&mut self) -> bool {
        let mut accesses = self.jobs.iter().map(|job| job.access());
        let can_wait =
            self.jobs.len() < BATCH_JOBS_MAX && accesses.all(|access| access == Access::WriteSoon);
        if can_wait && !self.jobs.is_empty() {
            self.run_at.get_or_insert_with(|| Instant::now() + SOON);
        }
        can_wait
    }

    /// The jobs, to be run now.
    pub(crate) fn take(&mut self) -> Vec<Box<dyn Job>> {
        self.run_at = None;
        std::mem::take(&mut self.jobs)
    }

    /// Gives back the room of jobs that are answered.
    pub(crate) fn reuse(&mut self, mut answered: Vec<Box<dyn Job>>) {
        answered.clear();
        if self.jobs.is_empty() {
            self.jobs = answered;
        }
    }
}
