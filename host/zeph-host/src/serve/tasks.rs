//! Calls that outlive their request: what a client of the extension for tasks gets in place of a result, and asks about later.
//!
//! A task belongs to its caller and its conversation; nobody else knows that there is one. It is a row of the store, so that whichever
//! server of that store is asked answers. The one that makes its call holds it; when that one dies, another takes it over
//! (`again`). A call that may be made again is, between replicas that share their keys; any other task is ended as unknown by whichever
//! server finds it. A server over stdio with these keys leaves the first kind to the replicas. Cancelling a task ends what it does; a client
//! that goes away ends nothing, and the record of the call is completed either way.

mod again;
mod keeping;
mod shown;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{DetailedTask, InputRequest, InputResponses, Task};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zeph_store::{
    HostProcess, LongTask, LongTaskAsker, LongTaskBounds, LongTaskEnd, LongTaskHold, LongTaskNews,
    LongTaskOwner, NewLongTask, Store, StoreError,
};

pub(super) use self::again::TaskCall;
pub(super) use self::keeping::keep;
use crate::process;

/// Tasks that work at one time, and ended ones that are kept, at all servers of a store.
const BOUNDS: LongTaskBounds = LongTaskBounds {
    of_caller: 64,
    in_all: 1_024,
};

/// How long a server holds a task without saying that it goes on.
const LEASE: Duration = Duration::from_secs(20);

/// How often a client is asked to look.
const POLL_MS: u64 = 1_000;

/// How often the end of a task is written until it is there, and how long after the last time.
const END_TRIES: u32 = 60;
const END_WAIT: Duration = Duration::from_secs(1);

/// The tasks of a server.
#[derive(Clone)]
pub(crate) struct Tasks(Arc<TaskRoom>);

struct TaskRoom {
    store: Store,
    /// This process, which holds them.
    host: HostProcess,
    lifetime: Duration,
    /// Where calls can be made again: servers that say the same have the same files.
    workspace: String,
    /// Protects the moment of reading or changing it.
    held: Mutex<HashMap<Uuid, Arc<HeldTask>>>,
    /// What works on the tasks that are held.
    working: Mutex<JoinSet<()>>,
    /// Something was written for a task that may be held here.
    news: Notify,
}

/// What a task begins with.
#[derive(Debug)]
pub(super) struct TaskStart {
    pub(super) owner: LongTaskOwner,
    /// Cancelled when what let its owner in is revoked.
    pub(super) right: CancellationToken,
    pub(super) message: String,
    /// What makes its call again; none when nothing may.
    pub(super) call: Option<String>,
}

/// A task that this server holds.
pub(super) struct HeldTask {
    store: Store,
    pub(super) hold: LongTaskHold,
    /// Its owner wants it to end.
    pub(super) cancelled: CancellationToken,
    /// Another server holds it, or its row is gone.
    pub(super) lost: CancellationToken,
    /// What let its owner in was revoked.
    pub(super) right: CancellationToken,
    /// Those who wait for answers, by the keys of their questions.
    asked: Mutex<HashMap<String, oneshot::Sender<Value>>>,
}

impl Tasks {
    /// None yet. A task may take `lifetime`, and its result is kept as long again.
    pub(super) fn new(store: &Store, lifetime: Duration, workspace: String) -> Self {
        Self(Arc::new(TaskRoom {
            store: store.clone(),
            host: process::own(),
            lifetime,
            workspace,
            held: Mutex::default(),
            working: Mutex::default(),
            news: Notify::new(),
        }))
    }

    /// Begins one. `None` when there are too many, or the store cannot say: then the request has to wait for its result.
    pub(super) async fn begin(&self, start: TaskStart) -> Option<(Task, Arc<HeldTask>)> {
        let new = NewLongTask {
            id: Uuid::new_v4(),
            owner: start.owner,
            host: self.0.host.clone(),
            workspace: self.0.workspace.clone(),
            call: start.call,
            message: start.message,
            lifetime: self.0.lifetime,
        };
        let put = self.0.store.put_long_task(new, BOUNDS, LEASE).await;
        let put = put.inspect_err(|error| failed(error, "a task cannot be begun"));
        let put = put.ok()?;
        if put.is_none() {
            tracing::warn!(
                of_caller = BOUNDS.of_caller,
                "as many tasks work as may: a call gets none, and its request waits for it"
            );
        }
        let task = put?;
        let held = self.holds(&task, start.right);
        Some((shown::task(&task), held))
    }

    /// Notes that this server holds a task.
    fn holds(&self, task: &LongTask, right: CancellationToken) -> Arc<HeldTask> {
        let held = Arc::new(HeldTask {
            store: self.0.store.clone(),
            hold: LongTaskHold {
                task: task.id,
                fence: task.fence,
            },
            cancelled: CancellationToken::new(),
            lost: CancellationToken::new(),
            right,
            asked: Mutex::default(),
        });
        self.held().insert(task.id, Arc::clone(&held));
        held
    }

    /// Works on a task until it has ended, which is written then.
    pub(super) fn work(
        &self,
        held: Arc<HeldTask>,
        work: impl Future<Output = TaskEnd> + Send + 'static,
    ) {
        let this = self.clone();
        let mut working = self.working();
        while working.try_join_next().is_some() {}
        working.spawn(async move {
            // On a task of its own: when the host fails over it, that is its end.
            let mut running = JoinSet::new();
            running.spawn(work);
            let end = match running.join_next().await {
                Some(Ok(end)) => end,
                Some(Err(_)) | None => TaskEnd::failed("the host failed while it made the call"),
            };
            held.end(end).await;
            this.held().remove(&held.hold.task);
        });
    }

    /// How a task stands.
    ///
    /// Errors: invalid parameters for a task that is none of who asks; internal error when the store cannot say.
    pub(super) async fn get(
        &self,
        id: &str,
        asker: LongTaskAsker,
    ) -> Result<DetailedTask, ErrorData> {
        let task = self.0.store.long_task(read(id)?, asker).await;
        let task = task.map_err(|error| unread(&error))?;
        task.map(|task| shown::detailed(&task))
            .ok_or_else(|| unknown(id))
    }

    /// Hands answers to what a task asked on.
    ///
    /// Errors: as for [`get`](Self::get).
    pub(super) async fn update(
        &self,
        id: &str,
        asker: LongTaskAsker,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        let answers = responses
            .into_iter()
            .map(|(key, answer)| (key, answer.to_string()))
            .collect();
        let answered = self.0.store.answer_long_task(read(id)?, asker, answers);
        self.written(id, answered.await)
    }

    /// Ends what a task does.
    ///
    /// Errors: as for [`get`](Self::get).
    pub(super) async fn cancel(&self, id: &str, asker: LongTaskAsker) -> Result<(), ErrorData> {
        let cancelled = self.0.store.cancel_long_task(read(id)?, asker).await;
        self.written(id, cancelled)
    }

    fn written(&self, id: &str, written: Result<bool, StoreError>) -> Result<(), ErrorData> {
        match written.map_err(|error| unread(&error))? {
            true => {
                self.0.news.notify_one();
                Ok(())
            }
            false => Err(unknown(id)),
        }
    }

    /// Waits until everything that works has ended and written that.
    pub(super) async fn close(&self) {
        let working = std::mem::take(&mut *self.working());
        working.join_all().await;
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<HeldTask>>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn working(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0
            .working
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the work on a task came to.
#[derive(Debug)]
pub(super) enum TaskEnd {
    Ended(LongTaskEnd),
    /// This server ends, and another is to make the call again.
    Released,
}

impl HeldTask {
    /// Puts a question to the owner and waits for the answer; none when the task is cancelled or lost meanwhile, or `over` comes first. Then
    /// nobody is asked any more.
    pub(super) async fn request_input(
        &self,
        key: String,
        request: InputRequest,
        over: impl Future<Output = ()>,
    ) -> Option<Value> {
        // The keys of a task that is made again are new ones.
        let key = match self.hold.fence {
            1 => key,
            fence => format!("{key}-{fence}"),
        };
        let (answer, answered) = oneshot::channel();
        self.asked().insert(key.clone(), answer);
        let question = serde_json::to_string(&request).ok()?;
        let asked = self.store.ask_long_task(self.hold, key.clone(), question);
        let asked = asked.await;
        let asked = asked.inspect_err(|error| failed(error, "a question cannot be asked"));
        let answer = match asked {
            Ok(true) => tokio::select! {
                answer = answered => answer.ok(),
                () = self.ended() => None,
                () = over => None,
            },
            Ok(false) | Err(_) => None,
        };
        if answer.is_none() {
            self.withdraw(key).await;
        }
        answer
    }

    /// Takes a question back.
    async fn withdraw(&self, key: String) {
        self.asked().remove(&key);
        let withdrawn = self.store.withdraw_long_task(self.hold, key).await;
        if let Err(error) = withdrawn {
            failed(&error, "a question cannot be withdrawn");
        }
    }

    /// Waits until it is to end: its owner wants that or is let in no more, or another server holds it.
    pub(super) async fn ended(&self) {
        tokio::select! {
            () = self.cancelled.cancelled() => {}
            () = self.lost.cancelled() => {}
            () = self.right.cancelled() => {}
        }
    }

    /// Hears what has come for it.
    fn hear(&self, news: LongTaskNews) {
        for (key, answer) in news.answers {
            let asked = self.asked().remove(&key);
            if let (Some(asked), Ok(answer)) = (asked, serde_json::from_str(&answer)) {
                // Who asked may have gone.
                drop(asked.send(answer));
            }
        }
        if news.is_cancelled {
            self.cancelled.cancel();
        }
    }

    /// Writes how it ended. A store that is away for a moment is waited for.
    async fn end(&self, end: TaskEnd) {
        for _ in 0..END_TRIES {
            let written = match &end {
                TaskEnd::Ended(end) => self.store.end_long_task(self.hold, end.clone()).await,
                TaskEnd::Released => self.store.release_long_task(self.hold).await,
            };
            match written {
                Ok(true) => return,
                Ok(false) => {
                    tracing::info!(task = %self.hold.task, "a task was taken over by another server; its end here does not count");
                    return;
                }
                Err(StoreError::Closed { .. }) => return,
                Err(error) => failed(&error, "the end of a task cannot be written"),
            }
            tokio::time::sleep(END_WAIT).await;
        }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Value>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(id: &str) -> Result<Uuid, ErrorData> {
    id.parse().map_err(|_| unknown(id))
}

fn unknown(id: &str) -> ErrorData {
    let shown = zeph_core::failure::one_line(id, 64);
    ErrorData::invalid_params(format!("there is no task `{shown}`"), None)
}

fn unread(error: &StoreError) -> ErrorData {
    failed(error, "tasks cannot be read or written");
    let message = "the store cannot be used; what the task does goes on, so ask again";
    ErrorData::internal_error(message, None)
}

fn failed(error: &StoreError, what: &'static str) {
    tracing::error!(error = error as &dyn std::error::Error, what);
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
