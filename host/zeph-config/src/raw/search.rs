//! The section `tools.search`, as it stands in files: what the plugin `search` is told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Code search.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSearch {
    /// A language server, through a server of `mcp.servers`.
    pub(crate) lsp: RawLsp,
}

/// A language server, reached through the tools of an MCP server.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLsp {
    #[schemars(length(max = 64), extend("x-project" = "never: plugins"))]
    pub(crate) server: String,
    #[schemars(range(min = 1, max = 60), extend("x-project" = "lower"))]
    pub(crate) timeout: u32,
    #[schemars(range(min = 0, max = 1), extend("x-project" = "never: plugins"))]
    pub(crate) first_line: u32,
    #[schemars(length(max = 3), extend("x-project" = "never: plugins"))]
    pub(crate) requests: Vec<RawLspRequest>,
}

/// One question that a language server answers.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawLspRequest {
    pub(crate) kind: RawLspKind,
    /// The server's own name for its tool.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) tool: String,
    /// What it is called with, each `ARGUMENT=VALUE`; `{name}`, `{path}`, `{uri}`, `{line}` and `{column}` stand for the place.
    #[schemars(length(max = 16))]
    pub(crate) arguments: Vec<String>,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawLspKind {
    Symbols,
    Definition,
    References,
}
