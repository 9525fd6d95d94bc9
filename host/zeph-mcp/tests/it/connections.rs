//! Many connections, and ones that never say anything.

use serde_json::json;

use crate::server::Served;
use crate::wire::{POST, Wire, bearer, call_tool, get, message, meta, request};

#[tokio::test]
async fn a_thousand_idle_connections_do_not_stop_the_next_call() {
    let served = Served::start().await;
    let mut idle = Vec::new();
    for n in 0..1_000 {
        let mut wire = Wire::open(served.address).await;
        // Some say nothing, some begin to say something.
        if n % 2 == 0 {
            wire.send("POST /mcp HTTP/1.1\r\nhost: lo").await;
        }
        idle.push(wire);
    }
    assert_eq!(call_tool(served.address, "", "who").await.status, 200);
    let metrics = get(served.address, "/metrics", "").await.body;
    let (_, rest) = metrics.split_once("\nzeph_mcp_connections ").unwrap();
    let n: usize = rest.lines().next().unwrap().parse().unwrap();
    assert!(n <= 512, "{n}");
}

#[tokio::test]
async fn requests_that_are_not_let_in_keep_nobody_out() {
    let served = Served::start().await;
    let token = bearer(&served.tokens.add("ci", |_| {}));
    let foreign = POST.replace("localhost", "example.com");
    let slow = format!("{POST}{token}");
    let mut waiting = Vec::new();
    // Without a token, under a foreign name, and with a body that does not come.
    for n in 0..900 {
        let head = [POST, &foreign, &slow][n % 3];
        let mut wire = Wire::open(served.address).await;
        wire.send(format!("{head}content-length: 4000\r\n\r\n"))
            .await;
        waiting.push(wire);
    }
    assert_eq!(call_tool(served.address, &token, "who").await.status, 200);
    for path in ["/readyz", "/healthz"] {
        assert_eq!(get(served.address, path, "").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_connection_that_reads_the_metrics_is_kept() {
    let served = Served::start().await;
    let token = bearer(&served.tokens.add("scraper", |_| {}));
    let scrape = format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\n{token}\r\n");
    let mut scraper = Wire::open(served.address).await;
    let mut idle = Vec::new();
    for n in 0..900 {
        // Others have been idle for longer, however long its connection is there.
        if n % 200 == 0 {
            scraper.send(&scrape).await;
            scraper.read_until("zeph_mcp_draining 0").await;
        }
        idle.push(Wire::open(served.address).await);
    }
    scraper.send(&scrape).await;
    scraper.read_until("zeph_mcp_draining 0").await;
}

#[tokio::test]
async fn the_streams_of_a_caller_are_bounded() {
    let served = Served::start().await;
    let own = ["ann", "bob"].map(|name| bearer(&served.tokens.add(name, |_| {})));
    let filter = json!({ "_meta": meta(), "notifications": { "toolsListChanged": true } });
    let body = message(1, "subscriptions/listen", &filter);
    let head = format!(
        "{POST}mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\ncontent-length: {}\r\n",
        body.len()
    );
    let listen = async |token: &str| {
        let mut wire = Wire::open(served.address).await;
        wire.send(format!("{head}{token}\r\n{body}")).await;
        let status = wire.read_until("\r\n").await;
        (status, wire)
    };
    let mut streams = Vec::new();
    for _ in 0..128 {
        let (status, wire) = listen(&own[0]).await;
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        streams.push(wire);
    }
    let (refused, _) = listen(&own[0]).await;
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    let (other, _stream) = listen(&own[1]).await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
    // Its calls are answered as before.
    let list = message(1, "tools/list", &json!({ "_meta": meta() }));
    let head = format!("{POST}mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n");
    let reply = request(served.address, &format!("{head}{}", own[0]), &list).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}
