//! Sweeping between calls: a few rows at a time, so few that a call which comes meanwhile does not notice.

use std::time::{Duration, Instant};

use crate::operations::Outcome;
use crate::store::Clock;
use crate::sweep::{Retention, SweepClock, SweepReport};

/// How long nothing is asked of the store before it sweeps.
const IDLE: Duration = Duration::from_millis(20);

/// How long it looks for nothing once it found nothing.
const REST: Duration = Duration::from_secs(3_600);

/// Writes after which it looks again, and does so between two calls when there never is a pause.
const WRITES: usize = 1_024;

/// A step takes less, in a file: half of what a call may wait for it.
const STEP_MAX: Duration = Duration::from_micros(500);

/// A step takes less, on a server: some journeys there and one write of its log.
pub(crate) const STEP_MAX_FAR: Duration = Duration::from_millis(20);

/// Things of each kind that the first step deletes, and the most that any does.
const EACH: (u32, u32) = (8, 256);

/// What a sweeper sweeps.
pub(crate) trait SweptDatabase {
    /// How long a step may take.
    fn step_max(&self) -> Duration {
        STEP_MAX
    }

    /// Deletes up to `n_max` things of each kind that `retention` does not keep, in a transaction of its own.
    fn sweep_some(
        &self,
        retention: &Retention,
        clock: SweepClock,
        n_max: u32,
    ) -> Outcome<SweepReport>;
}

/// What is swept, and when the next step is.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    /// With when it began.
    plan: Option<(Retention, Clock, Instant)>,
    /// None: never.
    next: Option<Instant>,
    n_each: u32,
    n_writes: usize,
    /// Writes since the last step.
    n_since: usize,
    /// Whether that step deleted anything.
    has_more: bool,
    /// Whether there was a step.
    has_stepped: bool,
}

impl Sweeper {
    /// Sweeps by `retention` from now on.
    pub(crate) fn start(&mut self, retention: Retention, clock: Clock) {
        self.plan = Some((retention, clock, Instant::now()));
        self.n_each = EACH.0;
        self.has_stepped = false;
        self.next = Some(Instant::now() + IDLE);
    }

    /// When the thread has to wake up for a step.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.next
    }

    /// Notes committed writes. Returns whether a step is due, because there were many and no pause.
    pub(crate) fn count(&mut self, n_writes: usize) -> bool {
        if self.plan.is_none() {
            return false;
        }
        let now = Instant::now();
        self.n_writes += n_writes;
        self.n_since += n_writes;
        let is_due = self.n_writes >= WRITES;
        self.next = match is_due {
            true => Some(now),
            // Not before a pause.
            false => self.next.map(|next| next.max(now + IDLE)),
        };
        is_due
    }

    /// Deletes a few things; the next step follows when there were any. Once there were, as many go at least as were written since: where many
    /// calls share a transaction, there are more between two steps than one step has time for.
    pub(crate) fn step(&mut self, database: &dyn SweptDatabase) {
        let started = Instant::now();
        self.has_stepped = true;
        let n_since = std::mem::take(&mut self.n_since);
        let n_least = u32::try_from(n_since).map_or(EACH.1, |n| n.min(EACH.1));
        let n_max = match self.has_more {
            true => self.n_each.max(n_least),
            false => self.n_each,
        };
        let swept = self.sweep(database, n_max).unwrap_or_else(|fault| {
            tracing::warn!(?fault, "the store cannot be swept");
            SweepReport::default()
        });
        let took = started.elapsed();
        let (least, most) = (1, EACH.1);
        let step_max = database.step_max();
        self.n_each = match took > step_max {
            true => self.n_each / 2,
            false if took < step_max / 4 => self.n_each.saturating_mul(2),
            false => self.n_each,
        }
        .clamp(least, most);
        self.has_more = !swept.is_nothing();
        if !self.has_more {
            self.n_writes = 0;
            self.next = Some(started + REST);
        } else {
            // Without a pause, the next step comes when calls have written a fraction of what this one may have deleted.
            self.n_writes = WRITES.saturating_sub(self.n_each as usize / 4);
            self.next = Some(started + took + IDLE / 10);
        }
    }

    /// The one step of hosts that end before there was a pause.
    pub(crate) fn close(&mut self, database: &dyn SweptDatabase) {
        if self.next.is_some() && !self.has_stepped {
            self.step(database);
        }
    }

    fn sweep(&self, database: &dyn SweptDatabase, n_max: u32) -> Outcome<SweepReport> {
        let Some((retention, now_ms, began)) = self.plan else {
            return Ok(SweepReport::default());
        };
        let clock = SweepClock {
            now_ms: now_ms(),
            up: began.elapsed(),
        };
        database.sweep_some(&retention, clock, n_max)
    }
}
