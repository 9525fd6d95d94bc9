//! Connections to servers, in process: a good server of the library, and one written by hand that does what it likes.

mod good;
mod hostile;
mod remote;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex,
    split,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use zeph_egress::Pending;
use zeph_mcp::client::{
    Connection, ConnectionOptions, Era, ListKind, McpError, ServerListener, ServerLog,
    ServerTransport,
};

use crate::server::PATIENCE;

/// What a listener has heard.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Heard {
    pub(crate) changed: Vec<ListKind>,
    pub(crate) updated: Vec<String>,
    pub(crate) logged: Vec<ServerLog>,
    pub(crate) complaints: Vec<String>,
    pub(crate) n_questions: usize,
}

/// Writes down what it hears.
#[derive(Debug)]
pub(crate) struct Recorder {
    heard: watch::Sender<Heard>,
    answer: Mutex<Value>,
}

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            heard: watch::Sender::default(),
            answer: Mutex::new(json!({ "name": "Ada" })),
        })
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.borrow().clone()
    }

    /// Waits until what was heard is as it should be.
    pub(crate) async fn hears(&self, enough: impl FnMut(&Heard) -> bool) -> Heard {
        let mut heard = self.heard.subscribe();
        let heard = timeout(PATIENCE, heard.wait_for(enough)).await;
        heard.expect("it is heard").unwrap().clone()
    }
}

impl ServerListener for Recorder {
    fn changed(&self, list: ListKind) {
        self.heard.send_modify(|heard| heard.changed.push(list));
    }

    fn resource_updated(&self, uri: &str) {
        self.heard
            .send_modify(|heard| heard.updated.push(uri.to_owned()));
    }

    fn logged(&self, log: ServerLog) {
        self.heard.send_modify(|heard| heard.logged.push(log));
    }

    fn complained(&self, line: String) {
        assert!(
            !line.contains('\n') && line.chars().count() <= 301,
            "{line}"
        );
        self.heard.send_modify(|heard| heard.complaints.push(line));
    }

    fn elicit(&self, _question: ElicitRequestParams) -> Pending<'_, ElicitResult> {
        self.heard.send_modify(|heard| heard.n_questions += 1);
        let answer = self.answer.lock().unwrap().clone();
        Box::pin(async { ElicitResult::new(ElicitationAction::Accept).with_content(answer) })
    }
}

pub(crate) fn options(era: Era) -> ConnectionOptions {
    let mut options = ConnectionOptions::new("1.2.3");
    options.era = era;
    options.start_timeout = PATIENCE;
    options.request_timeout = PATIENCE;
    options
}

/// A server written by hand.
pub(crate) struct RawServer {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl RawServer {
    /// The next message of the client; none when it has closed.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let n_bytes = self.reader.read_line(&mut line).await.unwrap_or(0);
        if n_bytes == 0 {
            return None;
        }
        // What an end cuts off is no message.
        serde_json::from_str(&line).ok()
    }

    /// The next message with this method. Others are skipped.
    pub(crate) async fn request(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await.expect("the client asks");
            if message["method"] == method {
                return message;
            }
        }
    }

    pub(crate) async fn print(&mut self, bytes: &[u8]) {
        // A client that has had enough closes its end.
        let _is_read = self.writer.write_all(bytes).await.is_ok();
    }

    /// Prints as long as the client reads: whether it still does.
    pub(crate) async fn goes_on_with(&mut self, text: &str) -> bool {
        self.writer.write_all(text.as_bytes()).await.is_ok()
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.print(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
            .await;
    }

    pub(crate) async fn refuse(&mut self, request: &Value, code: i32) {
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": "no" } }))
            .await;
    }

    /// Shakes hands.
    pub(crate) async fn initialize(&mut self) {
        let request = self.request("initialize").await;
        assert_eq!(request["params"]["protocolVersion"], "2025-11-25");
        self.answer(&request, initialized()).await;
        self.request("notifications/initialized").await;
    }

    /// Answers the next call with a text.
    pub(crate) async fn answer_call(&mut self, text: &str) {
        let request = self.request("tools/call").await;
        self.answer(
            &request,
            json!({ "content": [{ "type": "text", "text": text }] }),
        )
        .await;
    }
}

pub(crate) fn initialized() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
        "serverInfo": { "name": "raw", "version": "0" },
    })
}

/// What a server of the newest generation says of itself.
pub(crate) fn discovery() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
        "capabilities": { "tools": { "listChanged": true } }, "serverInfo": { "name": "raw", "version": "0" },
    })
}

/// Both ends of the streams of a server.
pub(crate) fn pipes() -> (ServerTransport, RawServer) {
    let (ours, theirs) = duplex(64 * 1024);
    let (from_server, to_server) = split(ours);
    let (reader, writer) = split(theirs);
    let transport = ServerTransport::Pipes {
        from_server: Box::new(from_server),
        to_server: Box::new(to_server),
    };
    let server = RawServer {
        reader: BufReader::new(reader),
        writer,
    };
    (transport, server)
}

/// Runs a script beside the test.
pub(crate) fn run<F>(script: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    #[expect(clippy::disallowed_methods, reason = "the test owns the task")]
    tokio::spawn(script)
}

/// Opens a connection to a server that shakes hands and then follows `script`.
pub(crate) async fn connect<F>(
    options: ConnectionOptions,
    script: impl FnOnce(RawServer) -> F,
) -> (Connection, Arc<Recorder>, JoinHandle<F::Output>)
where
    F: Future<Output: Send> + Send + 'static,
{
    let (transport, mut server) = pipes();
    let recorder = Recorder::new();
    let opening = Connection::open(transport, options, recorder.clone());
    let (connection, ()) = tokio::join!(opening, server.initialize());
    (connection.unwrap(), recorder, run(script(server)))
}

/// The text of a call of `tool`.
pub(crate) async fn call(connection: &Connection, tool: &str) -> Result<String, McpError> {
    call_within(connection, tool, PATIENCE).await
}

pub(crate) async fn call_within(
    connection: &Connection,
    tool: &str,
    limit: Duration,
) -> Result<String, McpError> {
    let control = zeph_mcp::client::CallControl {
        timeout: Some(limit),
        ..Default::default()
    };
    let calling = connection.call(tool, serde_json::Map::new(), control);
    let answer = timeout(2 * PATIENCE, calling).await.expect("it ends");
    answer.map(|answer| answer.output.to_text())
}
