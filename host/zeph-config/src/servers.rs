//! The MCP servers of the operator: checked values without an option left open.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use globset::{Error, Glob, GlobMatcher};
use zeph_core::id::ToolName;
use zeph_core::network::{ExitHost, HostPattern};

/// One MCP server (`mcp.servers.NAME`).
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// Whether it is not used (`disabled`).
    pub disabled: bool,
    /// How it is reached.
    pub transport: ServerTransport,
    /// The only tools that are offered, by the server's names or globs over them; empty means all (`allowed_tools`).
    pub allowed_tools: Vec<ListedTool>,
    /// Tools that are not offered, in the same form, whatever `allowed_tools` lists (`denied_tools`).
    pub denied_tools: Vec<ListedTool>,
    /// How far it is believed (`trust_level`).
    pub trust: TrustLevel,
    /// Calls of all its tools in any minute; none for no limit (`rate_limit.max_calls_per_minute`).
    pub calls_per_minute_max: Option<NonZeroU32>,
    /// How long a call may take (`tool_timeout`, else `mcp.tool_timeout`).
    pub tool_timeout: Duration,
    /// Settings of single tools, by the server's names (`tools`).
    pub tools: BTreeMap<String, ToolChoice>,
}

impl ServerConfig {
    /// A server that is reached by `transport`, with the defaults of the other keys but for the timeout of a call.
    pub fn new(transport: ServerTransport, tool_timeout: Duration) -> Self {
        Self {
            disabled: false,
            transport,
            allowed_tools: Vec::new(),
            denied_tools: Vec::new(),
            trust: TrustLevel::Untrusted,
            calls_per_minute_max: None,
            tool_timeout,
            tools: BTreeMap::new(),
        }
    }

    /// Whether a tool is offered, by the server's name for it: `denied_tools` and `enabled = false` win over `allowed_tools`, and a
    /// server with [`TrustLevel::Sandboxed`] offers what is listed only.
    pub fn offers(&self, tool: &str) -> bool {
        let is_in = |list: &[ListedTool]| list.iter().any(|listed| listed.is(tool));
        let is_enabled = self.tools.get(tool).is_none_or(|choice| choice.enabled);
        let takes_all = self.allowed_tools.is_empty() && self.trust != TrustLevel::Sandboxed;
        is_enabled && !is_in(&self.denied_tools) && (takes_all || is_in(&self.allowed_tools))
    }
}

/// An entry of `allowed_tools` or `denied_tools`: a server's name for a tool, or a glob over such names. Names of servers can hold any
/// character: one that is written like a glob is meant, too.
#[derive(Debug, Clone)]
pub struct ListedTool {
    text: String,
    glob: Option<GlobMatcher>,
}

impl ListedTool {
    /// The entry `text`.
    ///
    /// Errors: it has `*` or `?`, and is not a glob.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let glob = match text.contains(['*', '?']) {
            true => Some(Glob::new(&text)?.compile_matcher()),
            false => None,
        };
        Ok(Self { text, glob })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is for a tool, by the server's name for it.
    pub fn is(&self, tool: &str) -> bool {
        let glob = self.glob.as_ref();
        self.text == tool || glob.is_some_and(|glob| glob.is_match(tool))
    }
}

/// By what was written, from which the rest follows.
impl PartialEq for ListedTool {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTransport {
    /// By its standard streams (`command`).
    Command(CommandServer),
    /// Over HTTP (`url`).
    Http(HttpServer),
}

/// A server that is a program, and what its sandbox is given. Every path is absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandServer {
    /// A bare name or an absolute path (`command`).
    pub program: String,
    /// Its arguments, without its name (`args`).
    pub arguments: Vec<String>,
    /// Variables it gets besides the usual ones (`env`).
    pub environment: BTreeMap<String, ServerValue>,
    /// Where it starts; none: in the working directory if it can be read, else in the private home (`cwd`).
    pub directory: Option<PathBuf>,
    /// What it may read: existing, canonical (`allow_read`).
    pub read: Vec<PathBuf>,
    /// What it may read and change: existing, canonical (`allow_write`).
    pub write: Vec<PathBuf>,
    /// Other names of these, with symbolic links in them, and where they lead: its arguments may use them (`allow_read`, `allow_write`).
    pub spellings: Vec<(PathBuf, PathBuf)>,
    /// The hosts it reaches, with the secrets that are added to its requests (`hosts`, `secrets`).
    pub hosts: Vec<ExitHost>,
    /// Whether packages may run code while they are installed for it (`install_scripts`).
    pub install_scripts: bool,
}

impl CommandServer {
    /// A program with its arguments that is granted nothing.
    pub fn new(program: impl Into<String>, arguments: Vec<String>) -> Self {
        Self {
            program: program.into(),
            arguments,
            environment: BTreeMap::new(),
            directory: None,
            read: Vec::new(),
            write: Vec::new(),
            spellings: Vec::new(),
            hosts: Vec::new(),
            install_scripts: false,
        }
    }
}

/// A server that is reached over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpServer {
    /// `https://`, or `http://` of this machine or of a private host that is opened for it; without user and password (`url`).
    pub url: String,
    /// Headers of every request, names in lower case (`headers`).
    pub headers: BTreeMap<String, ServerValue>,
    /// Single hosts that a login may reach besides that of the URL (`hosts`).
    pub login_hosts: Vec<HostPattern>,
}

/// The value of a variable or a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerValue {
    /// As it was written.
    Text(String),
    /// A stored secret, with what comes before it (`{ secret = "NAME", prefix = "…" }`).
    Secret {
        /// The name of the stored secret.
        name: String,
        /// Such as `Bearer `; usually empty.
        prefix: String,
    },
}

/// How far a server is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustLevel {
    /// Its annotations count: what it calls read-only runs like a read-only tool.
    Trusted,
    /// Its annotations do not count: every call needs a rule or an approval.
    Untrusted,
    /// As [`Self::Untrusted`], and only the tools of `allowed_tools` are offered.
    Sandboxed,
}

/// The operator's settings of one tool of a server (`mcp.servers.NAME.tools.TOOL`).
#[derive(Debug, Clone, PartialEq)]
pub struct ToolChoice {
    /// The whole name that models see instead of `mcp_NAME_TOOL` (`name`).
    pub name: Option<ToolName>,
    /// The description that models see instead of the server's (`description`).
    pub description: Option<String>,
    /// Whether it is offered (`enabled`).
    pub enabled: bool,
    /// Rules for single arguments, by name (`arguments`).
    pub arguments: BTreeMap<String, ArgumentRule>,
}

/// What one argument may be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ArgumentRule {
    /// The value it always has; models neither see nor set it (`fixed`).
    pub fixed: Option<serde_json::Value>,
    /// Globs, known to compile, of which one has to match it, or each item of a list; empty means any value (`allow`).
    pub allow: Vec<String>,
    /// Globs, known to compile, of which none may match it (`deny`).
    pub deny: Vec<String>,
}
