//! What the store forgets by itself, and when.
//!
//! The writer thread sweeps between calls, a few rows at a time, so that no call waits for it noticeably.

use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::store::{Access, Store};

/// Things of each kind that [`Store::sweep`] deletes in one transaction: at first, and where that is quick, at most.
const EACH: (u32, u32) = (64, 256);

/// A transaction that takes less may well delete more: on a server, most of it are journeys.
const QUICK: Duration = Duration::from_millis(10);

/// How long things are kept. Zero means without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Stored outputs after they were stored, and conversations that own none after they were last used.
    pub outputs: Duration,
    /// Audit rows after the begin of their call.
    pub audit: Duration,
    /// Most audit rows; the oldest go first.
    pub audit_rows_max: u64,
}

/// What is past its time. `None` where nothing ever is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    /// Now, in Unix milliseconds.
    pub(crate) at_ms: i64,
    /// Outputs stored, and conversations used, before this moment.
    pub(crate) outputs_ms: Option<i64>,
    /// Audit rows of calls that began before this moment.
    pub(crate) audit_ms: Option<i64>,
    /// Most audit rows.
    pub(crate) audit_rows_max: Option<i64>,
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
    /// Keeps outputs so long and the audit without limit.
    pub fn of_outputs(outputs: Duration) -> Self {
        Self {
            outputs,
            ..Self::default()
        }
    }

    pub(crate) fn past(&self, at_ms: i64) -> Past {
        let before = |kept: Duration| {
            let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
            (!kept.is_zero()).then(|| at_ms.saturating_sub(kept_ms))
        };
        let rows_max = i64::try_from(self.audit_rows_max).unwrap_or(i64::MAX);
        Past {
            at_ms,
            outputs_ms: before(self.outputs),
            audit_ms: before(self.audit),
            audit_rows_max: (rows_max > 0).then_some(rows_max),
        }
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
        let past = retention.past(at_ms);
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
