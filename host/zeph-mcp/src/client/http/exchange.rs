//! One request to a remote server and its answer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use futures_core::Stream;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use url::Url;
use zeph_core::failure::one_line;
use zeph_egress::{OwnAnswer, OwnError, OwnPatience};

use super::HttpServer;
use super::announcement::AnnouncementStream;
use super::events::events;
use crate::client::error::McpError;
use crate::client::message::{Incoming, read};

/// Most bytes of the body of an answer that is an error.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// Most bytes of a session id.
const SESSION_BYTES_MAX: usize = 1_024;

/// Most redirects of one request that are followed.
const REDIRECTS_MAX: usize = 3;

/// Calls have limits of their own, and end a request by dropping it.
const PATIENCE: OwnPatience = OwnPatience {
    headers: Duration::MAX,
    idle: Duration::MAX,
    total: Duration::MAX,
};

/// The longest that closing a session may take.
const CLOSE_PATIENCE: Duration = Duration::from_secs(3);

static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// Makes the requests of the library's transport.
#[derive(Debug, Clone)]
pub(in crate::client) struct Exchange {
    server: Arc<HttpServer>,
    announcements: Arc<AnnouncementStream>,
    bytes_max: usize,
}

/// What the library calls a failure.
type Failure = StreamableHttpError<McpError>;

/// What an answer says it holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Events,
    Json,
    Other,
}

impl Exchange {
    pub(super) fn new(server: HttpServer, bytes_max: usize) -> Self {
        Self {
            server: Arc::new(server),
            announcements: Arc::new(AnnouncementStream::new()),
            bytes_max,
        }
    }

    /// Sends a request; once more when the server wants other credentials and there are some, and where the server redirects it to on its
    /// own host.
    ///
    /// Errors: `Moved` for another host or too many redirects; `Authorization` for 401, and for 403 with a challenge; `Http` for 429 and what a server's own failure is; `Unreachable`.
    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<OwnAnswer, McpError> {
        let (mut is_second, mut n_redirects) = (false, 0);
        let mut url = Cow::Borrowed(&self.server.url);
        loop {
            let used = self.credential().await?;
            let fields = (&headers, used.as_ref());
            let request = self.request(&method, &url, fields, body.clone())?;
            let sent = self.server.client.send(request, PATIENCE).await;
            let answer = sent.map_err(|error| super::unreachable(&error))?;
            if let Some(target) = redirect(&answer, &url)? {
                if n_redirects == REDIRECTS_MAX {
                    return Err(moved(&answer, &target));
                }
                n_redirects += 1;
                url = Cow::Owned(target);
                continue;
            }
            let status = answer.status.as_u16();
            let challenge = text(&answer.headers, &WWW_AUTHENTICATE);
            let is_refusal = status == 401 || (status == 403 && challenge.is_some());
            if !is_refusal {
                return Ok(answer);
            }
            let credentials = self.server.credentials.as_ref().filter(|_| !is_second);
            let has_other = match credentials {
                Some(credentials) => {
                    let challenge = challenge.as_deref();
                    credentials.refused(used.as_ref(), status, challenge).await
                }
                None => false,
            };
            if !has_other {
                return Err(McpError::Authorization { challenge });
            }
            is_second = true;
        }
    }

    async fn credential(&self) -> Result<Option<HeaderValue>, McpError> {
        match &self.server.credentials {
            Some(credentials) => credentials.header().await,
            None => Ok(None),
        }
    }

    fn request(
        &self,
        method: &Method,
        url: &Url,
        (headers, credential): (&HeaderMap, Option<&HeaderValue>),
        body: Bytes,
    ) -> Result<Request<Bytes>, McpError> {
        let mut request = Request::builder()
            .method(method)
            .uri(url.as_str())
            .body(body)
            .map_err(|error| McpError::InvalidInput(error.to_string()))?;
        *request.headers_mut() = headers.clone();
        // What the operator wrote goes beside the fields of the protocol, never over them.
        for (name, value) in &self.server.headers {
            if !headers.contains_key(name) {
                request.headers_mut().append(name, value.clone());
            }
        }
        if let Some(credential) = credential {
            request
                .headers_mut()
                .insert(AUTHORIZATION, credential.clone());
        }
        Ok(request)
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut headers = fields(custom, session.as_deref(), None)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let body = serde_json::to_vec(&message)?;
        if session.is_some() {
            self.announcements.before(&message).await;
        }
        let answer = self.send(Method::POST, headers, body.into()).await;
        let answer = answer.map_err(StreamableHttpError::Client)?;
        let status = answer.status;
        if session.is_some() && status.is_success() {
            self.announcements.after(&message);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.refusal(answer, &message, session.is_some()).await;
        }
        if request_id(&message).is_none() {
            // What is no request has no answer.
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let new_session = session_id(&answer.headers);
        if kind(&answer.headers) == Kind::Events {
            let events = events(answer.body, self.bytes_max);
            return Ok(StreamableHttpPostResponse::Sse(events, new_session));
        }
        self.whole(answer, new_session).await
    }

    /// An answer in one piece.
    async fn whole(
        &self,
        answer: OwnAnswer,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let of_kind = kind(&answer.headers);
        let bytes = answer.bytes(self.bytes_max).await;
        let bytes = bytes.map_err(|error| {
            StreamableHttpError::Client(match error {
                error @ OwnError::TooLarge(_) => McpError::bad_answer(error.to_string()),
                // It broke off.
                error => super::unreachable(&error),
            })
        })?;
        let why = match read(&bytes) {
            Incoming::Message(message) if of_kind == Kind::Json => {
                return Ok(StreamableHttpPostResponse::Json(*message, session));
            }
            Incoming::Garbage(why) => why,
            _ => "it is not JSON".to_owned(),
        };
        Err(StreamableHttpError::Client(McpError::bad_answer(why)))
    }

    /// An answer with a status of 400 and above.
    async fn refusal(
        &self,
        answer: OwnAnswer,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = answer.status.as_u16();
        let error = McpError::Http {
            status,
            retry_after_ms: retry_after_ms(&answer.headers),
        };
        let is_json = kind(&answer.headers) == Kind::Json;
        if matches!(status, 401 | 403 | 429) || !(is_json || answer.status.is_client_error()) {
            return Err(StreamableHttpError::Client(error));
        }
        let body = answer.beginning(ERROR_BYTES_MAX).await;
        let said = match read(&body) {
            Incoming::Message(said) if is_json => match *said {
                JsonRpcMessage::Error(said) => Some(said),
                _ => None,
            },
            _ => None,
        };
        // A server of the older revisions refuses the probe with whatever it has, and without its id.
        if let Some(id) = probe_id(message)
            && !has_session
            && (400..500).contains(&status)
        {
            let error = said.map(|said| said.error).unwrap_or_else(|| {
                ErrorData::invalid_request(format!("refused with status {status}"), None)
            });
            let answer = ServerJsonRpcMessage::error(error, Some(id));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        match said {
            Some(said) => Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::error(said.error, said.id.or_else(|| request_id(message))),
                None,
            )),
            None => Err(StreamableHttpError::Client(error)),
        }
    }

    async fn listen(
        &self,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<std::pin::Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>, Failure> {
        let headers = fields(custom, session.as_deref(), last_event_id.as_deref())?;
        let answer = self.send(Method::GET, headers, Bytes::new()).await;
        self.announcements.answered();
        let answer = answer.map_err(StreamableHttpError::Client)?;
        match answer.status {
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => {
                return Err(StreamableHttpError::ServerDoesNotSupportSse);
            }
            status if !status.is_success() => {
                return Err(StreamableHttpError::Client(McpError::Http {
                    status: status.as_u16(),
                    retry_after_ms: retry_after_ms(&answer.headers),
                }));
            }
            _ => {}
        }
        if kind(&answer.headers) != Kind::Events {
            return Err(StreamableHttpError::UnexpectedContentType(None));
        }
        Ok(events(answer.body, self.bytes_max))
    }
}

impl StreamableHttpClient for Exchange {
    type Error = McpError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post(message, session_id, custom_headers).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let headers = fields(custom_headers, Some(&session_id), None)?;
        let deleting = self.send(Method::DELETE, headers, Bytes::new());
        // Whether the server minds is its own affair.
        let _answer = tokio::time::timeout(CLOSE_PATIENCE, deleting).await;
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<std::pin::Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>, Failure> {
        self.listen(session_id, last_event_id, custom_headers).await
    }
}

/// Where a request to `url` is to be sent instead; none for an answer that is no redirect. One that is sent anew as it is stays with the
/// scheme, host and port that the operator wrote.
///
/// Errors: `Moved` for every other.
fn redirect(answer: &OwnAnswer, url: &Url) -> Result<Option<Url>, McpError> {
    let location = text(&answer.headers, &LOCATION).filter(|_| answer.status.is_redirection());
    let target = location.and_then(|location| url.join(&location).ok());
    let Some(target) = target else {
        return Ok(None);
    };
    let is_sent_as_it_is = matches!(
        answer.status,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    match is_sent_as_it_is && target.origin() == url.origin() {
        true => Ok(Some(target)),
        false => Err(moved(answer, &target)),
    }
}

fn moved(answer: &OwnAnswer, target: &Url) -> McpError {
    McpError::Moved {
        status: answer.status.as_u16(),
        url: one_line(target.as_str(), 200),
    }
}

/// The fields of the protocol.
fn fields(
    custom: HashMap<HeaderName, HeaderValue>,
    session: Option<&str>,
    last_event_id: Option<&str>,
) -> Result<HeaderMap, Failure> {
    let bad =
        |what: &'static str| StreamableHttpError::UnexpectedServerResponse(Cow::Borrowed(what));
    let mut headers: HeaderMap = custom.into_iter().collect();
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    if let Some(session) = session {
        let value = HeaderValue::from_str(session).map_err(|_| bad("invalid session id"))?;
        headers.insert(SESSION_ID.clone(), value);
    }
    if let Some(id) = last_event_id {
        let value = HeaderValue::from_str(id).map_err(|_| bad("invalid event id"))?;
        headers.insert(LAST_EVENT_ID.clone(), value);
    }
    Ok(headers)
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (value.len() <= 8 * 1024).then(|| value.to_owned())
}

fn session_id(headers: &HeaderMap) -> Option<String> {
    text(headers, &SESSION_ID).filter(|id| id.len() <= SESSION_BYTES_MAX)
}

/// Seconds, in milliseconds. A date is not read: clocks differ.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let seconds: u64 = text(headers, &RETRY_AFTER)?.trim().parse().ok()?;
    seconds.checked_mul(1_000)
}

fn kind(headers: &HeaderMap) -> Kind {
    let media_type = text(headers, &CONTENT_TYPE).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    match essence {
        EVENT_STREAM => Kind::Events,
        JSON => Kind::Json,
        _ => Kind::Other,
    }
}

fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

/// The id of the request that asks which revisions a server speaks.
fn probe_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
        {
            Some(request.id.clone())
        }
        _ => None,
    }
}
