//! What becomes of a task whose server ended over it: its call is made again, once, where that changes nothing more, or it ends as of
//! unknown end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use zeph_core::category::ErrorCategory;
use zeph_core::id::ConversationId;
use zeph_mcp::caller::Caller;
use zeph_store::LongTask;

use super::{HeldTask, TaskEnd, Tasks};
use crate::admission::Admission;
use crate::serve::calling::Calling;
use crate::serve::client::{Client, Way};
use crate::serve::conversation::{Conversation, Conversations};
use crate::serve::dispatch::{CallTerms, calling};
use crate::serve::{Shared, TakesOver};

/// How many servers make the call of a task: one that ends each of them must not end them all.
const FENCE_MAX: i64 = 2;

/// A call as it can be made again.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::serve) struct TaskCall {
    /// The tool under its exposed name.
    pub(in crate::serve) tool: String,
    pub(in crate::serve) arguments: Map<String, Value>,
    /// The replica where its conversation began, where that is known to others.
    pub(in crate::serve) home: Option<Arc<str>>,
    /// Whether its client shows forms.
    pub(in crate::serve) shows_forms: bool,
    pub(in crate::serve) client: Option<String>,
    pub(in crate::serve) result_chars: Option<usize>,
}

impl TaskCall {
    /// That of a task; `None` when it is not to be made again.
    fn of(task: &LongTask) -> Option<Self> {
        serde_json::from_str(task.call.as_deref()?).ok()
    }
}

/// What the call of a task that was taken over depends on.
pub(super) fn right(shared: &Shared, task: &LongTask) -> CancellationToken {
    let caller = &task.owner.caller;
    match caller.token {
        Some(_) if caller.is_anonymous() => shared.holdings.right(None),
        Some(token) => shared.holdings.right(Some(token)),
        // An access token lets in until it expires, and the person at the terminal is always.
        None => CancellationToken::new(),
    }
}

impl Tasks {
    /// Goes on with a task that was taken over; `admission` is what its owner may do now, none when it is let in no more.
    pub(super) fn again(
        &self,
        shared: &Arc<Shared>,
        (task, admission): (&LongTask, Option<Admission>),
        held: Arc<HeldTask>,
    ) {
        let (of_work, working) = (Arc::clone(&held), shared.holdings.working());
        let has_files = task.workspace == self.0.workspace;
        match repeated(shared, (task, has_files), admission, &held) {
            Ok((calling, conversation)) => self.work(held, async move {
                let _working = working;
                let end = made_again(calling, &of_work).await;
                drop(conversation);
                end
            }),
            Err(end) => self.work(held, async move { end }),
        }
    }
}

/// The call of a task, ready to be made again, with its conversation.
///
/// Errors: how the task ends instead.
fn repeated(
    shared: &Arc<Shared>,
    (task, has_files): (&LongTask, bool),
    admission: Option<Admission>,
    held: &HeldTask,
) -> Result<(Arc<Calling>, Arc<Conversation>), TaskEnd> {
    if task.is_cancelled {
        return Err(TaskEnd::cancelled(
            "it was cancelled; the server that made the call had ended over it",
        ));
    }
    let call = TaskCall::of(task).filter(|_| shared.takes_over() == TakesOver::Repeats);
    let Some(call) = call else {
        return Err(TaskEnd::unknown("the call is not made again"));
    };
    let Some(admission) = admission else {
        return Err(TaskEnd::unknown("its caller is let in no more"));
    };
    if task.fence > FENCE_MAX {
        return Err(TaskEnd::unknown(
            "so did the server that made it again; it is not made a third time",
        ));
    }
    if task.age >= task.lifetime {
        return Err(TaskEnd::unknown("its time is over"));
    }
    let listed = shared.lists.current(&shared.host);
    let tool = listed.find(&call.tool);
    let tool = tool.filter(|tool| shared.host.may_repeat(tool.tool.name.as_str()));
    let Some(tool) = tool else {
        return Err(TaskEnd::unknown(
            "this server has no such tool that may be called again",
        ));
    };
    let caller = Caller {
        id: task.owner.caller.id.clone(),
        token: admission.token,
        tools: admission.tools,
        right: held.right.clone(),
        ..Caller::default()
    };
    let place = (call.home.as_ref(), has_files);
    let conversation = conversation(shared, task.owner.conversation, place, &caller);
    let way = match call.shows_forms {
        true => Way::Later,
        false => Way::Nobody,
    };
    let terms = CallTerms {
        result_chars: call.result_chars,
        ..CallTerms::of_task(Client::absent(way, call.client), task.id)
    };
    let calling = calling(
        shared,
        (&caller, &conversation),
        tool,
        call.arguments,
        terms,
    );
    calling.hold(held.hold);
    Ok((Arc::new(calling), conversation))
}

/// The conversation of a task, as it is at this server.
fn conversation(
    shared: &Arc<Shared>,
    id: ConversationId,
    place: (Option<&Arc<str>>, bool),
    caller: &Caller,
) -> Arc<Conversation> {
    let open = shared.conversations.find(&id.to_string(), caller);
    open.unwrap_or_else(|_| Conversations::of_task(&shared.host, id, place, caller))
}

async fn made_again(calling: Arc<Calling>, held: &HeldTask) -> TaskEnd {
    let report = calling.make_again(held).await;
    match report.failure() {
        // What it was made with is no more: an approval, files, a rule.
        Some(failure) if is_refusal(failure.category) => TaskEnd::unknown(&format!(
            "the call cannot be made again: {}",
            zeph_core::failure::one_line(&failure.message, 300)
        )),
        _ => calling.task_end(report, held).await,
    }
}

fn is_refusal(category: ErrorCategory) -> bool {
    matches!(
        category,
        ErrorCategory::PolicyBlocked | ErrorCategory::ConfirmationRequired
    )
}
