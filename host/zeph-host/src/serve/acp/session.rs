//! One conversation with an agent, as a client sees it: who is asked, which calls are open, which model comes next.

mod calls;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use zeph_acp::agent::{ClientCapabilities, FileSystemCapabilities};
use zeph_acp::connection::Connection;
use zeph_acp::rpc::RequestId;
use zeph_acp::update::{PlanEntry, SESSION_UPDATE, SessionNotification, SessionUpdate};
use zeph_agent::Provider;

use self::calls::{CallsOf, OpenCall};
use super::place::SharedHost;
use super::{TURNS_PATIENCE, plan};
use crate::agent::begin::HostAgent;
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
    /// Told of the end of each turn.
    turn_over: Notify,
    /// All that changes. Locked for a moment only.
    state: Mutex<SessionState>,
}

#[derive(Debug, Default)]
struct SessionState {
    /// None while a turn has it.
    agent: Option<Box<HostAgent>>,
    turn: Option<RunningTurn>,
    /// Turns that have begun, with those of the sessions that this one replaced.
    n_turns: u64,
    /// The provider that the next turn uses, and the name of the one that was chosen last.
    next: Option<Arc<dyn Provider>>,
    provider: String,
    /// Calls that have begun and not ended.
    open: Vec<OpenCall>,
    rejected: HashSet<String>,
    /// Why the editor cannot start our program in its terminals, once that is known.
    jail_missing: Option<String>,
    /// The plan that the client was told last.
    plan: Vec<PlanEntry>,
    /// Whether it was told that the editor did not give or take a file.
    has_told_of_files: bool,
    /// Whether the editor did not answer when it was asked about a file.
    is_silent_about_files: bool,
    is_closed: bool,
}

/// A turn that runs.
#[derive(Debug, Clone)]
struct RunningTurn {
    request: RequestId,
    cancel: CancellationToken,
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
    /// A session of `agent` at `directory`; `n_turns` is how many the client has had of it before.
    pub(super) fn new(
        (connection, client): (Connection, Client),
        (host, shared): (Host, SharedHost),
        directory: PathBuf,
        (agent, n_turns): (HostAgent, u64),
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
            turn_over: Notify::new(),
            state: Mutex::default(),
        });
        let door = CallsOf(Arc::downgrade(&this));
        agent.host().serve(Arc::new(door));
        let mut state = this.state();
        state.agent = Some(Box::new(agent));
        state.provider = provider;
        state.n_turns = n_turns;
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

    /// Tells the client the tasks of the goal, unless it was told the same last. `is_completed`: the goal may have just been completed.
    pub(super) fn tell_plan(&self, is_completed: bool) {
        let active = self.session.goals().active();
        let goal = active.as_ref().map(|active| &active.goal);
        let mut state = self.state();
        let entries = plan::next(goal, &state.plan, is_completed);
        if state.plan == entries {
            return;
        }
        state.plan.clone_from(&entries);
        drop(state);
        self.tell(&SessionUpdate::Plan { entries });
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
        state.n_turns += 1;
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
        drop(state);
        self.turn_over.notify_waiters();
    }

    /// Whether a turn runs.
    pub(super) fn is_busy(&self) -> bool {
        self.state().turn.is_some()
    }

    /// How many turns have begun.
    pub(super) fn n_turns(&self) -> u64 {
        self.state().n_turns
    }

    /// Takes no more prompts, as `other` is the session now; unless a turn runs, or one ran since `other` was read from the store.
    pub(super) fn give_way(&self, other: &Self) -> bool {
        let n_known = other.n_turns();
        let mut state = self.state();
        let gives_way = state.turn.is_none() && state.n_turns == n_known;
        state.is_closed |= gives_way;
        gives_way
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

    /// Takes no more prompts, cancels the turn and waits for its end, which is still recorded, and ends what runs in the background.
    pub(super) async fn close(&self) {
        self.state().is_closed = true;
        self.cancel();
        if tokio::time::timeout(TURNS_PATIENCE, self.idle())
            .await
            .is_err()
        {
            tracing::warn!("a turn has not ended in time");
        }
        self.end_runs().await;
    }

    /// Ends what runs in the background, of a session whose turn is over.
    pub(super) async fn end_runs(&self) {
        // Its client takes no updates of it any more.
        drop(self.host.end_runs(&self.session).await);
    }

    /// Waits until no turn runs.
    async fn idle(&self) {
        let mut over = std::pin::pin!(self.turn_over.notified());
        loop {
            // Before the look, so that no end is missed.
            over.as_mut().enable();
            if !self.is_busy() {
                return;
            }
            over.as_mut().await;
            over.set(self.turn_over.notified());
        }
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

    /// What the editor does for files: nothing any more, once it did not answer.
    pub(super) fn files(&self) -> FileSystemCapabilities {
        match self.state().is_silent_about_files {
            true => FileSystemCapabilities::default(),
            false => self.client.capabilities.fs,
        }
    }

    /// The editor did not answer when it was asked about a file.
    pub(super) fn give_up_files(&self) {
        self.state().is_silent_about_files = true;
    }

    /// Whether it is to be told that the editor did not give or take a file: once.
    pub(super) fn tells_of_files(&self) -> bool {
        !std::mem::replace(&mut self.state().has_told_of_files, true)
    }
}
