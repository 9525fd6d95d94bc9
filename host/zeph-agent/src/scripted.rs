//! A model server that answers from a script, in every wire format, with the faults that real ones have.
//!
//! Its answers are written by hand from the documentation of each provider, and share nothing with what reads them.

mod anthropic;
mod body;
mod chat;
mod embedding;
mod gemini;
mod ollama;
mod piece;
mod responses;
mod scenario;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use self::body::{Delivery, ScriptedBody};
use self::piece::Piece;
pub use self::scenario::{
    CutPlace, EmbeddingFault, Scenario, ScriptedAnswer, ScriptedCall, ScriptedEmbedding,
    ScriptedFault, ScriptedStep, ScriptedStop, ScriptedUsage,
};
use crate::settings::ProviderKind;

/// The model that its answers name.
const MODEL: &str = "scripted-1";

/// A server on loopback that plays one scenario. It ends when it is dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    play: Arc<Mutex<Play>>,
    _tasks: JoinSet<()>,
}

/// A request that the server got.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// The number of the connection that it came over, from 0.
    pub connection: usize,
    /// What it was spoken to in.
    pub kind: ProviderKind,
    /// The path, with its query.
    pub path: String,
    /// The names and values of its fields.
    pub headers: Vec<(String, String)>,
    /// The body, as it came.
    pub body: String,
}

#[derive(Debug)]
struct Play {
    scenario: Scenario,
    next: usize,
    requests: Vec<RecordedRequest>,
    embeddings: Vec<RecordedRequest>,
}

/// A format and whether the answer is streamed.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    kind: ProviderKind,
    streams: bool,
}

impl ScriptedServer {
    /// Begins to listen on a free port.
    ///
    /// Errors: of the platform.
    pub async fn start(scenario: Scenario) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let play = Arc::new(Mutex::new(Play {
            scenario,
            next: 0,
            requests: Vec::new(),
            embeddings: Vec::new(),
        }));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&play)));
        Ok(Self {
            address,
            play,
            _tasks: tasks,
        })
    }

    /// The `base_url` of a provider that is played.
    pub fn base_url(&self, kind: ProviderKind) -> String {
        let version = match kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses => "/v1",
            ProviderKind::Anthropic | ProviderKind::Ollama | ProviderKind::Gemini => "",
        };
        format!("http://{}{version}", self.address)
    }

    /// The requests so far, without those for vectors.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.play).requests.clone()
    }

    /// The requests for vectors of texts so far.
    pub fn embedding_requests(&self) -> Vec<RecordedRequest> {
        lock(&self.play).embeddings.clone()
    }
}

fn lock(play: &Mutex<Play>) -> std::sync::MutexGuard<'_, Play> {
    play.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, play: Arc<Mutex<Play>>) {
    let mut connections = JoinSet::new();
    for number in 0.. {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(stream, number, Arc::clone(&play)));
    }
}

async fn serve(stream: TcpStream, connection: usize, play: Arc<Mutex<Play>>) {
    let _nodelay = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let play = Arc::clone(&play);
        async move { Ok::<_, Infallible>(answer(request, connection, &play).await) }
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = serving.await {
        tracing::debug!(%error, "a connection of the scripted server ended");
    }
}

async fn answer(
    request: Request<Incoming>,
    connection: usize,
    play: &Mutex<Play>,
) -> Response<ScriptedBody> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let body = match body.collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        Err(_) => String::new(),
    };
    let headers = parts.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.to_string(), value)
    });
    let recorded = |kind: ProviderKind, body: String| RecordedRequest {
        connection,
        kind,
        path: path.to_owned(),
        headers: headers.collect(),
        body,
    };
    if let Some(kind) = embedding::wanted(path) {
        return embedding::play(recorded(kind, body), play).await;
    }
    let Some(wanted) = wanted(path, &body) else {
        return plain(StatusCode::NOT_FOUND, &Value::from("there is nothing here"));
    };
    let step = lock(play).step(recorded(wanted.kind, body));
    match step {
        Some(step) => play_step(wanted, &step).await,
        None => {
            let error = error(wanted.kind, "server", "the script is over");
            plain(StatusCode::INTERNAL_SERVER_ERROR, &error)
        }
    }
}

impl Play {
    fn step(&mut self, request: RecordedRequest) -> Option<ScriptedStep> {
        self.requests.push(request);
        let steps = &self.scenario.steps;
        let step = match steps.get(self.next) {
            None if self.scenario.repeats => steps.last(),
            step => step,
        };
        self.next += 1;
        step.cloned()
    }
}

fn wanted(path: &str, body: &str) -> Option<Wanted> {
    let body: Value = serde_json::from_str(body).ok()?;
    let streams = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
    let path = path.split('?').next().unwrap_or_default();
    let kind = match path {
        "/v1/messages" => ProviderKind::Anthropic,
        "/v1/chat/completions" => ProviderKind::OpenAi,
        "/v1/responses" => ProviderKind::OpenAiResponses,
        "/api/chat" => ProviderKind::Ollama,
        path => {
            let call = path.strip_prefix("/v1beta/models/")?;
            let (_, verb) = call.split_once(':')?;
            return Some(Wanted {
                kind: ProviderKind::Gemini,
                streams: verb == "streamGenerateContent",
            });
        }
    };
    Some(Wanted { kind, streams })
}

async fn play_step(wanted: Wanted, step: &ScriptedStep) -> Response<ScriptedBody> {
    if let Some(ScriptedFault::Status {
        status,
        retry_after,
        says,
    }) = &step.fault
    {
        let error = error(
            wanted.kind,
            says.as_deref().unwrap_or_default(),
            "as the script says",
        );
        let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = plain(status, &error);
        if let Some(Ok(after)) = retry_after.map(|after| HeaderValue::from_str(&after.to_string()))
        {
            response.headers_mut().insert("retry-after", after);
        }
        return response;
    }
    if let Some(ScriptedFault::HangBeforeHeader) = &step.fault {
        std::future::pending::<()>().await;
    }
    let body = ScriptedBody::new(deliveries(wanted, step));
    let content_type = match (wanted.streams, wanted.kind) {
        (false, _) => "application/json",
        (true, ProviderKind::Ollama) => "application/x-ndjson",
        (true, _) => "text/event-stream",
    };
    let mut response = Response::new(body);
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// What is sent, and when.
fn deliveries(wanted: Wanted, step: &ScriptedStep) -> Vec<Delivery> {
    let mut pieces = pieces(wanted, &step.answer);
    let mut end = None;
    match &step.fault {
        Some(ScriptedFault::Cut { within, is_clean }) => {
            piece::cut(&mut pieces, *within, wanted.streams);
            end = (!is_clean).then_some(Delivery::Abort);
        }
        Some(ScriptedFault::ErrorWithin { says }) if wanted.streams => {
            piece::cut(&mut pieces, CutPlace::Text, true);
            pieces.push(in_stream(wanted.kind, says));
        }
        Some(ScriptedFault::HangWithin) => {
            piece::cut(&mut pieces, CutPlace::Text, wanted.streams);
            end = Some(Delivery::Hang);
        }
        _ => {}
    }
    let mut deliveries = pings(wanted, step);
    let pieces = pieces.into_iter();
    deliveries.extend(pieces.map(|piece| Delivery::Bytes(Bytes::from(piece.bytes))));
    deliveries.extend(end);
    deliveries
}

fn pings(wanted: Wanted, step: &ScriptedStep) -> Vec<Delivery> {
    let Some(ScriptedFault::Pings { count, pause_ms }) = &step.fault else {
        return Vec::new();
    };
    let ping: &'static str = match (wanted.streams, wanted.kind) {
        (false, _) => " ",
        (true, ProviderKind::Anthropic) => "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        (true, ProviderKind::Ollama) => "\n",
        (true, _) => ": ping\n\n",
    };
    let pause = Duration::from_millis(*pause_ms);
    let ping = || {
        [
            Delivery::Bytes(Bytes::from_static(ping.as_bytes())),
            Delivery::Pause(pause),
        ]
    };
    (0..*count).flat_map(|_| ping()).collect()
}

fn pieces(wanted: Wanted, answer: &ScriptedAnswer) -> Vec<Piece> {
    let Wanted { kind, streams } = wanted;
    if !streams {
        let whole = match kind {
            ProviderKind::Anthropic => anthropic::whole(answer),
            ProviderKind::OpenAi => chat::whole(answer),
            ProviderKind::OpenAiResponses => responses::whole(answer),
            ProviderKind::Ollama => ollama::whole(answer),
            ProviderKind::Gemini => gemini::whole(answer),
        };
        return piece::halves(&whole.to_string());
    }
    match kind {
        ProviderKind::Anthropic => anthropic::stream(answer),
        ProviderKind::OpenAi => chat::stream(answer),
        ProviderKind::OpenAiResponses => responses::stream(answer),
        ProviderKind::Ollama => ollama::stream(answer),
        ProviderKind::Gemini => gemini::stream(answer),
    }
}

/// The body of an error.
fn error(kind: ProviderKind, says: &str, message: &str) -> Value {
    match kind {
        ProviderKind::Anthropic => anthropic::error(says, message),
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => chat::error(says, message),
        ProviderKind::Ollama => ollama::error(says, message),
        ProviderKind::Gemini => gemini::error(says, message),
    }
}

/// An error in the middle of a stream.
fn in_stream(kind: ProviderKind, says: &str) -> Piece {
    let error = error(kind, says, "as the script says");
    match kind {
        ProviderKind::Anthropic => Piece::event("error", &error),
        ProviderKind::OpenAi | ProviderKind::Gemini => Piece::data(&error),
        ProviderKind::OpenAiResponses => responses::in_stream(says),
        ProviderKind::Ollama => Piece::line(&error),
    }
}

fn plain(status: StatusCode, body: &Value) -> Response<ScriptedBody> {
    let bytes = Bytes::from(body.to_string());
    let mut response = Response::new(ScriptedBody::new(vec![Delivery::Bytes(bytes)]));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

#[cfg(test)]
pub(crate) mod tests;
