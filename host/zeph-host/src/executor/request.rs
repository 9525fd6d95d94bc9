//! A call as it is asked for, and what its caller gives with it.

use serde_json::Value;
use zeph_core::inquiry::GivenAnswers;
use zeph_engine::Cancel;

use super::event::EventSink;
use crate::approval::ApprovalPrompt;

/// What is asked of a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool, by the name it is offered under.
    pub tool: String,
    /// The arguments: a JSON object, or null for none.
    pub arguments: Value,
    /// Answers to what the tool asked when the same call was made before.
    pub answers: Option<GivenAnswers>,
    /// The opaque name of the one it is made for, such as a user of a chat: it goes to the audit and to plugins. Without one the call is
    /// made for the caller of the session.
    pub caller_id: Option<String>,
}

impl ToolCall {
    /// A call of `tool`.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            answers: None,
            caller_id: None,
        }
    }

    /// The same call, made for `caller_id`.
    #[must_use]
    pub fn acting_for(self, caller_id: impl Into<String>) -> Self {
        Self {
            caller_id: Some(caller_id.into()),
            ..self
        }
    }

    /// The same call, with answers to what its tool asked ([`CallReport::asked`](crate::CallReport::asked)).
    #[must_use]
    pub fn answering(self, answers: GivenAnswers) -> Self {
        Self {
            answers: Some(answers),
            ..self
        }
    }
}

/// The caller's hold on a call. The default is a call that nobody follows, cancels or can be asked about.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// Ends the call. One token may stand for many calls.
    pub cancel: Cancel,
    /// Hears how it gets on.
    pub events: Option<EventSink>,
    /// Reaches a person who can agree to it; without one a call that asks is refused.
    pub ask: Option<ApprovalPrompt>,
    /// Characters of text that the caller would take at once, where that is more than the configured threshold.
    pub result_chars: Option<usize>,
}

impl CallOptions {
    /// Options that `cancel` ends the call with.
    pub fn cancelled_by(cancel: &Cancel) -> Self {
        Self {
            cancel: cancel.clone(),
            ..Self::default()
        }
    }
}
