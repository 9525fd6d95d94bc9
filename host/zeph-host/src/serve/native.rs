//! The native server that a door serves as its own (`zeph-host wrap`): its tools keep their names, and what is no call of a tool passes
//! through. Calls go through the line like all others; the rest is cleaned of known secrets, and nothing passes while the server is not
//! what was accepted.

mod relay;
mod requests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolResult, ErrorCode, ErrorData, Implementation, JsonObject, PromptsCapability,
    ResourcesCapability, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use zeph_core::failure::ToolFailure;
use zeph_core::id::ServerName;
use zeph_mcp::client::{Connection, Definitions, McpError, ServerInfo};

pub(crate) use self::relay::Relay;
use super::calling::WaitingCalls;
use super::listed::ListedTool;
use crate::host::Host;
use crate::servers::{OfferedTool, ServerSet, ServerStanding, ServerState};

/// How long the first request of a client waits for the server: less than clients wait before they give up. What takes longer, as an
/// installation may, is announced when it is there.
const START_PATIENCE: Duration = Duration::from_secs(25);

/// The native server of a door.
#[derive(Debug)]
pub(crate) struct NativeServer {
    host: Host,
    name: ServerName,
    pub(super) relay: Arc<Relay>,
    complaints: Complaints,
}

/// What failed calls of a server said, within bounds; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Complaints(Arc<Mutex<String>>);

/// Most bytes of them; later ones are not kept.
const COMPLAINTS_BYTES_MAX: usize = 64 * 1024;

impl Complaints {
    /// All of it, line after line.
    pub(crate) fn text(&self) -> String {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn add(&self, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() + text.len() < COMPLAINTS_BYTES_MAX && !all.contains(text) {
            all.push_str(text);
            all.push('\n');
        }
    }
}

/// The server while it runs and is what was accepted.
#[derive(Debug)]
pub(crate) struct LiveServer {
    pub(super) connection: Connection,
    pub(super) definitions: Arc<Definitions>,
}

impl NativeServer {
    /// The server `name` of `host`, whose words go through `relay`.
    pub(crate) fn new(host: &Host, name: ServerName, relay: Arc<Relay>) -> Self {
        relay.clean_with(Arc::clone(host.secrets()));
        Self {
            host: host.clone(),
            name,
            relay,
            complaints: Complaints::default(),
        }
    }

    /// What failed calls said so far, and will say.
    pub(crate) fn complaints(&self) -> Complaints {
        self.complaints.clone()
    }

    /// Where the server asks clients of the new revisions.
    pub(super) fn waiting(&self) -> Arc<WaitingCalls> {
        self.relay.calls()
    }

    /// Keeps what a failed call said: it may name what the server lacks.
    pub(super) fn heard_result(&self, result: &CallToolResult) {
        if result.is_error != Some(true) {
            return;
        }
        let texts = result.content.iter().filter_map(|block| block.as_text());
        texts.for_each(|text| self.complaints.add(&text.text));
    }

    /// A client begins: the server is started, and its client is the one that it asks.
    ///
    /// Errors: it cannot be started, and why.
    pub(super) async fn begins(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.settled(context).await;
        match self.standing().map(|standing| standing.state.clone()) {
            Some(ServerState::Failed { reason, .. }) => {
                let message = format!("MCP server `{}` does not run: {reason}", self.name);
                let message = self.host.redactor().text(&message).into_owned();
                Err(ErrorData::internal_error(message, None))
            }
            Some(ServerState::NeedsLogin(_) | ServerState::Disabled) => self.can_list(),
            _ => Ok(()),
        }
    }

    /// Waits until the server has been started, or cannot be. It begins with what the client of the first request can show.
    ///
    /// Limits: 25 seconds; not at all once the request is cancelled or the door is being closed.
    pub(super) async fn settled(&self, context: &RequestContext<RoleServer>) {
        self.relay.heard(context);
        let servers = self.host.servers();
        servers.want(&self.name);
        let mut watch = servers.watch();
        let is_over = |set: &Arc<ServerSet>| {
            let standing = set.standing(self.name.as_str());
            !standing.is_some_and(|standing| standing.is_coming())
        };
        tokio::select! {
            _ = watch.wait_for(is_over) => {}
            () = tokio::time::sleep(START_PATIENCE) => {}
            () = context.ct.cancelled() => {}
            () = self.relay.closed() => {}
        }
    }

    /// How it stands.
    pub(crate) fn standing(&self) -> Option<Arc<ServerStanding>> {
        let set = self.host.servers().set();
        set.standing(self.name.as_str()).cloned()
    }

    /// What the door says about itself: what the server says; of one that is off, that it is.
    pub(super) fn info(&self) -> ServerConfig {
        let standing = self.standing();
        let about = standing
            .as_ref()
            .and_then(|standing| standing.about.clone());
        let info = about.as_ref().and_then(|about| about.info.as_ref());
        let config =
            ServerConfig::new(capabilities(info)).with_server_info(itself(&self.name, info));
        let instructions = match self.absence() {
            Some(failure) => Some(failure.message),
            None => info.and_then(|info| info.instructions.clone()),
        };
        match instructions {
            Some(text) => config.with_instructions(self.host.redactor().text(&text).into_owned()),
            None => config,
        }
    }

    /// Its tools, those too that no rule lets run; none while it is off.
    pub(super) fn tools(&self) -> Vec<ListedTool> {
        let Some(standing) = self.standing() else {
            return Vec::new();
        };
        let Some(definitions) = &standing.definitions else {
            return Vec::new();
        };
        let catalog = self.host.whole_catalog();
        // One whose name is taken is not in the catalog.
        let is_offered =
            |offered: &&OfferedTool| catalog.resolve(offered.tool.name.as_str()).is_ok();
        let offered = standing.tools.iter().filter(is_offered);
        let listed = offered.filter_map(|offered| {
            let definition = definitions.tool(offered.own_name())?;
            let tool = ListedTool::native(offered, definition);
            Some(tool.hidden_by(|tool| self.host.hides(tool)))
        });
        listed.collect()
    }

    /// Why the server cannot be used; none while it can, or may soon.
    pub(super) fn absence(&self) -> Option<ToolFailure> {
        let standing = self.standing()?;
        let is_off = !matches!(
            standing.state,
            ServerState::Idle | ServerState::Starting | ServerState::Active
        );
        is_off.then(|| self.host.servers().why_off(&standing))
    }

    /// Whether its lists mean anything.
    ///
    /// Errors: it is off, and why.
    pub(super) fn can_list(&self) -> Result<(), ErrorData> {
        match self.absence() {
            Some(failure) => Err(ErrorData::internal_error(failure.message, None)),
            None => Ok(()),
        }
    }

    /// The server, to pass something on to it.
    ///
    /// Errors: why nothing can be passed on, and what would help.
    pub(super) fn live(&self) -> Result<LiveServer, ErrorData> {
        self.can_list()?;
        let live = self.standing().and_then(|standing| {
            Some(LiveServer {
                connection: standing
                    .connection
                    .clone()
                    .filter(|it| it.end().is_none())?,
                definitions: Arc::clone(standing.definitions.as_ref()?),
            })
        });
        let name = &self.name;
        live.ok_or_else(|| {
            let message = format!("MCP server `{name}` is being started; try again in a moment");
            ErrorData::internal_error(message, None)
        })
    }

    /// A failure of the server as the client gets it: with the server's own code, when it gave one.
    pub(super) fn failed(&self, error: &McpError) -> ErrorData {
        let code = match error {
            McpError::ToolCall { rpc_code, .. } => ErrorCode(*rpc_code),
            McpError::InvalidInput(_) => ErrorCode::INVALID_PARAMS,
            McpError::NotOffered(_) => ErrorCode::METHOD_NOT_FOUND,
            _ => ErrorCode::INTERNAL_ERROR,
        };
        let message = match error {
            McpError::ToolCall { message, .. } => message.clone(),
            other => format!("MCP server `{}`: {other}", self.name),
        };
        let message = self.host.redactor().text(&message).into_owned();
        ErrorData::new(code, message, None)
    }
}

/// What the door can do: tools and stored outputs always, the rest as the server does. Before it is known, all of it: a list of nothing is
/// empty.
fn capabilities(info: Option<&ServerInfo>) -> ServerCapabilities {
    let own = info.map(|info| &info.capabilities);
    let has = |has: fn(&ServerCapabilities) -> bool| own.is_none_or(has);
    let mut capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_tasks()
        .build();
    capabilities.prompts = has(|own| own.prompts.is_some()).then(|| {
        let mut prompts = PromptsCapability::default();
        prompts.list_changed = Some(true);
        prompts
    });
    capabilities.completions = has(|own| own.completions.is_some()).then(JsonObject::new);
    capabilities.logging = has(|own| own.logging.is_some()).then(JsonObject::new);
    let subscribes = own.is_none_or(|own| {
        let resources = own.resources.as_ref();
        resources.and_then(|resources| resources.subscribe) == Some(true)
    });
    let mut resources = ResourcesCapability::default();
    resources.subscribe = Some(subscribes);
    resources.list_changed = Some(true);
    capabilities.resources = Some(resources);
    capabilities
}

/// The server under its own name, so that its client shows what it showed before.
fn itself(name: &ServerName, info: Option<&ServerInfo>) -> Implementation {
    let Some(info) = info.filter(|info| !info.name.is_empty()) else {
        return Implementation::new(name.as_str(), env!("CARGO_PKG_VERSION"));
    };
    let implementation = Implementation::new(info.name.as_str(), info.version.as_str());
    match &info.title {
        Some(title) => implementation.with_title(title.as_str()),
        None => implementation,
    }
}
