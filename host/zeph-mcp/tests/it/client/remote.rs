//! Servers over HTTP, on the loopback interface.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;
use zeph_core::network::{EgressLimits, EgressSettings};
use zeph_egress::{Egress, Pending};
use zeph_mcp::client::{
    CallControl, Connection, Credentials, EndReason, Era, HttpServer, McpError, ServerTransport,
};

use super::{Recorder, call, initialized, options, run};
use crate::server::{PATIENCE, Served};

fn egress() -> Egress {
    Egress::new(&EgressSettings {
        private: Arc::default(),
        proxy: None,
        ca_file: None,
        limits: EgressLimits {
            connect: PATIENCE,
            header: PATIENCE,
            idle: PATIENCE,
            total: PATIENCE,
            header_bytes: 65_536,
            body_bytes: 65_536,
            redirects: 0,
            requests: 1,
            connections: 1,
        },
    })
}

fn transport(
    address: SocketAddr,
    headers: HeaderMap,
    credentials: Option<Arc<dyn Credentials>>,
) -> ServerTransport {
    let url = Url::parse(&format!("http://{address}/mcp")).unwrap();
    let server = HttpServer::new(&egress(), url, headers, credentials).unwrap();
    ServerTransport::Http(Box::new(server))
}

fn bearer(token: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([(http::header::AUTHORIZATION, value)])
}

async fn open(transport: ServerTransport, era: Era) -> Result<Connection, McpError> {
    Connection::open(transport, options(era), Recorder::new()).await
}

#[tokio::test]
async fn both_generations_are_spoken() {
    let served = Served::start().await;
    let token = served.tokens.add("ada", |_| {});
    for (era, protocol) in [
        (Era::Initialize, "2025-11-25"),
        (Era::Discover, "2026-07-28"),
        (Era::Auto, "2026-07-28"),
    ] {
        let transport = transport(served.address, bearer(&token), None);
        let connection = open(transport, era).await.unwrap();
        assert_eq!(connection.info().protocol, protocol);
        assert!(connection.definitions().await.unwrap().tools.is_empty());
        assert_eq!(call(&connection, "who").await.unwrap(), "ada");
        connection.close().await;
        assert_eq!(connection.end(), Some(EndReason::Closed));
    }
    served.stop.cancel();
    served.ended().await;
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_over_there() {
    let served = Served::start().await;
    let token = served.tokens.add("ada", |_| {});
    for (n, era) in [(1, Era::Initialize), (2, Era::Discover)] {
        let connection = open(transport(served.address, bearer(&token), None), era)
            .await
            .unwrap();
        let cancel = CancellationToken::new();
        let control = CallControl {
            cancel: cancel.clone(),
            ..CallControl::default()
        };
        let calling = connection.call("wait", Map::new(), control);
        let cancelling = async {
            served.probe.runs(n).await;
            cancel.cancel();
        };
        let (answer, ()) = tokio::join!(calling, cancelling);
        assert_eq!(answer.unwrap_err(), McpError::Cancelled);
        served.probe.is_cancelled(n).await;
        assert_eq!(call(&connection, "who").await.unwrap(), "ada");
        connection.close().await;
    }
}

#[tokio::test]
async fn a_server_that_wants_credentials_says_which() {
    let served = Served::start().await;
    served.tokens.add("ada", |_| {});
    for era in [Era::Initialize, Era::Discover, Era::Auto] {
        let error = open(transport(served.address, HeaderMap::new(), None), era)
            .await
            .unwrap_err();
        let McpError::Authorization {
            challenge: Some(challenge),
        } = error
        else {
            panic!("{error:?}");
        };
        assert!(challenge.starts_with("Bearer"), "{challenge}");
    }
}

/// A stale token first, then a good one.
#[derive(Debug)]
struct Renewed {
    token: Mutex<String>,
    good: String,
    n_refused: AtomicUsize,
}

impl Credentials for Renewed {
    fn header(&self) -> Pending<'_, Result<Option<HeaderValue>, McpError>> {
        let token = format!("Bearer {}", self.token.lock().unwrap());
        Box::pin(async move { Ok(HeaderValue::from_str(&token).ok()) })
    }

    fn refused<'a>(
        &'a self,
        used: Option<&'a HeaderValue>,
        status: u16,
        challenge: Option<&'a str>,
    ) -> Pending<'a, bool> {
        Box::pin(async move {
            assert_eq!(
                (used.unwrap(), status),
                (&HeaderValue::from_static("Bearer stale"), 401)
            );
            assert!(challenge.unwrap().starts_with("Bearer"));
            self.n_refused.fetch_add(1, Ordering::Relaxed);
            self.token.lock().unwrap().clone_from(&self.good);
            true
        })
    }
}

#[tokio::test]
async fn refused_credentials_are_renewed_once() {
    let served = Served::start().await;
    let credentials = Arc::new(Renewed {
        token: Mutex::new("stale".to_owned()),
        good: served.tokens.add("ada", |_| {}),
        n_refused: AtomicUsize::new(0),
    });
    let transport = transport(served.address, HeaderMap::new(), Some(credentials.clone()));
    let connection = open(transport, Era::Auto).await.unwrap();
    assert_eq!(call(&connection, "who").await.unwrap(), "ada");
    assert_eq!(credentials.n_refused.load(Ordering::Relaxed), 1);
}

/// An answer, as bytes after the status line.
type Answer = Box<dyn Fn(&Value) -> Vec<u8> + Send + Sync>;

/// A server of the older generation whose answers to calls are written by hand.
async fn hostile(answer: Answer) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    let serving = run(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = Arc::clone(&answer);
            drop(run(async move { serve(stream, &answer).await }));
        }
    });
    (address, serving)
}

async fn serve(mut stream: TcpStream, answer: &Answer) {
    while let Some((method, message)) = request(&mut stream).await {
        let bytes = match (
            method.as_str(),
            message["method"].as_str().unwrap_or_default(),
        ) {
            ("POST", "initialize") => reply(&message, initialized()),
            ("POST", "notifications/initialized") => {
                b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_vec()
            }
            ("POST", "tools/call" | "server/discover") => answer(&message),
            _ => b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n".to_vec(),
        };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        // One that breaks off is over.
        if bytes.windows(17).any(|field| field == b"Connection: close") {
            return;
        }
    }
}

/// The next request: its method and the message in it.
async fn request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let (_, method, message) = placed_request(stream).await?;
    Some((method, message))
}

/// The next request: its path, its method and the message in it.
async fn placed_request(stream: &mut TcpStream) -> Option<(String, String, Value)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.map_or(0, |rest| {
        rest.split("\r\n").next().unwrap().parse().unwrap()
    });
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let mut words = head.split(' ');
    let method = words.next().unwrap().to_uppercase();
    let path = words.next().unwrap().to_owned();
    let message = serde_json::from_slice(&body).unwrap_or_default();
    Some((path, method, message))
}

fn reply(request: &Value, result: Value) -> Vec<u8> {
    let body = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string();
    whole("200 OK", "application/json", &body)
}

fn whole(status: &str, media_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

async fn answered(
    answer: impl Fn(&Value) -> Vec<u8> + Send + Sync + 'static,
) -> Result<String, McpError> {
    let (address, serving) = hostile(Box::new(answer)).await;
    let connection = open(transport(address, HeaderMap::new(), None), Era::Initialize)
        .await
        .unwrap();
    let answer = call(&connection, "a").await;
    connection.close().await;
    serving.abort();
    answer
}

#[tokio::test]
async fn an_older_server_that_answers_what_it_does_not_know_with_nothing_is_used() {
    let (address, serving) = hostile(Box::new(|request| match request["method"].as_str() {
        Some("tools/call") => reply(
            request,
            json!({ "content": [{ "type": "text", "text": "works" }] }),
        ),
        _ => reply(request, json!({})),
    }))
    .await;
    let connection = open(transport(address, HeaderMap::new(), None), Era::Auto)
        .await
        .unwrap();
    assert_eq!(connection.info().protocol, "2025-11-25");
    assert_eq!(call(&connection, "a").await.unwrap(), "works");
    connection.close().await;
    serving.abort();
}

/// A server with sessions that notes what it answers, in order. The request for its stream it answers late.
async fn noted(stream: &mut TcpStream, noted: &Mutex<Vec<String>>) {
    while let Some((method, message)) = request(stream).await {
        let asked = message["method"].as_str().unwrap_or(&method).to_owned();
        let bytes = match asked.as_str() {
            "initialize" => {
                let body =
                    json!({ "jsonrpc": "2.0", "id": message["id"], "result": initialized() });
                let body = body.to_string();
                let length = body.len();
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\nContent-Length: {length}\r\n\r\n{body}"
                )
                .into_bytes()
            }
            "GET" => {
                // Whatever else was sent meanwhile is read by then.
                for _turn in 0..100 {
                    tokio::task::yield_now().await;
                }
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: open\n\n".to_vec()
            }
            "tools/call" => reply(&message, json!({ "content": [] })),
            _ => b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_vec(),
        };
        noted.lock().unwrap().push(asked);
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn requests_wait_until_the_server_can_speak_unasked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&order);
    let serving = run(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let heard = Arc::clone(&heard);
            drop(run(async move { noted(&mut stream, &heard).await }));
        }
    });
    let transport = transport(address, HeaderMap::new(), None);
    let connection = open(transport, Era::Initialize).await.unwrap();
    call(&connection, "a").await.unwrap();
    connection.close().await;
    serving.abort();
    let order = order.lock().unwrap();
    assert_eq!(
        order[..4],
        [
            "initialize",
            "notifications/initialized",
            "GET",
            "tools/call"
        ]
    );
}

#[tokio::test]
async fn statuses_are_told_apart() {
    let limited = answered(|_| {
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n".to_vec()
    })
    .await;
    let limited = limited.unwrap_err();
    assert_eq!(
        limited,
        McpError::Http {
            status: 429,
            retry_after_ms: Some(7_000)
        }
    );
    let words = limited.to_string();
    assert!(words.ends_with("it can be asked again in 7 s"), "{words}");
    let broken = answered(|_| whole("503 Service Unavailable", "text/html", "<html>")).await;
    assert_eq!(
        broken.unwrap_err(),
        McpError::Http {
            status: 503,
            retry_after_ms: None
        }
    );
    let moved = answered(|_| {
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
            .to_vec()
    })
    .await;
    assert_eq!(
        moved.unwrap_err(),
        McpError::Moved {
            status: 302,
            url: "http://169.254.169.254/".to_owned()
        }
    );
    let broken_off = answered(|_| {
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n{\"jsonrpc\":".to_vec()
    })
    .await;
    assert!(
        matches!(broken_off, Err(McpError::Unreachable(_))),
        "{broken_off:?}"
    );
    let said = answered(|request| {
        let body = json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": -32602, "message": "no" } });
        whole("400 Bad Request", "application/json", &body.to_string())
    })
    .await;
    assert!(matches!(
        said.unwrap_err(),
        McpError::ToolCall {
            rpc_code: -32602,
            ..
        }
    ));
}

/// Answers at `/mcp/`, and elsewhere with a redirect to `location`.
async fn redirecting(location: &'static str) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = run(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            drop(run(async move {
                while let Some((path, _, message)) = placed_request(&mut stream).await {
                    let bytes = match (path.as_str(), message["method"].as_str()) {
                        ("/mcp/", Some("initialize")) => reply(&message, initialized()),
                        ("/mcp/", Some("tools/call")) => reply(
                            &message,
                            json!({ "content": [{ "type": "text", "text": "works" }] }),
                        ),
                        ("/mcp/", _) => {
                            b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_vec()
                        }
                        _ => format!(
                            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
                        )
                        .into_bytes(),
                    };
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
            }));
        }
    });
    (address, serving)
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host_and_named_elsewhere() {
    for (location, named) in [
        ("/mcp/", None),
        ("/there", Some("/there")),
        ("https://example.org/mcp", Some("`https://example.org/mcp`")),
    ] {
        let (address, serving) = redirecting(location).await;
        let opened = open(transport(address, HeaderMap::new(), None), Era::Initialize).await;
        match (opened, named) {
            (Ok(connection), None) => {
                assert_eq!(call(&connection, "a").await.unwrap(), "works");
                connection.close().await;
            }
            (Err(error @ McpError::Moved { status: 307, .. }), Some(named)) => {
                assert!(error.to_string().contains(named), "{error}");
            }
            (opened, named) => panic!("{location}: {opened:?}, {named:?}"),
        }
        serving.abort();
    }
}

#[tokio::test]
async fn what_is_no_answer_is_refused() {
    for (media_type, body) in [
        ("text/html", "<html>"),
        ("application/json", "[]"),
        ("application/json", "{"),
    ] {
        let error = answered(move |_| whole("200 OK", media_type, body))
            .await
            .unwrap_err();
        assert!(matches!(error, McpError::BadAnswer(_)), "{error:?}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let long = |media_type: &str, first: &str| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n\r\n{first}");
        [head.into_bytes(), vec![b'x'; 40 << 20]].concat()
    };
    let whole = answered(move |_| long("application/json", "{\"a\":\""))
        .await
        .unwrap_err();
    assert!(matches!(whole, McpError::BadAnswer(_)), "{whole:?}");
    let (address, serving) = hostile(Box::new(move |_| long("text/event-stream", "data: "))).await;
    let connection = open(transport(address, HeaderMap::new(), None), Era::Initialize)
        .await
        .unwrap();
    let control = CallControl {
        timeout: Some(Duration::from_secs(2)),
        ..CallControl::default()
    };
    let error = connection.call("a", Map::new(), control).await.unwrap_err();
    assert_ne!(error.code(), None, "{error}");
    connection.close().await;
    serving.abort();
}

#[tokio::test]
async fn garbage_among_events_is_skipped() {
    let text = answered(|request| {
        let result = json!({ "content": [{ "type": "text", "text": "works" }] });
        let body = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        let events =
            format!(": comment\n\ndata: garbage\n\nevent: other\ndata: {{}}\n\ndata: {body}\n\n");
        whole("200 OK", "text/event-stream", &events)
    })
    .await;
    assert_eq!(text.unwrap(), "works");
}
