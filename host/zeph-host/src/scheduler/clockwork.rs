//! Waits for the next time, and has what is due run: each run by one host, at most a few at once.
//!
//! One timer stands for all schedules: the store is asked for the earliest time through an index. It is asked again after a few seconds at the
//! latest, so a clock that jumps, and what other processes schedule, is noticed; ten thousand schedules that wait cost no more than one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zeph_config::MissedRuns;
use zeph_store::{HostProcess, RunBegin, RunFinish, RunState, Schedule, Store, StoreError};

use super::run;
use super::step::step;
use super::task::Task;
use super::times::Times;
use crate::clock::now_ms;
use crate::host::Host;
use crate::process::{self, Liveness};

/// How long it waits at most before it looks again.
const PERIOD: Duration = Duration::from_secs(5);

/// Runs at one time.
const RUNS_MAX: usize = 4;

/// How long runs may go on when no more are begun.
const GRACE: Duration = Duration::from_secs(10);

/// How long a process holds a run before it has to say so again, where nobody else can look at it.
const HELD_MS: i64 = 10 * 60_000;

/// How often it says so, and looks for runs whose host has ended.
const KEPT_MS: i64 = 60_000;

/// Begins the note of a run that makes up for one of unknown end.
const AGAIN: &str = "again: ";

/// Runs what is scheduled, until it is ended. Nothing where nothing is scheduled.
#[derive(Debug)]
pub(crate) struct Clockwork {
    /// Begins no more runs.
    stop: CancellationToken,
    /// Cancels those that go on.
    cancel: CancellationToken,
    working: JoinSet<()>,
}

impl Clockwork {
    /// Begins to run what is due. To be called within a runtime.
    pub(crate) fn start(host: &Host) -> Self {
        Self::start_after(host, Duration::ZERO)
    }

    /// The same once `delay` is over, for a host that may live for moments only: it would cancel what it began.
    pub(crate) fn start_after(host: &Host, delay: Duration) -> Self {
        let stop = CancellationToken::new();
        let cancel = CancellationToken::new();
        let mut working = JoinSet::new();
        if let Some(room) = host.scheduler() {
            let movement = Movement {
                store: host.store().clone(),
                directory: room.directory.clone(),
                missed: room.missed,
                own: process::own(),
                kept_ms: i64::MIN,
            };
            let news = Arc::clone(&room.news);
            let ends = (stop.clone(), cancel.clone());
            let working_on = work(host.clone(), movement, news, ends);
            let ended = stop.clone();
            working.spawn(async move {
                tokio::select! {
                    biased;
                    () = ended.cancelled() => {}
                    () = tokio::time::sleep(delay) => working_on.await,
                }
            });
        }
        Self {
            stop,
            cancel,
            working,
        }
    }

    /// Begins no more runs, and waits until those that go on have ended; after ten seconds they are cancelled.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(GRACE, self.working.join_next()).await;
        if ended.is_err() {
            self.cancel.cancel();
            drop(self.working.join_next().await);
        }
    }
}

/// What decides what is done at a moment, and records it. Nothing in it waits for a clock.
#[derive(Debug)]
pub(crate) struct Movement {
    pub(crate) store: Store,
    pub(crate) directory: String,
    pub(crate) missed: MissedRuns,
    pub(crate) own: HostProcess,
    /// When it last said that its runs go on.
    pub(crate) kept_ms: i64,
}

/// What is to be run now.
#[derive(Debug)]
pub(crate) struct BegunRun {
    pub(crate) schedule: Schedule,
    pub(crate) run: Uuid,
}

/// What a moment brought.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    pub(crate) begun: Vec<BegunRun>,
    /// When the next time comes, in Unix milliseconds.
    pub(crate) next_ms: Option<i64>,
}

impl Movement {
    /// Begins the runs that are due at `now_ms`, at most `n_free`, and records what passes.
    ///
    /// Errors: [`StoreError`]; what was begun until then is lost to this moment and settled as of unknown end later.
    pub(crate) async fn moment(
        &mut self,
        now_ms: i64,
        n_free: usize,
        may_repeat: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Moment, StoreError> {
        if now_ms.saturating_sub(self.kept_ms).unsigned_abs() >= KEPT_MS.unsigned_abs() {
            self.kept_ms = now_ms;
            self.settle(now_ms, may_repeat).await?;
            let until_ms = now_ms + HELD_MS;
            self.store.keep_runs(self.own.clone(), until_ms).await?;
        }
        let mut begun = Vec::new();
        let directory = || self.directory.clone();
        let next_ms = self.store.next_schedule(directory()).await?;
        if next_ms.is_none_or(|next_ms| next_ms > now_ms) || n_free == 0 {
            return Ok(Moment { begun, next_ms });
        }
        let limit = u32::try_from(n_free).unwrap_or(u32::MAX);
        let due = self.store.due_schedules(directory(), now_ms, limit).await?;
        for schedule in due {
            begun.extend(self.begin(schedule, now_ms).await?);
        }
        let next_ms = self.store.next_schedule(directory()).await?;
        Ok(Moment { begun, next_ms })
    }

    /// Moves one schedule on, with a run or without one. None when nothing runs, also because another host was faster.
    async fn begin(&self, schedule: Schedule, now_ms: i64) -> Result<Option<BegunRun>, StoreError> {
        let Some(due_ms) = schedule.what.next_ms else {
            return Ok(None);
        };
        let Ok(times) = serde_json::from_str::<Times>(&schedule.what.times) else {
            self.give_up(&schedule, due_ms, now_ms).await?;
            return Ok(None);
        };
        let is_held = schedule.held.is_some();
        let mut step = step(&times, (due_ms, now_ms), is_held, self.missed);
        let was_unknown = schedule.last.as_ref().map(|last| last.state) == Some(RunState::Unknown);
        if was_unknown && step.state == RunState::Running {
            step.note = format!("{AGAIN}{}", step.note);
        }
        let runs = step.state == RunState::Running;
        let run = Uuid::now_v7();
        let begin = RunBegin {
            run,
            schedule: schedule.id,
            revision: schedule.revision,
            due_ms,
            next_ms: step.next_ms,
            at_ms: now_ms,
            hold: runs.then(|| (self.own.clone(), now_ms + HELD_MS)),
            state: step.state,
            note: step.note,
        };
        let is_ours = self.store.begin_run(begin).await?;
        Ok((is_ours && runs).then_some(BegunRun { schedule, run }))
    }

    /// A schedule that another program wrote, and this one cannot read, does not come again.
    async fn give_up(
        &self,
        schedule: &Schedule,
        due_ms: i64,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let begin = RunBegin {
            run: Uuid::now_v7(),
            schedule: schedule.id,
            revision: schedule.revision,
            due_ms,
            next_ms: None,
            at_ms: now_ms,
            hold: None,
            state: RunState::Failed,
            note: "its times cannot be read; schedule it again".to_owned(),
        };
        self.store.begin_run(begin).await.map(drop)
    }

    /// Ends the runs whose host has ended over them. One whose tool may be called again is made once more, at once.
    async fn settle(
        &self,
        now_ms: i64,
        may_repeat: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<(), StoreError> {
        for schedule in self.store.held_schedules(self.directory.clone()).await? {
            let Some(held) = &schedule.held else { continue };
            let is_lost = match process::liveness(&held.host) {
                Liveness::Running => false,
                Liveness::Ended => true,
                Liveness::Elsewhere => held.until_ms < now_ms,
            };
            if !is_lost {
                continue;
            }
            let last = schedule.last.as_ref();
            let was_again = last.is_some_and(|last| last.note.starts_with(AGAIN));
            let repeats = !was_again && is_repeatable(&schedule, may_repeat);
            let finish = RunFinish {
                run: held.run,
                state: RunState::Unknown,
                note: match repeats {
                    true => "its host ended over it; it is made again".to_owned(),
                    false => "its host ended over it; nobody knows how far it came, so it is not made again".to_owned(),
                },
                next_ms: repeats.then_some(now_ms),
                at_ms: now_ms,
            };
            self.store.finish_run(finish).await?;
        }
        Ok(())
    }
}

fn is_repeatable(schedule: &Schedule, may_repeat: &(dyn Fn(&str) -> bool + Sync)) -> bool {
    match serde_json::from_str(&schedule.what.work) {
        Ok(Task::Call { tool, .. }) => may_repeat(&tool),
        Ok(Task::Prompt { .. }) | Err(_) => false,
    }
}

async fn work(
    host: Host,
    mut movement: Movement,
    news: Arc<Notify>,
    (stop, cancel): (CancellationToken, CancellationToken),
) {
    let mut runs: JoinSet<()> = JoinSet::new();
    loop {
        while runs.try_join_next().is_some() {}
        let n_free = RUNS_MAX.saturating_sub(runs.len());
        let now = now_ms();
        let may_repeat = |tool: &str| host.may_repeat(tool);
        let wait = match movement.moment(now, n_free, &may_repeat).await {
            Ok(moment) => {
                for begun in moment.begun {
                    runs.spawn(one(host.clone(), begun, cancel.clone()));
                }
                wait(moment.next_ms, now)
            }
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "schedules cannot be read or written"
                );
                PERIOD
            }
        };
        let is_full = runs.len() >= RUNS_MAX;
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            _ended = runs.join_next(), if is_full => {}
            () = news.notified(), if !is_full => {}
            () = tokio::time::sleep(wait), if !is_full => {}
        }
    }
    while runs.join_next().await.is_some() {}
}

fn wait(next_ms: Option<i64>, now_ms: i64) -> Duration {
    let Some(next_ms) = next_ms else {
        return PERIOD;
    };
    let left = u64::try_from(next_ms.saturating_sub(now_ms)).unwrap_or(0);
    Duration::from_millis(left).min(PERIOD)
}

/// Makes one run and records its end.
async fn one(host: Host, begun: BegunRun, stop: CancellationToken) {
    let BegunRun { schedule, run } = begun;
    let was_again = schedule.last.as_ref().map(|last| last.state) == Some(RunState::Unknown);
    // On a task of its own: a failure of the host has to be recorded, too.
    let mut running = JoinSet::new();
    let of_run = host.clone();
    running.spawn(async move { run::run(&of_run, &schedule, run, &stop).await });
    let (state, note) = match running.join_next().await {
        Some(Ok(ended)) => ended,
        Some(Err(_)) | None => (
            RunState::Failed,
            "the host failed while it ran; the log says why".to_owned(),
        ),
    };
    let finish = RunFinish {
        run,
        state,
        note: match was_again {
            true => format!("{AGAIN}{note}"),
            false => note,
        },
        next_ms: None,
        at_ms: now_ms(),
    };
    if let Err(error) = host.store().finish_run(finish).await {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "the end of a scheduled run cannot be recorded"
        );
    }
}

#[cfg(test)]
mod tests;
