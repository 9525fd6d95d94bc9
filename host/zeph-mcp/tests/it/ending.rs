//! The end of the endpoint.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use zeph_mcp::holdings::Holdings;

use crate::server::Served;
use crate::sessions::{begin_call, resume};
use crate::wire::{GET, Wire, call, call_tool, get, open_session};

async fn waiting(served: &Served) -> Wire {
    let (head, body) = call("wait", &json!({}));
    let mut wire = Wire::open(served.address).await;
    wire.send(format!(
        "{head}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
    .await;
    served.probe.runs(1).await;
    wire
}

#[tokio::test]
async fn calls_that_run_may_finish_and_none_begins() {
    let served = Served::start().await;
    let mut call = waiting(&served).await;
    let session = open_session(served.address, "").await;
    let mut stream = Wire::open(served.address).await;
    stream.send(format!("{GET}{session}\r\n")).await;
    stream.read_until("200 OK").await;
    served.stop.cancel();
    // What only waits ends at once.
    stream.read_until("0\r\n\r\n").await;
    let reply = call_tool(served.address, "", "who").await;
    assert!(
        reply.status == 503 && reply.head.contains("retry-after"),
        "{reply:?}"
    );
    assert!(reply.body.contains(r#""id":1"#), "{reply:?}");
    assert_eq!(get(served.address, "/readyz", "").await.status, 503);
    assert_eq!(get(served.address, "/healthz", "").await.status, 200);
    let metrics = get(served.address, "/metrics", "").await;
    assert_eq!(metrics.status, 200);
    assert!(
        metrics.body.contains("\nzeph_mcp_draining 1"),
        "{metrics:?}"
    );
    served.probe.released.add_permits(1);
    call.read_until("waited").await;
    served.ended().await;
}

/// A stream that was resumed before is that of a call, and one that breaks meanwhile can be resumed as at any time.
#[tokio::test]
async fn the_stream_of_a_call_that_runs_can_be_resumed() {
    for breaks_before in [true, false] {
        let served = Served::start().await;
        let session = open_session(served.address, "").await;
        let (wire, event) = begin_call(&served, &session).await;
        served.probe.runs(1).await;
        let stopped = async || {
            served.stop.cancel();
            while get(served.address, "/readyz", "").await.status != 503 {}
        };
        let mut resumed = if breaks_before {
            drop(wire);
            let mut resumed = resume(&served, &session, &event).await;
            resumed.read_until("200 OK").await;
            stopped().await;
            resumed
        } else {
            stopped().await;
            drop(wire);
            let mut resumed = resume(&served, &session, &event).await;
            resumed.read_until("200 OK").await;
            resumed
        };
        // No other stream begins.
        let mut other = Wire::open(served.address).await;
        other.send(format!("{GET}{session}\r\n")).await;
        other.read_until("503").await;
        served.probe.released.add_permits(1);
        resumed.read_until("waited").await;
        assert_eq!(*served.probe.cancelled.borrow(), 0);
        served.ended().await;
    }
}

#[tokio::test]
async fn calls_that_do_not_end_are_cancelled() {
    let served =
        Served::start_with(|options| options.patience.grace = Duration::from_millis(200)).await;
    let mut call = waiting(&served).await;
    let probe = served.probe.clone();
    served.stop.cancel();
    served.ended().await;
    probe.is_cancelled(1).await;
    let reply = call.read_to_end().await;
    assert!(
        reply.contains("500") && reply.contains(r#""id":1"#),
        "{reply}"
    );
}

#[tokio::test]
async fn what_works_beyond_its_request_may_finish() {
    let holdings = Arc::<Holdings>::default();
    let own = Arc::clone(&holdings);
    let served = Served::start_with(|options| options.holdings = own).await;
    let session = open_session(served.address, "").await;
    let mut stream = Wire::open(served.address).await;
    stream.send(format!("{GET}{session}\r\n")).await;
    stream.read_until("200 OK").await;
    let working = holdings.working();
    served.stop.cancel();
    stream.read_until("0\r\n\r\n").await;
    assert!(holdings.is_ending());
    assert_eq!(get(served.address, "/healthz", "").await.status, 200);
    drop(working);
    served.ended().await;
}
