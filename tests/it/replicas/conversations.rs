//! Conversations, approvals, outputs, tokens and sessions at two replicas.

use std::fs;

use serde_json::{Value, json};

use super::{HANDLE, Place, SHARED, call, category, request};
use crate::mcp_client::{LEGACY, text};
use crate::mcp_http_client::{HttpServer, add_token, message};

const NONE: Value = Value::Null;

/// What a call that asks is answered, and the state that comes with it.
fn asked(server: &HttpServer, token: &str, tool: (&str, &Value)) -> Value {
    let asked = request(server, token, (&NONE, &NONE), tool).result();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    asked["requestState"].clone()
}

/// The retry that brings an approval.
fn approved(state: &Value, scope: &str) -> Value {
    json!({
        "requestState": state,
        "inputResponses": {"approval": {"action": "accept", "content": {"scope": scope}}},
    })
}

fn write(path: &str) -> Value {
    json!({"path": path, "content": "words"})
}

#[test]
fn a_conversation_goes_on_at_another_replica() {
    let place = Place::new();
    place.product.file("a.txt", "words of a\n");
    place.product.file("long.txt", "line\n".repeat(20_000));
    let (one, two) = (place.replica("one", &SHARED), place.replica("two", &SHARED));
    let (ann, bob) = (
        add_token(&place.product, &["ann"]),
        add_token(&place.product, &["bob"]),
    );
    let first = call(&one, &ann, &NONE, "read", &json!({"path": "a.txt"}));
    let handle = first["_meta"][HANDLE].clone();
    assert!(handle.as_str().unwrap().starts_with("one."), "{first}");
    let there = call(&two, &ann, &handle, "read", &json!({"path": "a.txt"}));
    assert!(text(&there).contains("words of a"), "{there}");
    assert_eq!(there["_meta"][HANDLE], handle);
    let records = place
        .product
        .run(&["audit", "query", "--json"])
        .json_lines();
    let of = |n: usize| records[records.len() - n]["conversation_id"].clone();
    assert_eq!(of(1), of(2));

    // It is nobody else's, and no part of it can be changed.
    let handle = handle.as_str().unwrap();
    let (head, mark) = handle.rsplit_once('.').unwrap();
    for (token, other) in [
        (&bob, handle.to_owned()),
        (&ann, handle.replacen("one", "two", 1)),
        (&ann, head.to_owned()),
        (&ann, format!("{head}.{}", mark.replace(&mark[..1], "-"))),
    ] {
        let refused = request(
            &two,
            token,
            (&json!(other), &NONE),
            ("read", &json!({"path": "a.txt"})),
        );
        assert!(refused.body.contains("-32602"), "{refused:?}");
    }
}

#[test]
fn what_only_a_machine_has_is_refused_with_the_key() {
    let place = Place::new();
    place.product.file("a.txt", "words of a\n");
    let allow = ["--allow", "bash"];
    let shared = [allow.as_slice(), &SHARED].concat();
    let (one, two) = (place.replica("one", &allow), place.replica("two", &allow));
    let three = place.replica("three", &shared);
    let none = [allow.as_slice(), &["--set", "mcp.serve.workspace=\"none\""]].concat();
    let four = place.replica("four", &none);
    let (read, bash) = (json!({"path": "a.txt"}), json!({"command": "cat a.txt"}));
    let first = call(&one, "", &NONE, "bash", &bash);
    let handle = first["_meta"][HANDLE].clone();
    for (server, tool, arguments, refusal) in [
        (&one, "read", &read, None),
        (&one, "bash", &bash, None),
        (
            &two,
            "read",
            &read,
            Some("mcp.serve.workspace = \"shared\""),
        ),
        (&two, "bash", &bash, Some("replica `one`")),
        (&three, "read", &read, None),
        (&three, "bash", &bash, Some("replica `one`")),
        (&four, "read", &read, Some("mcp.serve.workspace = \"none\"")),
        (&four, "bash", &bash, Some("mcp.serve.workspace = \"none\"")),
    ] {
        let result = call(server, "", &handle, tool, arguments);
        match refusal {
            None => assert_eq!(result["isError"], false, "{tool}: {result}"),
            Some(words) => {
                assert_eq!(category(&result), "policy_blocked", "{tool}: {result}");
                assert!(text(&result).contains(words), "{tool}: {result}");
            }
        }
        assert_eq!(result["_meta"][HANDLE], handle);
    }
    // Without a handle each begins one of its own, with its own files.
    assert_eq!(call(&two, "", &NONE, "bash", &bash)["isError"], false);
    let refused = call(&four, "", &NONE, "read", &read);
    assert_eq!(category(&refused), "policy_blocked", "{refused}");
    // What needs none of that runs there.
    let plan = json!({"tasks": []});
    let other = call(&four, "", &NONE, "turn_state", &plan);
    assert_ne!(category(&other), "policy_blocked", "{other}");
}

#[test]
fn an_approval_given_at_one_replica_counts_once_at_all() {
    let place = Place::new();
    let (one, two) = (place.replica("one", &SHARED), place.replica("two", &SHARED));
    let ann = add_token(&place.product, &["ann"]);
    let first = write("first.txt");
    let state = asked(&one, &ann, ("write", &first));
    // The answer comes in at both at once.
    let answers = std::thread::scope(|scope| {
        let answer = |server| {
            let (state, ann, first) = (&state, &ann, &first);
            scope.spawn(move || {
                let more = approved(state, "once");
                request(server, ann, (&NONE, &more), ("write", first)).body
            })
        };
        let both = [answer(&one), answer(&two), answer(&two), answer(&one)];
        both.map(|end| end.join().unwrap())
    });
    let ran = |body: &&String| body.contains("\"isError\":false");
    assert_eq!(answers.iter().filter(ran).count(), 1, "{answers:?}");
    let rest = answers.iter().filter(|body| !ran(body));
    for body in rest {
        assert!(body.contains("used before"), "{body}");
    }
    assert!(place.product.work.join("first.txt").exists());

    // For all of the conversation, wherever it goes on.
    let second = write("second.txt");
    let state = asked(&one, &ann, ("write", &second));
    let more = approved(&state, "conversation");
    let done = request(&two, &ann, (&NONE, &more), ("write", &second)).result();
    assert_eq!(done["isError"], false, "{done}");
    let handle = done["_meta"][HANDLE].clone();
    assert!(handle.as_str().unwrap().starts_with("one."), "{done}");
    fs::remove_file(place.product.work.join("second.txt")).unwrap();
    let again = call(&one, &ann, &handle, "write", &second);
    assert_eq!(again["isError"], false, "{again}");
}

#[test]
fn an_output_is_read_at_any_replica_by_its_caller_alone() {
    let place = Place::new();
    place.product.file("long.txt", "line\n".repeat(20_000));
    let allow = ["--allow", "bash"];
    let (one, two) = (place.replica("one", &allow), place.replica("two", &allow));
    let (ann, bob) = (
        add_token(&place.product, &["ann"]),
        add_token(&place.product, &["bob"]),
    );
    let long = json!({"command": "cat long.txt"});
    let cut = call(&one, &ann, &NONE, "bash", &long);
    let blocks = cut["content"].as_array().unwrap();
    let link = blocks.iter().find(|block| block["type"] == "resource_link");
    let (uri, handle) = (link.unwrap()["uri"].clone(), cut["_meta"][HANDLE].clone());
    let page = json!({"id": uri, "limit": 1});
    for handle in [&NONE, &handle] {
        let read = call(&two, &ann, handle, "read_overflow", &page);
        assert_eq!(read["isError"], false, "{read}");
        assert!(text(&read).contains("line"), "{read}");
    }
    let foreign = call(&two, &bob, &NONE, "read_overflow", &page);
    assert_eq!(foreign["isError"], true, "{foreign}");
}

#[test]
fn a_rate_and_a_revocation_hold_for_all_replicas() {
    let place = Place::new();
    let (one, two) = (place.replica("one", &[]), place.replica("two", &[]));
    let slow = add_token(&place.product, &["slow", "--rate", "5"]);
    let list = json!({"path": "."});
    let results: Vec<Value> = [&one, &two]
        .into_iter()
        .cycle()
        .take(12)
        .map(|server| call(server, &slow, &NONE, "list_directory", &list))
        .collect();
    let n_done = results
        .iter()
        .filter(|done| done["isError"] == false)
        .count();
    // A bucket of five gains one every twelve seconds.
    assert!((5..=6).contains(&n_done), "{results:?}");
    let last = results.last().unwrap();
    assert_eq!(category(last), "rate_limited", "{last}");
    assert_eq!(
        place.product.run(&["token", "revoke", "slow"]).code,
        Some(0)
    );
    for server in [&one, &two] {
        let refused = request(server, &slow, (&NONE, &NONE), ("list_directory", &list));
        assert_eq!(refused.status, 401, "{refused:?}");
    }
}

#[test]
fn a_session_names_its_replica_and_begins_anew_at_another() {
    let place = Place::new();
    let (one, two) = (place.replica("one", &[]), place.replica("two", &[]));
    let session = one.open_session("");
    assert!(session.starts_with("mcp-session-id: one."), "{session}");
    let body = message(
        "tools/call",
        &json!({"name": "list_directory", "arguments": {"path": "."}}),
    );
    let reply = one.request("POST /mcp", &session, &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    for (method, body) in [
        ("POST /mcp", body.as_str()),
        ("GET /mcp", ""),
        ("DELETE /mcp", ""),
    ] {
        let lost = two.request(method, &session, body);
        assert_eq!(lost.status, 404, "{lost:?}");
        assert!(lost.body.contains("replica `one`"), "{lost:?}");
        assert!(lost.body.contains("initialize"), "{lost:?}");
    }
    // A client that begins anew is served there.
    let session = two.open_session("");
    let reply = two.request("POST /mcp", &session, &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    // What is no name of a replica is no session, and is repeated by nobody.
    let bad = format!("mcp-session-id: <b>.x\r\nmcp-protocol-version: {LEGACY}\r\n");
    let lost = two.request("POST /mcp", &bad, &body);
    assert_eq!(lost.status, 404, "{lost:?}");
    assert!(!lost.body.contains("<b>"), "{lost:?}");
}

#[test]
fn a_replica_without_the_keys_opens_nothing() {
    let place = Place::new();
    let one = place.replica("one", &SHARED);
    let other = HttpServer::start(&place.product, &SHARED);
    let first = write("first.txt");
    let state = asked(&one, "", ("write", &first));
    let more = approved(&state, "once");
    let refused = request(&other, "", (&NONE, &more), ("write", &first));
    assert!(refused.body.contains("mcp.serve.seal_keys"), "{refused:?}");
    assert!(!place.product.work.join("first.txt").exists());
    let done = request(&one, "", (&NONE, &more), ("write", &first)).result();
    assert_eq!(done["isError"], false, "{done}");

    // Keys that others can read are not used.
    let keys = place.product.home.join("seal-keys");
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(&keys, mode(0o644)).unwrap();
    let key = format!("mcp.serve.seal_keys=\"{}\"", keys.display());
    let args = ["serve", "--http", "127.0.0.1:0", "--set", &key];
    let args = [&args[..], &["--set", "mcp.serve.replica=\"x\""]].concat();
    let refused = place.product.run(&args);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("chmod 600"), "{}", refused.stderr);
}
