//! Spans against a collector on loopback.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use zeph_config::{Sampler, TelemetrySettings};
use zeph_core::network::{EgressLimits, EgressSettings};
use zeph_egress::Egress;

use super::super::context::{SpanContext, TraceParent};
use super::super::otlp::{SpanKind, SpanRecord};
use super::{Exporter, WAITING_MAX};

/// A collector that answers with the statuses in order, the last one again and again; without any it says nothing.
struct Collector {
    url: String,
    taken: Arc<Mutex<Vec<(String, Value)>>>,
    _tasks: JoinSet<()>,
}

impl Collector {
    async fn new(statuses: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let taken = Arc::<Mutex<Vec<_>>>::default();
        let (log, mut statuses) = (Arc::clone(&taken), statuses.to_vec());
        statuses.reverse();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                while let Ok(request) = read(&mut stream).await {
                    log.lock().unwrap().push(request);
                    let status = match statuses.len() {
                        0 => std::future::pending().await,
                        1 => statuses[0],
                        _ => statuses.pop().unwrap_or_default(),
                    };
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        break;
                    }
                }
            }
        });
        Self {
            url,
            taken,
            _tasks: tasks,
        }
    }

    fn taken(&self) -> Vec<(String, Value)> {
        self.taken.lock().unwrap().clone()
    }
}

/// Head and body of one request.
async fn read(stream: &mut TcpStream) -> io::Result<(String, Value)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split('\r').next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    Ok((head, serde_json::from_slice(&body).unwrap_or_default()))
}

fn exporter(collector: &Collector) -> Exporter {
    let second = Duration::from_secs(1);
    let egress = Egress::new(&EgressSettings {
        private: [].into(),
        proxy: None,
        ca_file: None,
        limits: EgressLimits {
            connect: second,
            header: second,
            idle: second,
            total: second,
            header_bytes: 64 * 1024,
            body_bytes: 64 * 1024,
            redirects: 3,
            requests: 8,
            connections: 1,
        },
    });
    let settings = TelemetrySettings {
        url: collector.url.clone(),
        headers: vec![("api-key".to_owned(), "k".to_owned())],
        timeout: Duration::from_secs(60),
        resource: vec![("service.name".to_owned(), "tests".to_owned())],
        captures_content: false,
        sampler: Sampler {
            follows_parent: true,
            ratio: 1.0,
        },
    };
    Exporter::start(&egress, settings).unwrap()
}

fn span(name: &str) -> SpanRecord {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let sampler = Sampler {
        follows_parent: true,
        ratio: 1.0,
    };
    SpanRecord {
        name: name.to_owned(),
        context: SpanContext::new(TraceParent::parse(parent), Some("a=b"), sampler).unwrap(),
        kind: SpanKind::Server,
        started_ms: 1_700_000_000_123,
        duration: Duration::from_micros(1_500),
        attributes: vec![("gen_ai.tool.name", "read".to_owned())],
        error: Some("it failed".to_owned()),
    }
}

#[tokio::test]
async fn spans_arrive_as_the_protocol_has_them() {
    let collector = Collector::new(&["200 OK"]).await;
    let exporter = exporter(&collector);
    for name in ["execute_tool read", "two"] {
        exporter.send(&span(name));
    }
    exporter.flush().await;
    exporter.send(&span("three"));
    exporter.flush().await;
    let taken = collector.taken();
    let [(head, body), (_, later)] = &taken[..] else {
        panic!("two requests: {taken:?}");
    };
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    for field in ["content-type: application/json\r\n", "api-key: k\r\n"] {
        assert!(head.contains(field), "{head}");
    }
    let of_resource = &body["resourceSpans"][0];
    assert_eq!(
        of_resource["resource"]["attributes"],
        json!([{ "key": "service.name", "value": { "stringValue": "tests" } }])
    );
    let spans = &of_resource["scopeSpans"][0]["spans"];
    assert_eq!(spans.as_array().map(Vec::len), Some(2), "{body}");
    let mut first = spans[0].clone();
    let id = first["spanId"].take();
    assert_eq!(id.as_str().map(str::len), Some(16));
    assert_eq!(
        first,
        json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": null,
            "parentSpanId": "b7ad6b7169203331",
            "traceState": "a=b",
            "name": "execute_tool read",
            "kind": 2,
            "startTimeUnixNano": "1700000000123000000",
            "endTimeUnixNano": "1700000000124500000",
            "attributes": [{ "key": "gen_ai.tool.name", "value": { "stringValue": "read" } }],
            "status": { "code": 2, "message": "it failed" },
        })
    );
    let third = &later["resourceSpans"][0]["scopeSpans"][0]["spans"];
    assert_eq!(third[0]["name"], "three");
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_nothing_else() {
    for (statuses, n_expected) in [
        (&["503 Busy", "429 Slow", "200 OK"][..], 3),
        (&["503 Busy"][..], 3),
        (&["400 Bad", "200 OK"][..], 1),
    ] {
        let collector = Collector::new(statuses).await;
        let exporter = exporter(&collector);
        exporter.send(&span("x"));
        exporter.flush().await;
        assert_eq!(collector.taken().len(), n_expected, "{statuses:?}");
    }
}

#[tokio::test]
async fn a_silent_collector_neither_delays_calls_nor_the_end() {
    let collector = Collector::new(&[]).await;
    let exporter = exporter(&collector);
    let started = Instant::now();
    for _ in 0..WAITING_MAX * 2 {
        exporter.send(&span("x"));
    }
    exporter.flush().await;
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(collector.taken().len() <= 1);
}
