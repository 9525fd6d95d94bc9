//! Who may use the server over HTTP, and clients that misbehave.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mcp_client::modern_meta;
use crate::mcp_ends::{Sleep, waits_until};
use crate::mcp_http_client::{HttpServer, Reply, add_token, message, modern_call};
use crate::product::Product;

fn listing() -> Value {
    json!({ "path": "." })
}

/// Whether a call works, and so whether all that a test did to the server before is over.
#[track_caller]
fn works(server: &HttpServer, headers: &str) {
    let reply = server.call(headers, "list_directory", &listing());
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.result()["isError"], false, "{reply:?}");
}

fn last_record(product: &Product) -> Value {
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    records.last().expect("a call").clone()
}

#[test]
fn a_token_is_needed_from_its_making_on_without_a_restart() {
    let product = Product::new();
    let server = HttpServer::start(&product, &[]);
    works(&server, "");
    let token = add_token(
        &product,
        &[
            "ci",
            "--tools",
            "list_*",
            "--expires",
            "30d",
            "--rate",
            "100",
        ],
    );
    let reply = server.call("", "list_directory", &listing());
    assert_eq!(reply.status, 401);
    assert!(reply.head.contains("www-authenticate: bearer"), "{reply:?}");
    works(&server, &token);
    waits_until("it is recorded", || {
        last_record(&product)["caller_id"] == "ci"
    });
    let reply = server.call(&token, "read", &json!({ "path": "a" }));
    let category = reply.result()["structuredContent"]["error"]["category"].clone();
    assert_eq!(category, "policy_blocked", "{reply:?}");
    waits_until("what a token does not allow is recorded", || {
        let record = last_record(&product);
        record["tool"] == "read"
            && record["caller_id"] == "ci"
            && record["error_category"] == "policy_blocked"
    });

    // The names of other tools are not for this caller.
    let unknown = format!("{:?}", server.call(&token, "nosuch", &json!({})));
    let is_told = unknown.contains("no tool is named `nosuch`; there are: list_directory");
    assert!(is_told && !unknown.contains("bash"), "{unknown}");

    let again = product.run(&["token", "add", "ci"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(2), ""));
    let listed: Value = serde_json::from_str(&product.run(&["token", "--json"]).stdout).unwrap();
    assert_eq!(listed[0]["name"], "ci");
    assert_eq!(
        (&listed[0]["tools"], &listed[0]["rate"]),
        (&json!(["list_*"]), &json!(100))
    );
    let secret = token.trim_end().rsplit(' ').next().unwrap();
    assert!(!listed.to_string().contains(secret));
    assert!(
        !holds(&product.home, secret.as_bytes()),
        "the token is stored"
    );

    assert_eq!(product.run(&["token", "revoke", "ci"]).code, Some(0));
    for headers in [token.as_str(), ""] {
        let reply = server.call(headers, "list_directory", &listing());
        assert_eq!(reply.status, 401, "{headers}");
    }
    assert_eq!(product.run(&["token", "revoke", "ci"]).code, Some(2));
}

/// Whether a file below `folder` holds `text`.
fn holds(folder: &std::path::Path, text: &[u8]) -> bool {
    fs::read_dir(folder)
        .unwrap()
        .flatten()
        .any(|entry| match entry.path() {
            path if path.is_dir() => holds(&path, text),
            path => {
                fs::read(path).is_ok_and(|bytes| bytes.windows(text.len()).any(|it| it == text))
            }
        })
}

/// The answer to what a call asked belongs to a call that was counted, and to the conversation that the call began.
#[test]
fn an_answer_is_no_further_call_of_its_token() {
    let product = Product::new();
    product.file("a", "");
    let token = add_token(&product, &["ci", "--rate", "1"]);
    let server = HttpServer::start(&product, &[]);
    let call = |round: &Value| {
        let meta = modern_meta(&json!({"elicitation": {}}));
        let mut params =
            json!({ "name": "delete_path", "arguments": {"path": "a"}, "_meta": meta });
        params
            .as_object_mut()
            .unwrap()
            .extend(round.as_object().unwrap().clone());
        let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: delete_path\r\n";
        let body = message("tools/call", &params);
        server
            .request("POST /mcp", &format!("{token}{headers}"), &body)
            .result()
    };
    let asked = call(&json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let handle = &asked["_meta"]["zeph.host/conversation"];
    assert!(handle.is_string(), "{asked}");
    // One that brings no answer is a call.
    let again = call(&json!({"requestState": asked["requestState"]}));
    assert!(again.to_string().contains("rate_limited"), "{again}");
    let accept = json!({"action": "accept", "content": {}});
    let round =
        json!({"requestState": asked["requestState"], "inputResponses": {"approval": accept}});
    let done = call(&round);
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(&done["_meta"]["zeph.host/conversation"], handle, "{done}");
    assert!(!product.work.join("a").exists());
}

/// Nobody would have it, while it shut an open server and took its name.
#[test]
fn a_token_that_cannot_be_printed_is_none() {
    let product = Product::new();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let added = product
        .command(&["token", "add", "ci"])
        .stdout(full)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&added.stderr).into_owned();
    assert_eq!(added.status.code(), Some(1), "{said}");
    assert!(said.contains("no token was made"), "{said}");
    assert_eq!(product.run(&["token", "--json"]).stdout.trim(), "[]");
    add_token(&product, &["ci"]);
}

#[test]
fn any_other_address_needs_a_token_to_start() {
    let product = Product::new();
    let refused = product.run(&["serve", "--http", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("without a token"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("zeph-host token add"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_token_revoked_while_in_use_ends_what_it_runs() {
    let product = Product::new();
    let server = HttpServer::start(&product, &["--allow", "bash"]);
    let token = add_token(&product, &["ci"]);
    let other = add_token(&product, &["other"]);
    let session = server.open_session(&token);
    let (modern, legacy, others) = (Sleep::new(), Sleep::new(), Sleep::new());
    let first = server.begin_call(&token, "bash", &modern.command());
    let params = json!({ "name": "bash", "arguments": legacy.command() });
    let body = message("tools/call", &params);
    let second = server.begin("POST /mcp", &format!("{token}{session}"), &body);
    let third = server.begin_call(&other, "bash", &others.command());
    for sleep in [&modern, &legacy, &others] {
        sleep.begins();
    }
    assert_eq!(product.run(&["token", "revoke", "ci"]).code, Some(0));
    modern.ends();
    legacy.ends();
    for stream in [first, second] {
        assert!(!Reply::read(stream).body.contains("\"isError\":false"));
    }
    let reply = server.request(
        "POST /mcp",
        &format!("{token}{session}"),
        &message("tools/list", &json!({})),
    );
    assert_eq!(reply.status, 401, "{reply:?}");
    assert!(others.is_there());
    // A client that goes away ends its command as well.
    drop(third);
    others.ends();
    works(&server, &other);
}

#[test]
fn what_belongs_to_another_caller_does_not_exist() {
    let product = Product::new();
    let server = HttpServer::start(&product, &[]);
    let (alice, bob) = (
        add_token(&product, &["alice"]),
        add_token(&product, &["bob"]),
    );
    let session = server.open_session(&alice);
    let list = message("tools/list", &json!({}));
    for method in ["POST /mcp", "GET /mcp", "DELETE /mcp"] {
        let reply = server.request(method, &format!("{bob}{session}"), &list);
        assert_eq!(reply.status, 404, "{method}: {reply:?}");
    }
    assert_eq!(
        server
            .request("POST /mcp", &format!("{alice}{session}"), &list)
            .status,
        200
    );

    let result = server.call(&alice, "list_directory", &listing()).result();
    let handle = result["_meta"]["zeph.host/conversation"].clone();
    assert!(handle.is_string(), "{result}");
    let mut meta = modern_meta(&json!({}));
    meta["zeph.host/conversation"] = handle.clone();
    for (token, is_known) in [(&alice, true), (&bob, false)] {
        let (headers, body) = modern_call("list_directory", &listing(), &meta);
        let reply = server.request("POST /mcp", &format!("{token}{headers}"), &body);
        assert_eq!(
            reply.body.contains("\"isError\":false"),
            is_known,
            "{reply:?}"
        );
    }
}

#[test]
fn a_thousand_idle_connections_do_not_stop_the_next_call() {
    let product = Product::new();
    let server = HttpServer::start(&product, &[]);
    let mut idle = Vec::new();
    for n in 0..1_000 {
        let mut stream = server.connect();
        if n % 2 == 0 {
            stream.write_all(b"POST /mcp HTTP/1.1\r\nho").unwrap();
        }
        idle.push(stream);
    }
    works(&server, "");
    drop(idle);
    works(&server, "");
}

#[test]
fn bodies_are_bounded_in_size_and_time() {
    let product = Product::new();
    let server = HttpServer::start(&product, &[]);
    let head = |length: usize| {
        format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let mut slow = server.connect();
    slow.write_all(head(100).as_bytes()).unwrap();
    slow.write_all(b"{").unwrap();

    let mut large = server.connect();
    large.write_all(head(100 << 20).as_bytes()).unwrap();
    let part = vec![b' '; 1 << 20];
    for _ in 0..100 {
        drop(large.write_all(&part));
    }
    let reply = Reply::read(large);
    assert_eq!(reply.status, 413, "{reply:?}");
    assert!(reply.body.contains("mcp.serve.max_body_bytes"), "{reply:?}");
    works(&server, "");

    assert_eq!(Reply::read(slow).status, 408);
    works(&server, "");
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let product = Product::new();
    let server = HttpServer::start(&product, &["--allow-host", "tools.example.com"]);
    for (names, status) in [
        ("host: evil.example", 403),
        ("host: localhost\r\norigin: https://evil.example", 403),
        ("host: localhost\r\norigin: null", 403),
        (
            "host: tools.example.com\r\norigin: https://tools.example.com",
            200,
        ),
        ("host: localhost", 200),
    ] {
        let mut stream = server.connect();
        let request = format!("GET /readyz HTTP/1.1\r\n{names}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        assert_eq!(Reply::read(stream).status, status, "{names}");
    }
}

#[test]
fn a_signal_lets_calls_finish_and_ends_the_others() {
    let product = Product::new();
    let server = HttpServer::start(&product, &["--allow", "bash"]);
    let sleep = Sleep::new();
    let endless = server.begin_call("", "bash", &sleep.command());
    let marker = product.work.join("go");
    let command =
        json!({ "command": "echo > begun; until test -e go; do sleep 0.05; done; echo finished" });
    let finishing = server.begin_call("", "bash", &command);
    sleep.begins();
    waits_until("it runs", || product.work.join("begun").exists());
    server.signal(Signal::TERM);
    waits_until("nothing begins", || {
        server.request("GET /readyz", "", "").status == 503
    });
    let reply = server.call("", "list_directory", &listing());
    assert_eq!(reply.status, 503, "{reply:?}");
    fs::write(marker, "").unwrap();
    assert!(Reply::read(finishing).body.contains("finished"));
    // It began: no balancer may send it once more, as it would after a 503.
    assert_eq!(Reply::read(endless).status, 500);
    sleep.ends();
    assert_eq!(server.ended().code(), Some(143));
    let unfinished = product.run(&["audit", "query", "--unfinished", "--json"]);
    assert_eq!(unfinished.stdout, "");
}

#[test]
fn operators_see_what_happens() {
    let product = Product::new();
    let server = HttpServer::start(&product, &[]);
    works(&server, "");
    assert_eq!(
        server.call("", "read", &json!({ "path": "none" })).status,
        200
    );
    assert_eq!(server.call("", "made_up", &json!({})).status, 200);
    let token = add_token(&product, &["ci"]);
    assert_eq!(server.request("GET /metrics", "", "").status, 401);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.request(&format!("GET {path}"), "", "").status, 200);
    }
    // The server may hear of the end of earlier connections a little later.
    let answers = std::iter::repeat_with(|| server.request("GET /metrics", &token, "").body);
    let is_alone = |metrics: &String| metrics.lines().any(|line| line == "zeph_mcp_connections 1");
    let metrics = answers.take(1_000).find(is_alone);
    let metrics = metrics.expect("every other connection has ended");
    for line in [
        r#"zeph_mcp_tool_calls_total{tool="list_directory",outcome="ok"} 1"#,
        r#"zeph_mcp_tool_call_duration_seconds_count{tool="read"} 1"#,
        r#"zeph_mcp_tool_call_duration_seconds_count{tool="list_directory"} 1"#,
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
    assert!(!metrics.contains("made_up") && !metrics.contains(r#"{tool="read",outcome="ok"}"#));
}

#[test]
fn a_stream_of_a_session_stays_open() {
    let product = Product::new();
    let server = HttpServer::start(&product, &[]);
    let session = server.open_session("");
    let mut stream = server.begin("GET /mcp", &session, "");
    let mut read = vec![0; 12];
    stream.read_exact(&mut read).unwrap();
    assert_eq!(read, b"HTTP/1.1 200");
    works(&server, "");
}

/// What waits to be written to it would be held for ever.
#[test]
fn a_client_that_does_not_read_is_let_go() {
    let product = Product::new();
    let server = HttpServer::start(&product, &[]);
    let mut deaf = server.connect();
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    let many = request.repeat(1_000);
    // Until no answer fits between them any more, and then until the server has had enough.
    let refused = (0..1_000_000).find_map(|_| deaf.write_all(many.as_bytes()).err());
    let refused = refused.expect("the connection is closed");
    // And not that the test itself had enough.
    assert_ne!(refused.kind(), ErrorKind::WouldBlock, "{refused}");
    waits_until("its place is free", || {
        let metrics = server.request("GET /metrics", "", "").body;
        metrics.lines().any(|line| line == "zeph_mcp_connections 1")
    });
    works(&server, "");
}

#[test]
fn large_requests_together_are_bounded_and_small_ones_still_served() {
    let product = Product::new();
    let server = HttpServer::start(&product, &["--set", "mcp.serve.max_body_bytes=1048576"]);
    // Each is one byte short of its end.
    let half_sent = |_| {
        let mut stream = server.connect();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: 1048576\r\n\r\n",
            server.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![b' '; 1_048_575]).unwrap();
        stream
    };
    let large: Vec<_> = (0..17).map(half_sent).collect();
    let content = "x".repeat(1_000_000);
    let echo = json!({ "path": "a.txt", "content": content });
    waits_until("there is no room", || {
        let reply = server.call("", "write", &echo);
        reply.status == 503 && reply.body.contains("no room")
    });
    works(&server, "");
    drop(large);
    waits_until("there is room again", || {
        server.call("", "write", &echo).status == 200
    });
}
