//! What is not in a scenario: connections, events, keys, and models without tools.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::message::{Turn, UserTurn};
use crate::provider::{ModelEvent, ModelRequest, RequestOptions};
use crate::scripted::tests::{answer_to, ask, egress, settings, tools};
use crate::scripted::{Scenario, ScriptedServer};
use crate::settings::{ProviderKind, ProviderSettings};
use crate::{ProviderErrorKind, connect};

async fn server(scenario: &str) -> ScriptedServer {
    let scenario = Scenario::parse(scenario).unwrap();
    ScriptedServer::start(scenario).await.unwrap()
}

fn started() -> Vec<Turn<'static>> {
    vec![Turn::User(UserTurn::text("go"))]
}

#[tokio::test]
async fn a_connection_is_kept_but_not_for_a_second_attempt() {
    let kind = ProviderKind::Anthropic;
    let talk = server(include_str!("../../scenarios/conversation.json")).await;
    let provider = connect(settings(kind, talk.base_url(kind)), &egress()).unwrap();
    for _ in 0..2 {
        ask(provider.as_ref(), &started()).await.0.unwrap();
    }
    let requests = talk.requests();
    assert_eq!(requests[0].connection, requests[1].connection);
    let busy = server(include_str!("../../scenarios/status.json")).await;
    let provider = connect(settings(kind, busy.base_url(kind)), &egress()).unwrap();
    let (reply, events) = ask(provider.as_ref(), &started()).await;
    assert_eq!(reply.unwrap().attempts, 3);
    let connections: Vec<usize> = busy.requests().iter().map(|one| one.connection).collect();
    assert_eq!(connections, [0, 1, 2]);
    let after = events.iter().filter_map(|event| match event {
        ModelEvent::Retry { after, .. } => Some(*after),
        _ => None,
    });
    let asked = Duration::from_millis(20);
    assert_eq!(after.collect::<Vec<_>>(), [asked, asked]);
}

#[tokio::test]
async fn text_of_an_attempt_that_failed_is_marked_void() {
    let kind = ProviderKind::OpenAi;
    let server = server(include_str!("../../scenarios/cut_arguments.json")).await;
    let provider = connect(settings(kind, server.base_url(kind)), &egress()).unwrap();
    let (reply, events) = ask(provider.as_ref(), &started()).await;
    assert_eq!(reply.unwrap().turn.text(), "Now it works.");
    let retry = events.iter().position(|event| {
        matches!(event, ModelEvent::Retry { attempt: 2, discards: true, why, .. } if why.contains("ended before"))
    });
    let begun = events
        .iter()
        .position(|event| matches!(event, ModelEvent::CallStarted { .. }));
    assert!(begun.unwrap() < retry.unwrap(), "{events:?}");
}

#[tokio::test]
async fn bills_are_not_paid_by_trying_again() {
    for kind in ProviderKind::ALL {
        let server = server(include_str!("../../scenarios/refused.json")).await;
        let provider = connect(settings(kind, server.base_url(kind)), &egress()).unwrap();
        let error = ask(provider.as_ref(), &started()).await.0.unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Billing, "{kind}");
        assert_eq!(server.requests().len(), 1, "{kind}");
    }
}

#[tokio::test]
async fn a_preview_is_what_is_sent_without_the_key() {
    for kind in ProviderKind::ALL {
        let server = server(include_str!("../../scenarios/conversation.json")).await;
        let provider = connect(settings(kind, server.base_url(kind)), &egress()).unwrap();
        let (turns, tools) = (started(), tools());
        let preview = provider.preview(ModelRequest {
            system: &["Be brief.".to_owned()],
            tools: &tools,
            turns: &turns,
            options: RequestOptions::default(),
        });
        ask(provider.as_ref(), &turns).await.0.unwrap();
        let sent = &server.requests()[0];
        assert_eq!(preview.body, sent.body);
        assert!(preview.url.ends_with(&sent.path), "{preview:?}");
        assert!(!format!("{preview:?} {provider:?}").contains("sk-secret"));
    }
}

#[test]
fn a_key_that_is_missing_is_named_before_anything_is_sent() {
    let unset = |kind: ProviderKind| ProviderSettings {
        base_url: None,
        key: None,
        ..settings(kind, String::new())
    };
    let error = connect(unset(ProviderKind::Anthropic), &egress()).unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Settings);
    assert!(error.message.contains("ANTHROPIC_API_KEY"), "{error}");
    connect(unset(ProviderKind::Ollama), &egress()).unwrap();
    let wrong = settings(ProviderKind::OpenAi, "localhost".to_owned());
    let error = connect(wrong, &egress()).unwrap_err();
    assert!(error.message.contains("`localhost`"), "{error}");
}

/// A model without tools that runs a command and reads a file by fenced blocks.
const FENCED: &str = r#"{ "about": "", "steps": [
    { "answer": { "text": "I look.\n```bash\nls -l\n```\n```tool_call\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```" } },
    { "answer": { "text": "Cut off:\n```bash\nrm a\n```", "stop": "length" } },
    { "answer": { "text": "Done." } }
] }"#;

#[tokio::test]
async fn models_without_tools_call_by_fenced_blocks() {
    for kind in ProviderKind::ALL {
        let server = server(FENCED).await;
        let settings = ProviderSettings {
            native_tools: false,
            ..settings(kind, server.base_url(kind))
        };
        let provider = connect(settings, &egress()).unwrap();
        let mut tools = tools();
        tools[1].name = "bash".to_owned();
        let mut turns = started();
        let mut seen = Vec::new();
        for _ in 0..3 {
            let mut ignore = |_| {};
            let request = ModelRequest {
                system: &["Be brief.".to_owned()],
                tools: &tools,
                turns: &turns,
                options: RequestOptions::default(),
            };
            let turn = provider.respond(request, &mut ignore).await.unwrap().turn;
            let calls = turn
                .calls()
                .map(|call| format!("{} {}", call.name, call.arguments.to_json()));
            seen.push((turn.calls_may_run(), calls.collect::<Vec<_>>()));
            let answer = answer_to(&turn);
            turns.extend([Turn::Assistant(Cow::Owned(turn)), answer]);
        }
        let first = ["bash {\"command\":\"ls -l\"}", "read {\"path\":\"a\"}"].map(str::to_owned);
        assert_eq!(seen[0], (true, first.to_vec()), "{kind}");
        assert!(!seen[1].0 && seen[1].1.len() == 1, "{kind}: {seen:?}");
        assert_eq!(seen[2], (true, Vec::new()), "{kind}");
        let requests = server.requests();
        let body: Value = serde_json::from_str(&requests[1].body).unwrap();
        assert!(body.get("tools").is_none(), "{body}");
        for expected in [
            "<tools>",
            "<tool_result name=\\\"bash\\\">",
            "```bash\\nls -l",
        ] {
            assert!(
                requests[1].body.contains(expected),
                "{kind}: {expected}\n{body}"
            );
        }
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_ends_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let provider = connect(settings(ProviderKind::Ollama, url), &egress()).unwrap();
    let turns = started();
    let asking = ask(provider.as_ref(), &turns);
    let cancelled = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        // The request is there.
        stream.read_u8().await.unwrap();
        stream
    };
    let mut stream = tokio::select! {
        _ = asking => panic!("nobody answered"),
        stream = cancelled => stream,
    };
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest));
    let _reset_or_end = ended.await.unwrap();
}

/// What a model says to a connection that gets `answer`, byte for byte.
async fn answered(answer: String) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let settings = ProviderSettings {
        retries: 0,
        ..settings(ProviderKind::OpenAi, url)
    };
    let provider = connect(settings, &egress()).unwrap();
    let turns = started();
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        // A client that has read enough closes.
        drop(stream.write_all(answer.as_bytes()).await);
        drop(stream.shutdown().await);
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
    };
    let (reply, ()) = tokio::join!(async { ask(provider.as_ref(), &turns).await.0 }, serving);
    let turn = reply.map_err(|error| error.message)?.turn;
    Ok(format!("{} {}", turn.text(), turn.calls().count()))
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn chunk(delta: &Value, reason: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

fn calling(arguments: &str) -> String {
    let call = json!([{"index": 0, "id": "c", "type": "function", "function": {"name": "read", "arguments": arguments}}]);
    chunk(&json!({"tool_calls": call}), &Value::Null)
}

#[tokio::test]
async fn what_follows_the_end_of_an_answer_is_not_part_of_it() {
    let end = chunk(&json!({"content": "over"}), &json!("stop")) + "data: [DONE]\n\n";
    let after = calling("{}") + &chunk(&json!({}), &json!("tool_calls"));
    let said = answered(format!("{STREAM}{end}{after}")).await;
    assert_eq!(said, Ok("over 0".to_owned()));
}

#[tokio::test]
async fn an_answer_without_bounds_is_refused() {
    let megabyte = "x".repeat(1 << 20);
    let text = chunk(&json!({"content": megabyte}), &Value::Null);
    for piece in [text, calling(&megabyte)] {
        let error = answered(format!("{STREAM}{}", piece.repeat(9))).await;
        let error = error.unwrap_err();
        assert!(error.contains("more than 8388608 bytes"), "{error}");
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_in_no_message() {
    let long = "x".repeat(796);
    let cut = format!("{STREAM}data: {{\"error\":{{\"message\":\"{long} sk-secret-1\"}}}}\n\n");
    let refused = |status: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    for answer in [
        refused(
            "401 Unauthorized",
            "{\"error\":{\"message\":\"wrong key sk-secret-1\"}}",
        ),
        refused("503 Unavailable", "got authorization: Bearer sk-secret-1"),
        refused(
            "307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/?key=sk-secret-1",
            "",
        ),
        cut,
    ] {
        let error = answered(answer).await.unwrap_err();
        // No beginning of it either, where the message ends in it.
        assert!(!error.contains("sk-s"), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_names_what_mends_it() {
    let head = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/v2\r\ncontent-length: 0\r\n\r\n";
    let error = answered(head.to_owned()).await.unwrap_err();
    assert!(error.contains("`http://127.0.0.1:1/v2`"), "{error}");
    assert!(error.contains("`base_url`"), "{error}");
}

#[tokio::test]
async fn a_page_is_no_answer_and_what_mends_it_is_named() {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n\r\n";
    let error = answered(format!("{head}<html>Log in</html>")).await;
    let error = error.unwrap_err();
    assert!(
        error.contains("text/html") && error.contains("`base_url`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_named() {
    let head = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 500\r\ncontent-length: 0\r\n\r\n";
    let error = answered(head.to_owned()).await.unwrap_err();
    assert!(error.contains("wait for 500 s"), "{error}");
}
