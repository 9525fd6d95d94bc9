//! How tools are served to clients of the Model Context Protocol.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// How `zeph-host serve` serves (`mcp.serve`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeSettings {
    /// How clients see the tools (`mcp.serve.expose`).
    pub expose: Expose,
    /// How long an approval that was asked for can be given (`mcp.serve.approval_ttl_secs`).
    pub approval_ttl: Duration,
    /// The longest request, in bytes: a body over HTTP, a line on standard input (`mcp.serve.max_body_bytes`).
    pub max_body_bytes: usize,
    /// Calls of all clients in progress at one time; further calls wait (`mcp.serve.max_concurrent_calls`).
    pub max_concurrent_calls: NonZeroUsize,
    /// How long calls may go on once the server ends (`mcp.serve.drain_timeout_secs`).
    pub drain_timeout: Duration,
    /// The name of this server among replicas, if it is one (`mcp.serve.replica`).
    pub replica: Option<String>,
    /// The file with the keys that all replicas seal with (`mcp.serve.seal_keys`).
    pub seal_keys: Option<PathBuf>,
    /// Whose files and commands replicas have (`mcp.serve.workspace`).
    pub workspace: Workspace,
    /// The authorisation server whose access tokens are accepted, when there is one (`mcp.serve.oauth`).
    pub oauth: Option<OAuthSettings>,
}

/// How clients see the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expose {
    /// Each as a tool of its own.
    All,
    /// Through `find_tool` and `call_tool`.
    Search,
    /// As [`Self::All`], until their definitions come to more than this many tokens (`mcp.serve.expose_auto_tokens`).
    Auto {
        /// Tokens, estimated.
        tokens_max: usize,
    },
}

/// Whose files and commands replicas have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workspace {
    /// Each its own.
    Own,
    /// All have the same files at the same paths; commands are each one's own.
    Shared,
    /// None.
    None,
}

/// An external authorisation server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthSettings {
    /// The `iss` of its tokens: a URL (`mcp.serve.oauth.issuer`).
    pub issuer: String,
    /// The `aud` its tokens must name (`mcp.serve.oauth.audience`).
    pub audience: String,
    /// Where its public keys are (`mcp.serve.oauth.jwks_url`).
    pub jwks_url: String,
}
