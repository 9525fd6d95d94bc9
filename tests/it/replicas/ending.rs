//! How a replica ends: it finishes what runs, and lets nothing begin.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::Place;
use crate::mcp_ends::{Sleep, waits_until};
use crate::mcp_http_client::{HttpServer, Reply};

fn is_ready(server: &HttpServer) -> bool {
    server.request("GET /readyz", "", "").status == 200
}

#[test]
fn a_signal_lets_calls_end_and_none_begin() {
    let place = Place::new();
    let time = [
        "--allow",
        "bash",
        "--set",
        "mcp.serve.drain_timeout_secs=60",
    ];
    let server = place.replica("one", &time);
    assert!(is_ready(&server));
    let wait =
        json!({"command": "touch begun; until [ -e go ]; do sleep 0.05; done; echo finished"});
    let running = server.begin_call("", "bash", &wait);
    let session = server.open_session("");
    let stream = server.begin("GET /mcp", &session, "");
    waits_until("it runs", || place.product.work.join("begun").exists());
    server.signal(Signal::TERM);
    waits_until("it is not ready", || !is_ready(&server));
    let reply = server.call("", "list_directory", &json!({"path": "."}));
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(reply.head.contains("retry-after: "), "{reply:?}");
    let metrics = server.request("GET /metrics", "", "").body;
    assert!(metrics.contains("zeph_mcp_draining 1"), "{metrics}");
    assert!(
        metrics.contains("zeph_mcp_replica_info{replica=\"one\"} 1"),
        "{metrics}"
    );
    // A stream that would never end does, with its last chunk.
    let stream = Reply::read(stream);
    assert_eq!(stream.status, 200, "{stream:?}");
    assert!(stream.body.ends_with("0\r\n\r\n"), "{stream:?}");
    fs::write(place.product.work.join("go"), "").unwrap();
    assert!(Reply::read(running).body.contains("finished"));
    assert_eq!(server.ended().code(), Some(143));
}

#[test]
fn a_second_signal_ends_at_once() {
    let place = Place::new();
    let time = [
        "--allow",
        "bash",
        "--set",
        "mcp.serve.drain_timeout_secs=600",
    ];
    let server = place.replica("one", &time);
    let sleep = Sleep::new();
    let running = server.begin_call("", "bash", &sleep.command());
    sleep.begins();
    server.signal(Signal::TERM);
    waits_until("it is not ready", || !is_ready(&server));
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(143));
    // Its command was still running: nothing of the ten minutes was waited for.
    sleep.ends();
    drop(running);
}
