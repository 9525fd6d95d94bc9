//! A model that streams its answers from a script, over the chat format of OpenAI.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// An answer.
#[derive(Clone)]
pub(super) enum Answer {
    /// Pieces of text.
    Says(Vec<String>),
    /// Calls: tool and arguments.
    Calls(Vec<(String, Value)>),
    /// Some text, then nothing, until the client gives up.
    Hangs(String),
    /// An error of the server.
    Fails,
}

pub(super) fn says(text: &str) -> Answer {
    Answer::Says(vec![text.to_owned()])
}

pub(super) fn calls(tool: &str, arguments: Value) -> Answer {
    Answer::Calls(vec![(tool.to_owned(), arguments)])
}

/// The server. It ends with the process of the tests.
pub(super) struct Model {
    pub(super) port: u16,
    state: Arc<Mutex<ModelState>>,
}

#[derive(Default)]
struct ModelState {
    answers: VecDeque<Answer>,
    requests: Vec<Value>,
}

impl Model {
    /// Gives these answers, in order.
    pub(super) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(ModelState {
            answers: answers.into_iter().collect(),
            requests: Vec::new(),
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

    /// Gives this answer, too, after the others.
    pub(super) fn add(&self, answer: Answer) {
        self.state.lock().unwrap().answers.push_back(answer);
    }

    /// The bodies of all requests.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.state.lock().unwrap().requests.clone()
    }
}

fn serve(stream: TcpStream, state: &Mutex<ModelState>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = request(&mut stream) {
        let answer = {
            let mut state = state.lock().unwrap();
            state.requests.push(request);
            state.answers.pop_front()
        };
        let answer = answer.unwrap_or_else(|| says("nothing more"));
        if write(stream.get_mut(), &answer).is_err() {
            return;
        }
        if let Answer::Hangs(_) = answer {
            // Until the client closes the connection.
            drop(stream.read(&mut [0; 1]));
            return;
        }
    }
}

fn write(stream: &mut TcpStream, answer: &Answer) -> std::io::Result<()> {
    if let Answer::Fails = answer {
        let body = "{\"error\":{\"message\":\"out of order\"}}";
        let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length:";
        return stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes());
    }
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    let mut reason = "stop";
    match answer {
        Answer::Says(pieces) => {
            for piece in pieces {
                event(stream, &json!({"content": piece}), None)?;
            }
        }
        Answer::Hangs(text) => return event(stream, &json!({"content": text}), None),
        Answer::Calls(calls) => {
            reason = "tool_calls";
            for (index, (tool, arguments)) in calls.iter().enumerate() {
                let call = json!({
                    "index": index, "id": format!("call_{index}"), "type": "function",
                    "function": {"name": tool, "arguments": arguments.to_string()},
                });
                event(stream, &json!({"tool_calls": [call]}), None)?;
            }
        }
        Answer::Fails => {}
    }
    event(stream, &json!({}), Some(reason))?;
    let usage = json!({
        "id": "1", "object": "chat.completion.chunk", "model": "script-1", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    });
    chunk(stream, &format!("data: {usage}\n\n"))?;
    chunk(stream, "data: [DONE]\n\n")?;
    stream.write_all(b"0\r\n\r\n")
}

fn event(stream: &mut TcpStream, delta: &Value, reason: Option<&str>) -> std::io::Result<()> {
    let event = json!({
        "id": "1", "object": "chat.completion.chunk", "model": "script-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    });
    chunk(stream, &format!("data: {event}\n\n"))
}

fn chunk(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
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
