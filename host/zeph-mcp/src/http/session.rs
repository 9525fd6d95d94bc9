//! Sessions of the protocol's older revisions: whose they are, and when they end.
//!
//! A session belongs to the caller that opened it; for every other it does not exist. One that nobody uses ends after a while, and so do the
//! calls of a client that vanished: a stream that breaks may be resumed for some seconds, then its call is cancelled.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};

use super::access::{Credential, StillValid};

/// How long a session without an open stream is kept.
const IDLE_MAX: Duration = Duration::from_secs(1_800);

/// Most sessions of one caller. Beyond it the one that was idle longest makes room.
const SESSIONS_OF_CALLER_MAX: usize = 64;

/// Most sessions of all callers.
const SESSIONS_MAX: usize = 2_048;

/// What parts the name of a replica from the rest of a session's ID.
const SEPARATOR: char = '.';

/// Longest name of a replica.
const NAME_MAX: usize = 32;

/// Who makes the request that is being answered.
#[derive(Debug, Clone)]
pub(super) struct Requester {
    pub(super) caller_id: Option<String>,
    pub(super) credential: Credential,
}

tokio::task_local! {
    /// The sessions are asked by the protocol's service, which knows of no callers.
    pub(super) static REQUESTER: Requester;
}

/// The sessions of all callers.
#[derive(Debug)]
pub(super) struct Sessions {
    local: LocalSessionManager,
    records: Arc<Records>,
    /// How long a broken stream of a call can be resumed.
    resume_max: Duration,
    /// The name of this replica with what parts it from the rest of an ID; empty where there are no others.
    prefix: String,
}

#[derive(Debug, Default)]
struct Records(Mutex<HashMap<SessionId, Record>>);

#[derive(Debug)]
struct Record {
    requester: Requester,
    used: Instant,
    n_streams: usize,
    /// Requests without an answer.
    open: HashSet<RequestId>,
    /// Calls whose streams broke.
    broken: Vec<Broken>,
}

#[derive(Debug)]
struct Broken {
    /// What the ids of its events end with; none before the first event.
    stream: Option<String>,
    request: RequestId,
    since: Instant,
}

/// No further session can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many sessions are open; end one, or wait")]
pub(super) struct TooManySessions;

impl Sessions {
    /// None yet. The IDs of sessions begin with `replica`, so that a load balancer can route by them.
    pub(super) fn new(resume_max: Duration, replica: Option<&str>) -> Self {
        let mut local = LocalSessionManager::default();
        // What is idle is judged here: there, a call that says nothing for a while is.
        local.session_config.keep_alive = None;
        Self {
            local,
            records: Arc::default(),
            resume_max,
            prefix: replica.map_or_else(String::new, |name| format!("{name}{SEPARATOR}")),
        }
    }

    /// The name of this replica, if it is one.
    pub(super) fn replica(&self) -> Option<&str> {
        self.prefix.strip_suffix(SEPARATOR)
    }

    /// The replica that the session with this ID belongs to, when that is not this one.
    pub(super) fn foreign<'i>(&self, id: &'i str) -> Option<&'i str> {
        if self.prefix.is_empty() || id.starts_with(&self.prefix) {
            return None;
        }
        let (replica, _) = id.split_once(SEPARATOR)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (replica.len() <= NAME_MAX && replica.bytes().all(is_plain)).then_some(replica)
    }

    /// What the protocol's own sessions call the one with this ID.
    fn own_id(&self, id: &SessionId) -> SessionId {
        match id.strip_prefix(&self.prefix) {
            Some(own) if !self.prefix.is_empty() => SessionId::from(own),
            _ => SessionId::clone(id),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.records.locked().len()
    }

    /// Whether the session exists for this requester, who uses it.
    pub(super) fn is_of(&self, id: &str, requester: &Requester) -> bool {
        let mut records = self.records.locked();
        let Some(record) = records.get_mut(id) else {
            return false;
        };
        let is_owner = record.requester.caller_id == requester.caller_id
            && record.requester.credential.goes_on(&requester.credential);
        if is_owner {
            record.used = Instant::now();
            record.requester.credential = requester.credential;
        }
        is_owner
    }

    /// Makes room for another session of this caller.
    ///
    /// Errors: [`TooManySessions`]: all have open streams.
    pub(super) async fn make_room(&self, caller_id: Option<&str>) -> Result<(), TooManySessions> {
        let idle = {
            let records = self.records.locked();
            let own = |record: &&Record| record.requester.caller_id.as_deref() == caller_id;
            let is_full = records.len() >= SESSIONS_MAX
                || records.values().filter(own).count() >= SESSIONS_OF_CALLER_MAX;
            if !is_full {
                return Ok(());
            }
            let idle = records
                .iter()
                .filter(|(_, record)| own(record) && record.is_idle());
            let longest = idle.min_by_key(|(_, record)| record.used);
            longest.map(|(id, _)| id.clone()).ok_or(TooManySessions)?
        };
        self.end(&idle).await;
        Ok(())
    }

    /// Ends what has been idle for too long, and the calls of streams that nobody resumed.
    pub(super) async fn tidy(&self, now: Instant) {
        for (session, request) in self.records.take_lost(now, self.resume_max) {
            tracing::debug!(%session, %request, "the client of a call is gone: it is cancelled");
            let param = CancelledNotificationParam::new(Some(request), None);
            let cancelled = CancelledNotification::new(param);
            let cancelled = ClientNotification::CancelledNotification(cancelled);
            let message = ClientJsonRpcMessage::notification(cancelled);
            // A session that has ended meanwhile has cancelled its calls.
            drop(
                self.local
                    .accept_message(&self.own_id(&session), message)
                    .await,
            );
        }
        self.end_all(|record| record.is_idle() && now.duration_since(record.used) > IDLE_MAX)
            .await;
    }

    /// Ends the sessions that were opened with what has been revoked.
    pub(super) async fn end_revoked(&self, valid: &StillValid) {
        self.end_all(|record| valid.is_revoked(&record.requester.credential))
            .await;
    }

    /// Ends all of them, with what they run.
    pub(super) async fn end_every(&self) {
        self.end_all(|_| true).await;
    }

    async fn end_all(&self, is_over: impl Fn(&Record) -> bool) {
        let over: Vec<SessionId> = {
            let records = self.records.locked();
            let over = records.iter().filter(|(_, record)| is_over(record));
            over.map(|(id, _)| id.clone()).collect()
        };
        for id in over {
            self.end(&id).await;
        }
    }

    async fn end(&self, id: &SessionId) {
        self.records.locked().remove(id);
        // Fails when it has ended by itself.
        drop(self.local.close_session(&self.own_id(id)).await);
    }

    /// The stream of a call, or of what a session has to say.
    fn watched(
        &self,
        id: &SessionId,
        stream: Events,
        call: Option<(Option<String>, RequestId)>,
    ) -> SessionStream {
        if let Some(record) = self.records.locked().get_mut(id) {
            record.n_streams += 1;
            record.used = Instant::now();
        }
        let (stream_id, request) = match call {
            Some((stream_id, request)) => (stream_id, Some(request)),
            None => (None, None),
        };
        SessionStream {
            inner: stream,
            records: Arc::clone(&self.records),
            session: id.clone(),
            stream_id,
            request,
        }
    }
}

impl SessionManager for Sessions {
    type Error = <LocalSessionManager as SessionManager>::Error;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.local.create_session().await?;
        let id = match self.prefix.is_empty() {
            true => id,
            false => SessionId::from(format!("{}{id}", self.prefix)),
        };
        let record = Record {
            requester: requester(),
            used: Instant::now(),
            n_streams: 0,
            open: HashSet::new(),
            broken: Vec::new(),
        };
        self.records.locked().insert(id.clone(), record);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local
            .initialize_session(&self.own_id(id), message)
            .await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.is_of(id, &requester()) && self.local.has_session(&self.own_id(id)).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.records.locked().remove(id);
        self.local.close_session(&self.own_id(id)).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        if let Some(request) = &request
            && !self.records.open(id, request)
        {
            let refusal: Events = Box::pin(Refusal(Some(in_progress(request.clone()))));
            return Ok(self.watched(id, refusal, None));
        }
        let stream = self.local.create_stream(&self.own_id(id), message).await;
        if let (Err(_), Some(request)) = (&stream, &request) {
            self.records.free(id, request);
        }
        let stream: Events = Box::pin(stream?);
        Ok(self.watched(id, stream, request.map(|request| (None, request))))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.local.accept_message(&self.own_id(id), message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let own_id = self.own_id(id);
        let stream: Events = Box::pin(self.local.create_standalone_stream(&own_id).await?);
        Ok(self.watched(id, stream, None))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let call = self.records.take_broken(id, &last_event_id);
        let own_id = self.own_id(id);
        let stream: Events = Box::pin(self.local.resume(&own_id, last_event_id).await?);
        Ok(self.watched(id, stream, call))
    }
}

/// Who makes the request that is being answered; nobody's session is found for nobody.
fn requester() -> Requester {
    let anybody = Requester {
        caller_id: None,
        credential: Credential::None,
    };
    REQUESTER.try_with(Clone::clone).unwrap_or(anybody)
}

/// The answer to a request whose id is that of one in progress: the answers could not be told apart.
fn in_progress(id: RequestId) -> ServerSseMessage {
    let message = "the id of the request is that of another one, which is in progress";
    let error = ErrorData::invalid_request(message, None);
    ServerSseMessage::from_message(ServerJsonRpcMessage::error(error, Some(id)))
}

/// The stream that an event belongs to: `INDEX/STREAM`.
fn stream_of(event_id: &str) -> Option<&str> {
    event_id.split_once('/').map(|(_, stream)| stream)
}

impl Records {
    fn locked(&self) -> MutexGuard<'_, HashMap<SessionId, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request; false when one of its id has no answer yet.
    fn open(&self, session: &SessionId, request: &RequestId) -> bool {
        let mut records = self.locked();
        // A session that has just ended refuses it by itself.
        let record = records.get_mut(session);
        record.is_none_or(|record| record.open.insert(request.clone()))
    }

    /// The id of a request is free again.
    fn free(&self, session: &SessionId, request: &RequestId) {
        if let Some(record) = self.locked().get_mut(session) {
            record.open.remove(request);
        }
    }

    /// The call whose stream is resumed after this event, which is broken no longer.
    fn take_broken(&self, id: &SessionId, event_id: &str) -> Option<(Option<String>, RequestId)> {
        let stream = stream_of(event_id)?;
        let mut records = self.locked();
        let broken = &mut records.get_mut(id)?.broken;
        let is_it = |call: &Broken| call.stream.as_deref() == Some(stream);
        let call = broken.swap_remove(broken.iter().position(is_it)?);
        Some((call.stream, call.request))
    }

    /// The calls whose streams broke too long ago.
    fn take_lost(&self, now: Instant, resume_max: Duration) -> Vec<(SessionId, RequestId)> {
        let mut lost = Vec::new();
        for (id, record) in self.locked().iter_mut() {
            record.broken.retain(|call| {
                let is_lost = now.duration_since(call.since) > resume_max;
                if is_lost {
                    record.open.remove(&call.request);
                    lost.push((id.clone(), call.request.clone()));
                }
                !is_lost
            });
        }
        lost
    }
}

impl Record {
    fn is_idle(&self) -> bool {
        self.n_streams == 0 && self.broken.is_empty()
    }
}

/// What a session has to say.
type Events = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// One event, and the end.
struct Refusal(Option<ServerSseMessage>);

impl Stream for Refusal {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        Poll::Ready(self.0.take())
    }
}

/// A stream of a session, which knows whether it ended or broke.
struct SessionStream {
    inner: Events,
    records: Arc<Records>,
    session: SessionId,
    stream_id: Option<String>,
    /// The call that is not answered yet.
    request: Option<RequestId>,
}

impl SessionStream {
    fn note(&mut self, event: &ServerSseMessage) {
        if self.stream_id.is_none() {
            let stream = event.event_id.as_deref().and_then(stream_of);
            self.stream_id = stream.map(str::to_owned);
        }
        let is_answer = matches!(
            event.message.as_deref(),
            Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
        );
        if is_answer {
            self.answered();
        }
    }

    /// The request needs no answer any more.
    fn answered(&mut self) {
        if let Some(request) = self.request.take() {
            self.records.free(&self.session, &request);
        }
    }
}

impl Stream for SessionStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.inner.as_mut().poll_next(context);
        match &polled {
            Poll::Ready(Some(event)) => self.note(event),
            Poll::Ready(None) => self.answered(),
            Poll::Pending => {}
        }
        polled
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        let mut records = self.records.locked();
        let Some(record) = records.get_mut(&self.session) else {
            return;
        };
        record.n_streams = record.n_streams.saturating_sub(1);
        record.used = Instant::now();
        if let Some(request) = self.request.take() {
            record.broken.push(Broken {
                stream: self.stream_id.take(),
                request,
                since: Instant::now(),
            });
        }
    }
}
