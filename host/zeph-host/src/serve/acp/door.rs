//! The methods of the agent.

mod order;
mod sessions;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeph_acp::PROTOCOL_VERSION;
use zeph_acp::agent::{
    AgentCapabilities, CancelRequest, ClientCapabilities, Implementation, InitializeRequest,
    InitializeResponse, McpCapabilities, OfSession, Present, PromptCapabilities, PromptRequest,
    SessionCapabilities, SessionResponse, SetConfigOptionRequest, SetConfigOptionResponse,
    SetModeRequest,
};
use zeph_acp::connection::{Connection, Incoming};
use zeph_acp::rpc::{Notification, Request, RequestId, RpcError};
use zeph_acp::update::SessionUpdate;
use zeph_core::failure::one_line;

use self::order::SessionOrder;
use self::sessions::GoesOn;
use super::option::{self, Changed};
use super::place::{HostSource, Hosts};
use super::prompt::Prompt;
use super::session::{AcpSession, Client};
use super::{TURNS_PATIENCE, command, telling, turn};
use crate::servers;

/// Requests that are worked on at one time.
const REQUESTS_MAX: usize = 256;

/// Most characters of what a client calls itself in the record.
const NAME_CHARS_MAX: usize = 80;

/// The door. One for a process.
#[derive(Debug)]
pub(super) struct Door {
    connection: Connection,
    hosts: Hosts,
    /// Cancelled when nothing more is begun.
    closing: CancellationToken,
    /// Locked for a moment only.
    state: Mutex<DoorState>,
}

#[derive(Debug, Default)]
struct DoorState {
    /// None before `initialize`.
    client: Option<Client>,
    sessions: HashMap<String, Arc<AcpSession>>,
    /// Of the requests that begin and end them.
    order: SessionOrder,
}

/// An answer, and the session that is to tell what can be done with it.
struct Reply {
    value: Value,
    begun: Option<Arc<AcpSession>>,
}

impl Door {
    pub(super) fn new(connection: Connection, source: Arc<dyn HostSource>) -> Self {
        Self {
            connection,
            hosts: Hosts::new(source),
            closing: CancellationToken::new(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, DoorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message: what is quick is done at once, in the order in which it came; everything else is a task.
    pub(super) fn take(self: &Arc<Self>, incoming: Incoming, tasks: &mut JoinSet<()>) {
        let request = match incoming {
            Incoming::Request(request) => request,
            Incoming::Notification(told) => return self.told(&told),
        };
        let id = request.id.clone();
        let done = match self.client() {
            None if request.method != "initialize" => Err(RpcError::request(
                "`initialize` comes before everything else",
            )),
            _ if tasks.len() >= REQUESTS_MAX => Err(RpcError::request(format!(
                "{REQUESTS_MAX} requests wait for their answers; send fewer at a time"
            ))),
            _ => self.at_once(request, tasks),
        };
        match done {
            Ok(Some(value)) => self.connection.answer(&id, Ok(value)),
            Ok(None) => {}
            Err(error) => self.connection.answer(&id, Err(error)),
        }
    }

    /// The answer, or none when a task gives it.
    fn at_once(
        self: &Arc<Self>,
        request: Request,
        tasks: &mut JoinSet<()>,
    ) -> Result<Option<Value>, RpcError> {
        let Request { id, method, params } = request;
        match method.as_str() {
            "initialize" => self.initialize(read(params)?, tasks).map(Some),
            "session/set_mode" => self.set_mode(&read(params)?).map(Some),
            "session/set_config_option" => self.set_option(&read(params)?).map(Some),
            "session/prompt" => {
                let PromptRequest { session_id, prompt } = read(params)?;
                let session = self.session(&session_id)?;
                turn::start(&session, id, Prompt::read(prompt)?, tasks).map(|()| None)
            }
            "authenticate" => Err(RpcError::params(
                "there is no way to log in here: the keys of models are configured",
            )),
            "session/new" | "session/load" | "session/resume" | "session/list"
            | "session/close" | "session/delete" => {
                let door = Arc::clone(self);
                let place = self.state().order.enter(&params);
                tasks.spawn(async move {
                    let answered = async {
                        if let Some(place) = &place {
                            place.come().await;
                        }
                        door.answer_later(&id, &method, params).await;
                    };
                    tokio::select! {
                        () = answered => {}
                        () = door.closing.cancelled() => {}
                    }
                });
                Ok(None)
            }
            _ => Err(RpcError::no_method(&method)),
        }
    }

    async fn answer_later(&self, id: &RequestId, method: &str, params: Value) {
        let reply = match method {
            "session/new" => self.begin(params).await,
            "session/load" => self.go_on(params, GoesOn::Replayed).await,
            "session/resume" => self.go_on(params, GoesOn::Silently).await,
            "session/list" => self.list(params).await,
            "session/close" => self.close_session(params).await,
            _ => self.delete(params).await,
        };
        let (answer, begun) = match reply {
            Ok(Reply { value, begun }) => (Ok(value), begun),
            Err(error) => (Err(error), None),
        };
        self.connection.answer(id, answer);
        if let Some(session) = begun {
            session.tell(&SessionUpdate::AvailableCommandsUpdate {
                available_commands: command::available(),
            });
            let servers = session.host().servers();
            let troubles = servers::troubles(&servers.set(), servers.program());
            if !troubles.is_empty() {
                session.tell(&telling::message(&format!("{}\n\n", troubles.join("\n\n"))));
            }
        }
        self.hosts.end_unused();
    }

    fn told(&self, told: &Notification) {
        match told.method.as_str() {
            "session/cancel" => {
                let of: Result<OfSession, _> = serde_json::from_value(told.params.clone());
                if let Some(session) = of.ok().and_then(|of| self.session(&of.session_id).ok()) {
                    session.cancel();
                }
            }
            "$/cancel_request" => {
                let of: Result<CancelRequest, _> = serde_json::from_value(told.params.clone());
                if let Ok(CancelRequest { request_id }) = of {
                    let state = self.state();
                    let sessions = state.sessions.values();
                    sessions.for_each(|session| session.cancel_request(&request_id));
                }
            }
            method => tracing::debug!(method, "a notification that means nothing here"),
        }
    }

    fn client(&self) -> Option<Client> {
        self.state().client.clone()
    }

    /// The session of this id.
    ///
    /// Errors: there is none.
    fn session(&self, id: &str) -> Result<Arc<AcpSession>, RpcError> {
        let found = self.state().sessions.get(id).cloned();
        found.ok_or_else(|| unknown_session(id))
    }

    fn initialize(
        self: &Arc<Self>,
        request: InitializeRequest,
        tasks: &mut JoinSet<()>,
    ) -> Result<Value, RpcError> {
        if request.protocol_version == 0 {
            let message = format!("version 0 is not spoken here; version {PROTOCOL_VERSION} is");
            return Err(RpcError::params(message));
        }
        let name = request.client_info.map(|client| {
            let name = format!("{} {}", client.name, client.version);
            one_line(name.trim(), NAME_CHARS_MAX)
        });
        self.state().client = Some(Client {
            capabilities: request.client_capabilities,
            name,
        });
        self.remark_on(request.client_capabilities);
        // Most sessions work where the editor started the agent.
        let door = Arc::clone(self);
        tasks.spawn(async move {
            tokio::select! {
                _ = door.hosts.first() => {}
                () = door.closing.cancelled() => {}
            }
        });
        value(&InitializeResponse {
            protocol_version: PROTOCOL_VERSION,
            agent_capabilities: CAPABILITIES,
            agent_info: Implementation {
                name: "zeph-host".to_owned(),
                title: Some("Zeph".to_owned()),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            auth_methods: Vec::new(),
        })
    }

    /// Tells once what the client lacks, and what happens instead.
    fn remark_on(&self, capabilities: ClientCapabilities) {
        let source = self.hosts.source();
        if !capabilities.terminal {
            source
                .remark("the editor offers no terminals: commands are shown when they have ended");
        }
        if !(capabilities.fs.read_text_file && capabilities.fs.write_text_file) {
            source.remark("the editor does not offer its files: tools see what is saved");
        }
    }

    fn set_mode(&self, request: &SetModeRequest) -> Result<Value, RpcError> {
        let session = self.session(&request.session_id)?;
        option::set_mode(&session, &request.mode_id)?;
        session.tell(&SessionUpdate::ConfigOptionUpdate {
            config_options: option::options(&session),
        });
        value(&Present {})
    }

    fn set_option(&self, request: &SetConfigOptionRequest) -> Result<Value, RpcError> {
        let session = self.session(&request.session_id)?;
        let chosen = request.value.as_str();
        let chosen = chosen.ok_or_else(|| RpcError::params("`value` is not a string"))?;
        if option::set(&session, &request.config_id, chosen)? == Changed::Mode {
            session.tell(&SessionUpdate::CurrentModeUpdate {
                current_mode_id: chosen.to_owned(),
            });
        }
        value(&SetConfigOptionResponse {
            config_options: option::options(&session),
        })
    }

    /// Cancels every turn, waits for the ends, and ends what runs in the background.
    pub(super) async fn close(&self, tasks: &mut JoinSet<()>) {
        self.closing.cancel();
        let sessions: Vec<_> = self
            .state()
            .sessions
            .drain()
            .map(|(_, open)| open)
            .collect();
        sessions.iter().for_each(|session| session.cancel());
        let ends = async { while tasks.join_next().await.is_some() {} };
        drop(tokio::time::timeout(TURNS_PATIENCE, ends).await);
        tasks.abort_all();
        let mut closing = JoinSet::new();
        for session in sessions {
            closing.spawn(async move { session.end_runs().await });
        }
        while closing.join_next().await.is_some() {}
        self.hosts.end_scheduled().await;
    }
}

impl Reply {
    fn of(value: Value) -> Self {
        Self { value, begun: None }
    }
}

/// What this agent can do.
const CAPABILITIES: AgentCapabilities = AgentCapabilities {
    load_session: true,
    prompt_capabilities: PromptCapabilities {
        image: true,
        audio: false,
        embedded_context: true,
    },
    mcp_capabilities: McpCapabilities {
        http: true,
        sse: false,
    },
    session_capabilities: SessionCapabilities {
        list: Present {},
        delete: Present {},
        resume: Present {},
        close: Present {},
        additional_directories: Present {},
    },
};

fn response(session: &AcpSession, session_id: Option<String>) -> SessionResponse {
    SessionResponse {
        session_id,
        modes: option::modes(session),
        config_options: option::options(session),
    }
}

fn unknown_session(id: &str) -> RpcError {
    let id: String = id.chars().take(80).collect();
    RpcError::params(format!("there is no session {id:?}"))
}

/// The parameters of a method.
///
/// Errors: what does not fit.
fn read<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params)
        .map_err(|error| RpcError::params(format!("the parameters do not fit: {error}")))
}

fn value(answer: &impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(answer).map_err(|error| RpcError::internal(error.to_string()))
}
