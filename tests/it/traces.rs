//! Spans of calls, as a collector on loopback gets them from the program itself.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::mcp_client::PATIENCE;
use crate::product::Product;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector that takes everything. Its address, and the head and the body of each request.
fn collector() -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (taken, requests) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let taken = taken.clone();
            thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Some(request) = read(&mut stream) {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                    if stream.get_mut().write_all(answer).is_err() || taken.send(request).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, requests)
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1)?.split('\r').next()?;
    let mut body = vec![0; length.parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).ok()?))
}

/// What a server says that is told these variables, and asked to read `file` in the trace of [`PARENT`].
fn read_by_mcp(product: &Product, variables: &[(&str, &str)], file: &str) -> Vec<Value> {
    let mut serve = product.command(&["serve"]);
    serve.envs(variables.iter().copied());
    let serve = serve.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = serve.stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answer = |id: u64| loop {
        let line = answers.next().expect("the server answers").unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == id {
            return message;
        }
    };
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let call =
        json!({"name": "read", "arguments": {"path": file}, "_meta": {"traceparent": PARENT}});
    let mut said = Vec::new();
    for (id, method, params) in [(1, "initialize", hello), (2, "tools/call", call)] {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{request}").unwrap();
        said.push(answer(id));
        if id == 1 {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            writeln!(stdin, "{note}").unwrap();
        }
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    said
}

fn spans(request: &Value) -> Vec<Value> {
    let spans = &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
    spans.as_array().unwrap().clone()
}

fn attribute(of: &Value, key: &str) -> Option<String> {
    let attributes = of["attributes"].as_array()?;
    let found = attributes.iter().find(|one| one["key"] == key)?;
    found["value"]["stringValue"].as_str().map(str::to_owned)
}

#[test]
fn a_call_over_mcp_is_a_span_of_the_callers_trace() {
    let product = Product::new();
    product.file("notes.txt", "what is written there\n");
    let (address, requests) = collector();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", address.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=of-the-collector"),
        ("OTEL_SERVICE_NAME", "desk"),
    ];
    let said = read_by_mcp(&product, &variables, "notes.txt");
    assert!(said[1].to_string().contains("what is written"), "{said:?}");
    let (head, body) = requests.recv_timeout(PATIENCE).unwrap();
    assert!(head.starts_with("post /v1/traces "), "{head}");
    assert!(head.contains("api-key: of-the-collector"), "{head}");
    let resource = &body["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "service.name").as_deref(), Some("desk"));
    let spans = spans(&body);
    let [span] = &spans[..] else {
        panic!("{body}");
    };
    assert_eq!(span["name"], "execute_tool read");
    assert_eq!(span["kind"], 2);
    assert_eq!(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(span["parentSpanId"], "b7ad6b7169203331");
    let method = attribute(span, "mcp.method.name");
    assert_eq!(method.as_deref(), Some("tools/call"));
    // What was read, and where, is not told unless the operator wants that.
    assert!(!body.to_string().contains("notes.txt"), "{body}");
    assert!(!body.to_string().contains("what is written"), "{body}");

    let failed = read_by_mcp(&product, &variables, "missing.txt");
    assert_eq!(failed[1]["result"]["isError"], true);
    let (_, body) = requests.recv_timeout(PATIENCE).unwrap();
    let span = &self::spans(&body)[0];
    assert_eq!(span["status"]["code"], 2, "{span}");
    let kind = attribute(span, "error.type");
    assert_eq!(kind.as_deref(), Some("tool_error"));
}

#[test]
fn nothing_is_sent_where_no_variable_asks_for_it() {
    let product = Product::new();
    product.file("notes.txt", "content\n");
    let (address, requests) = collector();
    for variables in [
        &[][..],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", address.as_str()),
            ("OTEL_SDK_DISABLED", "true"),
        ],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", address.as_str()),
            ("OTEL_TRACES_EXPORTER", "none"),
        ],
    ] {
        let said = read_by_mcp(&product, variables, "notes.txt");
        assert!(said[1].to_string().contains("content"), "{said:?}");
    }
    assert!(requests.try_recv().is_err());
}
