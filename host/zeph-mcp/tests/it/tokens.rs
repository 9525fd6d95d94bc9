//! Tokens: needed once there is one, looked up for every request, and what they allow.

use std::sync::Arc;

use serde_json::json;
use tokio::time::timeout;
use zeph_core::id::Digest;
use zeph_mcp::holdings::Holdings;
use zeph_mcp::token::TokenDigest;

use crate::server::{PATIENCE, Served, Tokens, now_ms};
use crate::wire::{
    GET, POST, Wire, bearer, call, call_tool, get, message, meta, open_session, request,
};

#[tokio::test]
async fn a_token_is_needed_as_soon_as_there_is_one_and_ever_after() {
    let served = Served::start().await;
    let address = served.address;
    let reply = call_tool(address, "", "who").await;
    assert!(
        reply.status == 200 && reply.body.contains("nobody"),
        "{reply:?}"
    );
    let token = served.tokens.add("ci", |_| {});
    let reply = call_tool(address, "", "who").await;
    assert_eq!(reply.status, 401);
    assert!(
        reply
            .head
            .contains("www-authenticate: bearer realm=\"zeph-host\""),
        "{reply:?}"
    );
    let reply = call_tool(address, &bearer(&token), "who").await;
    assert!(
        reply.status == 200 && reply.body.contains(r#""text":"ci""#),
        "{reply:?}"
    );
    served.tokens.revoke("ci");
    for headers in ["", &bearer(&token)] {
        assert_eq!(
            call_tool(address, headers, "who").await.status,
            401,
            "{headers}"
        );
    }
}

#[tokio::test]
async fn what_is_no_valid_token_is_refused() {
    let served = Served::start().await;
    let token = served.tokens.add("ci", |_| {});
    let expired = served
        .tokens
        .add("old", |token| token.expires_at_ms = Some(now_ms()));
    let unknown = format!("{}x", &token[..token.len() - 1]);
    for headers in [
        bearer(&expired),
        bearer(&unknown),
        bearer("a.b.c"),
        format!("authorization: Basic {token}\r\n"),
        format!("authorization: Bearer{token}\r\n"),
        format!("authorization: {token}\r\n"),
        bearer(&format!("{token} {token}")),
        bearer(&token).repeat(2),
        "authorization: \r\n".to_owned(),
    ] {
        let reply = call_tool(served.address, &headers, "who").await;
        assert_eq!(reply.status, 401, "{headers}: {reply:?}");
        assert!(reply.head.contains("www-authenticate: bearer"), "{reply:?}");
        assert!(!reply.head.contains(&token) && !reply.body.contains(&token));
    }
    // The scheme is a word of any case.
    let headers = format!("authorization: bearer {token}\r\n");
    assert_eq!(call_tool(served.address, &headers, "who").await.status, 200);
    // Without any token there, one that is sent is still unknown.
    let open = Served::start().await;
    assert_eq!(
        call_tool(open.address, &bearer(&token), "who").await.status,
        401
    );
}

#[tokio::test]
async fn any_other_address_needs_a_token_at_the_start() {
    let tokens = Tokens::default();
    let anywhere = |options: &mut zeph_mcp::http::EndpointOptions| {
        options.address = "0.0.0.0:0".parse().unwrap();
    };
    let error = Served::try_start(&tokens, anywhere).await.err().unwrap();
    assert!(error.to_string().contains("without a token"), "{error}");
    assert!(error.hint().unwrap().contains("`zeph-host token add NAME`"));
    let token = tokens.add("ci", |_| {});
    let served = Served::try_start(&tokens, anywhere).await.ok().unwrap();
    let address = format!("127.0.0.1:{}", served.address.port())
        .parse()
        .unwrap();
    assert_eq!(call_tool(address, &bearer(&token), "who").await.status, 200);
    assert_eq!(call_tool(address, "", "who").await.status, 401);
    // It is never open, whatever is revoked.
    tokens.revoke("ci");
    assert_eq!(call_tool(address, "", "who").await.status, 401);
}

#[tokio::test]
async fn a_caller_has_the_tools_and_the_rate_of_its_token() {
    let served = Served::start().await;
    let token = served.tokens.add("ci", |token| {
        token.tools = Some(vec!["re*".to_owned()]);
        token.rate = Some(2);
    });
    let bad = served
        .tokens
        .add("bad", |token| token.tools = Some(vec!["{".to_owned()]));
    for (token, tool, expect) in [
        (&token, "read", true),
        (&token, "bash", false),
        (&bad, "read", false),
    ] {
        let (head, body) = call("may", &json!({ "tool": tool }));
        let reply = request(served.address, &format!("{head}{}", bearer(token)), &body).await;
        assert!(
            reply.body.contains(&format!("\"text\":\"{expect}\"")),
            "{tool}: {reply:?}"
        );
    }
    let rate = async |token: &str| call_tool(served.address, &bearer(token), "rate").await.body;
    let first = rate(&token).await;
    assert!(first.contains("2 of "), "{first}");
    assert_eq!(rate(&token).await, first);
    assert!(rate(&bad).await.contains("none"));
    // A token that is made anew begins anew.
    served.tokens.revoke("ci");
    let token = served.tokens.add("ci", |token| token.rate = Some(2));
    assert_ne!(rate(&token).await, first);
}

#[tokio::test]
async fn a_token_revoked_while_in_use_ends_its_streams_and_calls() {
    let served = Served::start().await;
    let (address, probe) = (served.address, served.probe.clone());
    let token = served.tokens.add("ci", |_| {});
    let other = served.tokens.add("other", |_| {});
    let headers = bearer(&token);

    let session = open_session(address, &headers).await;
    let mut stream = Wire::open(address).await;
    stream.send(format!("{GET}{headers}{session}\r\n")).await;
    stream.read_until("200 OK").await;

    let listen = message(
        7,
        "subscriptions/listen",
        &json!({ "notifications": { "toolsListChanged": true }, "_meta": meta() }),
    );
    let mut listening = Wire::open(address).await;
    let head = format!(
        "{POST}{headers}mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n"
    );
    listening
        .send(format!(
            "{head}content-length: {}\r\n\r\n{listen}",
            listen.len()
        ))
        .await;
    listening.read_until("200 OK").await;

    let mut calls = Vec::new();
    for head in [
        format!("{POST}{headers}{session}"),
        format!("{}{headers}", call("wait", &json!({})).0),
    ] {
        let body = match head.contains("session-id") {
            true => message(9, "tools/call", &json!({ "name": "wait", "arguments": {} })),
            false => call("wait", &json!({})).1,
        };
        let mut wire = Wire::open(address).await;
        wire.send(format!(
            "{head}content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
        calls.push(wire);
    }
    // A call of another caller goes on.
    let mut others = Wire::open(address).await;
    let (head, body) = call("wait", &json!({}));
    let head = format!("{head}{}connection: close\r\n", bearer(&other));
    others
        .send(format!(
            "{head}content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    probe.runs(3).await;

    served.tokens.revoke("ci");
    probe.is_cancelled(2).await;
    // The chunk without bytes ends an answer.
    stream.read_until("0\r\n\r\n").await;
    listening.read_until("0\r\n\r\n").await;
    let ends: Vec<String> = vec![
        calls[0].read_until("0\r\n\r\n").await,
        calls[1].read_until("HTTP/1.1 401").await,
    ];
    assert!(!ends.iter().any(|end| end.contains("waited")), "{ends:?}");
    let reply = request(
        address,
        &format!("{POST}{headers}{session}"),
        &message(10, "tools/list", &json!({})),
    )
    .await;
    assert_eq!(reply.status, 401);

    probe.released.add_permits(1);
    assert!(others.read_to_end().await.contains("waited"));
    assert_eq!(*probe.cancelled.borrow(), 2);
}

#[tokio::test]
async fn a_revoked_token_takes_back_what_is_held_by_it() {
    let holdings = Arc::<Holdings>::default();
    let own = Arc::clone(&holdings);
    let served = Served::start_with(|options| options.holdings = own).await;
    let rights = ["ci", "other"].map(|name| {
        let token = served.tokens.add(name, |_| {});
        holdings.right(Some(Digest::new(TokenDigest::of(&token).0)))
    });
    served.tokens.revoke("ci");
    let revoked = timeout(PATIENCE, holdings.revoked());
    revoked.await.expect("the right is taken back");
    assert!(rights[0].is_cancelled() && !rights[1].is_cancelled());
}

#[tokio::test]
async fn pages_about_the_server_need_a_token_unless_they_say_nothing() {
    let served = Served::start().await;
    let address = served.address;
    assert_eq!(get(address, "/metrics", "").await.status, 200);
    let token = served.tokens.add("ci", |_| {});
    for path in ["/healthz", "/readyz"] {
        let reply = get(address, path, "").await;
        assert!(
            reply.status == 200 && reply.body.starts_with("ok"),
            "{path}: {reply:?}"
        );
    }
    assert_eq!(get(address, "/metrics", "").await.status, 401);
    let reply = get(address, "/metrics", &bearer(&token)).await;
    assert!(reply.body.contains("zeph_mcp_connections 1"), "{reply:?}");
    assert_eq!(
        get(address, "/.well-known/oauth-protected-resource", "")
            .await
            .status,
        404
    );
    assert_eq!(get(address, "/", "").await.status, 404);
}
