//! A client of the protocol over the streams of the program under test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::product::Product;

/// How long anything may take: components may be compiled.
const PATIENCE: Duration = Duration::from_secs(90);

/// The program with a client.
pub(super) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: i64,
    /// The updates of all sessions, with their sessions.
    pub(super) updates: Vec<(String, Value)>,
    /// Everything the program sent.
    pub(super) heard: Vec<Value>,
}

/// What a request came to.
pub(super) type Answered = Result<Value, Value>;

impl Client {
    /// Starts the program; the client can do what `capabilities` says.
    pub(super) fn start(product: &Product, args: &[&str], capabilities: Value) -> Self {
        let mut client = Self::silent(product, args);
        let answer = client.ask(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(answer.unwrap()["protocolVersion"], 1);
        client
    }

    /// Starts the program, and says nothing.
    pub(super) fn silent(product: &Product, args: &[&str]) -> Self {
        let mut all = vec!["acp"];
        all.extend(args);
        let mut child = product
            .command(&all)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
            next_id: 0,
            updates: Vec::new(),
            heard: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(super) fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// Sends a request; its id.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(super) fn answer(&mut self, request: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// The next message. Updates are kept.
    pub(super) fn next(&mut self) -> Value {
        let line = self
            .lines
            .recv_timeout(PATIENCE)
            .expect("the program says something");
        let message: Value = serde_json::from_str(&line).unwrap();
        self.heard.push(message.clone());
        if message["method"] == "session/update" {
            let params = &message["params"];
            let session = params["sessionId"].as_str().unwrap().to_owned();
            self.updates.push((session, params["update"].clone()));
        }
        message
    }

    /// Waits for the answer of a request; `serve` answers what the program asks.
    pub(super) fn wait(&mut self, id: i64, mut serve: impl FnMut(&mut Self, &Value)) -> Answered {
        loop {
            let message = self.next();
            match (message.get("method"), message.get("id")) {
                (Some(_), Some(_)) => serve(self, &message),
                (None, Some(of)) if *of == json!(id) => return result(&message),
                _ => {}
            }
        }
    }

    /// Asks something that asks nothing back.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Answered {
        let id = self.request(method, &params);
        self.wait(id, |_, request| panic!("{request}"))
    }

    /// Waits for the first message that `is_it` picks.
    pub(super) fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            if is_it(&message) {
                return message;
            }
        }
    }

    /// A new session.
    pub(super) fn session(&mut self, directory: &Path) -> String {
        let answer = self.ask("session/new", json!({"cwd": directory, "mcpServers": []}));
        answer.unwrap()["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt; the id of the request.
    pub(super) fn send_prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request(
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// A whole turn; how it ended.
    pub(super) fn prompt(
        &mut self,
        session: &str,
        text: &str,
        serve: impl FnMut(&mut Self, &Value),
    ) -> String {
        let id = self.send_prompt(session, text);
        let answer = self.wait(id, serve).unwrap();
        answer["stopReason"].as_str().unwrap().to_owned()
    }

    /// The updates of this kind.
    pub(super) fn of_kind(&self, kind: &str) -> Vec<Value> {
        let updates = self.updates.iter().map(|(_, update)| update);
        updates
            .filter(|update| update["sessionUpdate"] == kind)
            .cloned()
            .collect()
    }

    /// All the text the model said.
    pub(super) fn text(&self) -> String {
        let chunks = self.of_kind("agent_message_chunk");
        let texts = chunks
            .iter()
            .filter_map(|chunk| chunk["content"]["text"].as_str());
        texts.collect()
    }

    /// The one update that ended the one call that was announced, which came before it.
    pub(super) fn ended_call(&self) -> (Value, Value) {
        let begun = self.of_kind("tool_call");
        assert_eq!(begun.len(), 1, "{begun:?}");
        let ends = self.of_kind("tool_call_update");
        let ends = ends
            .into_iter()
            .filter(|update| update.get("status").is_some());
        let ends: Vec<Value> = ends.collect();
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert_eq!(begun[0]["toolCallId"], ends[0]["toolCallId"]);
        assert_eq!(begun[0]["status"], "in_progress");
        (begun[0].clone(), ends[0].clone())
    }

    /// Ends the program by closing its input.
    pub(super) fn leave(mut self) -> Option<i32> {
        self.stdin = None;
        self.ended()
    }

    /// Waits for the end of the program.
    pub(super) fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the program does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills the client's ends of the streams, as its death would.
    pub(super) fn die(&mut self) {
        self.stdin = None;
        let (_, lines) = channel();
        self.lines = lines;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn result(message: &Value) -> Answered {
    match message.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(message["result"].clone()),
    }
}
