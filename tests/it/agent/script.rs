//! A model that answers from a script, over the chat format of OpenAI without streaming.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// The server. It ends with the process of the tests.
pub(super) struct Script {
    pub(super) port: u16,
    state: Arc<Mutex<ScriptState>>,
}

#[derive(Default)]
struct ScriptState {
    answers: VecDeque<Value>,
    /// When there is nothing more to say.
    last: Option<Value>,
    requests: Vec<Value>,
}

impl Script {
    /// Gives these answers, in order.
    pub(super) fn new(answers: impl IntoIterator<Item = Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(ScriptState {
            answers: answers.into_iter().collect(),
            ..ScriptState::default()
        }));
        let of_thread = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&of_thread);
                thread::spawn(move || serve(stream, &state));
            }
        });
        Self { port, state }
    }

    /// Gives this answer for ever after.
    pub(super) fn then(&self, answer: Value) {
        self.state.lock().unwrap().last = Some(answer);
    }

    /// The bodies of all requests.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.state.lock().unwrap().requests.clone()
    }
}

/// An answer that says something.
pub(super) fn says(text: &str) -> Value {
    answer(&json!({"role": "assistant", "content": text}), "stop")
}

/// No answer but this status.
pub(super) fn fails(status: u16) -> Value {
    json!({ "status": status })
}

/// No answer at all, and a connection that stays open.
pub(super) fn hangs() -> Value {
    json!({ "hangs": true })
}

/// An answer that makes calls.
pub(super) fn calls(calls: &[(&str, Value)]) -> Value {
    let calls = calls.iter().enumerate().map(|(idx, (tool, arguments))| {
        json!({
            "id": format!("call_{idx}"),
            "type": "function",
            "function": {"name": tool, "arguments": arguments.to_string()},
        })
    });
    let calls: Vec<Value> = calls.collect();
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    answer(&message, "tool_calls")
}

fn answer(message: &Value, reason: &str) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "script-1",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    })
}

fn serve(stream: TcpStream, state: &Mutex<ScriptState>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = request(&mut stream) {
        let answer = {
            let mut state = state.lock().unwrap();
            state.requests.push(request);
            let next = state.answers.pop_front();
            next.or_else(|| state.last.clone())
                .unwrap_or_else(|| says("nothing more"))
        };
        if answer.get("hangs").is_some() {
            // Until the other side closes.
            let _at_end = stream.read(&mut [0]);
            return;
        }
        let status = answer.get("status").and_then(Value::as_u64).unwrap_or(200);
        let body = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream
            .get_mut()
            .write_all((head + &body).as_bytes())
            .is_err()
        {
            return;
        }
    }
}

/// The body of the next request.
fn request(stream: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut n_bytes = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(length) = lower.strip_prefix("content-length:") {
            n_bytes = length.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; n_bytes];
    stream.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
