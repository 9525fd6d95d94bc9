//! The methods that begin, continue, list and end sessions.

use std::sync::Arc;

use serde_json::Value;
use zeph_acp::agent::{LoadSessionRequest, OfSession, Present};
use zeph_acp::rpc::RpcError;
use zeph_core::id::ConversationId;

use super::super::place::Place;
use super::super::session::AcpSession;
use super::super::{listing, replay};
use super::{Door, DoorState, Reply, read, response, unknown_session, value};
use crate::agent::approver::Approver;
use crate::agent::begin::{self, AgentStart, HostAgent};
use crate::agent::models;
use crate::host::Host;

/// Sessions of one client.
const SESSIONS_MAX: usize = 64;

/// How a stored session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoesOn {
    /// Told again from its beginning.
    Replayed,
    /// As it is.
    Silently,
}

impl Door {
    pub(super) async fn begin(&self, params: Value) -> Result<Reply, RpcError> {
        let place = Place::read(read(params)?)?;
        let session = self.open(&place, None, GoesOn::Silently).await?;
        Ok(Reply {
            value: value(&response(&session, Some(session.id().to_owned())))?,
            begun: Some(session),
        })
    }

    pub(super) async fn go_on(&self, params: Value, how: GoesOn) -> Result<Reply, RpcError> {
        let LoadSessionRequest { session_id, place } = read(params)?;
        let place = Place::read(place)?;
        let id = session_id.parse::<ConversationId>();
        let id = id.map_err(|_| unknown_session(&session_id))?;
        let session = self.open(&place, Some(id), how).await?;
        Ok(Reply {
            value: value(&response(&session, None))?,
            begun: Some(session),
        })
    }

    /// Opens a session, and adds it to those of the client. One that is open under the same id stays what it is until the new one is
    /// complete.
    ///
    /// Errors: a turn of that one runs, or ran meanwhile, or there are too many sessions; what keeps a session from beginning.
    async fn open(
        &self,
        place: &Place,
        resume: Option<ConversationId>,
        how: GoesOn,
    ) -> Result<Arc<AcpSession>, RpcError> {
        let n_turns = replaceable(&self.state(), resume)?;
        let (host, shared) = self.hosts.at(place).await?;
        // The model is shown the tools once: they have to be there.
        host.settled().await;
        let agent = self.agent(&host, resume).await?;
        let client = self.client().unwrap_or_default();
        let told = match how {
            GoesOn::Replayed => agent.transcript().entries().to_vec(),
            GoesOn::Silently => Vec::new(),
        };
        let session = AcpSession::new(
            (self.connection.clone(), client),
            (host, shared),
            place.directory.clone(),
            (agent, n_turns),
        );
        replay::replay(&session, &told).await;
        if let Some(replaced) = self.add(&session)? {
            replaced.close().await;
        }
        self.hosts.run_scheduled(place, session.host()).await;
        Ok(session)
    }

    /// Adds a session to those of the client; the one that had its id, which takes no more prompts.
    ///
    /// Errors: there are too many; or that one has gone on, so that the new one would not know its last turn.
    fn add(&self, session: &Arc<AcpSession>) -> Result<Option<Arc<AcpSession>>, RpcError> {
        let mut state = self.state();
        let id = session.id();
        match state.sessions.get(id) {
            Some(open) if !open.give_way(session) => return Err(turn_runs()),
            Some(_) => {}
            None => has_room(&state)?,
        }
        Ok(state.sessions.insert(id.to_owned(), Arc::clone(session)))
    }

    async fn agent(
        &self,
        host: &Host,
        resume: Option<ConversationId>,
    ) -> Result<HostAgent, RpcError> {
        if let Some(id) = resume {
            let stored = host.store().session(id).await;
            let stored = stored.map_err(|error| RpcError::internal(error.to_string()))?;
            stored.ok_or_else(|| unknown_session(&id.to_string()))?;
        }
        let provider = models::provider(host, self.hosts.source().provider());
        let provider = provider.map_err(|missing| {
            RpcError::internal(format!("{}; {}", missing.problem, missing.hint))
        })?;
        let start = AgentStart {
            provider,
            approver: Approver::default(),
            live: None,
            resume,
            conversation: None,
            schedule: None,
        };
        let agent = begin::begin(host, start).await;
        agent.map_err(|problem| RpcError::internal(format!("the session cannot begin: {problem}")))
    }

    pub(super) async fn list(&self, params: Value) -> Result<Reply, RpcError> {
        let request = read(params)?;
        let host = self.hosts.first().await?;
        let listed = listing::list(host.store(), request).await?;
        Ok(Reply::of(value(&listed)?))
    }

    pub(super) async fn close_session(&self, params: Value) -> Result<Reply, RpcError> {
        let OfSession { session_id } = read(params)?;
        let removed = self.state().sessions.remove(&session_id);
        let session = removed.ok_or_else(|| unknown_session(&session_id))?;
        session.close().await;
        Ok(Reply::of(value(&Present {})?))
    }

    /// Deletes a stored session; one that is open is closed first. One that is not there is as good as deleted.
    pub(super) async fn delete(&self, params: Value) -> Result<Reply, RpcError> {
        let OfSession { session_id } = read(params)?;
        let id = session_id.parse::<ConversationId>();
        let id = id.map_err(|_| unknown_session(&session_id))?;
        let open = self.state().sessions.remove(&id.to_string());
        if let Some(session) = open {
            session.close().await;
        }
        let host = self.hosts.first().await?;
        let deleted = host.store().delete_conversation(id).await;
        deleted.map_err(|error| RpcError::internal(error.to_string()))?;
        Ok(Reply::of(value(&Present {})?))
    }
}

/// How many turns the open session `id` has had; 0 where it is not open.
///
/// Errors: one of them runs, or there are too many sessions for another one.
fn replaceable(state: &DoorState, id: Option<ConversationId>) -> Result<u64, RpcError> {
    let open = id.and_then(|id| state.sessions.get(&id.to_string()));
    match open {
        Some(open) if open.is_busy() => Err(turn_runs()),
        Some(open) => Ok(open.n_turns()),
        None => has_room(state).map(|()| 0),
    }
}

fn turn_runs() -> RpcError {
    RpcError::request("a turn of this session runs")
}

/// Errors: there are too many sessions for another one.
fn has_room(state: &DoorState) -> Result<(), RpcError> {
    match state.sessions.len() < SESSIONS_MAX {
        true => Ok(()),
        false => Err(RpcError::request(format!(
            "{SESSIONS_MAX} sessions are open; close one first"
        ))),
    }
}
