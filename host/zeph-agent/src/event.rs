//! What happens in a turn, for the view that shows it and the journal that keeps it.

use std::fmt;
use std::future::Future;
use std::time::Duration;
use zeph_core::text::counted;

use crate::budget::Exhausted;
use crate::error::ProviderError;
use crate::message::ToolCall;
use crate::tool_host::CallEnd;
use crate::transcript::TranscriptEntry;
use crate::usage::{Cost, Usage};

/// Something that happened.
#[derive(Debug)]
pub enum AgentEvent<'a> {
    /// A request is about to be sent.
    Waiting,
    /// More text of the model for the user.
    Text(&'a str),
    /// More readable reasoning of the model.
    Thinking(&'a str),
    /// An attempt failed, and another one follows.
    Retry {
        /// What went wrong, in one line.
        why: &'a str,
        /// How long is waited before.
        after: Duration,
        /// Whether what was shown since [`Waiting`](Self::Waiting) is void.
        discards: bool,
    },
    /// The model's answer is complete.
    Answered,
    /// A call is about to run.
    CallStarted(&'a ToolCall),
    /// A call has ended.
    CallEnded {
        /// The call.
        call: &'a ToolCall,
        /// How.
        end: &'a CallEnd,
        /// How long it took.
        duration: Duration,
    },
    /// What a request used up.
    Spent {
        /// Of the last request.
        usage: &'a Usage,
        /// What that cost, where prices are known.
        cost: Option<Cost>,
        /// What the session has cost, with all that was asked beside, as far as prices are known.
        session_cost: Cost,
        /// Tokens of the context now.
        context_tokens: u64,
    },
    /// A message for the model that nobody typed, such as the end of a background task.
    Message(&'a str),
    /// The conversation was compacted.
    Compacted {
        /// Tokens before, about.
        before: u64,
        /// Tokens after, about.
        after: u64,
    },
    /// A remark for the user.
    Notice(&'a str),
}

/// Is told what happens. It must not block for long: the turn waits for it.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn on(&self, event: AgentEvent<'_>);
}

/// Keeps a conversation.
pub trait Journal: Send + Sync {
    /// Appends entries; once it returns, they outlive the process.
    ///
    /// Errors: in words, for the user.
    fn append(
        &self,
        entries: &[TranscriptEntry],
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStatus {
    /// The model finished.
    Done,
    /// As many rounds of calls as `agent.max_tool_iterations` allows.
    IterationLimit {
        /// The bound.
        max: u32,
    },
    /// The model repeats itself.
    DoomLoop,
    /// 80 % of `agent.context_budget_tokens`.
    ContextFull,
    /// A bound of the budget.
    Budget(Exhausted),
    /// The answer was cut off, for this reason.
    Cut(String),
    /// The answer was empty.
    Empty,
    /// The model refused.
    Refused,
    /// It was cancelled.
    Interrupted,
    /// The provider failed.
    ProviderFailed(ProviderError),
    /// The conversation cannot be recorded.
    JournalFailed(String),
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// How it ended.
    pub status: TurnStatus,
    /// The model's last text.
    pub text: String,
    /// Whether a call needed an approval nobody could give.
    pub needs_approval: bool,
}

/// What a session has used up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SessionSpending {
    /// Tokens.
    pub usage: Usage,
    /// Money, as far as prices are known.
    pub cost: Cost,
    /// Requests to models.
    pub requests: u64,
    /// Calls of tools.
    pub calls: u64,
}

impl fmt::Display for TurnStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("Done."),
            Self::IterationLimit { max } => write!(
                f,
                "Stopping: {} of tool calls, as many as `agent.max_tool_iterations` allows.",
                counted(*max, "round", "rounds")
            ),
            Self::DoomLoop => f.write_str("Stopping: detected repeated identical tool outputs."),
            Self::ContextFull => f.write_str("Stopping: context window is nearly full."),
            Self::Budget(exhausted) => exhausted.fmt(f),
            Self::Cut(why) => write!(
                f,
                "Stopping: the answer was cut off ({why}); none of its calls ran."
            ),
            Self::Empty => f.write_str("Stopping: the answer was empty."),
            Self::Refused => f.write_str("Stopping: the model refused to answer."),
            Self::Interrupted => f.write_str("Interrupted."),
            Self::ProviderFailed(error) => error.fmt(f),
            Self::JournalFailed(problem) => {
                write!(f, "Stopping: the conversation cannot be stored: {problem}")
            }
        }
    }
}
