//! What a session tells its client (`session/update`).

use serde::Serialize;
use serde_json::Value;

use crate::content::ContentBlock;

/// The method.
pub const SESSION_UPDATE: &str = "session/update";

/// The parameters of `session/update`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNotification<'a> {
    /// The session.
    pub session_id: &'a str,
    /// What it tells.
    pub update: &'a SessionUpdate,
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub enum SessionUpdate {
    /// A piece of what the user said, when a session is loaded.
    UserMessageChunk {
        /// The piece.
        content: ContentBlock,
    },
    /// A piece of what the model says.
    AgentMessageChunk {
        /// The piece.
        content: ContentBlock,
    },
    /// A piece of the model's reasoning.
    AgentThoughtChunk {
        /// The piece.
        content: ContentBlock,
    },
    /// A call begins.
    ToolCall(ToolCallUpdate),
    /// What is new about a call.
    ToolCallUpdate(ToolCallUpdate),
    /// What the agent is going to do, as a whole.
    Plan {
        /// Its steps.
        entries: Vec<PlanEntry>,
    },
    /// The commands of the session.
    #[serde(rename_all = "camelCase")]
    AvailableCommandsUpdate {
        /// All of them.
        available_commands: Vec<AvailableCommand>,
    },
    /// The mode has changed.
    #[serde(rename_all = "camelCase")]
    CurrentModeUpdate {
        /// The mode.
        current_mode_id: String,
    },
    /// The options have changed.
    #[serde(rename_all = "camelCase")]
    ConfigOptionUpdate {
        /// All of them.
        config_options: Vec<crate::agent::ConfigOption>,
    },
    /// What the session has used up.
    UsageUpdate {
        /// Tokens of the conversation now.
        used: u64,
        /// Tokens it may come to.
        size: u64,
        /// What the session cost, where prices are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// How much.
    pub amount: f64,
    /// Such as `USD`.
    pub currency: &'static str,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanEntry {
    /// What is to be done.
    pub content: String,
    /// `high`, `medium` or `low`.
    pub priority: &'static str,
    /// `pending`, `in_progress` or `completed`.
    pub status: &'static str,
}

/// A command that a prompt can consist of: `/name` and what follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AvailableCommand {
    /// Without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What follows it, if anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<CommandInput>,
}

/// What follows a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandInput {
    /// Shown while nothing is typed.
    pub hint: String,
}

/// A call, or what is new about it: fields that are not there stay as they were.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallUpdate {
    /// Unique in the session.
    pub tool_call_id: String,
    /// One line for people. A call that begins has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What kind of work it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolCallStatus>,
    /// What it shows; replaces what was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<ToolCallContent>>,
    /// The files it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<ToolCallLocation>>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<Value>,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<Value>,
}

/// What kind of work a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the meaning")]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Fetch,
    Other,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the meaning")]
pub enum ToolCallStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// Something a call shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolCallContent {
    /// Text or a picture.
    Content {
        /// It.
        content: ContentBlock,
    },
    /// A change of a file, or a part of it.
    #[serde(rename_all = "camelCase")]
    Diff {
        /// The file.
        path: String,
        /// What was there; none in a new file.
        old_text: Option<String>,
        /// What is there now.
        new_text: String,
    },
    /// A terminal of the client, which shows it live. Named before it is released.
    #[serde(rename_all = "camelCase")]
    Terminal {
        /// The terminal.
        terminal_id: String,
    },
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolCallLocation {
    /// The file.
    pub path: String,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl ToolCallContent {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Content {
            content: ContentBlock::text(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind};

    #[test]
    fn an_update_holds_what_is_new_and_nothing_else() {
        let update = SessionUpdate::ToolCallUpdate(ToolCallUpdate {
            tool_call_id: "1".to_owned(),
            status: Some(ToolCallStatus::Completed),
            kind: Some(ToolKind::Edit),
            content: Some(vec![ToolCallContent::Diff {
                path: "/a".to_owned(),
                old_text: None,
                new_text: "b".to_owned(),
            }]),
            ..ToolCallUpdate::default()
        });
        assert_eq!(
            serde_json::to_value(update).unwrap(),
            json!({
                "sessionUpdate": "tool_call_update",
                "toolCallId": "1",
                "status": "completed",
                "kind": "edit",
                "content": [{"type": "diff", "path": "/a", "oldText": null, "newText": "b"}],
            })
        );
    }
}
