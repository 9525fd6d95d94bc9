//! `[mcp]`: what `zeph-host serve` may be told, and the servers whose tools are used.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::servers::RawServer;

/// The Model Context Protocol.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawMcp {
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "lower"))]
    pub(crate) tool_timeout: u32,
    #[schemars(range(min = 1, max = 3600), extend("x-project" = "lower"))]
    pub(crate) start_timeout: u32,
    /// MCP servers whose tools are used, by name.
    #[serde(default)]
    #[schemars(extend("x-project" = "narrow-server"))]
    pub(crate) servers: BTreeMap<String, RawServer>,
    /// `zeph-host serve`.
    pub(crate) serve: RawServe,
}

/// `zeph-host serve`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawServe {
    #[schemars(extend("x-project" = "never: serve"))]
    pub(crate) expose: RawExpose,
    #[schemars(range(min = 1, max = 10_000_000), extend("x-project" = "never: serve"))]
    pub(crate) expose_auto_tokens: u32,
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "never: serve"))]
    pub(crate) approval_ttl_secs: u32,
    #[schemars(range(min = 1024, max = 1_073_741_824), extend("x-project" = "never: serve"))]
    pub(crate) max_body_bytes: u32,
    #[schemars(range(min = 1, max = 1024), extend("x-project" = "never: serve"))]
    pub(crate) max_concurrent_calls: u32,
    #[schemars(range(max = 3600), extend("x-project" = "never: serve"))]
    pub(crate) drain_timeout_secs: u32,
    #[schemars(length(max = 32), extend("x-project" = "never: serve"))]
    pub(crate) replica: String,
    #[schemars(length(max = 4096), extend("x-project" = "never: serve"))]
    pub(crate) seal_keys: String,
    #[schemars(extend("x-project" = "never: serve"))]
    pub(crate) workspace: RawWorkspace,
    /// An external authorisation server.
    pub(crate) oauth: RawOAuth,
}

/// How clients see the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawExpose {
    All,
    Search,
    Auto,
}

/// Whose files and commands replicas have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawWorkspace {
    Own,
    Shared,
    None,
}

/// An external authorisation server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOAuth {
    #[schemars(length(max = 2_000), extend("x-project" = "never: serve"))]
    pub(crate) issuer: String,
    #[schemars(length(max = 2_000), extend("x-project" = "never: serve"))]
    pub(crate) audience: String,
    #[schemars(length(max = 2_000), extend("x-project" = "never: serve"))]
    pub(crate) jwks_url: String,
}
