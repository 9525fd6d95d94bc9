//! `zeph-host serve --http`, and requests as they go over the wire.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::mcp_client::{LEGACY, MODERN, PATIENCE, modern_meta};
use crate::product::Product;

/// The running server. It is ended when this is dropped.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Lines of standard error after the one with the address.
    _notes: Mutex<Receiver<String>>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpServer {
    pub(crate) fn start(product: &Product, args: &[&str]) -> Self {
        Self::of(Self::command(product, 0, args))
    }

    /// What starts it at a port of this machine.
    pub(crate) fn command(product: &Product, port: u16, args: &[&str]) -> Command {
        let address = format!("127.0.0.1:{port}");
        let mut all = vec!["serve", "--http", &address];
        all.extend(args);
        product.command(&all)
    }

    /// Starts it.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (send, notes) = channel();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                drop(send.send(line));
            }
        });
        let mut told = String::new();
        let address = loop {
            let Ok(line) = notes.recv_timeout(PATIENCE) else {
                panic!("it does not listen: {told}");
            };
            told.push_str(&line);
            told.push('\n');
            if let Some((_, url)) = line.split_once("listening on http://") {
                break url.strip_suffix("/mcp").unwrap().parse().unwrap();
            }
        };
        Self {
            child,
            address,
            _notes: Mutex::new(notes),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// The same, of one that another will take the place of.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request and goes on.
    pub(crate) fn begin(&self, method: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
        let head = format!(
            "{method} HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// Sends a request and reads the answer.
    pub(crate) fn request(&self, method: &str, headers: &str, body: &str) -> Reply {
        Reply::read(self.begin(method, headers, body))
    }

    /// Begins a call of the revision without sessions.
    pub(crate) fn begin_call(&self, headers: &str, tool: &str, arguments: &Value) -> TcpStream {
        let (more, body) = modern_call(tool, arguments, &modern_meta(&json!({})));
        self.begin("POST /mcp", &format!("{headers}{more}"), &body)
    }

    pub(crate) fn call(&self, headers: &str, tool: &str, arguments: &Value) -> Reply {
        Reply::read(self.begin_call(headers, tool, arguments))
    }

    /// Opens a session of the older revisions; gives back the headers of its requests.
    pub(crate) fn open_session(&self, headers: &str) -> String {
        let params = json!({
            "protocolVersion": LEGACY, "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let reply = self.request("POST /mcp", headers, &message("initialize", &params));
        assert_eq!(reply.status, 200, "{reply:?}");
        let (_, rest) = reply.head.split_once("mcp-session-id: ").unwrap();
        let id = rest.lines().next().unwrap();
        let session = format!("mcp-session-id: {id}\r\nmcp-protocol-version: {LEGACY}\r\n");
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let reply = self.request("POST /mcp", &format!("{headers}{session}"), body);
        assert_eq!(reply.status, 202, "{reply:?}");
        session
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Reply {
    /// Reads to the end of the connection.
    pub(crate) fn read(stream: TcpStream) -> Self {
        Self::try_read(stream).unwrap_or_else(|text| panic!("no answer: {text:?}"))
    }

    /// The same; what came when that is no answer.
    pub(crate) fn try_read(mut stream: TcpStream) -> Result<Self, String> {
        let mut text = Vec::new();
        // An end that the system calls a reset is one as well.
        drop(stream.read_to_end(&mut text));
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let Some(status) = status else {
            return Err(text);
        };
        Ok(Self {
            status,
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        })
    }

    /// The result in a stream of events.
    pub(crate) fn result(&self) -> Value {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let mut messages = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let answer = messages.find(|message| message.get("result").is_some());
        answer.unwrap_or_else(|| panic!("no result: {self:?}"))["result"].clone()
    }
}

/// The headers and the body of a call of the revision without sessions.
pub(crate) fn modern_call(tool: &str, arguments: &Value, meta: &Value) -> (String, String) {
    let headers =
        format!("mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n");
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    (headers, message("tools/call", &params))
}

pub(crate) fn message(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// The header with the token that `zeph-host token add` with `args` prints.
pub(crate) fn add_token(product: &Product, args: &[&str]) -> String {
    let mut all = vec!["token", "add"];
    all.extend(args);
    let added = product.run(&all);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let token = added.stdout.trim_end();
    assert!(token.starts_with("zeph_mcp_") && added.stdout.lines().count() == 1);
    format!("authorization: Bearer {token}\r\n")
}
