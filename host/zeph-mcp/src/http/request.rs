//! One request: let in or refused, handed to the protocol's service, and ended with the right it was let in by.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tokio::time::timeout;

use super::access::{Access, Admitted, Denied};
use super::address::{AllowedNames, ForeignName};
use super::connection::{Connections, InUse};
use super::lease::{HeldBody, Lease, Leases, Progress};
use super::message::{self, BadMessage, BodyLimits, MessageKind, error_response};
use super::room::{BodyPlace, BodyRoom};
use super::session::{REQUESTER, Requester, Sessions};
use crate::caller::Caller;
use crate::holdings::Holdings;
use crate::metrics::{Gauges, Metrics};
use crate::passing::PassingMessage;
use crate::readable;
use crate::refusal::WrittenId;

/// The header that names a session.
const SESSION_ID: &str = "mcp-session-id";

/// The header that names the event after which a stream is resumed.
const LAST_EVENT_ID: &str = "last-event-id";

/// Seconds after which a client may try again while the server ends, has no room, or does not get at what says who may use it.
const RETRY_SECS: &str = "5";

/// The code of JSON-RPC for a server that cannot answer now.
const UNAVAILABLE: i32 = -32_000;

/// The code of JSON-RPC for a session that is not there.
const NO_SESSION: i32 = -32_001;

/// The code of JSON-RPC for what the server did not bring to an end.
const INTERNAL: i32 = -32_603;

/// How long the store may take to say that it is there.
const READY_MAX: Duration = Duration::from_secs(2);

/// What all requests share.
pub(super) struct Shared {
    pub(super) access: Access,
    pub(super) names: AllowedNames,
    pub(super) body: BodyLimits,
    pub(super) room: Arc<BodyRoom>,
    pub(super) leases: Arc<Leases>,
    pub(super) holdings: Arc<Holdings>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) connections: Arc<Connections>,
    pub(super) metrics: Arc<Metrics>,
    /// Whether the server ends: what runs may finish, nothing begins.
    pub(super) is_ending: AtomicBool,
    pub(super) mcp: Mcp,
}

/// The protocol's service.
pub(super) type Mcp =
    Box<dyn Fn(Request) -> Pin<Box<dyn Future<Output = Response> + Send>> + Send + Sync>;

/// An answer in place of the one of the protocol's service.
type Refusal = Box<Response>;

/// A request that was looked at, and may be answered.
struct Checked {
    request: Request,
    progress: Progress,
    /// What came of its body.
    place: Option<BodyPlace>,
    /// The id of its message; none for what is no request of the protocol.
    id: Option<WrittenId>,
}

impl Checked {
    /// One without a message.
    fn plain(request: Request, progress: Progress) -> Self {
        Self {
            request,
            progress,
            place: None,
            id: None,
        }
    }
}

/// Refuses what comes under a foreign name, before anything else is looked at; counts the answers.
pub(super) async fn check_names(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let response = match shared.names.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            let status = match problem {
                ForeignName::NoHost => StatusCode::BAD_REQUEST,
                ForeignName::Host(_) | ForeignName::Origin => StatusCode::FORBIDDEN,
            };
            refused(request, (status, format!("{problem}\n")).into_response()).await
        }
    };
    shared.metrics.response(response.status().as_u16());
    response
}

/// `/mcp`
pub(super) async fn mcp(State(shared): State<Arc<Shared>>, mut request: Request) -> Response {
    // Taken out: a session keeps what comes with its requests.
    let in_use = request.extensions_mut().remove::<Arc<InUse>>();
    match shared.access.admit(request.headers()).await {
        Ok(admitted) => shared.answer(request, (admitted, in_use)).await,
        Err(denied) => {
            let response = shared.denied(request.headers(), &denied);
            refused(request, response).await
        }
    }
}

/// `/metrics`
pub(super) async fn metrics(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    if let Err(denied) = shared.access.admit(request.headers()).await {
        return shared.denied(request.headers(), &denied);
    }
    // The token is valid: the connection is idle from now on, and no longer the first to be closed.
    if let Some(in_use) = request.extensions().get::<Arc<InUse>>() {
        in_use.let_in();
    }
    let now = Gauges {
        connections: shared.connections.count(),
        sessions: shared.sessions.count(),
        calls: shared.leases.count(Progress::Call),
        streams: shared.leases.count(Progress::Stream),
        draining: usize::from(shared.is_ending()),
    };
    let content_type = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let replica = shared.sessions.replica();
    (content_type, shared.metrics.text(now, replica)).into_response()
}

/// `/healthz`: the process answers.
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// `/readyz`: a call would be taken on. It may wait, such as for a tool of the program that is still being compiled.
pub(super) async fn readiness(State(shared): State<Arc<Shared>>) -> Response {
    let problem = match shared.is_ending() {
        true => "the server is shutting down\n",
        false => match timeout(READY_MAX, shared.access.is_open()).await {
            Ok(Ok(_)) => return "ok\n".into_response(),
            Ok(Err(_)) => "the store cannot be read\n",
            Err(_) => "the store does not answer\n",
        },
    };
    (StatusCode::SERVICE_UNAVAILABLE, problem).into_response()
}

/// `/.well-known/oauth-protected-resource`
pub(super) async fn resource_metadata(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Response {
    match shared.access.oauth() {
        Some(oauth) => {
            let json = [(CONTENT_TYPE, "application/json")];
            (json, oauth.metadata(&headers).to_string()).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Any other path.
pub(super) async fn unknown() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "the endpoint is /mcp\n")
}

impl Shared {
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    async fn answer(
        &self,
        mut request: Request,
        (admitted, in_use): (Admitted, Option<Arc<InUse>>),
    ) -> Response {
        if let Some(in_use) = &in_use {
            in_use.let_in();
        }
        let requester = Requester {
            caller_id: admitted.caller.id.clone(),
            credential: admitted.credential,
        };
        // No later reader of the request has a use for the secret.
        request.headers_mut().remove(AUTHORIZATION);
        if let Some(name) = ambiguous(request.headers()) {
            let bad = BadMessage::invalid(&format!("the header `{name}` has two values"));
            return refused_by_id(request, |id| bad.of(id).response()).await;
        }
        if let Some(problem) = self.foreign_session(request.headers()) {
            let status = StatusCode::NOT_FOUND;
            let response =
                |id: Option<WrittenId>| error_response(status, id.as_ref(), NO_SESSION, &problem);
            return refused_by_id(request, response).await;
        }
        let checked = match *request.method() {
            Method::POST => self.post(request, &requester).await,
            Method::GET => self.get(request, &requester),
            Method::DELETE if !self.may_end_session(&request, &requester) => {
                let problem = "Not Found: Session not found";
                Err(Box::new((StatusCode::NOT_FOUND, problem).into_response()))
            }
            Method::DELETE => Ok(Checked::plain(request, Progress::Call)),
            _ => Ok(Checked::plain(request, Progress::Stream)),
        };
        let begun = checked.and_then(|mut checked| {
            let lease = self.begin(in_use.as_deref(), &requester, &checked)?;
            Ok((checked.place.take(), checked, lease))
        });
        match begun {
            Ok((place, checked, lease)) => {
                let caller = admitted.caller;
                let response = self.serve(checked, lease, (caller, requester)).await;
                // What came of the body is there until it is answered, and the connection as long as that takes.
                response.map(|body| Body::new(HeldBody::new(body, (place, in_use), None)))
            }
            Err(refusal) => *refusal,
        }
    }

    /// Begins to answer a request, if there is room for it.
    fn begin(
        &self,
        in_use: Option<&InUse>,
        requester: &Requester,
        Checked { progress, id, .. }: &Checked,
    ) -> Result<Lease, Refusal> {
        let refuse = |status, problem: &str| Box::new(later(status, id.as_ref(), problem));
        if let Some(Err(no_place)) = in_use.map(InUse::answer) {
            self.metrics.connection_refused();
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(refuse(status, &no_place.to_string()));
        }
        let lease = self.leases.begin(requester, *progress);
        lease.map_err(|full| refuse(StatusCode::TOO_MANY_REQUESTS, &full.to_string()))
    }

    /// What is said to a request of a session that another replica has: the client begins anew.
    fn foreign_session(&self, headers: &HeaderMap) -> Option<String> {
        let replica = self.sessions.foreign(text_of(headers, SESSION_ID)?)?;
        Some(format!(
            "the session is one of replica `{replica}`, which does not answer for it any more, or to which the load balancer did not route the request by `Mcp-Session-Id`; send `initialize` without a session to begin another"
        ))
    }

    /// A stream of what happens; while the server ends, only that of a call that was begun before.
    fn get(&self, request: Request, requester: &Requester) -> Result<Checked, Refusal> {
        let header = |name| text_of(request.headers(), name);
        let resumed = header(SESSION_ID).zip(header(LAST_EVENT_ID));
        let is_of_call = resumed.is_some_and(|(session, event)| {
            let sessions = &self.sessions;
            sessions.is_of_call(session, event, requester)
        });
        match is_of_call {
            true => Ok(Checked::plain(request, Progress::Call)),
            false if self.is_ending() => Err(Box::new(self.ending(None))),
            false => Ok(Checked::plain(request, Progress::Stream)),
        }
    }

    /// Reads the message of a request, and answers what the protocol's service has no good answer for.
    async fn post(&self, request: Request, requester: &Requester) -> Result<Checked, Refusal> {
        if !message::is_json(request.headers()) {
            return Ok(Checked::plain(request, Progress::Call));
        }
        let (parts, body) = request.into_parts();
        let mut place = self.room.place(requester.caller_id.as_deref());
        let body = message::read(&parts.headers, body, &self.body, &mut place).await;
        let body = body.map_err(|(bad, id)| Box::new(bad.response(id.as_ref())))?;
        let body = readable::with_pairs(&body).map_or(body, |(paired, _)| paired.into());
        let kind = message::kind(&body).map_err(|bad| Box::new(bad.response()))?;
        let progress = self.check_message(&parts.headers, &kind, requester)?;
        Ok(Checked {
            request: Request::from_parts(parts, Body::from(body)),
            progress,
            place: Some(place),
            id: match kind {
                MessageKind::Request { id, .. } => Some(id),
                MessageKind::OneWay => None,
            },
        })
    }

    fn check_message(
        &self,
        headers: &HeaderMap,
        kind: &MessageKind,
        requester: &Requester,
    ) -> Result<Progress, Refusal> {
        let MessageKind::Request { method, id } = kind else {
            return Ok(Progress::Call);
        };
        if self.is_ending() {
            return Err(Box::new(self.ending(Some(id))));
        }
        if method == "initialize" && !headers.contains_key(SESSION_ID) {
            let room = self.sessions.has_room(requester.caller_id.as_deref());
            room.map_err(|full| {
                let status = StatusCode::TOO_MANY_REQUESTS;
                let problem = full.to_string();
                Box::new(error_response(status, Some(id), UNAVAILABLE, &problem))
            })?;
        }
        Ok(match method.as_str() {
            "subscriptions/listen" => Progress::Stream,
            _ => Progress::Call,
        })
    }

    fn may_end_session(&self, request: &Request, requester: &Requester) -> bool {
        let id = text_of(request.headers(), SESSION_ID);
        // Without one, the service says what is missing.
        id.is_none_or(|id| self.sessions.is_of(id, requester))
    }

    /// Has the request answered, until what let it in is revoked or the server ends.
    async fn serve(
        &self,
        checked: Checked,
        lease: Lease,
        (caller, requester): (Caller, Requester),
    ) -> Response {
        let Checked {
            mut request,
            progress,
            id,
            ..
        } = checked;
        let is_json = message::is_json(request.headers());
        request.extensions_mut().insert(caller);
        let answer = REQUESTER.scope(requester, (self.mcp)(request));
        let response = tokio::select! {
            biased;
            () = lease.ended() => match self.is_ending() {
                true if progress == Progress::Call => return cut_off(id.as_ref()),
                true => return self.ending(id.as_ref()),
                false => return self.denied(&HeaderMap::new(), &Denied::Token),
            },
            response = answer => response,
        };
        if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return BadMessage::fields(id).response();
        }
        let ended = lease.ended();
        response.map(|body| Body::new(HeldBody::new(body, lease, Some(ended))))
    }

    fn ending(&self, id: Option<&WrittenId>) -> Response {
        let problem = "the server is shutting down";
        later(StatusCode::SERVICE_UNAVAILABLE, id, problem)
    }

    fn denied(&self, headers: &HeaderMap, denied: &Denied) -> Response {
        let text = format!("{denied}\n");
        // A client that were told of a bad token would throw it away.
        if denied.is_fault() {
            let retry = [(RETRY_AFTER, HeaderValue::from_static(RETRY_SECS))];
            return (StatusCode::SERVICE_UNAVAILABLE, retry, text).into_response();
        }
        let mut response = (StatusCode::UNAUTHORIZED, text).into_response();
        let challenge = self.challenge(headers, denied);
        // The texts of denials are plain; one that were not would go without.
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// The value of `WWW-Authenticate`, as RFC 6750 and RFC 9728 have it.
    fn challenge(&self, headers: &HeaderMap, denied: &Denied) -> String {
        let mut challenge = "Bearer realm=\"zeph-host\"".to_owned();
        let error = match denied {
            Denied::Missing | Denied::Source | Denied::Unchecked(_) => None,
            Denied::Malformed => Some("invalid_request"),
            Denied::Token | Denied::Access(_) => Some("invalid_token"),
        };
        if let Some(error) = error {
            let description = denied.to_string().replace(['"', '\\'], "'");
            challenge += &format!(", error=\"{error}\", error_description=\"{description}\"");
        }
        if let Some(oauth) = self.access.oauth() {
            let url = oauth.metadata_url(headers);
            challenge += &format!(", resource_metadata=\"{url}\"");
        }
        challenge
    }
}

/// The text of a header.
fn text_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// A header of the protocol that has two values. A proxy that routes or allows by it may have read the other one.
fn ambiguous(headers: &HeaderMap) -> Option<&str> {
    let is_of_protocol = |name: &&str| name.starts_with("mcp-") || *name == LAST_EVENT_ID;
    let differ = |name: &&str| {
        let mut values = headers.get_all(*name).iter();
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let names = headers.keys().map(HeaderName::as_str);
    names.filter(is_of_protocol).find(differ)
}

/// The refusal of a request that may be made again later.
fn later(status: StatusCode, id: Option<&WrittenId>, problem: &str) -> Response {
    let mut response = error_response(status, id, UNAVAILABLE, problem);
    let retry = HeaderValue::from_static(RETRY_SECS);
    response.headers_mut().insert(RETRY_AFTER, retry);
    response
}

/// The answer to a call that the end of the server cut off. No load balancer may take it for one that was not begun.
fn cut_off(id: Option<&WrittenId>) -> Response {
    let problem = "the server ended before the call did; what the call did until then is done";
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    error_response(status, id, INTERNAL, problem)
}

/// Refuses a request, once enough of its body was thrown away for its sender to look for the answer.
async fn refused(request: Request, response: Response) -> Response {
    let (parts, body) = request.into_parts();
    message::drain(&parts.headers, body, |_| {}).await;
    response
}

/// The same with the id of its message, for a caller who was let in: to look for it costs more than to throw it away.
async fn refused_by_id(
    request: Request,
    response: impl FnOnce(Option<WrittenId>) -> Response,
) -> Response {
    let (parts, body) = request.into_parts();
    let mut seen = PassingMessage::default();
    message::drain(&parts.headers, body, |data| seen.push(data)).await;
    response(seen.request_id())
}
