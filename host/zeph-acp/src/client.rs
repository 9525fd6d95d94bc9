//! The methods of a client: its user's permission, its files, its terminals.

use serde::{Deserialize, Serialize};

use crate::agent::NamedValue;
use crate::update::ToolCallUpdate;

/// Asks the user.
pub const REQUEST_PERMISSION: &str = "session/request_permission";
/// Reads a file as the editor has it.
pub const READ_TEXT_FILE: &str = "fs/read_text_file";
/// Writes a file through the editor.
pub const WRITE_TEXT_FILE: &str = "fs/write_text_file";
/// Starts a command in a terminal.
pub const TERMINAL_CREATE: &str = "terminal/create";
/// What it has printed.
pub const TERMINAL_OUTPUT: &str = "terminal/output";
/// Waits for its end.
pub const TERMINAL_WAIT: &str = "terminal/wait_for_exit";
/// Ends it.
pub const TERMINAL_KILL: &str = "terminal/kill";
/// Gives the terminal up.
pub const TERMINAL_RELEASE: &str = "terminal/release";
/// Asks the user to fill in a form.
pub const ELICITATION_CREATE: &str = "elicitation/create";

/// `elicitation/create`: a form, for a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationRequest {
    /// The session.
    pub session_id: String,
    /// The call that asks.
    pub tool_call_id: String,
    /// `mode`, `message` and `requestedSchema`, as MCP has them.
    #[serde(flatten)]
    pub form: serde_json::Value,
}

/// The answer to `elicitation/create`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationResponse {
    /// `accept`, `decline`, `cancel`; what is none of them is no answer.
    pub action: String,
    /// What was filled in, where it was accepted.
    #[serde(default)]
    pub content: Option<serde_json::Value>,
}

/// `session/request_permission`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// The session.
    pub session_id: String,
    /// The call that asks.
    pub tool_call: ToolCallUpdate,
    /// What can be answered.
    pub options: Vec<PermissionOption>,
}

/// An answer that can be given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    /// Its id.
    pub option_id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// What it means.
    pub kind: PermissionKind,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the meaning")]
pub enum PermissionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

/// The answer to `session/request_permission`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PermissionResponse {
    /// What the user chose.
    pub outcome: PermissionOutcome,
}

/// What the user chose.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PermissionOutcome {
    /// The turn was cancelled.
    Cancelled,
    /// One of the options.
    #[serde(rename_all = "camelCase")]
    Selected {
        /// Its id.
        option_id: String,
    },
}

/// `fs/read_text_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadTextFileRequest {
    /// The session.
    pub session_id: String,
    /// The file, absolute.
    pub path: String,
}

/// The answer to `fs/read_text_file`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadTextFileResponse {
    /// What the editor has.
    pub content: String,
}

/// `fs/write_text_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteTextFileRequest {
    /// The session.
    pub session_id: String,
    /// The file, absolute.
    pub path: String,
    /// All of it.
    pub content: String,
}

/// `terminal/create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateTerminalRequest {
    /// The session.
    pub session_id: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables besides those of the client.
    pub env: Vec<NamedValue>,
    /// Where it starts, absolute.
    pub cwd: String,
    /// Bytes of output that are kept, from the end.
    pub output_byte_limit: u64,
}

/// The answer to `terminal/create`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateTerminalResponse {
    /// The terminal.
    pub terminal_id: String,
}

/// The other methods of `terminal/`: a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfTerminal {
    /// The session.
    pub session_id: String,
    /// The terminal.
    pub terminal_id: String,
}

/// The answer to `terminal/output`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminalOutputResponse {
    /// What was printed, as far as it is kept.
    pub output: String,
    /// Whether its beginning is gone.
    #[serde(default)]
    pub truncated: bool,
    /// How the command ended, once it has.
    #[serde(default)]
    pub exit_status: Option<TerminalExit>,
}

/// How a command ended: the answer to `terminal/wait_for_exit`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminalExit {
    /// None when a signal ended it.
    #[serde(default)]
    pub exit_code: Option<u32>,
    /// The signal that ended it.
    #[serde(default)]
    pub signal: Option<String>,
}

/// An answer without fields, which some clients write as `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "serde::de::IgnoredAny")]
pub struct Acknowledged;

impl From<serde::de::IgnoredAny> for Acknowledged {
    fn from(_any: serde::de::IgnoredAny) -> Self {
        Self
    }
}
