//! The jobs that a writer thread runs in one transaction, whatever the database.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::timeout_at;

use crate::store::{Access, Job, Message};

/// Most jobs in one transaction. It bounds how long the first of them waits for the last.
pub(crate) const BATCH_JOBS_MAX: usize = 128;

/// Most jobs that a caller does besides its own.
const BRIEF_JOBS_MAX: usize = 16;

/// What was taken from the queue and not run yet.
pub(crate) struct Batch {
    jobs: Vec<Box<dyn Job>>,
    run_at: Option<Instant>,
    /// How long what may wait does once it is taken from the queue.
    soon: Duration,
}

impl Batch {
    /// An empty one. What may wait does for `soon`: it shares the transaction of what comes until then.
    pub(crate) fn new(soon: Duration) -> Self {
        Self {
            jobs: Vec::new(),
            run_at: None,
            soon,
        }
    }

    pub(crate) fn push(&mut self, job: Box<dyn Job>) {
        self.jobs.push(job);
    }

    /// Whether all of it may wait for more, until a moment that is set.
    pub(crate) fn is_waiting(&self) -> bool {
        self.run_at.is_some()
    }

    /// Until when it may wait, once that is set.
    pub(crate) fn run_at(&self) -> Option<Instant> {
        self.run_at
    }

    /// Whether one transaction holds more.
    pub(crate) fn has_room(&self) -> bool {
        self.jobs.len() < BATCH_JOBS_MAX
    }

    /// Whether all of it takes microseconds.
    pub(crate) fn is_brief(&self) -> bool {
        self.jobs.len() <= BRIEF_JOBS_MAX && self.jobs.iter().all(|job| job.access().is_brief())
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
            Some(at) => timeout_at(at.into(), received).await.ok(),
            None => Some(received.await),
        }
    }

    /// Whether nothing in it is waited for; sets the moment until which it may wait.
    pub(crate) fn can_wait(&mut self) -> bool {
        let mut accesses = self.jobs.iter().map(|job| job.access());
        let can_wait = self.has_room() && accesses.all(|access| access == Access::WriteSoon);
        if can_wait && !self.jobs.is_empty() {
            self.run_at
                .get_or_insert_with(|| Instant::now() + self.soon);
        }
        can_wait
    }

    /// The reads of rights before which nothing stands that may change a right.
    pub(crate) fn take_reads_of_rights(&mut self) -> Vec<Box<dyn Job>> {
        let mut accesses = self.jobs.iter().map(|job| job.access());
        let n_before = accesses.position(Access::changes_rights);
        let is_one = |job: &mut Box<dyn Job>| job.access() == Access::ReadRights;
        let before = ..n_before.unwrap_or(self.jobs.len());
        self.jobs.extract_if(before, is_one).collect()
    }

    /// The jobs, to be run now.
    pub(crate) fn take(&mut self) -> Vec<Box<dyn Job>> {
        self.run_at = None;
        std::mem::take(&mut self.jobs)
    }

    /// Gives back jobs that were taken and not run.
    pub(crate) fn put_back(&mut self, jobs: Vec<Box<dyn Job>>) {
        self.jobs = jobs;
    }

    /// Gives back the room of jobs that are answered.
    pub(crate) fn reuse(&mut self, mut answered: Vec<Box<dyn Job>>) {
        answered.clear();
        if self.jobs.is_empty() {
            self.jobs = answered;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::Batch;
    use crate::operations::Operations;
    use crate::store::Access::{self, Read, ReadRights, Write, WriteBriefly, WriteSoon};
    use crate::store::{StoreReply, Task};

    fn check(accesses: &[Access], expect_n_reads: usize) {
        let mut batch = Batch::new(Duration::ZERO);
        for access in accesses {
            let reply = StoreReply::Waiting(oneshot::channel().0);
            let work = |_: &dyn Operations| Ok(());
            batch.push(Box::new(Task::new("test", *access, work, reply)));
        }
        let reads = batch.take_reads_of_rights();
        assert_eq!(reads.len(), expect_n_reads, "{accesses:?}");
        assert_eq!(batch.jobs.len(), accesses.len() - expect_n_reads);
    }

    #[test]
    fn no_read_of_rights_overtakes_what_may_change_them() {
        check(&[ReadRights, WriteSoon, ReadRights, Read, ReadRights], 3);
        check(&[ReadRights, WriteBriefly, ReadRights], 1);
        check(&[WriteSoon, Write, ReadRights], 0);
    }
}
