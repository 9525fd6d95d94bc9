//! A connection to one MCP server of others.
//!
//! The server is not trusted: whatever it sends is bounded in size, number and time before anything is made of it, and a server
//! that breaks the protocol costs its own connection at most. In reading order: how a connection is opened and used (this file),
//! what it offers (`definition`), what becomes of a call (`answer`), what it says and asks (`listener`), why it is over (`ending`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResult, JsonObject,
    LoggingLevel, ReadResourceRequestParams, ReadResourceResult, ServerCapabilities,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use zeph_core::output::RawOutput;

mod definition;
mod ending;
mod error;
mod http;
mod listener;

pub use self::definition::{DefinitionLimits, Definitions, Listed, ToolDefinition};
pub use self::ending::EndReason;
pub use self::error::{McpError, McpErrorCode};
pub use self::http::{Credentials, HttpServer};
pub use self::listener::{Deaf, LOG_BYTES_MAX, ListKind, Progress, ServerListener, ServerLog};

/// How the bytes get to a server and back.
pub enum ServerTransport {
    /// The standard streams of a process. Dropping them is left to the connection; the process belongs to its owner.
    Pipes {
        /// What the server prints: one message a line.
        from_server: Box<dyn AsyncRead + Send + Unpin>,
        /// What the server reads.
        to_server: Box<dyn AsyncWrite + Send + Unpin>,
    },
    /// Streamable HTTP.
    Http(Box<HttpServer>),
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pipes { .. } => f.write_str("Pipes"),
            Self::Http(server) => server.fmt(f),
        }
    }
}

/// Which generations of the protocol are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Era {
    /// `server/discover` first, `initialize` when the server does not know it.
    #[default]
    Auto,
    /// `initialize` alone: revisions up to 2025-11-25. For servers that end at a request they do not know.
    Initialize,
    /// `server/discover` alone: revisions from 2026-07-28 on.
    Discover,
}

/// What a server may ask of the host. By default nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offers {
    /// Questions to the user.
    pub elicitation: bool,
    /// Completions by the model.
    pub sampling: bool,
    /// The list of directories.
    pub roots: bool,
}

/// How a connection is opened.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// How the host names itself: the version of the program.
    pub version: String,
    /// From the first byte to the end of the handshake.
    pub start_timeout: Duration,
    /// Each request that gives no limit of its own.
    pub request_timeout: Duration,
    /// What the server may ask for.
    pub offers: Offers,
    /// Which generations are tried.
    pub era: Era,
    /// Bounds of what it offers.
    pub limits: DefinitionLimits,
    /// Most bytes of one message of the server.
    pub message_bytes_max: usize,
}

impl ConnectionOptions {
    /// The usual bounds, with `version` of the program.
    pub fn new(version: impl Into<String>) -> Self {
        Self {
            version: version.into(),
            start_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(30),
            offers: Offers::default(),
            era: Era::default(),
            limits: DefinitionLimits::default(),
            message_bytes_max: 16 << 20,
        }
    }
}

/// Who a server says it is. Texts are cleaned and bounded.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerInfo {
    /// Empty when the server gives none.
    pub name: String,
    /// Empty when the server gives none.
    pub version: String,
    /// For people.
    pub title: Option<String>,
    /// How to use the server, written for a model. Cleaned and bounded.
    pub instructions: Option<String>,
    /// `instructions` as the server sent them, for pins.
    pub instructions_sent: Option<String>,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// The revision that is spoken, such as `2025-11-25`.
    pub protocol: String,
    /// Whether that is a revision without `initialize` (2026-07-28 or later).
    pub is_stateless: bool,
}

/// Receives the progress of one call, in order and before its result. Must return at once.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// How one request is made.
#[derive(Clone, Default)]
pub struct CallControl {
    /// The whole of it; `None`: the connection's `request_timeout`.
    pub timeout: Option<Duration>,
    /// Ends the request at once, and tells the server.
    pub cancel: CancellationToken,
    /// Where progress goes.
    pub progress: Option<ProgressSink>,
}

impl fmt::Debug for CallControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallControl")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// What a tool gave.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAnswer {
    /// The content in the host's terms. Texts are whole; what was omitted is in `notes`.
    pub output: RawOutput,
    /// Whether the tool says that it failed; `output` is then what it says about it.
    pub is_error: bool,
    /// What the caller should know, one sentence each.
    pub notes: Vec<String>,
}

/// A connection to one server. Cheap to clone; the connection closes with the last clone.
#[derive(Debug, Clone)]
pub struct Connection(Arc<()>);

impl Connection {
    /// Connects and shakes hands.
    ///
    /// Errors: `Start`, `Timeout`, `Http`, `Authorization`, `Unreachable`.
    pub async fn open(
        transport: ServerTransport,
        options: ConnectionOptions,
        listener: Arc<dyn ServerListener>,
    ) -> Result<Self, McpError> {
        let _ = (transport, options, listener);
        Err(McpError::Start(String::new()))
    }

    /// Who the server says it is.
    pub fn info(&self) -> &ServerInfo {
        unimplemented!()
    }

    /// Asks for everything the server offers.
    ///
    /// Errors: any of [`McpError`]; a list that the server does not offer is empty.
    pub async fn definitions(&self) -> Result<Definitions, McpError> {
        unimplemented!()
    }

    /// Calls a tool by the server's name for it. Structured results are checked against the output schema of the last
    /// `definitions`.
    ///
    /// Errors: any of [`McpError`]. A tool that says it failed is an answer with `is_error`.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        control: CallControl,
    ) -> Result<CallAnswer, McpError> {
        let _ = (tool, arguments, control);
        unimplemented!()
    }

    /// Reads a resource.
    pub async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        control: CallControl,
    ) -> Result<ReadResourceResult, McpError> {
        let _ = (params, control);
        unimplemented!()
    }

    /// Asks to be told of changes of a resource ([`ServerListener::resource_updated`]).
    pub async fn subscribe(&self, uri: &str) -> Result<(), McpError> {
        let _ = uri;
        unimplemented!()
    }

    /// Ends a subscription.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), McpError> {
        let _ = uri;
        unimplemented!()
    }

    /// Fills in a prompt.
    pub async fn prompt(
        &self,
        params: GetPromptRequestParams,
        control: CallControl,
    ) -> Result<GetPromptResult, McpError> {
        let _ = (params, control);
        unimplemented!()
    }

    /// Asks for completions of an argument.
    pub async fn complete(
        &self,
        params: CompleteRequestParams,
        control: CallControl,
    ) -> Result<CompleteResult, McpError> {
        let _ = (params, control);
        unimplemented!()
    }

    /// Sets which log messages the server sends.
    pub async fn set_level(&self, level: LoggingLevel) -> Result<(), McpError> {
        let _ = level;
        unimplemented!()
    }

    /// Why the connection is over; `None` while it holds.
    pub fn end(&self) -> Option<EndReason> {
        None
    }

    /// Waits until the connection is over.
    pub async fn ended(&self) -> EndReason {
        unimplemented!()
    }

    /// Closes the connection: the server's input is closed, and running requests fail. Takes a few seconds at most.
    pub async fn close(&self) {}
}
