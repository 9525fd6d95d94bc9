//! A call on its way: request, checked call, call with its tool.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::argument::Arguments;
use crate::command::CommandLine;
use crate::id::{CallId, ConversationId, ToolName};
use crate::inquiry::GivenAnswers;
use crate::principal::Principal;
use crate::tool::Tool;

/// What came in through a door, not yet trusted. Who asks is said by the session, never by a request.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// The tool's name as given.
    pub tool: String,
    /// The arguments as given.
    pub arguments: Value,
    /// Answers to what the tool asked when the same call was made before.
    pub answers: Option<GivenAnswers>,
}

/// Which turn of an agent a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnContext {
    /// The turn: a UUID, as text.
    pub turn_id: String,
    /// The active goal, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_id: Option<String>,
    /// The active skill, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_name: Option<String>,
    /// When the turn began, in milliseconds since 1970.
    pub timestamp_ms: u64,
}

/// What is known of one call before anything is decided: which it is, whose it is, and where it stands. What is left of its time is the
/// engine's to say.
#[derive(Debug, Clone)]
pub struct CallFrame {
    /// Unique.
    pub id: CallId,
    /// Whose stored outputs it may read.
    pub conversation: ConversationId,
    /// Whose call it is.
    pub principal: Principal,
    /// The turn it belongs to, when its door has turns.
    pub turn: Option<TurnContext>,
    /// When it was asked for, in milliseconds since 1970.
    pub started_ms: i64,
}

impl CallFrame {
    /// A new call, asked for at `started_ms`.
    pub fn new(
        conversation: ConversationId,
        principal: Principal,
        turn: Option<TurnContext>,
        started_ms: i64,
    ) -> Self {
        Self {
            id: CallId::new(),
            conversation,
            principal,
            turn,
            started_ms,
        }
    }

    /// A call of a program that names nobody, in a conversation of its own and in no turn.
    pub fn alone() -> Self {
        Self::new(ConversationId::new(), Principal::PROGRAM, None, 0)
    }
}

/// A request whose tool exists and whose arguments agree with the schema.
#[derive(Debug, Clone)]
pub struct ResolvedCall {
    /// Its identity.
    pub frame: CallFrame,
    /// The tool it names. Shared: it is copied whenever the call is.
    pub tool: Arc<Tool>,
    /// Checked arguments.
    pub arguments: Arguments,
    /// Every path-valued argument, made absolute and resolved through symbolic links as far as it exists.
    pub paths: Vec<PathBuf>,
    /// Its command line, taken apart, when it is one for the shell.
    pub command: Option<CommandLine>,
    /// Whether what runs the tool holds any right to change something outside the call. The tool's own promise is not asked.
    pub can_change: bool,
    /// What its paths were found to be.
    pub files: FileFacts,
}

/// What the paths of a call were found to be before it runs. The guard of files decides again, on what is really reached.
#[derive(Debug, Clone, Default)]
pub struct FileFacts {
    /// Every path it names, both with a link at its end followed and not. Absolute, resolved.
    pub reach: Vec<PathBuf>,
    /// What programs obey among them, or in the directories among them that the call moves, copies or removes.
    pub obeyed: Vec<ObeyedPath>,
    /// Why the call cannot reach a path it names, in a sentence; only of tools that are known to take paths for what they are.
    pub outside: Option<String>,
    /// Why the call can do nothing with a path it names, in a sentence: `tools.file.rights` lets no tool do that. Of the same tools only.
    pub lacking: Option<String>,
}

/// A path a call names and would change, and what of the list of obeyed files it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObeyedPath {
    /// Absolute, resolved.
    pub path: PathBuf,
    /// The name on the list (`crate::obeyed`).
    pub name: &'static str,
    /// Whether it holds such a file rather than being one.
    pub inside: bool,
}

impl ResolvedCall {
    /// The tool's name.
    pub fn name(&self) -> &ToolName {
        &self.tool.name
    }
}

/// The names of arguments that hold a path, in every tool.
pub const PATH_ARGUMENTS: [&str; 6] = [
    "path",
    "source",
    "destination",
    "file",
    "directory",
    "file_path",
];
