//! Waits for the next time, and has what is due run: each run by one host, at most a few at once, and of these each caller a share.
//!
//! One timer stands for all schedules: the store is asked for the earliest time through an index. It is asked again after a few seconds at the
//! latest, so a clock that jumps, and what other processes schedule, is noticed; ten thousand schedules that wait cost no more than one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zeph_config::MissedRuns;
use zeph_mcp::door::OpenDoor;
use zeph_store::{
    HostProcess, Owner, RunBegin, RunFence, RunFinish, RunHold, RunState, Schedule, ScheduleClaim,
    Store, StoreError,
};

use super::live::LiveRun;
use super::places::{RUNS_MAX, RunPlaces};
use super::run;
use super::step::{LATE_MS, corrected, step, waiting_ms};
use super::task::Task;
use super::times::Times;
use crate::admission::{Admission, Tokens};
use crate::clock::now_ms;
use crate::host::Host;
use crate::process::{self, Liveness};

/// How long it waits at most before it looks again.
const PERIOD: Duration = Duration::from_secs(5);

/// How long runs may go on when no more are begun.
const GRACE: Duration = Duration::from_secs(10);

/// How long a process holds a run before it has to say so again, where nobody else can look at it.
const HELD: Duration = Duration::from_secs(60);

/// How long it has for beginning what it claimed.
const CLAIMED: Duration = Duration::from_secs(10);

/// How often it says that its runs go on, and looks for runs whose host has ended.
const KEPT_MS: i64 = 15_000;
const KEEP_PERIOD: Duration = Duration::from_millis(KEPT_MS.unsigned_abs());

/// How long it waits at least when what is due cannot be had: another host has it, or the clock of the database is behind.
const REST_MS: i64 = 1_000;

/// How often the end of a run is written until it is there, and how long after the last time.
const END_TRIES: u32 = 60;
const END_WAIT: Duration = Duration::from_secs(1);

/// Schedules that are looked at for a clock that was ahead: all there may be.
const SCHEDULES_MAX: u32 = super::BOUNDS.in_all;

/// What is noted of a schedule whose caller is let in no more.
const REVOKED: &str =
    "the token it was made with was revoked or has expired; it does not come again";
const SHUT_OUT: &str = "it was made without a token, and without one nobody is let in any more; it does not come again";

/// Begins the note of a run that makes up for one of unknown end, and ends the note of that one.
const AGAIN: &str = "again: ";
const IS_REPEATED: &str = "it is made again";

/// Whether a tool may be called again; none as long as nobody knows the tool, because its plugin or its server is not there yet.
type MayRepeat<'a> = &'a (dyn Fn(&str) -> Option<bool> + Sync);

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
                door: Arc::clone(host.door()),
                directory: room.directory.clone(),
                missed: room.missed,
                own: process::own(),
                lease: HELD,
                kept_ms: i64::MIN,
                looked_ms: i64::MIN,
                since_ms: i64::MIN,
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

    /// To be cancelled by a door that takes no more calls: no more runs are begun from then on.
    pub(crate) fn draining(&self) -> &CancellationToken {
        &self.stop
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
    /// Whether anonymous clients are let in. Without an endpoint their schedules are left to hosts that have one.
    pub(crate) door: Arc<OpenDoor>,
    pub(crate) directory: String,
    pub(crate) missed: MissedRuns,
    pub(crate) own: HostProcess,
    /// How long it holds a run before it has to say so again.
    pub(crate) lease: Duration,
    /// When it last said that its runs go on.
    pub(crate) kept_ms: i64,
    /// When it looked last for what is due, and since when it has done so without a pause.
    pub(crate) looked_ms: i64,
    pub(crate) since_ms: i64,
}

/// What is to be run now.
#[derive(Debug)]
pub(crate) struct BegunRun {
    pub(crate) schedule: Schedule,
    pub(crate) fence: RunFence,
    /// What its caller may do.
    pub(crate) admission: Admission,
    /// Says that it goes on.
    pub(crate) live: LiveRun,
    /// Whether it makes up for a run of unknown end.
    pub(crate) is_again: bool,
}

/// What a moment brought.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    pub(crate) begun: Vec<BegunRun>,
    /// Of the runs that go on, those that are another host's now, or whose caller is let in no more.
    pub(crate) lost: Vec<Uuid>,
    /// When the next time comes, in Unix milliseconds.
    pub(crate) next_ms: Option<i64>,
}

impl Moment {
    /// The moment after a look that may have failed on its way. What was begun has to be made, and what was lost to be ended; the rest comes
    /// with the next look.
    fn after(mut self, looked: Result<(), StoreError>) -> Result<Self, StoreError> {
        if let Err(error) = looked {
            if self.begun.is_empty() && self.lost.is_empty() {
                return Err(error);
            }
            unwritten(&error);
            self.next_ms = None;
        }
        Ok(self)
    }
}

impl Movement {
    /// Begins the runs that are due at `now_ms` and have a place beside those that go on, and records what passes.
    ///
    /// Errors: [`StoreError`], unless something was begun or lost before.
    pub(crate) async fn moment(
        &mut self,
        now_ms: i64,
        running: (&[RunFence], RunPlaces),
        may_repeat: MayRepeat<'_>,
    ) -> Result<Moment, StoreError> {
        let mut moment = Moment::default();
        let looked = self.look(now_ms, running, may_repeat, &mut moment).await;
        moment.after(looked)
    }

    /// Does the work of [`moment`](Self::moment). After an error, `moment` holds what was begun and lost before it.
    async fn look(
        &mut self,
        now_ms: i64,
        (running, places): (&[RunFence], RunPlaces),
        may_repeat: MayRepeat<'_>,
        moment: &mut Moment,
    ) -> Result<(), StoreError> {
        if now_ms.saturating_sub(self.kept_ms).unsigned_abs() >= KEPT_MS.unsigned_abs() {
            moment.lost = self.keep(running).await?;
            let held = self.store.held_schedules(self.directory.clone()).await?;
            moment.lost.extend(self.revoked(&held, running).await?);
            self.settle(held, now_ms, may_repeat).await?;
            if now_ms < self.kept_ms || self.kept_ms == i64::MIN {
                self.correct(now_ms).await?;
            }
            self.kept_ms = now_ms;
        }
        moment.next_ms = self.next(now_ms).await?;
        self.note_look(now_ms);
        let is_due = moment.next_ms.is_some_and(|next_ms| next_ms <= now_ms);
        if !is_due || places.are_taken() {
            return Ok(());
        }
        let n_moved = self.begin_all(places, now_ms, &mut moment.begun).await?;
        let next_ms = self.next(now_ms).await?;
        moment.next_ms = match n_moved {
            0 => vain(next_ms, now_ms),
            _ => next_ms,
        };
        Ok(())
    }

    /// When the next schedule comes.
    async fn next(&self, now_ms: i64) -> Result<Option<i64>, StoreError> {
        let waiting_ms = waiting_ms(self.missed, now_ms);
        let place = (self.directory.clone(), self.door.is_served());
        self.store.next_schedule(place, waiting_ms).await
    }

    /// Notes that it looks. A host that slept, was without its store, or whose clock was set, saw nothing come meanwhile.
    fn note_look(&mut self, now_ms: i64) {
        let passed_ms = now_ms.saturating_sub(self.looked_ms);
        if !(0..=LATE_MS).contains(&passed_ms) {
            self.since_ms = now_ms;
        }
        self.looked_ms = now_ms;
    }

    /// Begins what is due, one after the other: with each run its caller may have its share. Says how many schedules it moved on.
    async fn begin_all(
        &self,
        mut places: RunPlaces,
        now_ms: i64,
        begun: &mut Vec<BegunRun>,
    ) -> Result<usize, StoreError> {
        for n_moved in 0..RUNS_MAX {
            if places.are_taken() {
                return Ok(n_moved);
            }
            let claim = ScheduleClaim {
                directory: self.directory.clone(),
                of_anybody: self.door.is_served(),
                busy: places.busy(),
                now_ms,
                waiting_ms: waiting_ms(self.missed, now_ms),
                lease: CLAIMED,
                limit: 1,
            };
            let Some(schedule) = self.store.claim_schedules(claim).await?.pop() else {
                return Ok(n_moved);
            };
            let Some(run) = self.begin(schedule, now_ms).await? else {
                continue;
            };
            places.take(&run.schedule.what.owner.caller);
            begun.push(run);
        }
        Ok(RUNS_MAX)
    }

    /// Finds the next time of schedules anew that a clock far ahead has moved on: they would be silent until then.
    async fn correct(&self, now_ms: i64) -> Result<(), StoreError> {
        for schedule in self.store.schedules(None, SCHEDULES_MAX).await? {
            let Some(due_ms) = schedule.what.next_ms else {
                continue;
            };
            if schedule.what.owner.directory != self.directory {
                continue;
            }
            let Ok(times) = serde_json::from_str::<Times>(&schedule.what.times) else {
                continue;
            };
            let next_ms = corrected(&times, (schedule.at_ms, due_ms), now_ms);
            if next_ms.is_none() {
                continue;
            }
            let begin = RunBegin {
                run: Uuid::now_v7(),
                schedule: schedule.id,
                fence: schedule.fence,
                due_ms,
                next_ms,
                at_ms: now_ms,
                hold: None,
                state: RunState::Missed,
                note: "a clock that was ahead had set this time; the next one was found anew"
                    .to_owned(),
            };
            self.store.begin_run(begin).await.map(drop)?;
        }
        Ok(())
    }

    /// Says that the runs go on; gives back those that are another host's now.
    async fn keep(&self, running: &[RunFence]) -> Result<Vec<Uuid>, StoreError> {
        if running.is_empty() {
            return Ok(Vec::new());
        }
        let kept = self.store.keep_runs(running.to_vec(), self.lease).await?;
        let all = running.iter().map(|fence| fence.run);
        Ok(all.filter(|run| !kept.contains(run)).collect())
    }

    /// Moves one schedule on, with a run or without one. None when nothing runs, also because another host was faster.
    async fn begin(&self, schedule: Schedule, now_ms: i64) -> Result<Option<BegunRun>, StoreError> {
        let Some(due_ms) = schedule.what.next_ms else {
            return Ok(None);
        };
        let Ok(times) = serde_json::from_str::<Times>(&schedule.what.times) else {
            let why = (
                RunState::Failed,
                "its times cannot be read; schedule it again",
            );
            self.give_up(&schedule, (due_ms, now_ms), why).await?;
            return Ok(None);
        };
        let Some(admission) = self.admission(&schedule).await? else {
            let why = match schedule.what.owner.caller.is_anonymous() {
                true => SHUT_OUT,
                false => REVOKED,
            };
            let why = (RunState::Refused, why);
            self.give_up(&schedule, (due_ms, now_ms), why).await?;
            return Ok(None);
        };
        let is_held = schedule.held.is_some();
        // One that was moved here later was not seen to come. Times that are made up for one by one are older than the run before them.
        let since_ms = match self.missed {
            MissedRuns::RunAll => self.since_ms,
            MissedRuns::RunOnce | MissedRuns::Skip => self.since_ms.max(schedule.at_ms.min(now_ms)),
        };
        let moments = (due_ms, since_ms, now_ms);
        let mut step = step(&times, moments, is_held, self.missed);
        let runs = step.state == RunState::Running;
        let is_again = runs && is_ordered(&schedule);
        if is_again {
            step.note = format!("{AGAIN}{}", step.note);
        }
        let run = Uuid::now_v7();
        let begin = RunBegin {
            run,
            schedule: schedule.id,
            fence: schedule.fence,
            due_ms,
            next_ms: step.next_ms,
            at_ms: now_ms,
            hold: runs.then(|| (self.own.clone(), self.lease)),
            state: step.state,
            note: step.note,
        };
        let fence = RunFence {
            run,
            fence: schedule.fence,
        };
        let live = LiveRun::new(run);
        let is_ours = self.store.begin_run(begin).await?;
        Ok((is_ours && runs).then_some(BegunRun {
            schedule,
            fence,
            admission,
            live,
            is_again,
        }))
    }

    /// What the caller of a schedule may do now; none when it is let in no more.
    async fn admission(&self, schedule: &Schedule) -> Result<Option<Admission>, StoreError> {
        let caller = &schedule.what.owner.caller;
        if caller.token.is_none() {
            return Ok(Some(Admission::default()));
        }
        Ok(Tokens::read(&self.store, &self.door).await?.admit(caller))
    }

    /// Of the runs that go on, those whose caller is let in no more.
    async fn revoked(
        &self,
        held: &[Schedule],
        running: &[RunFence],
    ) -> Result<Vec<Uuid>, StoreError> {
        let of_tokens: Vec<(&Owner, Uuid)> = held
            .iter()
            .filter_map(|schedule| {
                let run = schedule.held.as_ref()?.fence;
                let caller = &schedule.what.owner.caller;
                let is_own = running.contains(&run) && caller.token.is_some();
                is_own.then_some((caller, run.run))
            })
            .collect();
        if of_tokens.is_empty() {
            return Ok(Vec::new());
        }
        let tokens = Tokens::read(&self.store, &self.door).await?;
        let revoked = of_tokens
            .into_iter()
            .filter(|(caller, _)| tokens.admit(caller).is_none());
        Ok(revoked.map(|(_, run)| run).collect())
    }

    /// A schedule that cannot run any more does not come again; why is recorded.
    async fn give_up(
        &self,
        schedule: &Schedule,
        (due_ms, now_ms): (i64, i64),
        (state, why): (RunState, &str),
    ) -> Result<(), StoreError> {
        let begin = RunBegin {
            run: Uuid::now_v7(),
            schedule: schedule.id,
            fence: schedule.fence,
            due_ms,
            next_ms: None,
            at_ms: now_ms,
            hold: None,
            state,
            note: why.to_owned(),
        };
        self.store.begin_run(begin).await.map(drop)
    }

    /// Ends the runs that nobody makes any more. One whose tool may be called again is made once more, at once.
    async fn settle(
        &self,
        held: Vec<Schedule>,
        now_ms: i64,
        may_repeat: MayRepeat<'_>,
    ) -> Result<(), StoreError> {
        for schedule in held {
            let Some(held) = &schedule.held else { continue };
            let is_own = held.host == self.own;
            let only_over = match is_own {
                true if LiveRun::is_there(held.fence.run) => continue,
                // Its end could not be written, or its begin was written and not answered.
                true => false,
                false => match lost(held) {
                    Some(only_over) => only_over,
                    None => continue,
                },
            };
            let last = schedule.last.as_ref();
            let was_again = last.is_some_and(|last| last.note.starts_with(AGAIN));
            // What took its place meanwhile, or was claimed, comes at its own time.
            let is_same = held.fence.fence == schedule.fence;
            let repeats = match is_same && !was_again {
                true => is_repeatable(&schedule, may_repeat),
                false => Some(false),
            };
            // A later look knows its tool.
            let Some(repeats) = repeats else { continue };
            let cause = match is_own {
                true => "its begin or its end could not be recorded",
                false => "its host ended over it",
            };
            let next_ms = schedule
                .what
                .next_ms
                .map_or(now_ms, |at_ms| at_ms.min(now_ms));
            let finish = RunFinish {
                fence: held.fence,
                only_over,
                state: RunState::Unknown,
                note: match repeats {
                    true => format!("{cause}; {IS_REPEATED}"),
                    false => {
                        format!("{cause}; nobody knows how far it came, so it is not made again")
                    }
                },
                next_ms: repeats.then_some(next_ms),
                at_ms: now_ms,
            };
            self.store.finish_run(finish).await?;
        }
        Ok(())
    }
}

/// Whether the next run makes up for the last one, whose end nobody knows.
fn is_ordered(schedule: &Schedule) -> bool {
    let last = schedule.last.as_ref();
    last.is_some_and(|last| last.state == RunState::Unknown && last.note.ends_with(IS_REPEATED))
}

/// Whether nobody makes a run of another process any more; if that is so only because its lease is over, it counts only while the lease is.
fn lost(held: &RunHold) -> Option<bool> {
    match process::liveness(&held.host) {
        Liveness::Running => None,
        Liveness::Ended => Some(false),
        Liveness::OtherBoot | Liveness::Elsewhere => held.is_over.then_some(true),
    }
}

/// When to look again after what is due could not be had.
fn vain(next_ms: Option<i64>, now_ms: i64) -> Option<i64> {
    next_ms.map(|at_ms| at_ms.max(now_ms.saturating_add(REST_MS)))
}

fn is_repeatable(schedule: &Schedule, may_repeat: MayRepeat<'_>) -> Option<bool> {
    match serde_json::from_str(&schedule.what.work) {
        Ok(Task::Call { tool, .. }) => may_repeat(&tool),
        Ok(Task::Prompt { .. }) | Err(_) => Some(false),
    }
}

/// A run of this process that goes on.
struct OwnRun {
    fence: RunFence,
    caller: Owner,
    cancel: CancellationToken,
}

/// The runs of this process that go on.
#[derive(Default)]
struct OwnRuns {
    ends: JoinSet<()>,
    /// By the task that makes them.
    going_on: HashMap<Id, OwnRun>,
}

impl OwnRuns {
    fn begin(&mut self, host: &Host, begun: BegunRun, cancel: &CancellationToken) {
        let run = OwnRun {
            fence: begun.fence,
            caller: begun.schedule.what.owner.caller.clone(),
            cancel: cancel.child_token(),
        };
        let task = one(host.clone(), begun, run.cancel.clone());
        let task = self.ends.spawn(task);
        self.going_on.insert(task.id(), run);
    }

    /// Forgets those that have ended.
    fn tidy(&mut self) {
        while let Some(ended) = self.ends.try_join_next_with_id() {
            self.forget(ended);
        }
    }

    /// Waits for the end of one.
    async fn end(&mut self) {
        if let Some(ended) = self.ends.join_next_with_id().await {
            self.forget(ended);
        }
    }

    fn forget(&mut self, ended: Result<(Id, ()), JoinError>) {
        // A run whose task fails is settled like one whose end could not be written.
        let task = ended.map_or_else(|failed| failed.id(), |(task, ())| task);
        self.going_on.remove(&task);
    }

    fn fences(&self) -> Vec<RunFence> {
        self.going_on.values().map(|run| run.fence).collect()
    }

    fn places(&self) -> RunPlaces {
        RunPlaces::taken(self.going_on.values().map(|run| &run.caller))
    }

    /// Ends what is not this host's any more.
    fn cancel(&self, lost: &[Uuid]) {
        let is_lost = |run: &&OwnRun| lost.contains(&run.fence.run);
        for run in self.going_on.values().filter(is_lost) {
            tracing::warn!(run = %run.fence.run, "a scheduled run is ended: its task was cancelled, its token is gone, or another host has taken it over");
            run.cancel.cancel();
        }
    }
}

async fn work(
    host: Host,
    mut movement: Movement,
    news: Arc<Notify>,
    (stop, cancel): (CancellationToken, CancellationToken),
) {
    let mut runs = OwnRuns::default();
    loop {
        runs.tidy();
        let now = now_ms();
        let may_repeat = |tool: &str| host.may_repeat_then(tool);
        let running = runs.fences();
        let moment = movement.moment(now, (&running, runs.places()), &may_repeat);
        let wait = match moment.await {
            Ok(moment) => {
                runs.cancel(&moment.lost);
                for begun in moment.begun {
                    runs.begin(&host, begun, &cancel);
                }
                wait(moment.next_ms, now)
            }
            Err(error) => {
                unwritten(&error);
                PERIOD
            }
        };
        let is_full = runs.ends.len() >= RUNS_MAX;
        let wait = if is_full { PERIOD } else { wait };
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            // What waits for a run comes with its end.
            () = runs.end(), if !runs.ends.is_empty() => {}
            () = news.notified(), if !is_full => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    // Until the last of them has ended, no other host may take them for lost.
    while !runs.ends.is_empty() {
        tokio::select! {
            () = runs.end() => {}
            () = tokio::time::sleep(KEEP_PERIOD) => match movement.keep(&runs.fences()).await {
                Ok(lost) => runs.cancel(&lost),
                Err(error) => unwritten(&error),
            }
        }
    }
}

fn unwritten(error: &StoreError) {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "schedules cannot be read or written"
    );
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
    let BegunRun {
        schedule,
        fence,
        admission,
        live,
        is_again,
    } = begun;
    // On a task of its own: a failure of the host has to be recorded, too.
    let mut running = JoinSet::new();
    let (of_run, cancel) = (host.clone(), stop.clone());
    running.spawn(async move { run::run(&of_run, (&schedule, admission), fence, &cancel).await });
    let (state, note) = match running.join_next().await {
        Some(Ok(ended)) => ended,
        Some(Err(_)) | None => (
            RunState::Failed,
            "the host failed while it ran; the log says why".to_owned(),
        ),
    };
    let finish = RunFinish {
        fence,
        only_over: false,
        state,
        note: match is_again {
            true => format!("{AGAIN}{note}"),
            false => note,
        },
        next_ms: None,
        at_ms: now_ms(),
    };
    record_end(host.store(), finish, &stop).await;
    drop(live);
}

/// Records the end of a run. A store that is away for a moment is waited for, unless the host ends.
async fn record_end(store: &Store, finish: RunFinish, stop: &CancellationToken) {
    for _ in 0..END_TRIES {
        match store.finish_run(finish.clone()).await {
            Ok(_) | Err(StoreError::Closed { .. }) => return,
            Err(error) => tracing::error!(
                error = &error as &dyn std::error::Error,
                "the end of a scheduled run cannot be recorded"
            ),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(END_WAIT) => {}
        }
    }
}

#[cfg(test)]
mod tests;
