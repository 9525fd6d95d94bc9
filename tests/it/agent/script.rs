//! A model that answers from a script: the scripted server of the product, as tests want it.

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use zeph_agent::ProviderKind;
use zeph_agent::scripted::{RecordedRequest, Scenario, ScriptedServer};

/// What it speaks.
const KIND: ProviderKind = ProviderKind::OpenAi;

/// The server. It ends when it is dropped.
pub(super) struct Script {
    pub(super) base_url: String,
    server: ScriptedServer,
    _runtime: Runtime,
}

impl Script {
    /// Gives these answers, in order.
    pub(super) fn new(answers: impl IntoIterator<Item = Value>) -> Self {
        Self::play(answers, false, json!({}))
    }

    /// Gives these answers, in order, and vectors of texts as `embedding` says.
    pub(super) fn with_vectors(answers: impl IntoIterator<Item = Value>, embedding: Value) -> Self {
        Self::play(answers, false, embedding)
    }

    /// Gives these answers, and the last one for ever after.
    pub(super) fn endless(answers: impl IntoIterator<Item = Value>) -> Self {
        Self::play(answers, true, json!({}))
    }

    fn play(answers: impl IntoIterator<Item = Value>, repeats: bool, embedding: Value) -> Self {
        let steps: Vec<Value> = answers.into_iter().map(step).collect();
        let scenario = json!({ "about": "a test", "steps": steps, "repeats": repeats, "embedding": embedding });
        let scenario = Scenario::parse(&scenario.to_string()).unwrap();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(ScriptedServer::start(scenario)).unwrap();
        Self {
            base_url: server.base_url(KIND),
            server,
            _runtime: runtime,
        }
    }

    /// The bodies of all requests, but for those for vectors.
    pub(super) fn requests(&self) -> Vec<Value> {
        bodies(self.server.requests())
    }

    /// Where it is for providers of this kind.
    pub(super) fn base_url_of(&self, kind: ProviderKind) -> String {
        self.server.base_url(kind)
    }

    /// All requests, as they came.
    pub(super) fn heard(&self) -> Vec<RecordedRequest> {
        self.server.requests()
    }

    /// The texts of each request for vectors.
    pub(super) fn embedded(&self) -> Vec<Vec<String>> {
        let bodies = bodies(self.server.embedding_requests()).into_iter();
        let texts = bodies.map(|body| serde_json::from_value(body["input"].clone()).unwrap());
        texts.collect()
    }
}

fn bodies(requests: Vec<RecordedRequest>) -> Vec<Value> {
    let requests = requests.into_iter();
    let bodies = requests.map(|request| serde_json::from_str(&request.body).unwrap());
    bodies.collect()
}

/// What is answered to one request: an answer, or a fault.
fn step(answer: Value) -> Value {
    match answer.get("fault").is_some() {
        true => answer,
        false => json!({ "answer": answer }),
    }
}

/// An answer that says something.
pub(super) fn says(text: &str) -> Value {
    json!({ "text": text })
}

/// No answer but this status.
pub(super) fn fails(status: u16) -> Value {
    json!({ "fault": { "status": { "status": status } } })
}

/// No answer at all, and a connection that stays open.
pub(super) fn hangs() -> Value {
    json!({ "fault": "hang_before_header" })
}

/// An answer that makes calls.
pub(super) fn calls(calls: &[(&str, Value)]) -> Value {
    let calls = calls
        .iter()
        .map(|(tool, arguments)| json!({ "name": tool, "arguments": arguments }));
    json!({ "calls": calls.collect::<Vec<Value>>() })
}
