//! A client of MCP over the standard streams of a program, which notes what it is sent.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest wait for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a program may take to end when its input does.
const END: Duration = Duration::from_secs(20);

/// A running server, wrapped or not.
pub(super) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    n_requests: u64,
    /// Requests of the server.
    pub(super) asked: Vec<String>,
}

impl Client {
    /// Starts it and shakes hands. `Err` says how it failed.
    pub(super) fn start(mut command: Command) -> Result<Self, String> {
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        let mut child = spawned.map_err(|error| error.to_string())?;
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut client = Self {
            stdin: child.stdin.take(),
            child,
            lines,
            n_requests: 0,
            asked: Vec::new(),
        };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"sampling": {}, "elicitation": {}, "roots": {}},
            "clientInfo": {"name": "escapes", "version": "1"},
        });
        client.request("initialize", &params)?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    /// Makes a request and returns its result, or the error as text.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.n_requests += 1;
        let id = self.n_requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.map_err(|_| format!("no answer to {method}"))?;
            let message: Value = serde_json::from_str(&line).map_err(|_| line)?;
            match (&message["method"], &message["id"]) {
                (Value::String(asked), _) => self.asked.push(asked.clone()),
                (_, answered) if *answered == id => {
                    return match &message["error"] {
                        Value::Null => Ok(message["result"].clone()),
                        error => Err(error.to_string()),
                    };
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let stdin = self.stdin.as_mut().unwrap();
        let line = format!("{message}\n");
        stdin
            .write_all(line.as_bytes())
            .map_err(|error| error.to_string())
    }

    /// The first tool's name, and what all descriptions say.
    pub(super) fn tools(&mut self) -> Result<(String, String), String> {
        let listed = self.request("tools/list", &json!({}))?;
        let tools = listed["tools"].as_array().cloned().unwrap_or_default();
        let ours = |tool: &&Value| {
            tool["name"]
                .as_str()
                .is_some_and(|name| name.contains("attack"))
        };
        let name = tools
            .iter()
            .find(ours)
            .map(|tool| tool["name"].as_str().unwrap().to_owned());
        let descriptions = tools.iter().filter_map(|tool| tool["description"].as_str());
        let descriptions = descriptions.collect::<Vec<_>>().join("\n");
        Ok((name.ok_or("the tool is not offered")?, descriptions))
    }

    /// Ends the input and waits for the end of the program.
    pub(super) fn end(mut self) {
        drop(self.stdin.take());
        let deadline = Instant::now() + END;
        while self.child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
