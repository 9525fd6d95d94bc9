//! Bodies that are too large, too slow, or no message: one clear answer each, and the next call works.

use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{BODY_BYTES_MAX, Served};
use crate::wire::{POST, Reply, Wire, call, call_tool, message, request};

fn code(reply: &Reply) -> Option<i64> {
    let body: Value = serde_json::from_str(&reply.body).ok()?;
    body["error"]["code"].as_i64()
}

#[tokio::test]
async fn what_is_no_message_has_an_error_of_its_own() {
    let served = Served::start().await;
    let (new, body) = call("who", &json!({}));
    let cases = [
        (POST.to_owned(), "{".to_owned(), 400, -32_700),
        (POST.to_owned(), String::new(), 400, -32_700),
        (POST.to_owned(), format!("[{body}]"), 400, -32_600),
        (POST.to_owned(), "[]".to_owned(), 400, -32_600),
        (POST.to_owned(), "17".to_owned(), 400, -32_600),
        (POST.to_owned(), body.replace("2.0", "1.0"), 400, -32_600),
        // Header and body disagree.
        (
            new.replace("mcp-name: who", "mcp-name: other"),
            body.clone(),
            400,
            -32_020,
        ),
        (
            new.replace("tools/call", "tools/list"),
            body.clone(),
            400,
            -32_020,
        ),
        (
            new.replace("mcp-name: who\r\n", ""),
            body.clone(),
            400,
            -32_020,
        ),
        // A proxy may have read the other one.
        (
            format!("{new}mcp-name: other\r\n"),
            body.clone(),
            400,
            -32_600,
        ),
        (
            format!("{new}mcp-session-id: a\r\nmcp-session-id: b\r\n"),
            body.clone(),
            400,
            -32_600,
        ),
        // A revision nobody knows.
        (
            new.replace("2026-07-28", "2099-01-01"),
            body.replace("2026-07-28", "2099-01-01"),
            400,
            -32_022,
        ),
    ];
    for (head, body, status, expect) in cases {
        let reply = request(served.address, &head, &body).await;
        assert_eq!(
            (reply.status, code(&reply)),
            (status, Some(expect)),
            "{body}: {reply:?}"
        );
        assert_eq!(call_tool(served.address, "", "who").await.status, 200);
    }
    let (head, body) = call("who", &json!({}));
    for (head, body, status) in [
        (
            head.replace("application/json\r\n", "text/plain\r\n"),
            body.clone(),
            415,
        ),
        (
            head.replace(
                "accept: application/json, text/event-stream",
                "accept: text/html",
            ),
            body.clone(),
            406,
        ),
        (head.replace("POST", "PUT"), body, 405),
        (POST.to_owned(), message(1, "tools/list", &json!({})), 400),
    ] {
        let reply = request(served.address, &head, &body).await;
        assert_eq!(reply.status, status, "{head}: {reply:?}");
    }
    let (head, body) = call("who", &json!({}));
    let head = head
        .replace("tools/call", "no/such")
        .replace("mcp-name: who\r\n", "");
    let reply = request(
        served.address,
        &head,
        &body.replace("tools/call", "no/such"),
    )
    .await;
    assert!(reply.body.contains("-32601"), "{reply:?}");
}

/// A client waits for the answer to its request, also where it is refused before the protocol sees it.
#[tokio::test]
async fn a_refusal_names_the_request() {
    let served = Served::start_with(|options| {
        options.replica = Some("one".to_owned());
        options.patience.body_part = Duration::from_millis(300);
    })
    .await;
    let (head, body) = call("who", &json!({}));
    let deep = json!({ "a": "DEEP" }).to_string();
    let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let cases = [
        (head.clone(), body.replace("2.0", "1.0"), 400, -32_600),
        (
            format!("{head}mcp-name: other\r\n"),
            body.clone(),
            400,
            -32_600,
        ),
        (
            format!("{head}mcp-session-id: two.x\r\n"),
            body.clone(),
            404,
            -32_001,
        ),
        (
            head.clone(),
            body.replace("{}", &deep).replace(r#""DEEP""#, &nested),
            400,
            -32_700,
        ),
        (
            POST.to_owned(),
            message(1, "tools/list", &json!([1])),
            400,
            -32_602,
        ),
    ];
    for (head, body, status, expect) in cases {
        let reply = request(served.address, &head, &body).await;
        let read: Value = serde_json::from_str(&reply.body).unwrap();
        let got = (reply.status, code(&reply), read["id"].as_u64());
        assert_eq!(got, (status, Some(expect), Some(1)), "{body}: {reply:?}");
    }
    // The rest of it does not come.
    let mut wire = Wire::open(served.address).await;
    let n_bytes = body.len() + 1;
    wire.send(format!("{head}content-length: {n_bytes}\r\n\r\n{body}"))
        .await;
    let reply = wire.reply().await;
    assert_eq!(reply.status, 408, "{reply:?}");
    assert!(reply.body.contains(r#""id":1"#), "{reply:?}");
}

#[tokio::test]
async fn a_body_is_bounded_however_its_length_is_told() {
    let served = Served::start().await;
    let large = "x".repeat(100 << 20);
    // Told before, and sent as well.
    let mut wire = Wire::open(served.address).await;
    let head = format!(
        "{POST}connection: close\r\ncontent-length: {}\r\n\r\n",
        large.len()
    );
    wire.send_what_is_taken(head.as_bytes()).await;
    wire.send_what_is_taken(large.as_bytes()).await;
    let reply = wire.reply().await;
    assert_eq!(
        (reply.status, code(&reply)),
        (413, Some(-32_600)),
        "{reply:?}"
    );
    assert!(!reply.body.contains(r#""id""#), "{reply:?}");
    // Told before; the client waits for leave to send it.
    let mut wire = Wire::open(served.address).await;
    let head = format!(
        "{POST}expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        large.len()
    );
    assert!(
        wire.send(head)
            .await
            .read_until("\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 413")
    );
    // Not told at all.
    let mut wire = Wire::open(served.address).await;
    let head = format!("{POST}connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
    wire.send(head).await;
    for _ in 0..8 {
        wire.send_what_is_taken(format!("400\r\n{}\r\n", &large[..1_024]).as_bytes())
            .await;
    }
    wire.send_what_is_taken(b"0\r\n\r\n").await;
    assert_eq!(wire.reply().await.status, 413);
    // As large as is allowed.
    let (head, body) = call("who", &json!({ "a": "" }));
    let padded = body.replace(
        r#""a":"""#,
        &format!(r#""a":"{}""#, "x".repeat(BODY_BYTES_MAX - body.len())),
    );
    assert_eq!(padded.len(), BODY_BYTES_MAX);
    assert_eq!(request(served.address, &head, &padded).await.status, 200);
    let reply = request(served.address, &head, &format!("{padded} ")).await;
    assert_eq!(reply.status, 413);
    assert!(reply.body.contains(r#""id":1"#), "{reply:?}");
}

#[tokio::test]
async fn a_body_that_comes_slowly_is_given_up() {
    let served = Served::start_with(|options| {
        options.patience.body_part = Duration::from_millis(300);
        options.patience.body = Duration::from_millis(900);
    })
    .await;
    // Nothing more comes.
    let mut wire = Wire::open(served.address).await;
    wire.send(format!("{POST}content-length: 10\r\n\r\n{{"))
        .await;
    let reply = wire.reply().await;
    assert_eq!(
        (reply.status, code(&reply)),
        (408, Some(-32_600)),
        "{reply:?}"
    );
    // Something comes again and again, and never the end.
    let mut wire = Wire::open(served.address).await;
    wire.send(format!("{POST}content-length: 1000\r\n\r\n"))
        .await;
    let dripping = async {
        loop {
            wire.send_what_is_taken(b" ").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    drop(tokio::time::timeout(Duration::from_millis(1_500), dripping).await);
    assert_eq!(wire.reply().await.status, 408);
    // The client goes in the middle.
    let mut wire = Wire::open(served.address).await;
    wire.send(format!("{POST}content-length: 1000\r\n\r\n{{"))
        .await;
    drop(wire);
    assert_eq!(call_tool(served.address, "", "who").await.status, 200);
}
