//! Calls that outlive their request: what a client of the extension for tasks gets in place of a result, and asks about later.
//!
//! A task belongs to its caller and its conversation; nobody else knows that there is one. It lives in this process. Cancelling one ends
//! what it does; a client that goes away ends nothing, and the record of the call is completed either way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use rmcp::model::{DetailedTask, InputResponses, Task};
use rmcp::task_manager::{TaskContext, TaskFuture, TaskManager, TaskOptions};
use zeph_core::id::ConversationId;

/// Tasks of one caller that are known at one time, ended ones included.
const TASKS_MAX: usize = 64;

/// Tasks of all callers.
const ALL_TASKS_MAX: usize = 1_024;

/// How often a client is asked to look.
const POLL_MS: u64 = 1_000;

/// The tasks of a server.
#[derive(Clone)]
pub(crate) struct Tasks {
    manager: TaskManager,
    /// Protects the list for the moment of reading or changing it.
    owners: Arc<Mutex<HashMap<String, Owned>>>,
    lifetime: Duration,
}

/// Whose a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) caller: Option<String>,
    pub(super) conversation: ConversationId,
}

struct Owned {
    owner: Owner,
    gone: Instant,
}

impl Tasks {
    /// None yet. A task may take `lifetime`, and its result is kept as long again.
    pub(super) fn new(lifetime: Duration) -> Self {
        Self {
            manager: TaskManager::new(),
            owners: Arc::default(),
            lifetime,
        }
    }

    /// Whether `owner` may have another one.
    pub(super) fn has_room(&self, owner: &Owner) -> bool {
        let mut owners = self.owners();
        let now = Instant::now();
        owners.retain(|_, owned| owned.gone > now);
        let is_callers = |owned: &&Owned| owned.owner.caller == owner.caller;
        owners.len() < ALL_TASKS_MAX && owners.values().filter(is_callers).count() < TASKS_MAX
    }

    /// Begins one. Look at [`has_room`](Self::has_room) first.
    pub(super) fn spawn(
        &self,
        owner: Owner,
        message: String,
        work: impl FnOnce(TaskContext) -> TaskFuture,
    ) -> Task {
        let ttl_ms = u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new()
            .with_ttl_ms(ttl_ms)
            .with_poll_interval_ms(POLL_MS)
            .with_status_message(message);
        let task = self.manager.spawn(options, work);
        let owned = Owned {
            owner,
            gone: Instant::now() + 2 * self.lifetime,
        };
        self.owners().insert(task.task_id.clone(), owned);
        task
    }

    /// How a task stands.
    ///
    /// Errors: invalid parameters for a task that is none of this caller's.
    pub(super) fn get(&self, id: &str, asking: &Asking<'_>) -> Result<DetailedTask, ErrorData> {
        self.owned(id, asking)?;
        self.manager.get_task(id)
    }

    /// Hands answers to what a task asked on.
    ///
    /// Errors: as for [`get`](Self::get).
    pub(super) fn update(
        &self,
        id: &str,
        asking: &Asking<'_>,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        self.owned(id, asking)?;
        self.manager.update_task(id, responses)
    }

    /// Ends what a task does.
    ///
    /// Errors: as for [`get`](Self::get).
    pub(super) fn cancel(&self, id: &str, asking: &Asking<'_>) -> Result<(), ErrorData> {
        self.owned(id, asking)?;
        self.manager.cancel_task(id)
    }

    fn owned(&self, id: &str, asking: &Asking<'_>) -> Result<(), ErrorData> {
        let owners = self.owners();
        let is_theirs = |owned: &Owned| asking.is(&owned.owner);
        match owners.get(id).is_some_and(is_theirs) {
            true => Ok(()),
            false => Err(ErrorData::invalid_params(
                format!(
                    "there is no task `{}`",
                    zeph_core::failure::one_line(id, 64)
                ),
                None,
            )),
        }
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, Owned>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who asks about a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) caller: Option<&'a str>,
    /// The conversation the request names, if it names one.
    pub(super) conversation: Option<ConversationId>,
}

impl Asking<'_> {
    fn is(&self, owner: &Owner) -> bool {
        let is_there = |conversation| conversation == owner.conversation;
        self.caller == owner.caller.as_deref() && self.conversation.is_none_or(is_there)
    }
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
