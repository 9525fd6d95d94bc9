//! `[mcp.servers.NAME]`, exactly as written. The keys of these tables have no built-in values to merge: a server is set as a whole.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// One MCP server, whose tools are offered as `mcp_NAME_TOOL`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawServer {
    /// Do not use this server.
    #[serde(default)]
    pub(crate) disabled: bool,
    /// The program that is the server: a name or an absolute path. It runs in a sandbox of its own. `npx`, `uvx`, `pipx run` and `bunx`
    /// are installed first, in a separate step.
    #[serde(default)]
    pub(crate) command: String,
    /// Arguments of the program.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) args: Vec<String>,
    /// Environment variables of the program, besides PATH, HOME and the like: a string, or `{ secret = "NAME" }` for a stored secret
    /// (`zeph-host secret set NAME`).
    #[serde(default)]
    #[schemars(extend("maxProperties" = 256))]
    pub(crate) env: BTreeMap<String, RawServerValue>,
    /// The working directory of the program. Empty: the working directory of the host if the server may read it, else the private home
    /// directory of the server.
    #[serde(default)]
    pub(crate) cwd: String,
    /// The URL of a server that is reached over HTTP, instead of `command`.
    #[serde(default)]
    #[schemars(length(max = 2_000))]
    pub(crate) url: String,
    /// Headers of every request to `url`: a string, or `{ secret = "NAME", prefix = "Bearer " }`.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 64))]
    pub(crate) headers: BTreeMap<String, RawServerValue>,
    /// Files and directories the program may read, in addition to system programs and toolchains, in the form of
    /// tools.sandbox.allow_read. Empty means none.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) allow_read: Vec<String>,
    /// Files and directories the program may read and change. Empty means none.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) allow_write: Vec<String>,
    /// Hosts the program may reach, in the form of tools.sandbox.allow_hosts. Empty means none. For a server with a url: the single
    /// hosts that `zeph-host mcp login` may reach besides that of the url, such as its authorization server.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) hosts: Vec<String>,
    /// Stored secrets that are added to the program's requests as the value of a header, as `NAME=HOST:HEADER[:METHODS]`: the program
    /// never sees them. Each host has to be among `hosts`; its TLS ends in this program, as with `tls = "inspect"` in
    /// tools.sandbox.hosts.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(crate) secrets: Vec<String>,
    /// Let packages run their scripts and builds while npx, uvx, pipx run or bunx install them, in the sandbox of the installation. Off by
    /// default: most servers need none.
    #[serde(default)]
    pub(crate) install_scripts: bool,
    /// The only tools of the server that are offered, by its own names or as globs over them ("list_*"); empty means all.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub(crate) allowed_tools: Vec<String>,
    /// Tools of the server that are not offered, in the same form, even if allowed_tools lists them.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub(crate) denied_tools: Vec<String>,
    /// How far the server is believed. "trusted": its annotations count, so a tool that calls itself read-only runs without approval.
    /// "untrusted": every call needs a rule or an approval. "sandboxed": in addition, only the tools of allowed_tools are offered.
    #[serde(default)]
    #[schemars(with = "RawTrustLevel")]
    pub(crate) trust_level: Option<RawTrustLevel>,
    /// How often its tools may be called.
    #[serde(default)]
    pub(crate) rate_limit: RawRateLimit,
    /// Seconds a call may take; 0 means mcp.tool_timeout.
    #[serde(default)]
    #[schemars(range(min = 0, max = 86_400))]
    pub(crate) tool_timeout: u32,
    /// Settings of single tools, by the name that the server gives them.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 1000))]
    pub(crate) tools: BTreeMap<String, RawToolChoice>,
}

/// A value that is written here or stored as a secret.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum RawServerValue {
    Text(String),
    Secret(RawSecretValue),
}

/// A value that is stored as a secret.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawSecretValue {
    /// The name of the stored secret (`zeph-host secret set NAME`).
    pub(crate) secret: String,
    /// What comes before it, such as "Bearer ".
    #[serde(default)]
    pub(crate) prefix: String,
}

/// How far a server is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawTrustLevel {
    Trusted,
    Untrusted,
    Sandboxed,
}

/// How often the tools of a server may be called.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawRateLimit {
    /// Calls of all its tools in any minute; 0 means no limit.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) max_calls_per_minute: u32,
}

/// Settings of one tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawToolChoice {
    /// The name that models see instead of `mcp_NAME_TOOL`. Rules hold under either name.
    #[serde(default)]
    pub(crate) name: String,
    /// The description that models see instead of the server's.
    #[serde(default)]
    #[schemars(length(max = 8_192))]
    pub(crate) description: String,
    /// Whether the tool is offered; true if not set.
    #[serde(default = "yes")]
    pub(crate) enabled: bool,
    /// Rules for single arguments, by name.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 256))]
    pub(crate) arguments: BTreeMap<String, RawArgumentRule>,
}

/// What one argument may be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawArgumentRule {
    /// The value the argument always has: models neither see nor set it.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    pub(crate) fixed: Option<toml::Value>,
    /// Globs of which one has to match the argument, or each of its items if it is a list; empty means any value.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) allow: Vec<String>,
    /// Globs of which none may match it.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) deny: Vec<String>,
}

fn yes() -> bool {
    true
}
