//! Work for later: what is to be done when, for whom, and what became of each run.
//!
//! A host claims a schedule whose time has come before it decides what becomes of that; a run is begun in the transaction that moves its
//! schedule to its next time, so no occurrence is run by two hosts, or twice by one that was killed. Claims and runs are held by a lease that
//! counts by the clock of the database, and by a number, the fence, that counts up with every claim and every change of the schedule: what
//! is written with an older one changes nothing. What the process that holds a run was ended over is settled as of unknown end.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeph_core::id::ConversationId;

use crate::audit::record::HostProcess;
use crate::caller::Owner;
use crate::error::StoreError;
use crate::store::{Access, Store};

/// Runs of one schedule that are kept.
pub const SCHEDULE_RUNS_KEPT: u32 = 20;

/// How long a schedule stays that has nothing to come, in milliseconds: its end can be read that long.
pub(crate) const ENDED_KEPT_MS: i64 = 7 * 86_400_000;

/// Whose a schedule is: a name means one schedule of one caller in one directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScheduleOwner {
    /// Where the host that took it works; only hosts that work there run it.
    pub directory: String,
    /// The caller; nobody at the terminal.
    pub caller: Owner,
}

/// What is to be done, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSchedule {
    /// Whose it is.
    pub owner: ScheduleOwner,
    /// Its name.
    pub name: String,
    /// The conversation its calls belong to.
    pub conversation: ConversationId,
    /// Whether a model asked for it; else a program or a person did.
    pub is_model: bool,
    /// What is done: JSON of the caller.
    pub work: String,
    /// When: JSON of the caller.
    pub times: String,
    /// When next, in Unix milliseconds; none when there is no such time.
    pub next_ms: Option<i64>,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Its number.
    pub id: Uuid,
    /// Counts up with every change of what is done or when.
    pub revision: i64,
    /// Counts up with every claim and every change.
    pub fence: i64,
    /// What is to be done, and when.
    pub what: NewSchedule,
    /// The run that goes on.
    pub held: Option<RunHold>,
    /// When it was made or replaced, in Unix milliseconds.
    pub at_ms: i64,
    /// The run that began last.
    pub last: Option<ScheduleRun>,
}

/// A run that goes on, and who runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHold {
    /// The run, and the fence it began with.
    pub fence: RunFence,
    /// The process that runs it.
    pub host: HostProcess,
    /// Whether that process has not said for too long that it runs it, by the clock of the database; counts where nobody can look at it.
    pub is_over: bool,
}

/// The right to write to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunFence {
    /// The run.
    pub run: Uuid,
    /// The fence of its schedule when it began.
    pub fence: i64,
}

/// What a host looks for that has time for runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleClaim {
    /// Where it works.
    pub directory: String,
    /// Whether it looks for those of anonymous clients, too: hosts without an endpoint leave them to those that have one.
    pub of_anybody: bool,
    /// Callers whose schedules wait: as many runs of theirs go on as may.
    pub busy: Vec<Owner>,
    /// Now, by its own clock, in Unix milliseconds. Where the database has a clock of its own, what has not come by that is not due.
    pub now_ms: i64,
    /// What came before this moment waits while a run of its schedule goes on; none where nothing waits for that.
    pub waiting_ms: Option<i64>,
    /// How long no other host claims what this one gets.
    pub lease: Duration,
    /// Schedules at most.
    pub limit: u32,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScheduleRun {
    /// Its number; calls of the run carry it in the audit.
    pub id: Uuid,
    /// When it was to be, in Unix milliseconds.
    pub due_ms: i64,
    /// When it began, or was given up, in Unix milliseconds.
    pub begun_at_ms: i64,
    /// When it ended, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<i64>,
    /// How far it is.
    pub state: RunState,
    /// What to know of it, in a sentence or two.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It goes on.
    Running,
    /// It did its work.
    Done,
    /// It failed.
    Failed,
    /// Its call was refused, or waits for an approval.
    Refused,
    /// Its host ended over it; nobody knows how far it came.
    Unknown,
    /// Its time passed while no host ran, and it is not made up for.
    Missed,
    /// Its time came while the run before went on.
    Overlapped,
}

/// What became of a new schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutSchedule {
    /// There was none of that name.
    Created,
    /// It took the place of one of that name.
    Replaced,
    /// The caller has as many as it may have.
    TooMany,
    /// The store has as many as it may have.
    Full,
}

/// How many schedules there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleBounds {
    /// Of one caller in one directory.
    pub of_caller: u32,
    /// In all.
    pub in_all: u32,
}

/// The begin of a run, or the passing of an occurrence without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunBegin {
    /// The run; new.
    pub run: Uuid,
    /// Its schedule, as it was read.
    pub schedule: Uuid,
    /// As it was claimed.
    pub fence: i64,
    /// The time that has come, as it was read.
    pub due_ms: i64,
    /// The time after it.
    pub next_ms: Option<i64>,
    /// Now.
    pub at_ms: i64,
    /// Who runs it, and how long that counts; none for an occurrence that passes.
    pub hold: Option<(HostProcess, Duration)>,
    /// [`RunState::Running`], or why it passes.
    pub state: RunState,
    /// What to know of it.
    pub note: String,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFinish {
    /// The run.
    pub fence: RunFence,
    /// Whether it ends only if its lease is over.
    pub only_over: bool,
    /// How it ended.
    pub state: RunState,
    /// What to know of it.
    pub note: String,
    /// When its schedule comes next; none leaves that as it is. It counts only if the schedule was neither claimed nor changed since the
    /// run began.
    pub next_ms: Option<i64>,
    /// Now.
    pub at_ms: i64,
}

impl ScheduleClaim {
    /// The callers whose schedules wait, as they stand in columns.
    pub(crate) fn busy_words(&self) -> Vec<String> {
        self.busy.iter().map(Owner::word).collect()
    }
}

impl Store {
    /// Puts a schedule there, in the place of one of the same owner and name.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn put_schedule(
        &self,
        schedule: NewSchedule,
        bounds: ScheduleBounds,
        at_ms: i64,
    ) -> Result<PutSchedule, StoreError> {
        self.run("add a schedule", Access::Write, move |operations| {
            operations.put_schedule(&schedule, bounds, at_ms)
        })
        .await
    }

    /// Removes the schedule of an owner; false when there is none. Who makes a run of it finds out when it says that the run goes on.
    ///
    /// Errors: [`StoreError`] when it cannot be removed.
    pub async fn cancel_schedule(
        &self,
        owner: ScheduleOwner,
        name: String,
    ) -> Result<bool, StoreError> {
        self.run("cancel a schedule", Access::Write, move |operations| {
            operations.cancel_schedule(&owner, &name)
        })
        .await
    }

    /// Moves schedules from one directory to another, with the runs that go on; says how many. One stays where its caller has another of its
    /// name there. They count as written at that moment.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; then all stay.
    pub async fn move_schedules(&self, from: String, to: String) -> Result<u64, StoreError> {
        self.run("move schedules", Access::Write, move |operations| {
            operations.move_schedules(&from, &to)
        })
        .await
    }

    /// The schedules of one owner, or of all in a directory, or of all; by name, at most `limit`.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn schedules(
        &self,
        owner: Option<ScheduleOwner>,
        limit: u32,
    ) -> Result<Vec<Schedule>, StoreError> {
        self.run("list schedules", Access::Read, move |operations| {
            operations.schedules(owner.as_ref(), limit)
        })
        .await
    }

    /// The last runs of a schedule, newest first.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn schedule_runs(&self, schedule: Uuid) -> Result<Vec<ScheduleRun>, StoreError> {
        self.run("list runs", Access::Read, move |operations| {
            operations.schedule_runs(schedule)
        })
        .await
    }

    /// When the next schedule of a directory comes; `of_anybody` and `waiting_ms` as for a [`ScheduleClaim`].
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn next_schedule(
        &self,
        (directory, of_anybody): (String, bool),
        waiting_ms: Option<i64>,
    ) -> Result<Option<i64>, StoreError> {
        self.run("find the next schedule", Access::Read, move |operations| {
            operations.next_schedule((&directory, of_anybody), waiting_ms)
        })
        .await
    }

    /// Claims schedules whose time has come, the earliest first; each is another host's when the lease is over and nothing was begun.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn claim_schedules(&self, claim: ScheduleClaim) -> Result<Vec<Schedule>, StoreError> {
        self.run("claim due schedules", Access::Write, move |operations| {
            operations.claim_schedules(&claim)
        })
        .await
    }

    /// The schedules of a directory of which a run goes on.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn held_schedules(&self, directory: String) -> Result<Vec<Schedule>, StoreError> {
        self.run("find runs", Access::Read, move |operations| {
            operations.held_schedules(&directory)
        })
        .await
    }

    /// Begins a run and moves its schedule on, or only moves it on; false when another host claimed it, or the schedule has changed.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; then nothing may run.
    pub async fn begin_run(&self, begin: RunBegin) -> Result<bool, StoreError> {
        self.run("begin a run", Access::Write, move |operations| {
            operations.begin_run(&begin)
        })
        .await
    }

    /// Holds runs for `lease` from now on; says which of them are held. The others have to be ended: they are another host's.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; the holds last as long as they did.
    pub async fn keep_runs(
        &self,
        runs: Vec<RunFence>,
        lease: Duration,
    ) -> Result<Vec<Uuid>, StoreError> {
        self.run("keep runs", Access::Write, move |operations| {
            operations.keep_runs(&runs, lease)
        })
        .await
    }

    /// Ends a run. False when it had ended already, or is held: how it ended first stays.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn finish_run(&self, finish: RunFinish) -> Result<bool, StoreError> {
        self.run("end a run", Access::Write, move |operations| {
            operations.finish_run(&finish)
        })
        .await
    }
}
