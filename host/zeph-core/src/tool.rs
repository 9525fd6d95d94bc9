//! Tools, as models see them.

use serde::{Deserialize, Serialize};

use crate::argument::Parameters;
use crate::id::{PluginId, ToolName};
use crate::schema::Schema;
use crate::server::ServerTool;

/// What kind of work a tool does, for user interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    Think,
    Other,
}

/// Promises a tool makes about its calls. Trusted only as far as the plugin's grants allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Annotations {
    /// Changes nothing outside the call.
    pub read_only: bool,
    /// May remove or overwrite what it cannot restore.
    pub destructive: bool,
    /// A second identical call changes nothing more.
    pub idempotent: bool,
    /// Touches things outside the granted directories, such as the network.
    pub open_world: bool,
}

/// Who runs a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// A wasm component.
    Wasm(PluginId),
    /// The host itself.
    Builtin,
    /// The shell: a program of this machine, in the jail.
    Shell,
    /// A server of the Model Context Protocol, which knows the tool by a name of its own.
    Mcp(ServerTool),
}

/// A named function with a JSON Schema, as shown to the model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tool {
    /// Unique in the catalog.
    pub name: ToolName,
    /// A short human title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does and when to use it, written for a model.
    pub description: String,
    /// The arguments.
    pub parameters: Parameters,
    /// JSON Schema of the structured part of a success, if every success has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Schema>,
    /// For user interfaces.
    pub kind: ToolKind,
    /// Its annotations.
    pub annotations: Annotations,
    /// Who runs it.
    pub backend: Backend,
}

impl Tool {
    /// The name that does not depend on other tools: `plugin__tool` for a tool of a component, `mcp_server_tool` for one of a server, the
    /// plain name for a tool of the host.
    ///
    /// A tool of a component is offered under this name or under its last part. A name that contains `__` is offered in full only, so
    /// that it cannot be confused with a tool of another component.
    pub fn qualified_name(&self) -> String {
        let plugin = match &self.backend {
            Backend::Wasm(plugin) => plugin,
            Backend::Mcp(tool) => return tool.plain_name().to_string(),
            Backend::Builtin | Backend::Shell => return self.name.to_string(),
        };
        let prefix = format!("{plugin}__");
        match self.name.as_str().starts_with(&prefix) {
            true => self.name.to_string(),
            false => format!("{prefix}{}", self.name),
        }
    }
}
