//! What runs the calls of a model: the host, behind a small trait.

use std::future::Future;

use tokio_util::sync::CancellationToken;

use crate::budget::{BudgetLimits, Spent};
use crate::message::{Image, ToolCall};
use crate::provider::ToolDefinition;
use crate::usage::{SideSpending, Usage};

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    /// How.
    pub kind: CallEndKind,
    /// What the model is shown.
    pub text: String,
    /// Images the tool gave.
    pub images: Vec<Image>,
    /// The stored full text, when there is one.
    pub handle: Option<String>,
    /// The background task it started.
    pub task: Option<String>,
    /// What ended in the background meanwhile: messages that the text begins with.
    pub messages: Vec<String>,
    /// Background tasks whose end the text tells.
    pub ended_tasks: Vec<String>,
    /// What the host itself asked models for it.
    pub spent: SideSpending,
}

/// What kind of end a call had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEndKind {
    /// The tool did it.
    Done,
    /// It failed.
    Failed,
    /// The call itself was wrong: no such tool, arguments that do not fit. The model may correct it, once.
    Malformed,
    /// A person has to agree, and none is there.
    NeedsApproval,
    /// A rule, a grant or a person forbids it.
    Denied,
    /// It was cancelled.
    Cancelled,
}

impl CallEnd {
    /// An end that is nothing but a text.
    pub fn of(kind: CallEndKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            images: Vec::new(),
            handle: None,
            task: None,
            messages: Vec::new(),
            ended_tasks: Vec::new(),
            spent: SideSpending::default(),
        }
    }
}

/// A message for the model about something that ended beside its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMessage {
    /// The message.
    pub text: String,
    /// The background task whose end it tells.
    pub ended_task: Option<String>,
}

/// A result that was too long to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlongResult {
    /// All of it.
    pub text: String,
    /// What stands below what is shown: where all of it is.
    pub notice: String,
}

/// What runs the calls.
///
/// Approvals are the host's: it asks whom it can ask while a call runs, and an approval that nobody gives is an end like any other.
pub trait ToolHost: Send + Sync {
    /// The tools, in an order that does not change.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// The tools of a conversation that begins with `text`, or goes on after it was compacted to it; `None` when all are shown. What the
    /// host asked models for it is added to `spent`.
    fn select(
        &self,
        text: &str,
        spent: &mut SideSpending,
    ) -> impl Future<Output = Option<Vec<ToolDefinition>>> + Send {
        let _all = (text, spent);
        async { None }
    }

    /// The tools of these names that there still are, as they were selected; `None` when all are shown.
    fn selected(&self, names: &[String]) -> Option<Vec<ToolDefinition>> {
        let _all = names;
        None
    }

    /// The arguments of a call without what is for the model alone, for the comparison of calls.
    fn compared_arguments(&self, call: &ToolCall) -> String {
        call.arguments.to_json()
    }

    /// What a model is shown of a result, without what differs each time when nothing else does, for the comparison of results.
    fn compared_output(&self, text: &str) -> String {
        text.to_owned()
    }

    /// Is told before calls run what the session may use up, and what it has.
    fn meter(&self, limits: &BudgetLimits, spent: &Spent) {
        let _unused = (limits, spent);
    }

    /// Is told what the model's answer took that asks for the calls that follow.
    fn answered(&self, usage: &Usage) {
        let _unused = usage;
    }

    /// Whether a call changes nothing, so that it may run beside others.
    fn is_read_only(&self, call: &ToolCall) -> bool;

    /// Begins a turn; what ended in the background since the last one.
    fn begin_turn(&self) -> impl Future<Output = Vec<HostMessage>> + Send;

    /// What ended in the background since the turn began, or since this was asked last: the model hears of it with the results of its calls.
    fn ended_meanwhile(&self) -> impl Future<Output = Vec<HostMessage>> + Send {
        async { Vec::new() }
    }

    /// Counts the calls of one message, once.
    ///
    /// Errors: what the model is told in place of their results, when no further call is allowed.
    fn begin_batch(&self, n_calls: usize) -> Result<(), String>;

    /// Makes a call. `cancel` ends it soon; its end is awaited.
    fn call(
        &self,
        call: &ToolCall,
        cancel: &CancellationToken,
    ) -> impl Future<Output = CallEnd> + Send;

    /// All of a result of which only a part is shown because it is too long; none for any other. A host that keeps nothing has none.
    fn overlong(&self, end: &CallEnd) -> impl Future<Output = Option<OverlongResult>> + Send {
        let _ = end;
        async { None }
    }

    /// Keeps a result that leaves the conversation where the model can read it again; its handle.
    fn keep(&self, text: &str) -> impl Future<Output = Option<String>> + Send;

    /// What must not get lost when the conversation is compacted, a line each: approvals, tasks that run.
    fn standing(&self) -> impl Future<Output = Vec<String>> + Send;
}
