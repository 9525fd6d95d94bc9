//! The methods of an agent: what clients ask for, and the answers. Paths are absolute.

use serde::{Deserialize, Deserializer, Serialize};

use crate::content::ContentBlock;

/// `initialize`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeRequest {
    /// The newest version the client knows.
    pub protocol_version: u64,
    /// What it can do.
    #[serde(default, deserialize_with = "or_default")]
    pub client_capabilities: ClientCapabilities,
    /// Who it is.
    #[serde(default, deserialize_with = "or_default")]
    pub client_info: Option<Implementation>,
}

/// What a client can do. What it does not name it cannot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct ClientCapabilities {
    /// Its files.
    #[serde(default, deserialize_with = "or_default")]
    pub fs: FileSystemCapabilities,
    /// Whether it has all methods of `terminal/`.
    #[serde(default, deserialize_with = "or_default")]
    pub terminal: bool,
    /// What of `elicitation/create` it has.
    #[serde(default, deserialize_with = "or_default")]
    pub elicitation: ElicitationCapabilities,
}

/// What a client can ask its user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct ElicitationCapabilities {
    /// Whether it can show a form: there is an object of that name, whatever is in it.
    #[serde(default, deserialize_with = "is_there")]
    pub form: bool,
}

/// What a client can do with files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSystemCapabilities {
    /// Whether it has `fs/read_text_file`.
    #[serde(default, deserialize_with = "or_default")]
    pub read_text_file: bool,
    /// Whether it has `fs/write_text_file`.
    #[serde(default, deserialize_with = "or_default")]
    pub write_text_file: bool,
}

/// A program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Implementation {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version.
    #[serde(default)]
    pub version: String,
}

/// The answer to `initialize`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse {
    /// The version that is spoken.
    pub protocol_version: u16,
    /// What the agent can do.
    pub agent_capabilities: AgentCapabilities,
    /// Who it is.
    pub agent_info: Implementation,
    /// How it is logged in to; always empty: the operator configures keys.
    pub auth_methods: Vec<serde_json::Value>,
}

/// What an agent can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCapabilities {
    /// Whether it has `session/load`.
    pub load_session: bool,
    /// What prompts may hold besides text and links.
    pub prompt_capabilities: PromptCapabilities,
    /// How it reaches MCP servers besides standard streams.
    pub mcp_capabilities: McpCapabilities,
    /// Its methods of `session/` that are not in every agent.
    pub session_capabilities: SessionCapabilities,
}

/// What prompts may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the meaning")]
pub struct PromptCapabilities {
    pub image: bool,
    pub audio: bool,
    pub embedded_context: bool,
}

/// How MCP servers are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names are the meaning")]
pub struct McpCapabilities {
    pub http: bool,
    pub sse: bool,
}

/// An object without fields: something is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Present {}

/// Methods that an agent has: each that is there is `{}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the methods")]
pub struct SessionCapabilities {
    pub list: Present,
    pub delete: Present,
    pub resume: Present,
    pub close: Present,
    pub additional_directories: Present,
}

/// `session/new`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionRequest {
    /// The working directory.
    pub cwd: String,
    /// Directories besides it.
    #[serde(default, deserialize_with = "or_default")]
    pub additional_directories: Vec<String>,
    /// Servers whose tools the agent shall have.
    #[serde(default, deserialize_with = "or_default")]
    pub mcp_servers: Vec<McpServer>,
}

/// `session/load` and `session/resume`: a session that goes on, at this place.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadSessionRequest {
    /// The session.
    pub session_id: String,
    /// Where, and with what.
    #[serde(flatten)]
    pub place: NewSessionRequest,
}

/// An MCP server of the client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(untagged)]
pub enum McpServer {
    /// One that is reached over the network.
    Remote {
        /// `http` or `sse`.
        #[serde(rename = "type")]
        kind: String,
        /// Its name.
        name: String,
        /// Where it is.
        url: String,
        /// Headers of each request.
        #[serde(default)]
        headers: Vec<NamedValue>,
    },
    /// One that is a program.
    Stdio {
        /// Its name.
        name: String,
        /// The program.
        command: String,
        /// Its arguments.
        #[serde(default)]
        args: Vec<String>,
        /// Its variables.
        #[serde(default)]
        env: Vec<NamedValue>,
    },
}

/// A variable or a header. Its value may be a secret.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedValue {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl std::fmt::Debug for NamedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=…", self.name)
    }
}

/// The answer to `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionResponse {
    /// The session, when it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How much it may do.
    pub modes: SessionModes,
    /// What can be chosen.
    pub config_options: Vec<ConfigOption>,
}

/// The modes of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionModes {
    /// The one it is in.
    pub current_mode_id: String,
    /// All of them.
    pub available_modes: Vec<SessionMode>,
}

/// A mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names are the meaning")]
pub struct SessionMode {
    pub id: String,
    pub name: String,
    pub description: String,
}

/// Something that can be chosen, one of several values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigOption {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What kind it is of: `mode` or `model`.
    pub category: String,
    /// Always `select`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The value it has.
    pub current_value: String,
    /// Those it may have.
    pub options: Vec<ConfigValue>,
}

/// A value that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigValue {
    /// The value.
    pub value: String,
    /// Its name for people.
    pub name: String,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// `session/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ListSessionsRequest {
    /// Those of this directory alone.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Where the page begins, as an earlier answer says.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The answer to `session/list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListSessionsResponse {
    /// The sessions used last come first.
    pub sessions: Vec<SessionInfo>,
    /// Where the next page begins; none on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Its id.
    pub session_id: String,
    /// Where it worked.
    pub cwd: String,
    /// The beginning of its first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it was used last, as RFC 3339 says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
}

/// `session/prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptRequest {
    /// The session.
    pub session_id: String,
    /// What the user says.
    pub prompt: Vec<ContentBlock>,
}

/// The answer to `session/prompt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptResponse {
    /// How the turn ended.
    pub stop_reason: StopReason,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the meaning")]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}

/// `session/cancel`, `session/close` and `session/delete`: a session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfSession {
    /// The session.
    pub session_id: String,
}

/// `session/set_mode`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetModeRequest {
    /// The session.
    pub session_id: String,
    /// The mode.
    pub mode_id: String,
}

/// `session/set_config_option`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigOptionRequest {
    /// The session.
    pub session_id: String,
    /// The option.
    pub config_id: String,
    /// Its new value.
    pub value: serde_json::Value,
}

/// The answer to `session/set_config_option`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigOptionResponse {
    /// All options.
    pub config_options: Vec<ConfigOption>,
}

/// `$/cancel_request`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequest {
    /// The request that is not wanted any more.
    pub request_id: crate::rpc::RequestId,
}

/// A value that is `null`, or of a form that nobody expects, counts as one that is not there: this is how the protocol asks for
/// optional fields to be read.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.is_object())
}

#[cfg(test)]
mod tests;
