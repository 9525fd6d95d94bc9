//! One conversation with an agent, as a client sees it: who is asked, which calls are open, which model comes next.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use zeph_acp::agent::ClientCapabilities;
use zeph_acp::connection::Connection;
use zeph_acp::rpc::RequestId;
use zeph_acp::update::{
    SESSION_UPDATE, SessionNotification, SessionUpdate, ToolCallContent, ToolCallUpdate,
};
use zeph_agent::Provider;
use zeph_agent::message::ToolCall;
use zeph_agent::tool_host::{CallEnd, CallEndKind};
use zeph_shell::run::OutputListener;

use super::call::{CallFacts, CallView};
use super::files::EditorFiles;
use super::permission;
use super::place::SharedHost;
use super::terminal::{CHUNKS_MAX, EditorTerminal};
use crate::agent::begin::HostAgent;
use crate::agent::tools::CallDoor;
use crate::calls::{CallControl, CallReport, EditorParts};
use crate::host::Host;
use crate::session::Session;

/// Calls that a session remembers as rejected for good.
const REJECTED_MAX: usize = 1_000;

/// The client of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Client {
    /// What it can do.
    pub(super) capabilities: ClientCapabilities,
    /// What it calls itself, with its version.
    pub(super) name: Option<String>,
}

/// A session. The agent is in it while no turn runs.
#[derive(Debug)]
pub(super) struct AcpSession {
    id: String,
    connection: Connection,
    client: Client,
    host: Host,
    /// Keeps the host for other sessions of the same place.
    _shared: SharedHost,
    session: Session,
    directory: PathBuf,
    /// All that changes. Locked for a moment only.
    state: Mutex<SessionState>,
}

#[derive(Debug, Default)]
struct SessionState {
    /// None while a turn has it.
    agent: Option<Box<HostAgent>>,
    turn: Option<RunningTurn>,
    /// The provider that the next turn uses, and the name of the one that was chosen last.
    next: Option<Arc<dyn Provider>>,
    provider: String,
    /// Calls that have begun and not ended, by the model's ids.
    open: HashMap<String, OpenCall>,
    rejected: HashSet<String>,
    /// Why the editor cannot start our program in its terminals, once that is known.
    jail_missing: Option<String>,
    /// Whether it was told that the editor did not give or take a file.
    has_told_of_files: bool,
    is_closed: bool,
}

/// A turn that runs.
#[derive(Debug, Clone)]
struct RunningTurn {
    request: RequestId,
    cancel: CancellationToken,
}

/// A call that has begun.
#[derive(Debug, Clone)]
struct OpenCall {
    /// Unique in the session, as the model's is not.
    id: String,
    call: ToolCall,
    facts: CallFacts,
    /// The terminal of the client it runs in.
    terminal: Option<String>,
}

/// Why a turn cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    /// Another one runs.
    Turn,
    /// The session was closed.
    Closed,
}

impl AcpSession {
    /// A session of `agent` at `directory`.
    pub(super) fn new(
        (connection, client): (Connection, Client),
        (host, shared): (Host, SharedHost),
        directory: PathBuf,
        agent: HostAgent,
    ) -> Arc<Self> {
        let session = agent.host().session().clone();
        let provider = agent.provider().origin().provider.clone();
        let this = Arc::new(Self {
            id: session.conversation.to_string(),
            connection,
            client,
            host,
            _shared: shared,
            session,
            directory,
            state: Mutex::default(),
        });
        let door = CallsOf(Arc::downgrade(&this));
        agent.host().serve(Arc::new(door));
        let mut state = this.state();
        state.agent = Some(Box::new(agent));
        state.provider = provider;
        drop(state);
        this
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Whose calls they are.
    pub(super) fn calls(&self) -> &Session {
        &self.session
    }

    /// Tells the client something.
    pub(super) fn tell(&self, update: &SessionUpdate) {
        let told = SessionNotification {
            session_id: &self.id,
            update,
        };
        self.connection.notify(SESSION_UPDATE, &told);
    }

    /// Begins a turn for `request`: hands out the agent, and what cancels it.
    ///
    /// Errors: [`Busy`].
    pub(super) fn begin(
        &self,
        request: &RequestId,
    ) -> Result<(Box<HostAgent>, CancellationToken), Busy> {
        let mut state = self.state();
        if state.is_closed {
            return Err(Busy::Closed);
        }
        let mut agent = state.agent.take().ok_or(Busy::Turn)?;
        if let Some(provider) = state.next.take() {
            let origin = provider.origin();
            agent.journal().uses(&origin.provider, &origin.model);
            agent.use_provider(provider);
        }
        let cancel = CancellationToken::new();
        state.turn = Some(RunningTurn {
            request: request.clone(),
            cancel: cancel.clone(),
        });
        Ok((agent, cancel))
    }

    /// The turn is over. Without an agent, which a crash took, the session is closed.
    pub(super) fn end(&self, agent: Option<Box<HostAgent>>) {
        let mut state = self.state();
        state.turn = None;
        state.is_closed |= agent.is_none();
        state.agent = agent;
    }

    /// Whether a turn runs.
    pub(super) fn is_busy(&self) -> bool {
        self.state().turn.is_some()
    }

    /// Cancels the turn, if one runs.
    pub(super) fn cancel(&self) {
        if let Some(turn) = &self.state().turn {
            turn.cancel.cancel();
        }
    }

    /// Cancels the turn that answers this request.
    pub(super) fn cancel_request(&self, request: &RequestId) {
        let state = self.state();
        let turn = state.turn.as_ref();
        if let Some(turn) = turn.filter(|turn| turn.request == *request) {
            turn.cancel.cancel();
        }
    }

    /// Takes no more prompts, cancels what runs, and ends what runs in the background.
    pub(super) async fn close(&self) {
        self.state().is_closed = true;
        self.cancel();
        self.session.close().await;
    }

    /// The name of the provider in use, or of the one the next turn uses.
    pub(super) fn provider(&self) -> String {
        self.state().provider.clone()
    }

    /// Another model, from the next turn on.
    pub(super) fn use_provider(&self, provider: Arc<dyn Provider>) {
        let mut state = self.state();
        state.provider = provider.origin().provider.clone();
        state.next = Some(provider);
    }

    /// Whether the user rejected this question for good.
    pub(super) fn is_rejected(&self, question: &str) -> bool {
        self.state().rejected.contains(question)
    }

    /// Remembers a question as rejected for good.
    pub(super) fn reject(&self, question: String) {
        let mut state = self.state();
        if state.rejected.len() < REJECTED_MAX {
            state.rejected.insert(question);
        }
    }

    /// Why the editor cannot start our program in its terminals, once that is known.
    pub(super) fn jail_missing(&self) -> Option<String> {
        self.state().jail_missing.clone()
    }

    /// The editor cannot start our program.
    pub(super) fn misses_jail(&self, why: &str) {
        self.state().jail_missing.get_or_insert(why.to_owned());
    }

    /// Whether it is to be told that the editor did not give or take a file: once.
    pub(super) fn tells_of_files(&self) -> bool {
        !std::mem::replace(&mut self.state().has_told_of_files, true)
    }

    /// Shows the terminal that a call runs in.
    pub(super) fn call_in_terminal(&self, call_id: &str, terminal_id: &str) {
        let Some(id) = self.state().open.get_mut(call_id).map(|open| {
            open.terminal = Some(terminal_id.to_owned());
            open.id.clone()
        }) else {
            return;
        };
        self.tell(&SessionUpdate::ToolCallUpdate(ToolCallUpdate {
            tool_call_id: id,
            content: Some(vec![ToolCallContent::Terminal {
                terminal_id: terminal_id.to_owned(),
            }]),
            ..ToolCallUpdate::default()
        }));
    }

    /// What the editor has for a call that begins; commands print to it.
    fn editor(self: &Arc<Self>, call_id: &str) -> (EditorParts, Option<OutputListener>) {
        let ClientCapabilities { fs, terminal } = self.client.capabilities;
        let has_files = fs.read_text_file || fs.write_text_file;
        let files = has_files.then(|| Arc::new(EditorFiles(Arc::clone(self))));
        if !terminal || !self.is_command(call_id) {
            let terminal = None;
            return (EditorParts { terminal, files }, None);
        }
        let (sender, printed) = mpsc::channel(CHUNKS_MAX);
        let terminal = EditorTerminal::new(self, call_id, printed);
        let parts = EditorParts {
            terminal: Some(Arc::new(terminal)),
            files,
        };
        (parts, Some(OutputListener::new(sender)))
    }

    fn is_command(&self, call_id: &str) -> bool {
        let state = self.state();
        let open = state.open.get(call_id);
        open.is_some_and(|open| Host::runs_commands(&open.call.name))
    }

    /// Announces a call.
    pub(super) fn call_begins(&self, call: &ToolCall) {
        let id = Uuid::now_v7().to_string();
        let redactor = self.host.redactor();
        let begun = self.view(call, &redactor).begin(&id);
        let open = OpenCall {
            id,
            call: call.clone(),
            facts: CallFacts::default(),
            terminal: None,
        };
        self.state().open.insert(call.id.clone(), open);
        self.tell(&SessionUpdate::ToolCall(begun));
    }

    /// Ends a call that was announced, once.
    pub(super) fn call_ends(&self, call_id: &str, end: &CallEnd) {
        let Some(open) = self.state().open.remove(call_id) else {
            return;
        };
        let redactor = self.host.redactor();
        let terminal = open
            .terminal
            .map(|terminal_id| ToolCallContent::Terminal { terminal_id });
        let ended = self
            .view(&open.call, &redactor)
            .end(&open.id, (end, &open.facts), terminal);
        self.tell(&SessionUpdate::ToolCallUpdate(ended));
    }

    /// Ends every call that is still open, whatever became of it.
    pub(super) fn end_open_calls(&self) {
        let open: Vec<String> = self.state().open.keys().cloned().collect();
        let end = CallEnd::of(
            CallEndKind::Cancelled,
            "[error] the turn ended before this call",
        );
        open.iter().for_each(|id| self.call_ends(id, &end));
    }

    /// What a call that is open is, for a question about it.
    pub(super) fn described(&self, call_id: &str) -> Option<ToolCallUpdate> {
        let open = self.state().open.get(call_id).cloned()?;
        let redactor = self.host.redactor();
        Some(self.view(&open.call, &redactor).described(&open.id))
    }

    fn view<'a>(
        &'a self,
        call: &'a ToolCall,
        redactor: &'a zeph_core::redact::Redactor,
    ) -> CallView<'a> {
        CallView {
            call,
            directory: &self.directory,
            redactor,
        }
    }

    fn keep_facts(&self, call_id: &str, report: &CallReport) {
        if let Some(open) = self.state().open.get_mut(call_id) {
            open.facts = CallFacts::of(&report.output);
        }
    }
}

/// The calls of a session, which its agent does not keep alive.
#[derive(Debug)]
struct CallsOf(std::sync::Weak<AcpSession>);

impl CallDoor for CallsOf {
    fn equip(&self, call_id: &str, control: CallControl) -> CallControl {
        match self.0.upgrade() {
            Some(session) => {
                let (editor, on_output) = session.editor(call_id);
                CallControl {
                    ask: Some(permission::prompt(&session, call_id)),
                    on_output: on_output.or(control.on_output.clone()),
                    editor,
                    ..control
                }
            }
            None => control,
        }
    }

    fn ended(&self, call_id: &str, report: &CallReport) {
        if let Some(session) = self.0.upgrade() {
            session.keep_facts(call_id, report);
        }
    }
}
