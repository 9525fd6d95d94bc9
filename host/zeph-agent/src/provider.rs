//! What the loop asks of a model, and what it gets: one small trait over all providers.

use std::fmt::Debug;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compaction::{TOKEN_BYTES, turn_bytes};
use crate::error::ProviderError;
use crate::message::{AssistantTurn, Origin, Turn};
use crate::usage::{Prices, Usage};

/// A future behind a trait object.
pub type Pending<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What events of an answer are handed to, as they arrive. It must not block.
pub type OnEvent<'a> = &'a mut (dyn FnMut(ModelEvent) + Send);

/// A model that answers.
pub trait Provider: Debug + Send + Sync {
    /// Who answers: what its turns are marked with.
    fn origin(&self) -> &Origin;

    /// What its tokens cost.
    fn prices(&self) -> Prices;

    /// Sends a conversation and waits for the whole answer. What arrives in the meantime goes to `on_event`.
    ///
    /// Failures that pass are tried again, as often as the operator allows, and each is an event.
    /// Errors: [`ProviderError`], once nothing helps; an answer without an end is one (`Cut`). Dropping the future cancels the request.
    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_event: OnEvent<'a>,
    ) -> Pending<'a, Result<Reply, ProviderError>>;

    /// The request as it would be sent, without the key.
    fn preview(&self, request: ModelRequest<'_>) -> RequestPreview;
}

/// A conversation, as a model is shown it.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The system prompt, in parts that are separated by an empty line. Byte for byte the same in each request of a conversation.
    pub system: &'a [String],
    /// The tools, in an order that stays. The same in each request of a conversation.
    pub tools: &'a [ToolDefinition],
    /// The conversation; begins and ends with a turn of the user.
    pub turns: &'a [Turn<'a>],
    /// What else is asked for.
    pub options: RequestOptions,
}

/// What a single request asks for besides what the operator set.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RequestOptions {
    /// Most tokens of the answer.
    pub max_tokens: Option<u32>,
    /// How much chance there is in it.
    pub temperature: Option<f64>,
    /// Whether the model must not call tools. They are sent nevertheless, so that caches still fit.
    pub forbids_calls: bool,
}

/// A tool, as a model is shown it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// `[A-Za-z0-9_-]`, at most 64.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments: an object.
    pub schema: Value,
}

/// A piece of news of an answer that is not complete yet.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text for the user.
    Text(String),
    /// More reasoning.
    Thinking(String),
    /// A call began. It must not run before the whole answer is there.
    CallStarted {
        /// The call's; the final one may differ where a provider names two calls alike.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// More of the text of the arguments of a call.
    CallArguments {
        /// The call's.
        id: String,
        /// The next piece.
        text: String,
    },
    /// What the attempt took so far; replaces what was said before.
    Usage(Usage),
    /// The attempt failed and another one follows. Everything that was shown of it is void.
    Retry {
        /// The number of the attempt that follows: 2 or more.
        attempt: u32,
        /// How long is waited before.
        after: Duration,
        /// What went wrong, in one line.
        why: String,
        /// Whether something of the failed attempt was handed out.
        discards: bool,
    },
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// What was said; its calls run only when [`AssistantTurn::calls_may_run`].
    pub turn: AssistantTurn,
    /// What it took, with failed attempts as far as their providers counted them.
    pub usage: Usage,
    /// How many attempts were made.
    pub attempts: u32,
}

impl Reply {
    /// The reply with about what it took, where its provider does not report that: bounds hold there as well.
    pub(crate) fn with_estimate(mut self, request_tokens: impl FnOnce() -> u64) -> Self {
        if self.usage.prompt() == 0 {
            self.usage.input = request_tokens();
            self.usage.estimated = self.usage.input;
        }
        if self.usage.output == 0 {
            self.usage.output = turn_bytes(&self.turn) as u64 / TOKEN_BYTES;
            self.usage.estimated = self.usage.estimated.saturating_add(self.usage.output);
        }
        self
    }
}

/// What the attempts at one answer took, read from their events: known also of an answer that fails, or is waited for no longer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SeenUsage {
    before: Usage,
    attempt: Usage,
    answer_bytes: u64,
}

impl SeenUsage {
    pub(crate) fn note(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text(text)
            | ModelEvent::Thinking(text)
            | ModelEvent::CallArguments { text, .. } => self.answer_bytes += text.len() as u64,
            ModelEvent::CallStarted { .. } => {}
            ModelEvent::Usage(usage) => self.attempt = *usage,
            ModelEvent::Retry { .. } => {
                self.before += self.attempt;
                (self.attempt, self.answer_bytes) = Default::default();
            }
        }
    }

    /// All of it. What a provider answered and did not report is estimated; `request_tokens` is about what the request takes.
    pub(crate) fn total(&self, request_tokens: impl FnOnce() -> u64) -> Usage {
        let mut attempt = self.attempt;
        if self.answer_bytes > 0 && attempt.prompt() == 0 {
            attempt.input = request_tokens();
            attempt.estimated = attempt.estimated.saturating_add(attempt.input);
        }
        let unreported = (self.answer_bytes / TOKEN_BYTES).saturating_sub(attempt.output);
        attempt.output = attempt.output.saturating_add(unreported);
        attempt.estimated = attempt.estimated.saturating_add(unreported);
        self.before + attempt
    }
}

/// A request that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPreview {
    /// Always `POST`; where it would go to.
    pub url: String,
    /// The body, as JSON.
    pub body: String,
}
