//! The figures of the door for editors: how soon a session is there, and what a call costs beside the same call over JSON lines. The model
//! is scripted: one call of `read` in every turn.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::figures::{Bench, Row, compare, shown, verdict};
use crate::model::{model, request};
use crate::timing::{in_turns, median, percentile};

/// Turns, each with one call.
const N_TURNS: usize = 200;

/// Sessions that are begun.
const N_SESSIONS: usize = 20;

/// Every figure of the door.
pub(crate) fn acp(bench: &Bench) -> Result<Vec<Row>> {
    let mut editor = Editor::start(bench)?;
    editor.ask("initialize", &json!({"protocolVersion": 1}))?;
    let directory = &bench.corpus.tiny;
    let new = json!({"cwd": directory, "mcpServers": []});
    let first = editor.begin(&new)?;
    let mut begun = Vec::with_capacity(N_SESSIONS);
    for _ in 0..N_SESSIONS {
        begun.push(editor.begin(&new)?.1);
    }
    // In turns, at one pace: a side that has just worked is faster.
    let mut lines = bench.installed.run(directory, &[])?;
    let pair = in_turns(
        N_TURNS,
        || editor.turn(&first.0),
        || Ok(Some(lines.call("read", &json!({"path": "one.txt"}))?.1)),
    )?;
    let soon = percentile(&mut begun, 99);
    Ok(vec![
        Row {
            figure: "ACP: `session/new` to its first update".to_owned(),
            measured: format!(
                "p50 {}, p99 {}, the first {}",
                shown(median(&mut begun)),
                shown(soon),
                shown(first.1)
            ),
            reach: "p99 ≤ 20 ms".to_owned(),
            ratio: verdict("", soon <= Duration::from_millis(20)),
        },
        compare(
            "ACP: a `read`, from its announcement to its end",
            "the same over JSON lines",
            1.5,
            &pair,
        ),
    ])
}

/// The program with an editor.
struct Editor {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    n_requests: u64,
}

impl Editor {
    fn start(bench: &Bench) -> Result<Self> {
        let port = model(answers)?;
        let provider = format!(
            "llm.providers=[{{name=\"scripted\",type=\"openai\",model=\"script-1\",base_url=\"http://127.0.0.1:{port}/v1\",stream=false}}]"
        );
        let mut command = bench.installed.command(&bench.corpus.tiny);
        command.args([
            "--set",
            &provider,
            "--set",
            "agent.provider=scripted",
            "acp",
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the program")?;
        let requests = child.stdin.take();
        let answers = child
            .stdout
            .take()
            .context("bug: standard output is a pipe")?;
        Ok(Self {
            child,
            requests,
            answers: BufReader::new(answers),
            n_requests: 0,
        })
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.n_requests += 1;
        let id = self.n_requests;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let pipe = self.requests.as_mut().context("bug: the pipe is open")?;
        writeln!(pipe, "{line}").context("cannot write a request")?;
        Ok(id)
    }

    fn next(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("the program ended");
        }
        let message: Value = serde_json::from_str(&line).context("a message is not JSON")?;
        match message.get("error") {
            Some(error) => bail!("a request failed: {error}"),
            None => Ok(message),
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send(method, params)?;
        loop {
            let message = self.next()?;
            if message["id"] == json!(id) {
                return Ok(message["result"].clone());
            }
        }
    }

    /// A session, and the time until its first update.
    fn begin(&mut self, new: &Value) -> Result<(Value, Duration)> {
        let started = Instant::now();
        let session = self.ask("session/new", new)?["sessionId"].clone();
        loop {
            if self.next()?["method"] == "session/update" {
                return Ok((session, started.elapsed()));
            }
        }
    }

    /// A turn; the time between the announcement of its call and the end of that.
    fn turn(&mut self, session: &Value) -> Result<Duration> {
        let prompt = json!([{"type": "text", "text": "read it"}]);
        let id = self.send(
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        )?;
        let (mut announced, mut took) = (None, None);
        loop {
            let message = self.next()?;
            if message["id"] == json!(id) {
                return took.context("a turn made no call");
            }
            let update = &message["params"]["update"];
            match update["sessionUpdate"].as_str() {
                Some("tool_call") => announced = Some(Instant::now()),
                Some("tool_call_update") if update["status"] == "completed" => {
                    took = announced.map(|at: Instant| at.elapsed());
                }
                _ => {}
            }
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.requests.take());
        drop(self.child.wait());
    }
}

/// Answers the requests of a connection: a call, then, when its result is there, a word.
fn answers(stream: TcpStream) -> Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = request(&mut stream)? {
        let messages = request["messages"].as_array();
        let has_result = messages
            .and_then(|messages| messages.last())
            .is_some_and(|last| last["role"] == "tool");
        let answer = answer(has_result).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.get_mut().write_all((head + &answer).as_bytes())?;
    }
    Ok(())
}

fn answer(has_result: bool) -> Value {
    let call = json!([{
        "id": "call_0", "type": "function",
        "function": {"name": "read", "arguments": "{\"path\":\"one.txt\"}"},
    }]);
    let (message, reason) = match has_result {
        true => (json!({"role": "assistant", "content": "read"}), "stop"),
        false => (
            json!({"role": "assistant", "content": null, "tool_calls": call}),
            "tool_calls",
        ),
    };
    json!({
        "id": "1", "object": "chat.completion", "created": 1, "model": "script-1",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    })
}
