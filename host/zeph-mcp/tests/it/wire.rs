//! HTTP as it goes over the wire, so that a test can get every part of it wrong.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::PATIENCE;

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The headers of a message of either era.
pub(crate) const POST: &str = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";

/// The headers of a stream of a session.
pub(crate) const GET: &str = "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n";

/// A connection.
pub(crate) struct Wire(TcpStream);

impl Wire {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) async fn send(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.0.write_all(text.as_ref()).await.unwrap();
        self
    }

    /// Sends as much as is taken.
    pub(crate) async fn send_what_is_taken(&mut self, text: &[u8]) {
        drop(self.0.write_all(text).await);
    }

    /// Reads until what was read has `text` in it.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let mut read = Vec::new();
        let reading = async {
            while !String::from_utf8_lossy(&read).contains(text) {
                let mut buffer = [0; 4_096];
                let n = self.0.read(&mut buffer).await.unwrap();
                assert!(n > 0, "{text}: {}", String::from_utf8_lossy(&read));
                read.extend_from_slice(&buffer[..n]);
            }
        };
        timeout(PATIENCE, reading).await.expect(text);
        String::from_utf8(read).unwrap()
    }

    /// Reads to the end of the connection.
    pub(crate) async fn read_to_end(&mut self) -> String {
        let mut read = Vec::new();
        let reading = self.0.read_to_end(&mut read);
        // An end that the system calls a reset is one as well.
        drop(timeout(PATIENCE, reading).await.expect("it ends"));
        String::from_utf8_lossy(&read).into_owned()
    }

    pub(crate) async fn reply(&mut self) -> Reply {
        Reply::read(&self.read_to_end().await)
    }
}

impl Reply {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Self {
            status: status.unwrap_or_else(|| panic!("no status: {text:?}")),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    /// The session that was opened.
    pub(crate) fn session(&self) -> String {
        let (_, rest) = self.head.split_once("mcp-session-id: ").expect("a session");
        rest.lines().next().unwrap().to_owned()
    }
}

/// Sends one request and reads its answer; `head` has the first line and some headers.
pub(crate) async fn request(address: SocketAddr, head: &str, body: &str) -> Reply {
    let mut wire = Wire::open(address).await;
    let text = format!(
        "{head}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    wire.send(text).await.reply().await
}

/// A GET of a plain page.
pub(crate) async fn get(address: SocketAddr, path: &str, headers: &str) -> Reply {
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}");
    request(address, &head, "").await
}

pub(crate) fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

/// The headers and the body of a call of the revision 2026-07-28.
pub(crate) fn call(tool: &str, arguments: &Value) -> (String, String) {
    let head = format!(
        "{POST}mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
    );
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta() });
    (head, message(1, "tools/call", &params))
}

pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    })
}

pub(crate) fn message(id: u32, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Calls a tool without any session.
pub(crate) async fn call_tool(address: SocketAddr, headers: &str, tool: &str) -> Reply {
    let (head, body) = call(tool, &json!({}));
    request(address, &format!("{head}{headers}"), &body).await
}

/// Opens a session of the revision 2025-11-25; gives back the headers of its requests.
pub(crate) async fn open_session(address: SocketAddr, headers: &str) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let body = message(0, "initialize", &params);
    let reply = request(address, &format!("{POST}{headers}"), &body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let session = format!(
        "mcp-session-id: {}\r\nmcp-protocol-version: 2025-11-25\r\n",
        reply.session()
    );
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let reply = request(address, &format!("{POST}{headers}{session}"), body).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    session
}
