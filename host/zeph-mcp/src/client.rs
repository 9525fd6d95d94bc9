//! A connection to one MCP server of others.
//!
//! The server is not trusted: whatever it sends is bounded in size, number and time before anything is made of it, and a server
//! that breaks the protocol costs its own connection at most. In reading order: how a connection is used (this file) and opened
//! (`startup`, `probe`); the bytes (`pipes`, `http`, `message`) and what is believed of them (`guard`, `desk`); requests (`session`, `rounds`) and
//! requests of the server (`handler`, `listener`); what it offers (`list`, `definition`, `cleaning`), what becomes of a call
//! (`answer`), and why it is over (`ending`).

#![expect(
    deprecated,
    reason = "servers of the revisions before 2026-07-28 log this way"
)]

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, CompleteRequest,
    CompleteRequestParams, CompleteResult, ElicitRequestParams, GetPromptRequest,
    GetPromptRequestParams, GetPromptResult, JsonObject, LoggingLevel, Prompt, ReadResourceRequest,
    ReadResourceRequestParams, ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities,
    ServerResult, SetLevelRequest, SetLevelRequestParams,
};
use rmcp::service::RunningService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use zeph_core::argument::Disagreement;
use zeph_core::output::RawOutput;
use zeph_egress::HostAccount;

mod answer;
mod cleaning;
mod complaint;
mod definition;
mod desk;
mod ending;
mod error;
mod guard;
mod handler;
mod http;
mod list;
mod listener;
mod message;
pub mod oauth;
mod pipes;
mod probe;
mod question;
mod rounds;
mod session;
mod startup;
mod subscription;

use self::ending::Ending;
use self::handler::Handler;
use self::session::Session;
use crate::tool::OutputSchema;

pub use self::definition::{DefinitionLimits, Definitions, Listed, ToolDefinition};
pub use self::ending::EndReason;
pub use self::error::{McpError, McpErrorCode};
pub use self::http::{Credentials, HttpServer};
pub use self::listener::{Deaf, LOG_BYTES_MAX, ListKind, Progress, ServerListener, ServerLog};
pub use self::rounds::RoundAnswer;

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
    /// `server/discover` first, `initialize` when the server refuses it or is silent for a second. One that ends instead of that fails with
    /// [`McpError::EndedAtProbe`]: started again, it may be spoken to with `Initialize`.
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
}

/// The kinds of questions that reach the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuestionKinds {
    /// Forms.
    pub forms: bool,
    /// Addresses to go to.
    pub addresses: bool,
}

impl QuestionKinds {
    /// All of them.
    pub const ALL: Self = Self {
        forms: true,
        addresses: true,
    };

    fn has_any(self) -> bool {
        self.forms || self.addresses
    }

    fn has(self, question: &ElicitRequestParams) -> bool {
        match question {
            ElicitRequestParams::UrlElicitationParams { .. } => self.addresses,
            _ => self.forms,
        }
    }
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
    /// `instructions` as the server sent them, but for secrets: for pins.
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
pub struct Connection(Arc<Inside>);

/// What a connection consists of.
struct Inside {
    session: Session,
    info: ServerInfo,
    /// Whether it left `server/discover` unanswered.
    is_silent: bool,
    /// What a remote server and hosts exchanged.
    account: Option<HostAccount>,
    limits: DefinitionLimits,
    ending: Ending,
    /// Output schemas of the last definitions, by tool.
    outputs: Mutex<HashMap<String, OutputSchema>>,
    /// Which log messages the server was last told to send.
    level: tokio::sync::Mutex<Option<LoggingLevel>>,
    /// The resources that are subscribed to have changed.
    renewed: Arc<Notify>,
    running: tokio::sync::Mutex<Option<RunningService<RoleClient, Handler>>>,
    /// Ended with the connection.
    _tasks: JoinSet<()>,
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.info.name)
            .finish_non_exhaustive()
    }
}

/// The lists of a server: all pages of all of them take at most as long as so many requests.
const LISTS: u32 = 4;

/// The longest that a connection takes to close.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

impl Connection {
    /// Connects and shakes hands.
    ///
    /// Errors: `Start`, `Refused`, `EndedAtProbe`, `Timeout`, `Http`, `Authorization`, `Unreachable`.
    pub async fn open(
        transport: ServerTransport,
        options: ConnectionOptions,
        listener: Arc<dyn ServerListener>,
    ) -> Result<Self, McpError> {
        startup::open(transport, options, listener).await
    }

    /// Who the server says it is.
    pub fn info(&self) -> &ServerInfo {
        &self.0.info
    }

    /// Whether the server left `server/discover` unanswered: opened with [`Era::Initialize`] the next time, it answers a second earlier.
    pub fn is_silent_at_probe(&self) -> bool {
        self.0.is_silent
    }

    /// Asks for everything the server offers.
    ///
    /// Errors: any of [`McpError`]; a list that the server does not offer is empty. Limits: four times the `request_timeout`.
    pub async fn definitions(&self) -> Result<Definitions, McpError> {
        let inside = &*self.0;
        let limit = inside.session.request_timeout.saturating_mul(LISTS);
        let listing = list::all(&inside.session, &inside.info.capabilities, &inside.limits);
        let found = timeout(limit, listing).await;
        let found = found.map_err(|_| McpError::Timeout { limit })??;
        let output = |tool: &ToolDefinition| {
            let schema = tool.listed.shown.output_schema.as_ref()?;
            Some((tool.name.clone(), OutputSchema::plain(Arc::clone(schema))))
        };
        let outputs = found.tools.iter().filter_map(output).collect();
        *self.outputs() = outputs;
        Ok(found)
    }

    /// The prompts of this moment.
    ///
    /// Errors: as for [`definitions`](Self::definitions), and limits.
    pub async fn prompts(&self) -> Result<Vec<Listed<Prompt>>, McpError> {
        let is_offered = self.0.info.capabilities.prompts.is_some();
        self.listed::<Prompt>(is_offered).await
    }

    /// The resources of this moment.
    ///
    /// Errors: as for [`definitions`](Self::definitions), and limits.
    pub async fn resources(&self) -> Result<Vec<Listed<Resource>>, McpError> {
        let is_offered = self.0.info.capabilities.resources.is_some();
        self.listed::<Resource>(is_offered).await
    }

    /// The resource templates of this moment.
    ///
    /// Errors: as for [`definitions`](Self::definitions), and limits.
    pub async fn templates(&self) -> Result<Vec<Listed<ResourceTemplate>>, McpError> {
        let is_offered = self.0.info.capabilities.resources.is_some();
        self.listed::<ResourceTemplate>(is_offered).await
    }

    async fn listed<D: list::Paged>(&self, is_offered: bool) -> Result<Vec<D::Kept>, McpError> {
        if !is_offered {
            return Ok(Vec::new());
        }
        let inside = &*self.0;
        let limit = inside.session.request_timeout.saturating_mul(LISTS);
        let mut notes = Vec::new();
        let listing = list::list::<D>(&inside.session, &inside.limits, &mut notes);
        let found = timeout(limit, listing).await;
        found.map_err(|_| McpError::Timeout { limit })?
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
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = |(answers, state)| {
            let mut params = params.clone();
            (params.input_responses, params.request_state) = (answers, state);
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        let answer = self.0.session.ask_in_rounds(request, &control).await?;
        let ServerResult::CallToolResult(mut result) = answer else {
            return Err(McpError::bad_answer("it is not the result of a tool"));
        };
        let agrees = tokio::select! {
            agrees = self.agrees(tool, &mut result) => agrees,
            () = control.cancel.cancelled() => return Err(McpError::Cancelled),
        };
        Ok(answer::of_result(result, agrees))
    }

    /// Whether the structured part of a result, if there is one, agrees with the tool's schema.
    ///
    /// Errors: why it does not count.
    async fn agrees(&self, tool: &str, result: &mut CallToolResult) -> Result<(), Disagreement> {
        let schema = self.outputs().get(tool).cloned();
        match (schema, &mut result.structured_content) {
            (Some(schema), Some(structured)) if result.is_error != Some(true) => {
                schema.agrees(structured).await
            }
            _ => Ok(()),
        }
    }

    /// Reads a resource.
    ///
    /// Errors: any of [`McpError`].
    pub async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        control: CallControl,
    ) -> Result<ReadResourceResult, McpError> {
        let request = |(answers, state)| {
            let mut params = params.clone();
            (params.input_responses, params.request_state) = (answers, state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        };
        match self.0.session.ask_in_rounds(request, &control).await? {
            ServerResult::ReadResourceResult(result) => Ok(result),
            _ => Err(McpError::bad_answer("it is not the contents of a resource")),
        }
    }

    /// Fills in a prompt.
    ///
    /// Errors: any of [`McpError`].
    pub async fn prompt(
        &self,
        params: GetPromptRequestParams,
        control: CallControl,
    ) -> Result<GetPromptResult, McpError> {
        let request = |(answers, state)| {
            let mut params = params.clone();
            (params.input_responses, params.request_state) = (answers, state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        };
        match self.0.session.ask_in_rounds(request, &control).await? {
            ServerResult::GetPromptResult(result) => Ok(result),
            _ => Err(McpError::bad_answer("it is not a prompt")),
        }
    }

    /// Asks for completions of an argument.
    ///
    /// Errors: any of [`McpError`].
    pub async fn complete(
        &self,
        params: CompleteRequestParams,
        control: CallControl,
    ) -> Result<CompleteResult, McpError> {
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
        match self.0.session.ask(request, &control).await? {
            ServerResult::CompleteResult(result) => Ok(result),
            _ => Err(McpError::bad_answer("it is not a list of completions")),
        }
    }

    /// Whether the server is told once which log messages are wanted. From revision 2026-07-28 on each request says so, as
    /// [`ServerListener::log_level`] does.
    pub fn sets_level(&self) -> bool {
        !self.info().is_stateless && self.info().capabilities.logging.is_some()
    }

    /// Sets which log messages the server sends, unless it was told the same last.
    ///
    /// Errors: any of [`McpError`]; `NotOffered` from revision 2026-07-28 on, which has no such request.
    pub async fn set_level(&self, level: LoggingLevel) -> Result<(), McpError> {
        if self.info().is_stateless {
            return Err(McpError::NotOffered("to set the level of its log"));
        }
        let mut told = self.0.level.lock().await;
        if *told == Some(level) {
            return Ok(());
        }
        *told = None;
        let params = SetLevelRequestParams::new(level);
        let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(params));
        self.0.session.ask(request, &CallControl::default()).await?;
        *told = Some(level);
        Ok(())
    }

    /// Why the connection is over; `None` while it holds.
    pub fn end(&self) -> Option<EndReason> {
        self.0.ending.reason()
    }

    /// Waits until the connection is over.
    pub async fn ended(&self) -> EndReason {
        self.0.ending.wait().await
    }

    /// Closes the connection: running requests fail, and the server's input is closed. Takes a few seconds at most.
    pub async fn close(&self) {
        self.0.ending.end(EndReason::Closed);
        let running = self.0.running.lock().await.take();
        if let Some(mut running) = running {
            // One that does not end in time is dropped, which ends it.
            let _quit = running.close_with_timeout(CLOSE_PATIENCE).await;
        }
    }

    fn outputs(&self) -> std::sync::MutexGuard<'_, HashMap<String, OutputSchema>> {
        let outputs = self.0.outputs.lock();
        outputs.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
