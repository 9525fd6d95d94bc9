//! When a call that failed for a moment is made again, within stage 4 of the line.
//!
//! Only a failure that the guest itself reports is worth another try, of a tool that says a repeated call changes nothing more, and
//! of a kind that passes: too many requests, a fault of a server, of the network, a time that ran out over there. The waits grow and are
//! partly random, so that many callers do not come back at once; a wait that the other side asked for is kept. A quota counts the
//! call once, and the audit says how often it was made.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;
use zeph_config::RetryConfig;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::tool::Annotations;
use zeph_engine::{Cancel, Listener};

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Attempts {
    waits: ExponentialBackoff,
    n_made: u32,
    n_max: u32,
    /// When the attempt that is made now began.
    begun: Instant,
    /// When the call has to be over.
    deadline: Instant,
    /// When it is not begun anew any more.
    last_begin: Instant,
}

impl Attempts {
    /// Of a call of a tool that promises `promises`, which begins `now` and may take `time`.
    pub(crate) fn new(
        config: &RetryConfig,
        promises: Annotations,
        time: Duration,
        now: Instant,
    ) -> Self {
        let n_max = match promises.idempotent {
            true => config.attempts_max,
            false => 1,
        };
        let waits = ExponentialBuilder::new()
            .with_min_delay(config.base)
            .with_max_delay(config.longest.max(config.base))
            .with_factor(2.0)
            .without_max_times()
            .with_jitter()
            .with_jitter_seed(RandomState::new().hash_one(n_max));
        let deadline = now + time;
        let budget_end = config.budget.map_or(deadline, |budget| now + budget);
        Self {
            waits: waits.build(),
            n_made: 1,
            n_max,
            begun: now,
            deadline,
            last_begin: deadline.min(budget_end),
        }
    }

    /// How long to wait from `now` on before the call is made again after `failure`; none when that was the last attempt. One that takes as
    /// long as the last has to fit in the time that is left: it would end by that, and hide what the last one said.
    pub(crate) fn wait_after(&mut self, failure: &ToolFailure, now: Instant) -> Option<Duration> {
        if self.n_made >= self.n_max || !failure.category.is_retryable() {
            return None;
        }
        let asked_for = Duration::from_millis(failure.retry_after_ms.unwrap_or(0));
        let wait = self.waits.next()?.max(asked_for);
        let took = now.saturating_duration_since(self.begun);
        let begin = now + wait;
        (begin < self.last_begin && begin + took < self.deadline).then(|| {
            self.n_made += 1;
            self.begun = begin;
            wait
        })
    }

    /// When the attempt that is made next has to be over; the first has all the time there is.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (self.n_made > 1).then_some(self.deadline)
    }

    /// How often the call was made, when more than once.
    pub(crate) fn repeated(&self) -> Option<u32> {
        (self.n_made > 1).then_some(self.n_made)
    }

    /// What a model should know of a failure after all.
    pub(crate) fn note(&self) -> Option<String> {
        self.repeated()
            .map(|n| format!("the system made the call {n} times"))
    }

    /// Waits, and tells the listener of the call why.
    ///
    /// Errors: the call is cancelled meanwhile; then it is over at once.
    pub(crate) async fn pause(
        &self,
        wait: Duration,
        failure: &ToolFailure,
        (cancel, listener): (&Cancel, Option<&Listener>),
    ) -> Result<(), ToolFailure> {
        if let Some(listener) = listener {
            let (n_failed, n_max) = (self.n_made - 1, self.n_max);
            let category = failure.category;
            let seconds = wait.as_secs_f64();
            let message = format!(
                "attempt {n_failed} of {n_max} failed ({category}); the system will retry in {seconds:.1} s"
            );
            listener.report(message, (None, None));
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ToolFailure::new(
                ErrorCategory::Cancelled,
                ErrorPhase::Execution,
                "the call was cancelled before it was made again",
            )),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
