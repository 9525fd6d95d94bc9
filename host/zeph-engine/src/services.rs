//! What a guest has the host do elsewhere: `zeph:plugin/embeddings` and `zeph:plugin/server-tools`.
//!
//! The engine does none of it. It checks sizes, hands each wish to the caller, through a queue, and waits for the answer; what may be
//! done is decided there. A guest that ends while it waits takes its wish back.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use zeph_core::capability::Capability;

use crate::bindings::zeph::plugin::{embeddings, server_tools};
use crate::missing_grant::{MissingGrant, Refusals};
use crate::state::GuestState;

/// Most keys that are looked at in one function.
const KEYS_MAX: usize = 50_000;

/// Most texts that are stored in one function, and their bytes: a provider takes some hundred at once.
const PASSAGES_MAX: usize = 64;
const PASSAGE_BYTES_MAX: usize = 256 * 1024;

/// Most texts that are stored in one call, whatever budget its session has.
const PASSAGES_OF_CALL_MAX: usize = 4_096;

/// Bytes of a query; models take no more.
const QUERY_BYTES_MAX: usize = 8_000;

/// Most results of a comparison.
const RESULTS_MAX: u32 = 1_000;

/// Bytes of the arguments for a tool of a server, and most calls of such tools in one call.
const ARGUMENT_BYTES_MAX: usize = 64 * 1024;
const CALLS_MAX: usize = 64;

/// What is kept of the call's time when a tool of a server is called: the guest makes a result of what it has.
const END_TIME: Duration = Duration::from_secs(2);

/// Where the answer to a guest goes, which waits for it.
#[derive(Debug)]
pub struct Reply<A>(oneshot::Sender<A>);

/// What a guest wishes the host to do elsewhere.
#[derive(Debug)]
pub enum ServiceRequest {
    /// Which embedder it may use.
    Embedder((), Reply<Option<String>>),
    /// Which of these keys have no vector.
    Missing(Vec<u128>, Reply<EmbeddingResult<Vec<u32>>>),
    /// Vectors for these texts, each under its key.
    Store(Vec<(u128, String)>, Reply<EmbeddingResult<()>>),
    /// What is most like a text.
    Nearest(NearestQuery, Reply<EmbeddingResult<Vec<(u32, f32)>>>),
    /// A call of a tool.
    Call(ServerToolCall, Reply<ServerToolResult>),
}

/// A comparison that a guest wishes.
#[derive(Debug)]
pub struct NearestQuery {
    /// What the others are compared with.
    pub text: String,
    /// Those that take part.
    pub keys: Vec<u128>,
    /// Most results.
    pub max: usize,
}

/// A call of a tool of an MCP server.
#[derive(Debug)]
pub struct ServerToolCall {
    /// `SERVER/TOOL`.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// How long it may take.
    pub timeout: Duration,
}

/// Where wishes go: room for one, since a guest waits for the answer.
pub type ServiceQueue = mpsc::Sender<ServiceRequest>;

/// What came of a wish about embeddings.
pub type EmbeddingResult<A> = Result<A, EmbeddingFault>;

/// What came of a call of a server's tool: its text and its structured content.
pub type ServerToolResult = Result<(String, Option<Value>), ServerToolFault>;

/// Why there are no vectors, in one plain sentence for the guest.
#[derive(Debug)]
pub enum EmbeddingFault {
    /// The embedder of the configuration, by its provider, was not granted; none when there is none.
    NotGranted(Option<String>),
    /// A budget is used up.
    Limit(String),
    /// The provider or the store does not answer.
    Unavailable(String),
}

/// Why a tool gave no answer, in one plain sentence for the guest.
#[derive(Debug)]
pub enum ServerToolFault {
    /// No grant names it.
    NotGranted,
    /// A rule does not allow the call.
    Denied(String),
    /// There is none of that name.
    NotFound(String),
    /// It does not take the arguments.
    Invalid(String),
    /// It says that it failed.
    Failed(String),
    /// It took too long.
    TimedOut(String),
    /// Its server does not run.
    Unavailable(String),
}

impl<A> Reply<A> {
    /// Answers the guest. One that does not wait any more hears nothing.
    pub fn answer(self, answer: A) {
        drop(self.0.send(answer));
    }

    /// Returns once the guest does not wait any more.
    pub async fn abandoned(&mut self) {
        self.0.closed().await;
    }
}

/// A guest's way to what is elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Services {
    queue: Option<ServiceQueue>,
    refusals: Refusals,
    n_passages: usize,
    n_calls: usize,
}

impl Services {
    /// Of a call whose wishes are met by who reads `queue`; without one none is.
    pub(crate) fn new(queue: Option<ServiceQueue>) -> Self {
        Self {
            queue,
            ..Self::default()
        }
    }

    /// What was refused so far. Leaves nothing behind.
    pub(crate) fn take_refused(&mut self) -> Vec<MissingGrant> {
        std::mem::take(&mut self.refusals).into_list()
    }

    /// The answer to a wish; none when nobody answers.
    async fn ask<W, A>(
        &self,
        what: W,
        request: impl FnOnce(W, Reply<A>) -> ServiceRequest,
    ) -> Option<A> {
        let queue = self.queue.as_ref()?;
        let (reply, answer) = oneshot::channel();
        queue.send(request(what, Reply(reply))).await.ok()?;
        answer.await.ok()
    }

    /// The answer to a wish about embeddings.
    async fn embedding<W, A>(
        &mut self,
        what: W,
        request: impl FnOnce(W, Reply<EmbeddingResult<A>>) -> ServiceRequest,
    ) -> Result<A, embeddings::Failure> {
        let answer = match self.queue {
            Some(_) => self.ask(what, request).await,
            None => Some(Err(EmbeddingFault::NotGranted(None))),
        };
        let gone = || Err(EmbeddingFault::Unavailable("the call is ending".to_owned()));
        let fault = match answer.unwrap_or_else(gone) {
            Ok(answer) => return Ok(answer),
            Err(fault) => fault,
        };
        if let EmbeddingFault::NotGranted(Some(name)) = &fault {
            let name = name.clone();
            self.refused(Capability::Embedder { name });
        }
        Err(fault.into())
    }

    async fn call(&mut self, call: ServerToolCall) -> ServerToolResult {
        let name = call.name.clone();
        let answer = match self.queue {
            Some(_) => self.ask(call, ServiceRequest::Call).await,
            None => Some(Err(ServerToolFault::NotGranted)),
        };
        let gone = || {
            Err(ServerToolFault::Unavailable(
                "the call is ending".to_owned(),
            ))
        };
        let result = answer.unwrap_or_else(gone);
        if let Err(ServerToolFault::NotGranted) = result {
            self.refused(Capability::Tool { name });
        }
        result
    }

    fn refused(&mut self, capability: Capability) {
        self.refusals.noted(MissingGrant::Service(capability));
    }
}

impl embeddings::Host for GuestState {
    async fn embedder(&mut self) -> wasmtime::Result<Option<String>> {
        let asked = self.services.ask((), ServiceRequest::Embedder);
        Ok(asked.await.flatten())
    }

    async fn missing(
        &mut self,
        keys: Vec<embeddings::Key>,
    ) -> wasmtime::Result<Result<Vec<u32>, embeddings::Failure>> {
        if let Err(failure) = at_most(keys.len(), KEYS_MAX, "keys") {
            return Ok(Err(failure));
        }
        let keys = keys.into_iter().map(number).collect();
        Ok(self.services.embedding(keys, ServiceRequest::Missing).await)
    }

    async fn store(
        &mut self,
        passages: Vec<embeddings::Passage>,
    ) -> wasmtime::Result<Result<(), embeddings::Failure>> {
        let n_bytes = passages.iter().map(|passage| passage.text.len()).sum();
        let fits = at_most(passages.len(), PASSAGES_MAX, "texts")
            .and_then(|()| at_most(n_bytes, PASSAGE_BYTES_MAX, "bytes of texts"));
        if let Err(failure) = fits {
            return Ok(Err(failure));
        }
        let n_passages = self.services.n_passages + passages.len();
        if n_passages > PASSAGES_OF_CALL_MAX {
            let message = format!("one call stores at most {PASSAGES_OF_CALL_MAX} texts");
            return Ok(Err(EmbeddingFault::Limit(message).into()));
        }
        self.services.n_passages = n_passages;
        let passages = passages.into_iter();
        let passages = passages.map(|passage| (number(passage.key), passage.text));
        let stored = self
            .services
            .embedding(passages.collect(), ServiceRequest::Store);
        Ok(stored.await)
    }

    async fn nearest(
        &mut self,
        query: String,
        keys: Vec<embeddings::Key>,
        max: u32,
    ) -> wasmtime::Result<Result<Vec<embeddings::Near>, embeddings::Failure>> {
        let fits = at_most(keys.len(), KEYS_MAX, "keys")
            .and_then(|()| at_most(query.len(), QUERY_BYTES_MAX, "bytes of a query"));
        if let Err(failure) = fits {
            return Ok(Err(failure));
        }
        let query = NearestQuery {
            text: query,
            keys: keys.into_iter().map(number).collect(),
            max: max.min(RESULTS_MAX) as usize,
        };
        let found = self
            .services
            .embedding(query, ServiceRequest::Nearest)
            .await;
        let near = |(position, similarity)| embeddings::Near {
            position,
            similarity,
        };
        Ok(found.map(|found| found.into_iter().map(near).collect()))
    }
}

impl server_tools::Host for GuestState {
    async fn call(
        &mut self,
        server: String,
        tool: String,
        arguments: String,
        options: server_tools::Options,
    ) -> wasmtime::Result<Result<server_tools::Answer, server_tools::CallError>> {
        let invalid = |message: String| Ok(Err(ServerToolFault::Invalid(message).into()));
        if arguments.len() > ARGUMENT_BYTES_MAX {
            return invalid(format!("the arguments exceed {ARGUMENT_BYTES_MAX} bytes"));
        }
        let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(&arguments) else {
            return invalid("the arguments are not a JSON object".to_owned());
        };
        if self.services.n_calls == CALLS_MAX {
            return invalid(format!(
                "one call makes at most {CALLS_MAX} calls of servers' tools"
            ));
        }
        self.services.n_calls += 1;
        let left = self.limiter.time_left();
        let most = left.saturating_sub(END_TIME.min(left / 2));
        let wanted = options.timeout_ms.map(Duration::from_millis);
        let call = ServerToolCall {
            name: format!("{server}/{tool}"),
            arguments,
            timeout: wanted.map_or(most, |wanted| wanted.min(most)),
        };
        let result = self.services.call(call).await;
        let answer = |(text, structured): (String, Option<Value>)| server_tools::Answer {
            text,
            structured: structured.map(|value| value.to_string()),
        };
        Ok(result.map(answer).map_err(server_tools::CallError::from))
    }
}

fn number(key: embeddings::Key) -> u128 {
    u128::from(key.high) << 64 | u128::from(key.low)
}

fn at_most(n: usize, max: usize, what: &str) -> Result<(), embeddings::Failure> {
    match n <= max {
        true => Ok(()),
        false => Err(embeddings::Failure {
            kind: embeddings::FailureKind::Invalid,
            message: format!("{n} {what} exceed the limit of {max}"),
        }),
    }
}

impl From<EmbeddingFault> for embeddings::Failure {
    fn from(fault: EmbeddingFault) -> Self {
        use embeddings::FailureKind as Kind;
        let (kind, message) = match fault {
            EmbeddingFault::NotGranted(None) => (
                Kind::Denied,
                "no embedder is granted to the plugin".to_owned(),
            ),
            EmbeddingFault::NotGranted(Some(name)) => (
                Kind::Denied,
                format!("the embedder `{name}` was not granted"),
            ),
            EmbeddingFault::Limit(message) => (Kind::Limit, message),
            EmbeddingFault::Unavailable(message) => (Kind::Unavailable, message),
        };
        Self { kind, message }
    }
}

impl From<ServerToolFault> for server_tools::CallError {
    fn from(fault: ServerToolFault) -> Self {
        use server_tools::CallErrorKind as Kind;
        let (kind, message) = match fault {
            ServerToolFault::NotGranted => (Kind::Denied, "the tool was not granted".to_owned()),
            ServerToolFault::Denied(message) => (Kind::Denied, message),
            ServerToolFault::NotFound(message) => (Kind::NotFound, message),
            ServerToolFault::Invalid(message) => (Kind::Invalid, message),
            ServerToolFault::Failed(message) => (Kind::Failed, message),
            ServerToolFault::TimedOut(message) => (Kind::TimedOut, message),
            ServerToolFault::Unavailable(message) => (Kind::Unavailable, message),
        };
        Self { kind, message }
    }
}
