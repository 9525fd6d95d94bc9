//! `run --json`: what an agent does, as JSON objects, one a line. The types are the documented schema (`run --json-schema`).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use zeph_core::lifetime::Lifetime;

use crate::approval::ApprovalAnswer;

/// One line. The last one is a `result`, on every exit that can be caught.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum RunEvent {
    /// The first line: the session, which `--resume ID` continues.
    Session {
        /// Its ID.
        id: String,
        /// The provider's name in the configuration.
        provider: String,
        /// The model.
        model: String,
        /// Whether an earlier session goes on.
        resumed: bool,
    },
    /// A piece of the model's text.
    Text {
        /// The piece.
        text: String,
    },
    /// The model makes a call.
    ToolCall {
        /// Identifies the call; its result has the same.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments as the model wrote them: an object; a string where they are no JSON object, of 4 KiB at most.
        arguments: Value,
    },
    /// A call has ended.
    ToolResult {
        /// That of the call.
        call_id: String,
        /// The tool.
        tool: String,
        /// How it ended.
        status: CallStatus,
        /// What came of it. The model is shown this text; where the call was wrong, with advice to correct it, and where `tools.summarize_output`
        /// applies, a summary.
        text: String,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// A call needs approval.
    Approval {
        /// That of the call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Why it asks, and what would let it run.
        reason: String,
        /// What was answered; null when nobody did, or there is no one to ask.
        answer: Option<UserReply>,
    },
    /// Something that ended in the background, or a remark about the session.
    Message {
        /// The message.
        text: String,
    },
    /// What a request used up.
    Usage(RunUsage),
    /// Something went wrong; the run goes on, or the `result` follows.
    Error {
        /// What.
        message: String,
        /// In how many milliseconds it is tried again; null when it is not.
        retry_ms: Option<u64>,
        /// Whether the text since the last request is void.
        discards_text: bool,
    },
    /// The last line.
    Result {
        /// How the run ended.
        status: RunStatus,
        /// The model's last text.
        text: String,
        /// What the run used up.
        usage: RunUsage,
        /// Calls of tools that the run made.
        calls: u64,
        /// How many of them needed a person's answer, and how many that is of 100.
        approvals: ApprovalCount,
        /// The exit code of the process.
        exit_code: u8,
    },
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallStatus {
    /// The tool succeeded.
    Ok,
    /// It failed.
    Failed,
    /// The call named no tool, or its arguments do not fit.
    Invalid,
    /// It needs approval, and there is no one to ask.
    ApprovalNeeded,
    /// A rule, a grant or a person forbids it.
    Denied,
    /// It was cancelled.
    Cancelled,
}

/// What the user answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UserReply {
    /// This call may run.
    Once,
    /// Such calls may run in this conversation.
    Conversation,
    /// Such calls may run from now on.
    Always,
    /// The call may not run.
    Deny,
}

impl From<ApprovalAnswer> for UserReply {
    fn from(answer: ApprovalAnswer) -> Self {
        match answer {
            ApprovalAnswer::Approved(Lifetime::Once) => Self::Once,
            ApprovalAnswer::Approved(Lifetime::Session) => Self::Conversation,
            ApprovalAnswer::Approved(Lifetime::Always) => Self::Always,
            ApprovalAnswer::Denied => Self::Deny,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunStatus {
    /// The model finished.
    Done,
    /// `agent.max_tool_iterations`.
    IterationLimit,
    /// The model repeated the same calls.
    DoomLoop,
    /// 80% of `agent.context_budget_tokens`.
    ContextFull,
    /// `agent.max_cost_usd`, `agent.max_total_tokens` or `agent.max_wall_s`.
    Budget,
    /// The last answer was cut off.
    Cut,
    /// The last answer was empty.
    Empty,
    /// The model refused.
    Refused,
    /// The model finished, and a call needed an approval nobody could give.
    ApprovalNeeded,
    /// A signal.
    Interrupted,
    /// The provider failed.
    ProviderFailed,
    /// The run could not begin, or the host failed.
    Error,
}

/// Tokens and their price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct RunUsage {
    /// Input that was read anew.
    pub(crate) input_tokens: u64,
    /// Output.
    pub(crate) output_tokens: u64,
    /// Input read from the provider's cache.
    pub(crate) cache_read_tokens: u64,
    /// Input written to the provider's cache.
    pub(crate) cache_write_tokens: u64,
    /// How many of these tokens the provider did not report: they are estimated from bytes, and the cost with them.
    pub(crate) estimated_tokens: u64,
    /// By the prices of the configuration; null when it has none for the model.
    pub(crate) cost_usd: Option<f64>,
}

/// How often a person was needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ApprovalCount {
    /// Questions that were put, and calls that needed an answer nobody could give.
    pub(crate) asked: u64,
    /// The same of 100 calls.
    pub(crate) per_100_calls: u64,
}

impl ApprovalCount {
    /// Of a number of calls.
    pub(crate) fn of(asked: u64, calls: u64) -> Self {
        Self {
            asked,
            per_100_calls: asked.saturating_mul(100) / calls.max(1),
        }
    }
}

impl RunEvent {
    /// The line, with its end.
    pub(crate) fn line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

impl RunStatus {
    /// The exit code of the process.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::ApprovalNeeded => 5,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}

/// The JSON Schema of a line.
pub(crate) fn schema() -> Value {
    schemars::schema_for!(RunEvent).to_value()
}

#[cfg(test)]
mod tests {
    use super::{ApprovalCount, RunEvent, RunStatus, RunUsage, schema};

    #[test]
    fn a_line_is_one_object_with_its_type() {
        let text = "two\nlines\u{1b}[2J".to_owned();
        let line = RunEvent::Text { text }.line();
        assert_eq!(
            line,
            "{\"type\":\"text\",\"text\":\"two\\nlines\\u001b[2J\"}\n"
        );
        let result = RunEvent::Result {
            status: RunStatus::DoomLoop,
            text: String::new(),
            usage: RunUsage::default(),
            calls: 0,
            approvals: ApprovalCount::default(),
            exit_code: RunStatus::DoomLoop.exit_code(),
        };
        let value: serde_json::Value = serde_json::from_str(&result.line()).unwrap();
        assert_eq!(
            (value["type"].as_str(), value["status"].as_str()),
            (Some("result"), Some("doom_loop"))
        );
        assert_eq!(value["exit_code"], 1);
    }

    #[test]
    fn the_schema_names_every_type() {
        let text = schema().to_string();
        for name in [
            "session",
            "text",
            "tool_call",
            "tool_result",
            "approval",
            "message",
            "usage",
            "error",
            "result",
        ] {
            assert!(text.contains(&format!("\"const\":\"{name}\"")), "{name}");
        }
    }
}
