//! Holds the tasks of a server, hears what has come for them, and looks for tasks that nobody holds any more.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::Instant;
use zeph_store::{LongTaskClaim, StoreError};

use super::again::right;
use super::{LEASE, Tasks, failed};
use crate::admission::Tokens;
use crate::clock::now_ms;
use crate::process::{self, Liveness};
use crate::serve::{Shared, TakesOver};

/// How often a server says that its tasks go on. Owners who ask another server wait so long until they are heard.
const KEEP_PERIOD: Duration = Duration::from_secs(2);

/// How often it looks for tasks that nobody holds.
const CLAIM_PERIOD: Duration = Duration::from_secs(3);

/// How much longer servers that cannot make a call again leave it to those that can.
const ELSEWHERE_AFTER: Duration = Duration::from_secs(20);

/// How much later than usual it may look again, by the clock of the machine. Beyond that the machine slept, the clock was set, or this process
/// stood still: so may others have.
const LATE_MS_MAX: i64 = 10_000;

/// Tasks taken over at one time.
const CLAIMS_MAX: u32 = 8;

/// Keeps the tasks of a server as long as there is one, and looks for those that nobody keeps.
pub(in crate::serve) async fn keep(shared: Weak<Shared>) {
    let Some(tasks) = ready(&shared).await else {
        return;
    };
    let mut claim_at = Instant::now();
    let mut is_away = false;
    let mut looked_ms = now_ms();
    loop {
        let kept = tasks.keep().await;
        let was_away = std::mem::replace(&mut is_away, kept.is_err());
        if let Err(error) = kept {
            // Once, however long that lasts.
            if !was_away {
                failed(&error, "tasks cannot be kept");
            }
        }
        let is_late = is_late(&mut looked_ms, now_ms());
        if is_away || is_late {
            // Nobody could say meanwhile that its tasks go on: all get the time for it.
            claim_at = Instant::now() + LEASE;
        }
        if Instant::now() >= claim_at {
            claim_at = Instant::now() + CLAIM_PERIOD;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if tasks.take_over(&shared).await.is_err() {
                claim_at = Instant::now() + LEASE;
            }
        }
        tokio::select! {
            () = tasks.0.news.notified() => {}
            () = tokio::time::sleep(KEEP_PERIOD) => {}
        }
        if shared.strong_count() == 0 {
            return;
        }
    }
}

/// Whether it looks again at `now_ms` and should have long before.
fn is_late(looked_ms: &mut i64, now_ms: i64) -> bool {
    let before_ms = std::mem::replace(looked_ms, now_ms);
    now_ms.saturating_sub(before_ms) > LATE_MS_MAX
}

/// The tasks of a server, once it is made.
async fn ready(shared: &Weak<Shared>) -> Option<Tasks> {
    // Its server is made at this moment, and holds nothing yet.
    tokio::time::sleep(KEEP_PERIOD).await;
    Some(shared.upgrade()?.tasks.clone())
}

impl Tasks {
    /// Says that the tasks of this server go on, and hears what has come for them.
    pub(super) async fn keep(&self) -> Result<(), StoreError> {
        let held: Vec<_> = self.held().values().cloned().collect();
        if held.is_empty() {
            return Ok(());
        }
        let holds = held.iter().map(|held| held.hold).collect();
        let mut kept = self.0.store.keep_long_tasks(holds, LEASE).await?;
        for held in held {
            let news = kept.iter().position(|news| news.task == held.hold.task);
            match news.map(|at| kept.swap_remove(at)) {
                Some(news) => held.hear(news),
                // It may have ended between reading and asking; then nobody listens.
                None => held.lost.cancel(),
            }
        }
        Ok(())
    }

    /// Takes over what nobody holds, unless this server ends.
    async fn take_over(&self, shared: &std::sync::Arc<Shared>) -> Result<(), StoreError> {
        if shared.closing.is_cancelled() || shared.holdings.is_ending() {
            return Ok(());
        }
        let takes_over = shared.takes_over();
        let repeats = takes_over == TakesOver::Repeats;
        let claim = LongTaskClaim {
            host: self.0.host.clone(),
            // A replica makes the call of one that says nothing again, whatever has stopped that; who can only end a task has to know.
            runs: match repeats {
                true => |_| false,
                false => |host| process::liveness(host) == Liveness::Running,
            },
            workspace: self.0.workspace.clone(),
            lease: LEASE,
            repeats,
            elsewhere_after: match takes_over {
                TakesOver::LeavesRepeats => Duration::MAX,
                TakesOver::Repeats | TakesOver::Settles => ELSEWHERE_AFTER,
            },
            limit: CLAIMS_MAX,
        };
        // Before anything is claimed: what is claimed is made again or ended, and that a read failed for a moment ends nothing.
        let tokens = Tokens::read(&self.0.store, shared.host.door()).await;
        let tokens = tokens.inspect_err(|error| failed(error, "tokens cannot be read"))?;
        let claimed = self.0.store.claim_long_tasks(claim).await;
        let claimed = claimed.inspect_err(|error| failed(error, "tasks cannot be taken over"))?;
        for task in claimed {
            tracing::warn!(task = %task.id, "the server of a task has ended over it; it is taken over");
            let held = self.holds(&task, right(shared, &task));
            let admission = tokens.admit(&task.owner.caller);
            self.again(shared, (&task, admission), held);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{KEEP_PERIOD, LATE_MS_MAX, LEASE, is_late};

    #[test]
    fn a_server_that_slept_or_whose_clock_was_set_is_late_once() {
        let mut looked_ms = 0;
        let looks = [
            (2_000, false),
            (12_001, true),
            (14_001, false),
            (5_000, false),
            (7_000, false),
            (25_000, true),
        ];
        for (now_ms, expect) in looks {
            assert_eq!(is_late(&mut looked_ms, now_ms), expect, "{now_ms}");
        }
        // What others held stays held for as long as it goes unnoticed that time has passed.
        let unnoticed = Duration::from_millis(LATE_MS_MAX.unsigned_abs());
        assert!(KEEP_PERIOD + unnoticed < LEASE);
    }
}
