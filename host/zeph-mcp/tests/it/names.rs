//! Foreign hosts and origins.

use serde_json::json;

use crate::server::Served;
use crate::wire::{call, request};

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_on_every_path() {
    let served = Served::start().await;
    let own = format!("http://localhost:{}", served.address.port());
    let table = [
        ("host: localhost\r\n", 200),
        ("host: evil.example\r\n", 403),
        ("host: localhost.evil.example\r\n", 403),
        ("host: localhost\r\norigin: https://evil.example\r\n", 403),
        ("host: localhost\r\norigin: null\r\n", 403),
        ("host: localhost\r\nhost: evil.example\r\n", 400),
        ("", 400),
        (&format!("host: localhost\r\norigin: {own}\r\n"), 200),
    ];
    for (headers, expect) in table {
        for path in ["/healthz", "/metrics"] {
            let head = format!("GET {path} HTTP/1.1\r\n{headers}");
            let reply = request(served.address, &head, "").await;
            assert_eq!(reply.status, expect, "{path} {headers}: {reply:?}");
        }
        let (head, body) = call("who", &json!({}));
        let head = head.replace("host: localhost\r\n", headers);
        let reply = request(served.address, &head, &body).await;
        assert_eq!(reply.status, expect, "{headers}: {reply:?}");
    }
}

#[tokio::test]
async fn the_name_of_a_proxy_can_be_allowed() {
    let served =
        Served::start_with(|options| options.allowed_hosts = vec!["tools.example".to_owned()])
            .await;
    for (name, expect) in [
        ("tools.example", 200),
        ("localhost", 200),
        ("evil.example", 403),
    ] {
        let head = format!(
            "GET /healthz HTTP/1.1\r\nhost: {name}\r\norigin: https://{name}:{}\r\n",
            served.address.port()
        );
        assert_eq!(
            request(served.address, &head, "").await.status,
            expect,
            "{name}"
        );
    }
}
