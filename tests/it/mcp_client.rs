//! A client of `zeph-host serve` over standard input that writes plain JSON-RPC lines: nothing between a test and the protocol.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::product::Product;

/// How long anything may take on a machine that is busy with other tests and compiles a component meanwhile.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The revision with a handshake.
pub(crate) const LEGACY: &str = "2025-11-25";

/// The revision without one.
pub(crate) const MODERN: &str = "2026-07-28";

/// The running server and its client. The server is ended when this is dropped.
pub(crate) struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<String>,
    notes: Receiver<String>,
    /// Lines of standard error so far.
    pub(crate) said: Vec<String>,
    /// Messages that nobody has asked for yet, in order of arrival.
    pub(crate) unread: Vec<Value>,
    /// What each request carries in `_meta`; nothing in the old revisions.
    pub(crate) meta: Option<Value>,
    n_requests: u64,
}

impl McpClient {
    /// Starts the server with `args` after `serve`, and says nothing to it yet.
    pub(crate) fn start(product: &Product, args: &[&str]) -> Self {
        Self::of(product, &[&["serve"], args].concat())
    }

    /// Starts the program with `args`, and says nothing to it yet.
    pub(crate) fn of(product: &Product, args: &[&str]) -> Self {
        let mut child = product
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            messages: lines(child.stdout.take().unwrap()),
            notes: lines(child.stderr.take().unwrap()),
            child,
            said: Vec::new(),
            unread: Vec::new(),
            meta: None,
            n_requests: 0,
        }
    }

    /// Starts the server and shakes hands, as a client of the old revisions with these capabilities.
    pub(crate) fn legacy(product: &Product, args: &[&str], capabilities: &Value) -> Self {
        Self::shaken(product, &[&["serve"], args].concat(), capabilities)
    }

    /// Starts the program with `args` and shakes hands, as a client of the old revisions with these capabilities.
    pub(crate) fn shaken(product: &Product, args: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::of(product, args);
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = client.request("initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], LEGACY, "{answer}");
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// Starts the server for a client of the new revision with these capabilities, which shakes no hands.
    pub(crate) fn modern(product: &Product, args: &[&str], capabilities: &Value) -> Self {
        Self::modern_of(product, &[&["serve"], args].concat(), capabilities)
    }

    /// Starts the program with `args` for a client of the new revision with these capabilities.
    pub(crate) fn modern_of(product: &Product, args: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::of(product, args);
        client.meta = Some(modern_meta(capabilities));
        client
    }

    /// One client of each kind, without capabilities.
    pub(crate) fn each(product: &Product, args: &[&str]) -> [Self; 2] {
        let none = json!({});
        [
            Self::legacy(product, args, &none),
            Self::modern(product, args, &none),
        ]
    }

    /// The process of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line as it is.
    pub(crate) fn write(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_ref()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// Sends a request and goes on. Returns its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.n_requests += 1;
        let id = self.n_requests;
        let params = self.with_meta(params);
        self.write(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    fn with_meta(&self, mut params: Value) -> Value {
        if let Some(Value::Object(common)) = &self.meta {
            let meta = &mut params["_meta"];
            if meta.is_null() {
                *meta = json!({});
            }
            for (key, value) in common {
                if meta.get(key).is_none() {
                    meta[key] = value.clone();
                }
            }
        }
        params
    }

    /// Sends a request and waits for its answer: the whole message.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends an answer to a request of the server.
    pub(crate) fn reply(&mut self, id: &Value, result: Value) {
        self.write(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    /// Begins a call of a tool. Returns the id of the request.
    pub(crate) fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.begin("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Makes a call of a tool. Returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin_call(tool, arguments);
        result(self.answer(id))
    }

    /// The tools, as listed.
    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let listed = result(self.request("tools/list", json!({})));
        listed["tools"].as_array().unwrap().clone()
    }

    /// Waits until the tool `name` is listed. While a server is being installed, lists come without its tools; it announces another one.
    pub(crate) fn wait_for_tool(&mut self, name: &str) {
        while !self.tools().iter().any(|tool| tool["name"] == name) {
            self.told("notifications/tools/list_changed");
        }
    }

    /// Waits for the answer to a request: the whole message.
    pub(crate) fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        self.message(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Waits for a notification, or a request, of the server.
    pub(crate) fn told(&mut self, method: &str) -> Value {
        self.message(|message| message["method"] == method)
    }

    /// Waits for the first message that is meant; others stay unread.
    pub(crate) fn message(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.unread.iter().position(&is_meant) {
                return self.unread.remove(at);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(line) => self.unread.push(serde_json::from_str(&line).unwrap()),
                Err(error) => {
                    self.said.extend(self.notes.try_iter());
                    panic!(
                        "{error}; unread: {:#?}; said: {:#?}",
                        self.unread, self.said
                    );
                }
            }
        }
    }

    /// Ends the input of the server.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the server. Returns how it ended, with the messages that nobody has asked for.
    pub(crate) fn ended(&mut self) -> (ExitStatus, Vec<Value>) {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the server goes on");
            thread::sleep(Duration::from_millis(5));
        };
        let rest = self
            .messages
            .iter()
            .map(|line| serde_json::from_str(&line).unwrap());
        self.unread.extend(rest);
        (status, std::mem::take(&mut self.unread))
    }

    /// What the program has said on standard error, to its end.
    pub(crate) fn said_all(&mut self) -> String {
        self.said.extend(self.notes.iter());
        self.said.join("\n")
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What each request of the new revision carries.
pub(crate) fn modern_meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

/// The result of an answer, which is no error.
pub(crate) fn result(answer: Value) -> Value {
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

/// The text of a result, block after block.
pub(crate) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap();
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
