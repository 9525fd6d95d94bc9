//! What becomes of a time that has come: a run, or none. Pure.

use zeph_config::MissedRuns;
use zeph_store::RunState;

use super::times::Times;

/// What came longer before a host was there was missed.
pub(super) const LATE_MS: i64 = 60_000;

/// How far ahead of now a clock must have been that wrote a schedule, so that its next time is found anew. A clock that is set back by less
/// runs nothing twice.
const AHEAD_MS: i64 = 2 * 86_400_000;

/// Most times that passed which are made up for one by one.
const MADE_UP_MAX: usize = 100;

/// What becomes of it, and when its schedule comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// [`RunState::Running`], or why nothing runs.
    pub(crate) state: RunState,
    /// When next.
    pub(crate) next_ms: Option<i64>,
    /// What to know of it.
    pub(crate) note: String,
}

/// The moment before which times that were missed wait while a run goes on: where each is made up for, none is refused for the one before.
pub(crate) fn waiting_ms(missed: MissedRuns, now_ms: i64) -> Option<i64> {
    (missed == MissedRuns::RunAll).then(|| now_ms.saturating_sub(LATE_MS))
}

/// The next time of a schedule that was written at `at_ms` to come at `next_ms`, where that was by a clock that was ahead; else none.
pub(crate) fn corrected(times: &Times, (at_ms, next_ms): (i64, i64), now_ms: i64) -> Option<i64> {
    let was_ahead = at_ms.saturating_sub(now_ms) > AHEAD_MS;
    if !was_ahead || matches!(times, Times::Once { .. }) {
        return None;
    }
    times.next(now_ms).filter(|right_ms| *right_ms < next_ms)
}

/// What becomes of the time `due_ms` of a schedule, now; `is_held` says that its last run goes on.
pub(crate) fn step(
    times: &Times,
    (due_ms, since_ms, now_ms): (i64, i64, i64),
    is_held: bool,
    missed: MissedRuns,
) -> Step {
    let after = due_ms.max(now_ms);
    let pass = |state, note: &str| Step {
        state,
        next_ms: times.next(after),
        note: note.to_owned(),
    };
    if is_held {
        return pass(
            RunState::Overlapped,
            "the run before had not ended; this one was refused",
        );
    }
    let run = |next_ms, note: &str| Step {
        state: RunState::Running,
        next_ms,
        note: note.to_owned(),
    };
    // What this host saw come waited for a place among the runs.
    let is_late = since_ms.saturating_sub(due_ms) > LATE_MS;
    match (is_late, missed) {
        (false, MissedRuns::RunOnce | MissedRuns::Skip) => run(times.next(after), ""),
        (true, MissedRuns::Skip) => pass(
            RunState::Missed,
            "no host ran at that time (`tools.scheduler.missed = \"skip\"`)",
        ),
        (true, MissedRuns::RunOnce) => {
            run(times.next(after), "made up for: no host ran at that time")
        }
        (_, MissedRuns::RunAll) => made_up(times, (due_ms, now_ms), is_late),
    }
}

/// Each time that passed has its run, but for those before the last hundred.
fn made_up(times: &Times, (due_ms, now_ms): (i64, i64), is_late: bool) -> Step {
    let waiting = times.last((due_ms, now_ms), MADE_UP_MAX);
    if waiting.len() == MADE_UP_MAX {
        return Step {
            state: RunState::Missed,
            next_ms: waiting.first().copied(),
            note: format!("only the last {MADE_UP_MAX} times that passed are made up for"),
        };
    }
    let note = match is_late {
        true => "made up for: no host ran at that time",
        false => "",
    };
    Step {
        state: RunState::Running,
        next_ms: times.next(due_ms),
        note: note.to_owned(),
    }
}

#[cfg(test)]
mod tests;
