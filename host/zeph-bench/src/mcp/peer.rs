//! A server over stdio: requests in lines of JSON, after a handshake that every server knows.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::succeeded;

/// A running server; ended when dropped.
pub(super) struct Peer {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    last: u64,
}

impl Peer {
    /// Starts it and shakes hands.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start `{}`", command.get_program().display()))?;
        let requests = child.stdin.take();
        let answers = child
            .stdout
            .take()
            .context("bug: standard output is a pipe")?;
        let mut this = Self {
            child,
            requests,
            answers: BufReader::new(answers),
            last: 0,
        };
        let client = json!({"name": "zeph-bench", "version": "0"});
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        this.request("initialize", hello)?;
        this.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(this)
    }

    /// The number of its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Makes one call that has to succeed; its result, and the time until it is read.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<(Value, Duration)> {
        let started = Instant::now();
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}))?;
        let took = started.elapsed();
        Ok((succeeded(&answer)?.clone(), took))
    }

    /// Sends a request and reads its answer; what the server says in between is passed over.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self
                .answers
                .read_line(&mut line)
                .context("cannot read an answer")?
                == 0
            {
                bail!("the server ended without an answer to `{method}`");
            }
            let answer: Value = serde_json::from_str(&line).context("an answer is not JSON")?;
            if answer["id"] == self.last {
                return Ok(answer);
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let pipe = self
            .requests
            .as_mut()
            .context("bug: the pipe is open until the server ends")?;
        pipe.write_all(format!("{message}\n").as_bytes())
            .context("cannot write a request")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Closing its input ends it; one that does not end is no reason to wait.
        drop(self.requests.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
