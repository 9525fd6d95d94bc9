//! Many connections, and ones that never say anything.

use crate::server::Served;
use crate::wire::{Wire, call_tool, get};

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
