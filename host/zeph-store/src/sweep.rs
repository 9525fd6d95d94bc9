//! What the store forgets by itself, and when.
//!
//! The writer thread sweeps between calls, a few rows at a time, so that no call waits for it noticeably. What the time is, is said by the clock
//! of the database where several machines share it, and never by a clock that has just jumped ahead.

use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::store::{Access, Store};

/// Things of each kind that [`Store::sweep`] deletes in one transaction: at first, and where that is quick, at most.
const EACH: (u32, u32) = (64, 256);

/// A transaction that takes less may well delete more: on a server, most of it are journeys.
const QUICK: Duration = Duration::from_millis(10);

const DAY_MS: i64 = 86_400_000;

/// How long a store may lie unused for the clock to be believed at once, in milliseconds: a holiday costs a day of waiting, a clock that is ahead
/// everything.
const PAUSE_MS: i64 = 7 * DAY_MS;

/// Uses of a store in this time before now, in milliseconds, say nothing of the time: the clock that they were noted by may be the one that is
/// ahead.
pub(crate) const UNKNOWN_MS: i64 = DAY_MS;

/// How long things are kept. Zero means without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Stored outputs after they were stored, and conversations that own none after they were last used.
    pub outputs: Duration,
    /// Conversations with an agent that own no stored output, after they were last used.
    pub conversations: Duration,
    /// Audit rows after the begin of their call.
    pub audit: Duration,
    /// Most audit rows; the oldest go first.
    pub audit_rows_max: u64,
}

/// What is past its time. `None` where nothing ever is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    /// Now, in Unix milliseconds.
    pub(crate) now_ms: i64,
    /// The same, but for a clock that may be ahead: what had its time before this moment is past it.
    pub(crate) at_ms: i64,
    /// Outputs stored, and conversations without an agent used, before this moment.
    pub(crate) outputs_ms: Option<i64>,
    /// Conversations with an agent used before this moment.
    pub(crate) conversations_ms: Option<i64>,
    /// Audit rows of calls that began before this moment.
    pub(crate) audit_ms: Option<i64>,
    /// Most audit rows.
    pub(crate) audit_rows_max: Option<i64>,
}

/// What a process knows of the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SweepClock {
    /// Now, by its own clock, in Unix milliseconds.
    pub(crate) now_ms: i64,
    /// For how long it has had the store, which no clock that is set changes.
    pub(crate) up: Duration,
}

/// What the time is for a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SweepTime {
    now_ms: i64,
    at_ms: i64,
}

impl SweepTime {
    /// This moment, whatever is stored.
    fn at(at_ms: i64) -> Self {
        Self {
            now_ms: at_ms,
            at_ms,
        }
    }

    /// The time of a store that was last used at `used_ms`, without what was done in the last day.
    ///
    /// After a pause that is long, the clock may have jumped: for a day in which the store is used, or this process has it, it counts as one
    /// day later than the last use.
    pub(crate) fn after(used_ms: Option<i64>, clock: SweepClock) -> Self {
        let up_ms = i64::try_from(clock.up.as_millis()).unwrap_or(i64::MAX);
        let known_ms = used_ms.map(|used_ms| used_ms.saturating_add(up_ms));
        match known_ms {
            Some(known_ms) if clock.now_ms.saturating_sub(known_ms) > PAUSE_MS => Self {
                now_ms: clock.now_ms,
                at_ms: known_ms.saturating_add(DAY_MS),
            },
            _ => Self::at(clock.now_ms),
        }
    }
}

impl SweepClock {
    /// Uses of the store after this moment say nothing of the time, see [`UNKNOWN_MS`].
    pub(crate) fn known_upto_ms(&self) -> i64 {
        self.now_ms.saturating_sub(UNKNOWN_MS)
    }
}

/// What a sweep deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepReport {
    /// Stored outputs.
    pub n_overflow: usize,
    /// Conversations that owned nothing any more.
    pub n_conversations: usize,
    /// Grants of plugins that had ended.
    pub n_grants: usize,
    /// Requests nobody answered in time, and approvals for once that no call used.
    pub n_approvals: usize,
    /// Audit rows.
    pub n_audit: usize,
    /// Audit rows that were vouched for anew, because older ones went.
    pub n_carried: usize,
    /// Parts of stored outputs that are too long for one row.
    pub n_parts: usize,
}

impl Retention {
    /// Keeps outputs so long, and conversations with an agent and the audit without limit.
    pub fn of_outputs(outputs: Duration) -> Self {
        Self {
            outputs,
            ..Self::default()
        }
    }

    /// What is past its time at exactly this moment.
    pub(crate) fn past_at(&self, at_ms: i64) -> Past {
        self.past(SweepTime::at(at_ms))
    }

    /// What is past its time.
    pub(crate) fn past(&self, SweepTime { now_ms, at_ms }: SweepTime) -> Past {
        let before = |kept: Duration| {
            let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
            (!kept.is_zero()).then(|| at_ms.saturating_sub(kept_ms))
        };
        let rows_max = i64::try_from(self.audit_rows_max).unwrap_or(i64::MAX);
        Past {
            now_ms,
            at_ms,
            outputs_ms: before(self.outputs),
            conversations_ms: before(self.conversations),
            audit_ms: before(self.audit),
            audit_rows_max: (rows_max > 0).then_some(rows_max),
        }
    }
}

impl Past {
    /// The moments before which conversations are past their time, with an agent and without; for those that never are, before all times.
    pub(crate) fn of_conversations(&self) -> (i64, i64) {
        let before = |limit: Option<i64>| limit.unwrap_or(i64::MIN);
        (before(self.conversations_ms), before(self.outputs_ms))
    }
}

impl SweepReport {
    /// Whether it found nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, other: Self) {
        self.n_overflow += other.n_overflow;
        self.n_conversations += other.n_conversations;
        self.n_grants += other.n_grants;
        self.n_approvals += other.n_approvals;
        self.n_audit += other.n_audit;
        self.n_carried += other.n_carried;
        self.n_parts += other.n_parts;
    }
}

impl Store {
    /// Deletes everything that `retention` does not keep at `at_ms`, with what has ended by itself: requests, approvals for once and
    /// grants. Rows of calls without an end are kept for a day at least.
    ///
    /// It works in short transactions, so calls go on meanwhile. The file does not shrink: later entries reuse the space.
    ///
    /// Errors: what the database says; what was deleted before stays deleted.
    pub async fn sweep(&self, retention: Retention, at_ms: i64) -> Result<SweepReport, StoreError> {
        self.sweep_all(retention.past_at(at_ms)).await
    }

    /// The same now: by the clock of the database where several machines share it, else by `now_ms`. A clock that has just jumped ahead counts
    /// for nothing.
    ///
    /// Errors: as [`sweep`](Self::sweep).
    pub async fn sweep_now(
        &self,
        retention: Retention,
        now_ms: i64,
    ) -> Result<SweepReport, StoreError> {
        let clock = SweepClock {
            now_ms,
            up: Duration::ZERO,
        };
        let time = self.run("read the time", Access::Read, move |operations| {
            operations.sweep_time(clock)
        });
        self.sweep_all(retention.past(time.await?)).await
    }

    async fn sweep_all(&self, past: Past) -> Result<SweepReport, StoreError> {
        let mut swept = SweepReport::default();
        let mut n_each = EACH.0;
        loop {
            let started = Instant::now();
            let step = self
                .run("sweep the store", Access::Write, move |operations| {
                    operations.sweep(&past, n_each)
                })
                .await?;
            if step.is_nothing() {
                return Ok(swept);
            }
            swept.add(step);
            n_each = match started.elapsed() < QUICK {
                true => (2 * n_each).min(EACH.1),
                false => (n_each / 2).max(EACH.0),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{DAY_MS, Retention, SweepClock, SweepTime};

    /// Days after the last use by the clock, days that the process runs, and the day that counts.
    fn check(days: i64, n_days_up: u32, expected: i64) {
        let (used_ms, day) = (400 * DAY_MS, Duration::from_hours(24));
        let clock = SweepClock {
            now_ms: used_ms + days * DAY_MS,
            up: day * n_days_up,
        };
        let time = SweepTime::after(Some(used_ms), clock);
        let past = Retention::of_outputs(day).past(time);
        let counted = (past.at_ms - used_ms) / DAY_MS;
        assert_eq!(counted, expected, "{days} days, {n_days_up} of them up");
        assert_eq!(past.now_ms, clock.now_ms);
    }

    #[test]
    fn a_clock_that_jumped_counts_when_the_store_was_used_by_it() {
        check(1, 0, 1);
        check(7, 0, 7);
        check(8, 0, 1);
        check(1_000, 0, 1);
        // Who has had it for as long knows better.
        check(30, 30, 30);
        check(30, 10, 11);
        check(-3, 0, -3);
        let clock = SweepClock {
            now_ms: DAY_MS,
            up: Duration::ZERO,
        };
        assert_eq!(SweepTime::after(None, clock), SweepTime::at(DAY_MS));
        assert_eq!(clock.known_upto_ms(), 0);
    }
}
