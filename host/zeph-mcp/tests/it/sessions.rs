//! Sessions belong to their callers, and end with their clients.

use std::time::Duration;

use serde_json::json;

use crate::server::Served;
use crate::wire::{GET, POST, Wire, bearer, call, call_tool, message, open_session, request};

#[tokio::test]
async fn a_session_of_another_caller_does_not_exist() {
    let served = Served::start().await;
    let address = served.address;
    let (alice, bob) = (
        served.tokens.add("alice", |_| {}),
        served.tokens.add("bob", |_| {}),
    );
    let (alice, bob) = (bearer(&alice), bearer(&bob));
    let session = open_session(address, &alice).await;
    let list = message(1, "tools/list", &json!({}));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let delete = GET.replace("GET", "DELETE");
    for (head, body) in [
        (POST, list.as_str()),
        (POST, answer),
        (POST, cancel),
        (GET, ""),
        (&delete, ""),
    ] {
        let own = request(address, &format!("{head}{bob}{session}"), body).await;
        let none = session.replace(&session[16..24], "00000000");
        let unknown = request(address, &format!("{head}{bob}{none}"), body).await;
        assert_eq!(
            (own.status, unknown.status),
            (404, 404),
            "{head}{body}: {own:?}"
        );
        assert_eq!(own.body, unknown.body);
    }
    let resumed = format!("{GET}{bob}{session}last-event-id: 0/0\r\n");
    assert_eq!(request(address, &resumed, "").await.status, 404);
    // It is still there, for its own caller.
    let reply = request(address, &format!("{POST}{alice}{session}"), &list).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(
        request(address, &format!("{delete}{alice}{session}"), "")
            .await
            .status,
        204
    );
    assert_eq!(
        request(address, &format!("{POST}{alice}{session}"), &list)
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn sessions_opened_while_the_server_was_open_end_with_that() {
    let served = Served::start().await;
    let session = open_session(served.address, "").await;
    let mut stream = Wire::open(served.address).await;
    stream.send(format!("{GET}{session}\r\n")).await;
    stream.read_until("200 OK").await;
    let token = bearer(&served.tokens.add("ci", |_| {}));
    let list = message(1, "tools/list", &json!({}));
    assert_eq!(
        request(served.address, &format!("{POST}{session}"), &list)
            .await
            .status,
        401
    );
    assert_eq!(
        request(served.address, &format!("{POST}{token}{session}"), &list)
            .await
            .status,
        404
    );
    stream.read_until("0\r\n\r\n").await;
}

#[tokio::test]
async fn a_client_that_vanishes_cancels_its_call() {
    let served = Served::start_with(|options| options.patience.resume = Duration::ZERO).await;
    let session = open_session(served.address, "").await;
    let legacy = message(2, "tools/call", &json!({ "name": "wait", "arguments": {} }));
    let (head, body) = call("wait", &json!({}));
    let cases = [(head, body), (format!("{POST}{session}"), legacy)];
    for (idx, (head, body)) in cases.into_iter().enumerate() {
        let mut wire = Wire::open(served.address).await;
        wire.send(format!(
            "{head}content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
        served.probe.runs(idx + 1).await;
        drop(wire);
        served.probe.is_cancelled(idx + 1).await;
    }
    assert_eq!(call_tool(served.address, "", "who").await.status, 200);
    // The session outlives the call.
    let list = message(3, "tools/list", &json!({}));
    assert_eq!(
        request(served.address, &format!("{POST}{session}"), &list)
            .await
            .status,
        200
    );
}

/// Begins a call of `wait`; gives back its connection and the id of its first event.
pub(crate) async fn begin_call(served: &Served, session: &str) -> (Wire, String) {
    let body = message(2, "tools/call", &json!({ "name": "wait", "arguments": {} }));
    let mut wire = Wire::open(served.address).await;
    wire.send(format!(
        "{POST}{session}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
    .await;
    let read = wire.read_until("id: ").await;
    let read = read + &wire.read_until("\n").await;
    let (_, id) = read.split_once("id: ").unwrap();
    (wire, id.lines().next().unwrap().to_owned())
}

pub(crate) async fn resume(served: &Served, session: &str, event: &str) -> Wire {
    let mut wire = Wire::open(served.address).await;
    wire.send(format!("{GET}{session}last-event-id: {event}\r\n\r\n"))
        .await;
    wire
}

/// When a client resumes the stream of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resumes {
    BeforeTheAnswer,
    AfterTheAnswer,
    /// Before the server knows that the stream broke.
    BeforeTheBreak,
    /// The answer was sent, and may not have arrived.
    WithoutABreak,
}

#[tokio::test]
async fn a_broken_stream_can_be_resumed() {
    use Resumes::{AfterTheAnswer, BeforeTheAnswer, BeforeTheBreak, WithoutABreak};
    let served = Served::start().await;
    let session = open_session(served.address, "").await;
    let cases = [
        BeforeTheAnswer,
        AfterTheAnswer,
        BeforeTheBreak,
        WithoutABreak,
    ];
    for (idx, when) in cases.into_iter().enumerate() {
        let (mut wire, id) = begin_call(&served, &session).await;
        served.probe.runs(idx + 1).await;
        if when == WithoutABreak {
            served.probe.released.add_permits(1);
            wire.read_until("waited").await;
        }
        let held = (when == BeforeTheBreak).then_some(wire);
        if when == AfterTheAnswer {
            served.probe.released.add_permits(1);
            served.probe.ends(idx + 1).await;
        }
        let mut resumed = resume(&served, &session, &id).await;
        let head = resumed.read_until("200 OK").await;
        if matches!(when, BeforeTheAnswer | BeforeTheBreak) {
            served.probe.released.add_permits(1);
        }
        if !head.contains("waited") {
            resumed.read_until("waited").await;
        }
        drop(held);
    }
    assert_eq!(*served.probe.cancelled.borrow(), 0);
}

#[tokio::test]
async fn a_call_that_is_resumed_too_late_is_answered_with_an_error() {
    let served = Served::start_with(|options| options.patience.resume = Duration::ZERO).await;
    let session = open_session(served.address, "").await;
    let (wire, id) = begin_call(&served, &session).await;
    served.probe.runs(1).await;
    drop(wire);
    served.probe.is_cancelled(1).await;
    for _ in 0..2 {
        let reply = resume(&served, &session, &id)
            .await
            .read_until("too late")
            .await;
        assert!(reply.contains("\"id\":2"), "{reply}");
    }
}

#[tokio::test]
async fn the_newest_stream_of_a_session_ends_the_one_before() {
    let served = Served::start().await;
    let session = open_session(served.address, "").await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut wire = Wire::open(served.address).await;
        wire.send(format!("{GET}{session}\r\n")).await;
        wire.read_until("id: 0").await;
        streams.push(wire);
    }
    let body = message(3, "tools/call", &json!({ "name": "tell", "arguments": {} }));
    let reply = request(served.address, &format!("{POST}{session}"), &body).await;
    assert!(reply.body.contains("told"), "{reply:?}");
    let told = streams[2].read_until("list_changed").await;
    assert!(told.contains("id: 1"), "{told}");
    for before in &mut streams[..2] {
        let rest = before.read_until("0\r\n\r\n").await;
        assert!(!rest.contains("list_changed"), "{rest}");
    }
    // What was read does not come again.
    let mut again = resume(&served, &session, "1").await;
    again.read_until("200 OK").await;
    request(served.address, &format!("{POST}{session}"), &body).await;
    let told = again.read_until("list_changed").await;
    assert!(told.contains("id: 2") && !told.contains("id: 1"), "{told}");
}

#[tokio::test]
async fn an_id_that_is_in_progress_is_refused_a_second_time() {
    let served = Served::start().await;
    let session = open_session(served.address, "").await;
    let body = message(2, "tools/call", &json!({ "name": "wait", "arguments": {} }));
    let mut wire = Wire::open(served.address).await;
    wire.send(format!(
        "{POST}{session}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
    .await;
    served.probe.runs(1).await;
    let list = message(2, "tools/list", &json!({}));
    let again = async || request(served.address, &format!("{POST}{session}"), &list).await;
    let second = again().await;
    assert!(second.body.contains("-32600"), "{second:?}");
    served.probe.released.add_permits(1);
    wire.read_until("waited").await;
    // With the answer the id is free.
    let third = again().await;
    assert!(third.body.contains("\"tools\""), "{third:?}");
}

#[tokio::test]
async fn a_token_made_anew_does_not_have_the_sessions_of_the_old_one() {
    let served = Served::start().await;
    let old = bearer(&served.tokens.add("ci", |_| {}));
    let session = open_session(served.address, &old).await;
    served.tokens.revoke("ci");
    let new = bearer(&served.tokens.add("ci", |_| {}));
    let list = message(1, "tools/list", &json!({}));
    let reply = request(served.address, &format!("{POST}{new}{session}"), &list).await;
    assert_eq!(reply.status, 404, "{reply:?}");
}

/// Clients of older revisions parse every event as a message, and no client takes another status for the end of a session.
#[tokio::test]
async fn only_clients_that_know_it_get_an_event_without_a_message() {
    let served = Served::start().await;
    for (revision, n_openings) in [("2025-03-26", 0), ("2025-06-18", 0), ("2025-11-25", 1)] {
        let params = json!({
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let body = message(0, "initialize", &params);
        let opened = request(served.address, POST, &body).await;
        assert!(!opened.body.contains("data: \n"), "{opened:?}");
        let session = format!(
            "mcp-session-id: {}\r\nmcp-protocol-version: {revision}\r\n",
            opened.session()
        );
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        request(served.address, &format!("{POST}{session}"), body).await;
        let list = message(1, "tools/list", &json!({}));
        let reply = request(served.address, &format!("{POST}{session}"), &list).await;
        let empty = |line: &&str| matches!(line.trim_end(), "data:");
        let n_empty = reply.body.lines().filter(empty).count();
        assert_eq!(n_empty, n_openings, "{revision}: {reply:?}");
        assert!(reply.body.contains("\nid: 1/"), "{reply:?}");
        let delete = POST.replace("POST", "DELETE");
        let ended = request(served.address, &format!("{delete}{session}"), "").await;
        assert_eq!(ended.status, 204, "{ended:?}");
    }
}

#[tokio::test]
async fn the_sessions_of_a_caller_are_bounded() {
    let served = Served::start().await;
    let first = open_session(served.address, "").await;
    let second = open_session(served.address, "").await;
    let mut last = String::new();
    for _ in 1..64 {
        last = open_session(served.address, "").await;
    }
    let list = message(1, "tools/list", &json!({}));
    // The one that was idle longest made room. None does for a request that is refused.
    let refused = message(0, "initialize", &json!({ "protocolVersion": "2025-11-25" }));
    let foreign = POST.replace("text/event-stream", "text/html");
    let reply = request(served.address, &foreign, &refused).await;
    assert_eq!(reply.status, 406, "{reply:?}");
    assert_eq!(
        request(served.address, &format!("{POST}{second}"), &list)
            .await
            .status,
        200
    );
    assert_eq!(
        request(served.address, &format!("{POST}{first}"), &list)
            .await
            .status,
        404
    );
    assert_eq!(
        request(served.address, &format!("{POST}{last}"), &list)
            .await
            .status,
        200
    );
}
