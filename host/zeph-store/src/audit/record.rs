//! What is recorded of a call, and how it looks as JSON: null and false are omitted.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::HostUse;
use zeph_core::id::{CallId, ConversationId, OverflowId};

use crate::approvals::Agreement;

/// A call that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BeginRecord {
    /// The call; unique.
    pub call_id: CallId,
    /// When, in Unix milliseconds. In JSON: Unix seconds as a string.
    #[serde(rename = "timestamp", serialize_with = "unix_seconds")]
    pub at_ms: i64,
    /// The tool: `plugin__tool` for one of a plugin that was installed, `mcp_server_tool` for one of an MCP server, else its name; as the
    /// caller named it when there is no such tool.
    pub tool: String,
    /// The plugin that offers it; none for a tool of the host itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The digest of that plugin's component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin_digest: Option<String>,
    /// The MCP server that offers it, by its name in the configuration; none for other tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_server_id: Option<String>,
    /// The arguments as compact JSON, shortened and redacted by the caller.
    pub command: String,
    /// The conversation it belongs to.
    pub conversation_id: ConversationId,
    /// The process that makes the call; none in rows of older programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostProcess>,
    /// What kind of tool makes the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_source: Option<ClaimSource>,
    /// The opaque name of the principal; none for a person at the terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller_id: Option<String>,
    /// The turn of the agent it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The goal of that turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_id: Option<String>,
    /// The skill in use in that turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_name: Option<String>,
    /// How it was decided: the rule, and what every check that had something to say found; none when nothing was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_match: Option<String>,
    /// Who agreed to it and how, when it would not have run without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// What the model said that judges calls, as `ALLOW` or `DENY: reason`; none when the call was not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adversarial_verdict: Option<String>,
    /// What ties the call to others of one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The directory relative paths started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_cwd: Option<String>,
    /// What the checks of the host know of it besides.
    #[serde(flatten)]
    pub facts: BeginFacts,
}

/// What the checks of the host know of a call before it runs. Each field is filled in by the check that knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct BeginFacts {
    /// The user of the system that the call runs as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What confines the call besides its grants, in the words of the configuration; none where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// How far the caller and the tool were trusted, as one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
    /// The labels of what the call passes on, such as `private` or `untrusted`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The decision that rules which only observe would have made, with the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
    /// What the model's answer that asked for the call cost, where the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenUse>,
    /// Whether only a person could let it run who had not agreed to it before: one was asked, or nobody could be. None for what a person
    /// does at the terminal, and for what is no call. In JSON only when it is so.
    #[serde(skip_serializing_if = "is_not_asked")]
    pub asked: Option<bool>,
}

/// Tokens of a request to a model and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TokenUse {
    /// Of the request.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
}

/// A process of the host, told from every other that had its number or will have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostProcess {
    /// Its number.
    pub pid: u32,
    /// Where and when it was started, in the words of the caller; no two processes of one number have the same.
    pub start: String,
}

/// A call that has ended, however it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finish {
    /// The call that began.
    pub call_id: CallId,
    /// When, in Unix milliseconds. In JSON: Unix seconds as a string.
    #[serde(rename = "timestamp", serialize_with = "unix_seconds")]
    pub at_ms: i64,
    /// How it ended.
    #[serde(flatten)]
    pub ending: Ending,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// The outcome.
    pub result: AuditResult,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The kind of failure; none for a success. In JSON: `error_category`, `error_domain`, `error_phase`.
    #[serde(flatten)]
    pub failed: Option<Failed>,
    /// Whether the model saw less than the full output.
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// Where the full output is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow_id: Option<OverflowId>,
    /// The exit code of a command; none when a signal ended it, and for what is no command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How much of the jail stood around a command: `full`, `landlock-only` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_env: Option<String>,
    /// The hosts it reached over the network, with connections and bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostUse>,
    /// How often it was made, when it was made again after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// How old the answer of an earlier call was that it was answered with, in milliseconds; none when it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_age_ms: Option<u64>,
    /// Bytes of that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// The labels of the result, such as `private` or `untrusted`. In JSON: `result_labels`.
    #[serde(rename = "result_labels", skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// The place of a failure in the taxonomy; the domain follows from the category.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub category: ErrorCategory,
    /// In which part of the call.
    pub phase: ErrorPhase,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AuditResult {
    /// The tool did its work.
    Success,
    /// It was refused.
    Blocked {
        /// By what.
        reason: String,
    },
    /// It failed.
    Error {
        /// How.
        message: String,
    },
    /// A time limit passed.
    Timeout,
    /// The caller gave up.
    Cancelled,
}

/// What kind of tool a result comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimSource {
    /// The native shell.
    Shell,
    /// Files.
    FileSystem,
    /// A page of the web.
    WebScrape,
    /// A search of the web.
    WebSearch,
    /// A server of the Model Context Protocol.
    Mcp,
    /// Another agent.
    A2a,
    /// A search of source code.
    CodeSearch,
    /// Compilers and linters.
    Diagnostics,
    /// Stored memory.
    Memory,
    /// A moderation service.
    Moderation,
}

/// One row of the table: a call, and its end when it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditRecord {
    /// How it began.
    #[serde(flatten)]
    pub begin: BeginRecord,
    /// When it ended, in Unix milliseconds; none while it runs, or when the host died. Not in JSON: the time and the
    /// duration say it.
    #[serde(skip)]
    pub finished_at_ms: Option<i64>,
    /// How it ended.
    #[serde(flatten)]
    pub ending: Option<Ending>,
}

/// One line of the audit file: `{"event":"begin",…}` or `{"event":"finish",…}`.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditEvent<'a> {
    /// A call is about to be made.
    Begin(&'a BeginRecord),
    /// A call has ended.
    Finish(&'a Finish),
}

impl AuditEvent<'_> {
    /// When it happened, in Unix milliseconds.
    pub(crate) fn at_ms(&self) -> i64 {
        match self {
            Self::Begin(begin) => begin.at_ms,
            Self::Finish(finish) => finish.at_ms,
        }
    }
}

impl ClaimSource {
    /// Every source.
    pub const ALL: [Self; 10] = [
        Self::Shell,
        Self::FileSystem,
        Self::WebScrape,
        Self::WebSearch,
        Self::Mcp,
        Self::A2a,
        Self::CodeSearch,
        Self::Diagnostics,
        Self::Memory,
        Self::Moderation,
    ];
}

impl Serialize for Failed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Failed", 3)?;
        fields.serialize_field("error_category", &self.category)?;
        fields.serialize_field("error_domain", &self.category.domain())?;
        fields.serialize_field("error_phase", &self.phase)?;
        fields.end()
    }
}

fn unix_seconds<S: Serializer>(at_ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&at_ms.div_euclid(1000))
}

fn is_not_asked(asked: &Option<bool>) -> bool {
    *asked != Some(true)
}

fn is_false(flag: &bool) -> bool {
    !flag
}
