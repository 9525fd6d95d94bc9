//! Sessions of the protocol's older revisions: whose they are, and when they end.
//!
//! A session belongs to the caller that opened it; for every other it does not exist. One that nobody uses ends after a while, and so do the
//! calls of a client that vanished: a stream that breaks may be resumed for some seconds, then its call is cancelled. What a call says
//! meanwhile is kept for as long, and so is an answer that was sent: nobody knows whether it arrived.

use std::collections::{HashMap, HashSet};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_core::Stream;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    ErrorData, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::access::{Credential, StillValid};
use super::replay::{Events, Reader, Replay, Unread, is_answer, stream_of};

/// How long a session without an open stream is kept.
const IDLE_MAX: Duration = Duration::from_secs(1_800);

/// Most sessions of one caller. Beyond it the one that was idle longest makes room.
const SESSIONS_OF_CALLER_MAX: usize = 64;

/// Most sessions of all callers.
const SESSIONS_MAX: usize = 2_048;

/// Most answers of a session that are kept after they were sent.
const ANSWERS_MAX: usize = 8;

/// Most requests of a session that are remembered when they can be resumed no longer.
const OVER_MAX: usize = 64;

/// How long clients are told to wait before they resume a stream; that of the protocol's own sessions.
const RETRY: Duration = Duration::from_secs(3);

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
struct Records {
    of: Mutex<HashMap<SessionId, Record>>,
    /// Keep what broken streams have to say.
    drains: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Record {
    requester: Requester,
    used: Instant,
    n_streams: usize,
    /// Requests without an answer.
    open: HashSet<RequestId>,
    /// The requests that can be resumed, and those that could be: the oldest first.
    calls: Vec<Call>,
    next_call: u64,
    /// The stream of what belongs to no request.
    standalone: Option<Arc<Replay>>,
    /// Whether its client knows events without a message, which open a stream so that it can be resumed: older ones fail to parse them.
    knows_openings: bool,
}

#[derive(Debug)]
struct Call {
    number: u64,
    request: RequestId,
    replay: Arc<Replay>,
    state: CallState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// A client reads its stream.
    Read,
    /// Its stream broke before its answer was sent.
    Broken(Instant),
    /// Its answer was sent.
    Answered(Instant),
    /// Its client came back too late, or not at all.
    Over,
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

    /// Whether the event `event_id` is one of a request of this session that can be resumed: its stream ends by itself.
    pub(super) fn is_of_call(&self, id: &str, event_id: &str, requester: &Requester) -> bool {
        let stream = stream_of(event_id).filter(|_| self.is_of(id, requester));
        let records = self.records.locked();
        stream.zip(records.get(id)).is_some_and(|(stream, record)| {
            let mut calls = record.calls.iter();
            calls.any(|call| call.replay.is(stream))
        })
    }

    /// Whether there is a call whose stream broke, and whose client may still resume it.
    pub(super) fn has_broken_call(&self) -> bool {
        let records = self.records.locked();
        let mut calls = records.values().flat_map(|record| &record.calls);
        calls.any(|call| matches!(call.state, CallState::Broken(_)))
    }

    /// Whether another session of this caller would find room. None is ended yet: its request may still be refused.
    ///
    /// Errors: [`TooManySessions`]: all have open streams.
    pub(super) fn has_room(&self, caller_id: Option<&str>) -> Result<(), TooManySessions> {
        self.records.in_the_way(caller_id).map(drop)
    }

    /// Makes room for another session of this caller.
    ///
    /// Errors: [`TooManySessions`], as for [`has_room`](Self::has_room).
    async fn make_room(&self, caller_id: Option<&str>) -> Result<(), TooManySessions> {
        if let Some(idle) = self.records.in_the_way(caller_id)? {
            self.end(&idle).await;
        }
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
    fn watched(&self, id: &SessionId, source: Source) -> SessionStream {
        let mut knows_openings = false;
        if let Some(record) = self.records.locked().get_mut(id) {
            record.n_streams += 1;
            record.used = Instant::now();
            knows_openings = record.knows_openings;
        }
        SessionStream {
            opening: None,
            knows_openings,
            source,
            records: Arc::clone(&self.records),
            session: id.clone(),
        }
    }

    /// What belongs to no request, after the event with the id `after`. The newest stream has it: a client that opens another has lost the
    /// one before it, whatever this side knows of that.
    async fn standalone(&self, id: &SessionId, after: Option<&str>) -> Result<Reader, OwnError> {
        let own_id = self.own_id(id);
        loop {
            // The protocol's own sessions give what there is to the one that is there.
            self.records.end_standalone(id);
            let events: Events = match after {
                Some(after) => Box::pin(self.local.resume(&own_id, after.to_owned()).await?),
                None => Box::pin(self.local.create_standalone_stream(&own_id).await?),
            };
            let replay = Replay::new(events);
            let reader = replay.read(None);
            // Where two were opened at once, the first may have kept the place.
            if self.records.put_standalone(id, replay) {
                return Ok(reader);
            }
        }
    }
}

type OwnError = <LocalSessionManager as SessionManager>::Error;

impl SessionManager for Sessions {
    type Error = <LocalSessionManager as SessionManager>::Error;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        // The request is let in, has its place and opens a session: now one that is idle may go for it.
        let requester = requester();
        let room = self.make_room(requester.caller_id.as_deref()).await;
        room.map_err(|full| SessionError::Io(io::Error::other(full)))?;
        let (id, transport) = self.local.create_session().await?;
        let id = match self.prefix.is_empty() {
            true => id,
            false => SessionId::from(format!("{}{id}", self.prefix)),
        };
        let record = Record {
            requester,
            used: Instant::now(),
            n_streams: 0,
            open: HashSet::new(),
            calls: Vec::new(),
            next_call: 0,
            standalone: None,
            knows_openings: false,
        };
        self.records.locked().insert(id.clone(), record);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let answer = self
            .local
            .initialize_session(&self.own_id(id), message)
            .await?;
        if let ServerJsonRpcMessage::Response(response) = &answer
            && let ServerResult::InitializeResult(chosen) = &response.result
            && let Some(record) = self.records.locked().get_mut(id)
        {
            record.knows_openings = chosen.protocol_version >= ProtocolVersion::V_2025_11_25;
        }
        Ok(answer)
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
        let own_id = self.own_id(id);
        let ClientJsonRpcMessage::Request(request) = &message else {
            self.local.accept_message(&own_id, message).await?;
            return Ok(self.watched(id, Source::Error(None)));
        };
        let request = request.id.clone();
        if !self.records.open(id, &request) {
            return Ok(self.watched(id, Source::error(in_progress(request))));
        }
        let events: Events = match self.local.create_stream(&own_id, message).await {
            Ok(events) => Box::pin(events),
            Err(error) => {
                self.records.free(id, &request);
                return Err(error);
            }
        };
        let replay = Replay::new(events);
        let reader = replay.read(None);
        let number = self.records.add_call(id, request, replay);
        Ok(self.watched(id, Source::Call { reader, number }))
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
        let reader = self.standalone(id, None).await?;
        let opening = ServerSseMessage::priming("0", RETRY);
        let mut stream = self.watched(id, Source::Standalone(reader));
        stream.opening = stream.knows_openings.then_some(opening);
        Ok(stream)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let source = match stream_of(&last_event_id) {
            Some(stream) => self.records.resume(id, stream, &last_event_id),
            None => {
                let reader = self.standalone(id, Some(&last_event_id)).await?;
                Some(Source::Standalone(reader))
            }
        };
        let source = source.ok_or(SessionError::InvalidEventId)?;
        Ok(self.watched(id, source))
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

/// The answer to a request whose client came back too late: without one it would come back for ever.
fn too_late(id: RequestId) -> ServerSseMessage {
    let message = "the stream of the request was resumed too late: its answer is not kept any longer; what ran until then is done";
    let error = ErrorData::internal_error(message, None);
    ServerSseMessage::from_message(ServerJsonRpcMessage::error(error, Some(id)))
}

impl Records {
    fn locked(&self) -> MutexGuard<'_, HashMap<SessionId, Record>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session that has to end for another one of this caller; none where there is room.
    ///
    /// Errors: [`TooManySessions`]: all have open streams.
    fn in_the_way(&self, caller_id: Option<&str>) -> Result<Option<SessionId>, TooManySessions> {
        let records = self.locked();
        let own = |record: &&Record| record.requester.caller_id.as_deref() == caller_id;
        let is_full = records.len() >= SESSIONS_MAX
            || records.values().filter(own).count() >= SESSIONS_OF_CALLER_MAX;
        if !is_full {
            return Ok(None);
        }
        let idle = records
            .iter()
            .filter(|(_, record)| own(record) && record.is_idle());
        let longest = idle.min_by_key(|(_, record)| record.used);
        longest
            .map(|(id, _)| Some(id.clone()))
            .ok_or(TooManySessions)
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

    /// Adds the stream of a request; gives back its number.
    fn add_call(&self, session: &SessionId, request: RequestId, replay: Arc<Replay>) -> u64 {
        let mut records = self.locked();
        let Some(record) = records.get_mut(session) else {
            return 0;
        };
        let number = record.next_call;
        record.next_call += 1;
        record.calls.push(Call {
            number,
            request,
            replay,
            state: CallState::Read,
        });
        number
    }

    /// What a request has to say after this event; none where no request has such events.
    fn resume(&self, session: &SessionId, stream: &str, event_id: &str) -> Option<Source> {
        let mut records = self.locked();
        let calls = &mut records.get_mut(session)?.calls;
        let call = calls.iter_mut().find(|call| call.replay.is(stream))?;
        call.state = match call.state {
            CallState::Over => return Some(Source::error(too_late(call.request.clone()))),
            CallState::Answered(_) => CallState::Answered(Instant::now()),
            CallState::Read | CallState::Broken(_) => CallState::Read,
        };
        Some(Source::Call {
            reader: call.replay.read(Some(event_id)),
            number: call.number,
        })
    }

    /// The answer of a request was sent.
    fn answered(&self, session: &SessionId, number: u64) {
        let mut records = self.locked();
        let Some(record) = records.get_mut(session) else {
            return;
        };
        let Some(call) = record.calls.iter_mut().find(|call| call.number == number) else {
            return;
        };
        // Another request may have the id since its answer was sent first.
        if !matches!(call.state, CallState::Answered(_)) {
            record.open.remove(&call.request);
        }
        call.state = CallState::Answered(Instant::now());
        record.forget_oldest();
    }

    /// The stream of a request has ended; without an answer when it was cancelled.
    fn ended(&self, session: &SessionId, number: u64) {
        let mut records = self.locked();
        let Some(record) = records.get_mut(session) else {
            return;
        };
        let is_it = |call: &Call| call.number == number && call.state == CallState::Read;
        if let Some(at) = record.calls.iter().position(is_it) {
            let call = record.calls.remove(at);
            record.open.remove(&call.request);
        }
    }

    /// Ends the stream of what belongs to no request.
    fn end_standalone(&self, session: &SessionId) {
        if let Some(record) = self.locked().get_mut(session)
            && let Some(replay) = record.standalone.take()
        {
            replay.end();
        }
    }

    /// Makes this the stream of what belongs to no request; false when there is another one.
    fn put_standalone(&self, session: &SessionId, replay: Arc<Replay>) -> bool {
        let mut records = self.locked();
        // A session that has just ended ends the stream by itself.
        let Some(record) = records.get_mut(session) else {
            return true;
        };
        let is_free = !record.standalone.as_ref().is_some_and(|one| one.is_open());
        if is_free {
            record.standalone = Some(replay);
        }
        is_free
    }

    /// The calls whose streams broke too long ago, and that have no answer.
    fn take_lost(&self, now: Instant, resume_max: Duration) -> Vec<(SessionId, RequestId)> {
        let mut lost = Vec::new();
        let is_late = |since: Instant| now.duration_since(since) > resume_max;
        for (id, record) in self.locked().iter_mut() {
            for call in &mut record.calls {
                match call.state {
                    CallState::Broken(since) if is_late(since) => {
                        record.open.remove(&call.request);
                        if !call.replay.has_answer() {
                            lost.push((id.clone(), call.request.clone()));
                        }
                    }
                    CallState::Answered(since) if is_late(since) => {}
                    _ => continue,
                }
                call.end();
            }
            record.forget_oldest();
        }
        lost
    }

    /// Keeps what a stream has to say that nobody reads.
    fn drain(&self, unread: Unread) {
        // Without a runtime there is nobody left who could resume it.
        if Handle::try_current().is_err() {
            return;
        }
        let mut drains = self.drains.lock().unwrap_or_else(PoisonError::into_inner);
        while drains.try_join_next().is_some() {}
        drains.spawn(unread.drain());
    }
}

impl Record {
    fn is_idle(&self) -> bool {
        let is_broken = |call: &Call| matches!(call.state, CallState::Broken(_));
        self.n_streams == 0 && !self.calls.iter().any(is_broken)
    }

    /// Keeps no more answers, and no more of what is over, than there is room for.
    fn forget_oldest(&mut self) {
        let is_answered = |call: &&mut Call| matches!(call.state, CallState::Answered(_));
        let n_answered = self.calls.iter_mut().filter(is_answered).count();
        let oldest = self.calls.iter_mut().filter(is_answered);
        oldest
            .take(n_answered.saturating_sub(ANSWERS_MAX))
            .for_each(Call::end);
        let is_over = |call: &Call| call.state == CallState::Over;
        let n_over = self.calls.iter().filter(|call| is_over(call)).count();
        let mut n_forgotten = n_over.saturating_sub(OVER_MAX);
        self.calls.retain(|call| {
            let is_kept = !is_over(call) || n_forgotten == 0;
            n_forgotten -= usize::from(!is_kept);
            is_kept
        });
    }
}

impl Call {
    /// It can be resumed no longer.
    fn end(&mut self) {
        self.replay.end();
        self.state = CallState::Over;
    }
}

/// A stream of a session, which knows whether it ended or broke.
struct SessionStream {
    /// What comes before all else.
    opening: Option<ServerSseMessage>,
    knows_openings: bool,
    source: Source,
    records: Arc<Records>,
    session: SessionId,
}

enum Source {
    /// The request with this number.
    Call { reader: Reader, number: u64 },
    /// What belongs to no request.
    Standalone(Reader),
    /// One event, and the end.
    Error(Option<ServerSseMessage>),
}

impl Source {
    fn error(event: ServerSseMessage) -> Self {
        Self::Error(Some(event))
    }
}

/// An event that belongs to no request, under the next number: the event that opens such a stream has the number of the first.
fn renumbered(mut event: ServerSseMessage) -> ServerSseMessage {
    let number = event.event_id.as_deref().and_then(|id| id.parse().ok());
    if let Some(number) = number.and_then(|number: u64| number.checked_add(1)) {
        event.event_id = Some(number.to_string());
    }
    event
}

impl Stream for SessionStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let own = &mut *self;
        if let Some(opening) = own.opening.take() {
            return Poll::Ready(Some(opening));
        }
        loop {
            let event = ready!(own.poll_source(context));
            let is_opening = event.as_ref().is_some_and(|event| event.message.is_none());
            if own.knows_openings || !is_opening {
                return Poll::Ready(event);
            }
        }
    }
}

impl SessionStream {
    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        match &mut self.source {
            Source::Error(event) => Poll::Ready(event.take()),
            Source::Standalone(reader) => {
                let event = ready!(Pin::new(reader).poll_next(context));
                Poll::Ready(event.map(renumbered))
            }
            Source::Call { reader, number } => {
                let event = ready!(Pin::new(&mut *reader).poll_next(context));
                match &event {
                    Some(event) if is_answer(event) => {
                        self.records.answered(&self.session, *number);
                    }
                    None if reader.is_newest() => self.records.ended(&self.session, *number),
                    _ => {}
                }
                Poll::Ready(event)
            }
        }
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
        let (reader, number) = match &self.source {
            Source::Call { reader, number } => (reader, *number),
            Source::Standalone(reader) => return reader.end(),
            Source::Error(_) => return,
        };
        if !reader.is_newest() {
            return;
        }
        let unread = reader.leave();
        let Some(call) = record.calls.iter_mut().find(|call| call.number == number) else {
            return;
        };
        call.state = match call.state {
            CallState::Read => CallState::Broken(Instant::now()),
            CallState::Answered(_) => CallState::Answered(Instant::now()),
            state => state,
        };
        drop(records);
        if let Some(unread) = unread {
            self.records.drain(unread);
        }
    }
}
