//! Calls that outlive their request: a row for each, which any host of this store can answer questions about, cancel, and take over.
//!
//! One host makes the call and holds its row by a lease that it has to renew; a host that would end the task may leave it to the process that
//! holds it as long as it sees that run, whatever the lease says: a machine that slept renewed nothing. The hold carries a number, the fence,
//! that counts up whenever another host takes the row over: whatever the first one writes after that changes nothing. Every moment here is one
//! of the clock of the database, so that hosts whose clocks differ agree who holds what. Rows are forgotten some time after their end.

use std::time::Duration;

use uuid::Uuid;
use zeph_core::id::ConversationId;

use crate::audit::record::HostProcess;
use crate::caller::Owner;
use crate::error::StoreError;
use crate::store::{Access, Store};

/// The columns of a task, in the order in which both databases read them; the last is how long ago it was begun, by the clock `now`.
macro_rules! task_columns {
    ($($now:tt)*) => {
        concat!(
            "id, caller, conversation_id, workspace, call, state, message, result, is_cancelled, fence, \
             created_at_ms, changed_at_ms, lifetime_ms, ",
            $($now)*,
            " - created_at_ms"
        )
    };
}

pub(crate) use task_columns;

/// Whose a task is. Nobody else learns that there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongTaskOwner {
    /// The caller; nobody for callers that nobody knows.
    pub caller: Owner,
    /// The conversation its call belongs to.
    pub conversation: ConversationId,
}

/// Who asks about a task: its caller, and the conversation when the request names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongTaskAsker {
    /// As in [`LongTaskOwner`].
    pub caller: Owner,
    /// Where the request belongs; none asks about tasks of any conversation of the caller.
    pub conversation: Option<ConversationId>,
}

/// A task to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLongTask {
    /// Its number; new, and not to be guessed.
    pub id: Uuid,
    /// Whose it is.
    pub owner: LongTaskOwner,
    /// The process that makes its call.
    pub host: HostProcess,
    /// Where its call can be made again: hosts that work elsewhere only settle what became of it.
    pub workspace: String,
    /// What is needed to make its call again, as JSON of the caller; none when it must not be made again.
    pub call: Option<String>,
    /// What to know of it, in a sentence.
    pub message: String,
    /// How long it may take, and how long its end is kept after that.
    pub lifetime: Duration,
}

/// How many tasks may work at one time, and how many ended ones are kept beside them: beyond that the oldest go, of callers in all those of
/// the caller who has most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongTaskBounds {
    /// Of one caller; of each conversation where nobody knows whose it is.
    pub of_caller: u32,
    /// In all.
    pub in_all: u32,
}

/// The right to write to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LongTaskHold {
    /// The task.
    pub task: Uuid,
    /// Counts up with every host that takes the task over; the first has 1.
    pub fence: i64,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongTaskState {
    /// A host makes its call, or one that did has ended and none has taken it over yet.
    Working,
    /// The call gave a result, which may tell of a failure of the tool.
    Completed,
    /// There will be no result; the message says why.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// Its host ended over it: nobody knows how far the call came.
    Unknown,
}

impl LongTaskState {
    pub(crate) const ALL: [Self; 5] = [
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Unknown,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) fn of_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.label() == label)
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongTask {
    /// Its number.
    pub id: Uuid,
    /// Whose it is.
    pub owner: LongTaskOwner,
    /// As in [`NewLongTask`].
    pub workspace: String,
    /// As in [`NewLongTask`]; none once it has ended.
    pub call: Option<String>,
    /// How far it is.
    pub state: LongTaskState,
    /// What to know of it, in a sentence.
    pub message: String,
    /// The questions that nobody has answered, each with its key and JSON of the caller; none once it has ended.
    pub questions: Vec<(String, String)>,
    /// JSON of the caller, of one that is completed.
    pub result: Option<String>,
    /// Whether its owner wants it to end.
    pub is_cancelled: bool,
    /// How many hosts have held it.
    pub fence: i64,
    /// When it was begun, in Unix milliseconds.
    pub created_at_ms: i64,
    /// How long ago that was, by the clock of the database.
    pub age: Duration,
    /// When something of it changed that its owner can see, in Unix milliseconds.
    pub changed_at_ms: i64,
    /// As in [`NewLongTask`].
    pub lifetime: Duration,
}

/// What a host that holds a task has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongTaskNews {
    /// The task. One that was asked about and is missing among the news is held no longer: its call has to be ended.
    pub task: Uuid,
    /// Whether its owner wants it to end.
    pub is_cancelled: bool,
    /// Answers that came, each with the key of its question and JSON of the caller.
    pub answers: Vec<(String, String)>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongTaskEnd {
    /// Any state but [`LongTaskState::Working`].
    pub state: LongTaskState,
    /// What to know of it, in a sentence.
    pub message: String,
    /// JSON of the caller.
    pub result: Option<String>,
}

/// What is looked for among the tasks that no host holds any more.
#[derive(Debug, Clone)]
pub struct LongTaskClaim {
    /// Who takes them; what it held itself is its own to take, too.
    pub host: HostProcess,
    /// Whether a process is seen to run: then it has what it holds, also when its lease is over.
    pub runs: fn(&HostProcess) -> bool,
    /// Where this host works.
    pub workspace: String,
    /// How long it holds what it takes, until it says more.
    pub lease: Duration,
    /// Whether this host makes calls again. A task whose call nobody may make again is any host's to settle.
    pub repeats: bool,
    /// How much longer nobody has held the others that this host can only settle: those of other workspaces, or all.
    pub elsewhere_after: Duration,
    /// Tasks at most.
    pub limit: u32,
}

/// A task whose lease is over, and the process that held it; none when that let go of it, or is not known.
pub(crate) struct LapsedTask {
    pub(crate) id: String,
    pub(crate) fence: i64,
    pub(crate) host: Option<HostProcess>,
}

impl LongTaskClaim {
    /// Those that nobody has any more, as many as are taken.
    pub(crate) fn of(&self, lapsed: Vec<LapsedTask>) -> Vec<LapsedTask> {
        let is_free = |task: &LapsedTask| match &task.host {
            Some(host) => *host == self.host || !(self.runs)(host),
            None => true,
        };
        let n_max = usize::try_from(self.limit).unwrap_or(usize::MAX);
        lapsed.into_iter().filter(is_free).take(n_max).collect()
    }
}

impl Store {
    /// Begins a task that this host holds for `lease`, in a conversation that is begun when there is none. None when too many work.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn put_long_task(
        &self,
        task: NewLongTask,
        bounds: LongTaskBounds,
        lease: Duration,
    ) -> Result<Option<LongTask>, StoreError> {
        self.run("begin a task", Access::Write, move |operations| {
            operations.put_long_task(&task, bounds, lease)
        })
        .await
    }

    /// How many tasks of an owner work, as they count against [`LongTaskBounds::of_caller`], and how many do in all.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn n_long_tasks(&self, owner: LongTaskOwner) -> Result<(u32, u32), StoreError> {
        self.run("count tasks", Access::Read, move |operations| {
            operations.n_long_tasks(&owner)
        })
        .await
    }

    /// A task, if it is one of who asks.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn long_task(
        &self,
        id: Uuid,
        asker: LongTaskAsker,
    ) -> Result<Option<LongTask>, StoreError> {
        self.run("read a task", Access::Read, move |operations| {
            operations.long_task(id, &asker)
        })
        .await
    }

    /// Says that the owner wants a task to end, if it is one of who asks and has not ended; false when there is none of theirs.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn cancel_long_task(
        &self,
        id: Uuid,
        asker: LongTaskAsker,
    ) -> Result<bool, StoreError> {
        self.run("cancel a task", Access::Write, move |operations| {
            operations.cancel_long_task(id, &asker)
        })
        .await
    }

    /// Keeps answers to questions of a task, each by the key of its question; the first answer stays, and keys that nobody asked for are left
    /// alone. False when there is no such task of who asks.
    ///
    /// Errors: [`StoreError`] when they cannot be recorded.
    pub async fn answer_long_task(
        &self,
        id: Uuid,
        asker: LongTaskAsker,
        answers: Vec<(String, String)>,
    ) -> Result<bool, StoreError> {
        self.run("answer a task", Access::Write, move |operations| {
            operations.answer_long_task(id, &asker, &answers)
        })
        .await
    }

    /// Holds tasks for `lease` from now on, and says what has come for them. Those missing in the answer are held no longer.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; the holds last as long as they did.
    pub async fn keep_long_tasks(
        &self,
        holds: Vec<LongTaskHold>,
        lease: Duration,
    ) -> Result<Vec<LongTaskNews>, StoreError> {
        self.run("keep tasks", Access::Write, move |operations| {
            operations.keep_long_tasks(&holds, lease)
        })
        .await
    }

    /// Puts a question of a task to its owner; false when it is not held any more.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn ask_long_task(
        &self,
        hold: LongTaskHold,
        key: String,
        question: String,
    ) -> Result<bool, StoreError> {
        self.run("ask for a task", Access::Write, move |operations| {
            operations.ask_long_task(hold, &key, &question)
        })
        .await
    }

    /// Takes a question back that nobody has to answer any more; false when the task is not held any more.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn withdraw_long_task(
        &self,
        hold: LongTaskHold,
        key: String,
    ) -> Result<bool, StoreError> {
        self.run("withdraw a question", Access::Write, move |operations| {
            operations.withdraw_long_task(hold, &key)
        })
        .await
    }

    /// Ends a task; false when it is not held any more: how it ends is another host's to say.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn end_long_task(
        &self,
        hold: LongTaskHold,
        end: LongTaskEnd,
    ) -> Result<bool, StoreError> {
        self.run("end a task", Access::Write, move |operations| {
            operations.end_long_task(hold, &end)
        })
        .await
    }

    /// Lets go of a task whose call is to be made again, at once, by another host. False when it is not held any more.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; then another takes it over when the lease is over.
    pub async fn release_long_task(&self, hold: LongTaskHold) -> Result<bool, StoreError> {
        self.run("release a task", Access::Write, move |operations| {
            operations.release_long_task(hold)
        })
        .await
    }

    /// Takes over tasks that no host holds any more, each by one host; their fences have counted up, and their open questions are gone.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn claim_long_tasks(
        &self,
        claim: LongTaskClaim,
    ) -> Result<Vec<LongTask>, StoreError> {
        self.run("take over tasks", Access::Write, move |operations| {
            operations.claim_long_tasks(&claim)
        })
        .await
    }
}

/// A span as the database counts.
pub(crate) fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4)
}
