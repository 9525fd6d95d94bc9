//! What a server offers, as the host uses it: within bounds, and without characters that deceive.

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool as McpTool};
use serde_json::Value;
use zeph_core::argument::Parameters;
use zeph_core::tool::Annotations;

/// Most of what a server may offer. What is beyond is omitted, and [`Definitions::notes`] says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionLimits {
    /// Tools, prompts, resources and templates: so many of each.
    pub n_each: usize,
    /// Pages of one list.
    pub n_pages: usize,
    /// Bytes of all definitions of one list.
    pub list_bytes: usize,
    /// Bytes of one definition.
    pub definition_bytes: usize,
    /// Bytes of a description of a tool, a prompt or a resource; a longer one is cut.
    pub description_bytes: usize,
    /// Bytes of a title or a description inside a schema; a longer one is cut.
    pub schema_text_bytes: usize,
    /// Bytes of the server's instructions; longer ones are cut.
    pub instructions_bytes: usize,
}

impl Default for DefinitionLimits {
    fn default() -> Self {
        Self {
            n_each: 1_000,
            n_pages: 100,
            list_bytes: 8 << 20,
            definition_bytes: 128 * 1024,
            description_bytes: 2_048,
            schema_text_bytes: 512,
            instructions_bytes: 8_192,
        }
    }
}

/// All that a server offers.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// In the order of the server; names are unique.
    pub tools: Vec<ToolDefinition>,
    /// In the order of the server; names are unique. Cleaned.
    pub prompts: Vec<Listed<Prompt>>,
    /// In the order of the server; URIs are unique. Cleaned.
    pub resources: Vec<Listed<Resource>>,
    /// In the order of the server; URI templates are unique. Cleaned.
    pub templates: Vec<Listed<ResourceTemplate>>,
    /// What was omitted or cut and why, one sentence each; a bounded number.
    pub notes: Vec<String>,
}

/// A definition in its two forms.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed<T> {
    /// To show and to pass on: cleaned of deceptive characters and bounded.
    pub shown: T,
    /// As the server sent it, for pins: any change of the server's is a change of this.
    pub sent: Value,
}

/// A tool of a server.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// The server's name for it, which calls take. 1 to 256 bytes without deceptive characters.
    pub name: String,
    /// A short human title, on one line.
    pub title: Option<String>,
    /// What it does, cleaned and bounded. Empty when the server says nothing.
    pub description: String,
    /// The arguments, descriptions cleaned and bounded.
    pub parameters: Parameters,
    /// JSON Schema of the structured part of a result. Results that disagree lose that part.
    pub output: Option<Value>,
    /// What the server promises. A hint of a stranger: no decision rests on it.
    pub annotations: Annotations,
    /// The two forms of the protocol, to pass on and to pin.
    pub listed: Listed<McpTool>,
}

impl Definitions {
    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}
