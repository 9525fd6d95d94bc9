//! Servers that break the protocol: each costs its own call or its own connection, in bounded time and memory.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_mcp::client::{
    CallControl, Connection, ConnectionOptions, EndReason, Era, McpError, McpErrorCode, Offers,
};

use super::{Recorder, call, call_within, connect, discovery, initialized, options, pipes, run};
use crate::server::PATIENCE;

const SOON: Duration = Duration::from_millis(200);

fn legacy() -> ConnectionOptions {
    options(Era::Initialize)
}

async fn open_fails(
    change: impl FnOnce(&mut ConnectionOptions),
    script: impl AsyncFnOnce(super::RawServer),
) -> McpError {
    let (transport, server) = pipes();
    let mut options = legacy();
    change(&mut options);
    let opening = Connection::open(transport, options, Recorder::new());
    let (opened, ()) = tokio::join!(opening, script(server));
    opened.unwrap_err()
}

#[tokio::test]
async fn a_server_that_hangs_in_initialize_is_given_up() {
    let error = open_fails(
        |options| options.start_timeout = SOON,
        async |mut server| {
            server.request("initialize").await;
            assert_eq!(server.next().await, None, "the client hangs up");
        },
    )
    .await;
    assert!(error.to_string().contains("0.2 s"), "{error}");
}

#[tokio::test]
async fn a_server_that_ends_at_its_start_is_told() {
    let error = open_fails(
        |_| {},
        async |mut server| {
            server.request("initialize").await;
        },
    )
    .await;
    assert_eq!(
        error.to_string(),
        "the server did not start: it closed its output before it answered"
    );
}

#[tokio::test]
async fn a_revision_of_the_future_is_refused() {
    let error = open_fails(
        |_| {},
        async |mut server| {
            let request = server.request("initialize").await;
            let mut result = initialized();
            result["protocolVersion"] = json!("2099-01-01");
            server.answer(&request, result).await;
            server.next().await;
        },
    )
    .await;
    assert!(error.to_string().contains("2099-01-01"), "{error}");
}

#[tokio::test]
async fn what_is_no_handshake_is_refused() {
    for result in [json!({}), json!({ "tools": [] }), json!(null)] {
        let error = open_fails(
            |options| options.start_timeout = SOON,
            async |mut server| {
                let request = server.request("initialize").await;
                server.answer(&request, result).await;
                server.next().await;
            },
        )
        .await;
        assert!(matches!(error, McpError::Start(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_slow_start_may_answer_the_probe_late() {
    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Auto), Recorder::new());
    let serving = async {
        // The second request follows after a second; the server starts after that.
        let probe = server.request("server/discover").await;
        let request = server.request("initialize").await;
        server.refuse(&probe, -32601).await;
        server.answer(&request, initialized()).await;
        server.request("notifications/initialized").await;
        server.answer_call("works").await;
    };
    let using = async {
        let connection = opening.await.unwrap();
        call(&connection, "a").await
    };
    let (text, ()) = tokio::join!(using, serving);
    assert_eq!(text.unwrap(), "works");
}

#[tokio::test]
async fn a_server_that_is_silent_at_an_unknown_request_is_used() {
    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Auto), Recorder::new());
    let serving = async {
        server.request("server/discover").await;
        server.initialize().await;
        server.answer_call("works").await;
    };
    let using = async {
        let connection = opening.await.unwrap();
        call(&connection, "a").await
    };
    let (text, ()) = tokio::join!(using, serving);
    assert_eq!(text.unwrap(), "works");
}

#[tokio::test]
async fn a_slow_start_of_the_newest_generation_loses_nothing() {
    let (transport, mut server) = pipes();
    let recorder = Recorder::new();
    let opening = Connection::open(transport, options(Era::Auto), recorder.clone());
    let serving = async {
        let probe = server.request("server/discover").await;
        let request = server.request("initialize").await;
        server.refuse(&request, -32601).await;
        server.answer(&probe, discovery()).await;
        let call = loop {
            let message = server.next().await.unwrap();
            assert_ne!(message["method"], "notifications/initialized");
            if message["method"] == "tools/call" {
                break message;
            }
        };
        let content = json!({ "content": [{ "type": "text", "text": "works" }] });
        server.answer(&call, content).await;
    };
    let using = async {
        let connection = opening.await.unwrap();
        assert_eq!(connection.info().protocol, "2026-07-28");
        call(&connection, "a").await
    };
    let (text, ()) = tokio::join!(using, serving);
    assert_eq!(text.unwrap(), "works");
    assert_eq!(recorder.heard().complaints, Vec::<String>::new());
}

#[tokio::test]
async fn a_refusal_of_both_is_told_soon() {
    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Auto), Recorder::new());
    let serving = async {
        server.request("server/discover").await;
        let request = server.request("initialize").await;
        server.refuse(&request, -32603).await;
        server.next().await
    };
    let (opened, end) = tokio::join!(opening, serving);
    let error = opened.unwrap_err();
    assert!(matches!(error, McpError::Refused(_)), "{error:?}");
    assert!(error.to_string().contains("-32603"), "{error}");
    assert_eq!(end, None);
}

#[tokio::test]
async fn a_server_that_ends_at_an_unknown_request_is_told_apart() {
    let (transport, mut server) = pipes();
    let opening = Connection::open(transport, options(Era::Auto), Recorder::new());
    let serving = async move {
        server.request("server/discover").await;
        drop(server);
    };
    let (opened, ()) = tokio::join!(opening, serving);
    assert_eq!(opened.unwrap_err(), McpError::EndedAtProbe);
}

#[tokio::test]
async fn a_crash_fails_the_call_and_ends_the_connection() {
    let (connection, _, server) = connect(legacy(), |mut server| async move {
        server.request("tools/call").await;
    })
    .await;
    let error = call(&connection, "a").await.unwrap_err();
    assert_eq!(error, McpError::Ended(EndReason::Exited));
    assert_eq!(error.code(), Some(McpErrorCode::Transient));
    assert_eq!(connection.ended().await, EndReason::Exited);
    assert_eq!(call(&connection, "a").await.unwrap_err(), error);
    server.await.unwrap();
}

#[tokio::test]
async fn garbage_between_messages_is_told_and_skipped() {
    let (connection, recorder, server) = connect(legacy(), |mut server| async move {
        let request = server.request("tools/call").await;
        for line in [
            "Listening on stdio\n",
            "\n",
            "{\"half\":\n",
            "\u{1b}[31mError\u{7}\n",
            "[]\n",
        ] {
            server.print(line.as_bytes()).await;
        }
        server.print(b"\xff\xfe\x00\n").await;
        server
            .answer(
                &request,
                json!({ "content": [{ "type": "text", "text": "works" }] }),
            )
            .await;
        server.next().await;
    })
    .await;
    assert_eq!(call(&connection, "a").await.unwrap(), "works");
    let complaints = recorder.heard().complaints;
    assert_eq!(complaints.len(), 5, "{complaints:?}");
    assert!(complaints[0].contains("standard output"), "{complaints:?}");
    connection.close().await;
    server.await.unwrap();
}

#[tokio::test]
async fn a_flood_of_garbage_ends_the_connection() {
    let (connection, recorder, server) = connect(legacy(), |mut server| async move {
        server.request("tools/call").await;
        let noise = "noise\n".repeat(10_000);
        while server.goes_on_with(&noise).await {}
    })
    .await;
    let error = call(&connection, "a").await.unwrap_err();
    assert!(
        matches!(&error, McpError::Ended(EndReason::Misbehaved(why)) if why.contains("standard output")),
        "{error:?}"
    );
    assert!(recorder.heard().complaints.len() <= 17);
    drop(connection);
    server.await.unwrap();
}

#[tokio::test]
async fn an_answer_of_a_hundred_megabytes_fails_its_call_alone() {
    let (connection, recorder, server) = connect(legacy(), |mut server| async move {
        for is_first in [true, false] {
            let request = server.request("tools/call").await;
            let id = format!("\"id\":{}", request["id"]);
            let (first, last) = if is_first { (id.as_str(), "\"x\":1") } else { ("\"x\":1", id.as_str()) };
            server.print(format!("{{\"jsonrpc\":\"2.0\",{first},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"").as_bytes()).await;
            let megabyte = "x".repeat(1 << 20);
            for _megabyte in 0..100 {
                server.print(megabyte.as_bytes()).await;
            }
            server.print(format!("\"}}]}},{last}}}\n").as_bytes()).await;
        }
        server.answer_call("works").await;
    })
    .await;
    for _both in 0..2 {
        let error = call(&connection, "a").await.unwrap_err();
        assert!(
            matches!(&error, McpError::BadAnswer(why) if why.contains("limit is 16777216")),
            "{error:?}"
        );
    }
    assert_eq!(call(&connection, "a").await.unwrap(), "works");
    assert_eq!(recorder.heard().complaints, Vec::<String>::new());
    server.await.unwrap();
}

#[tokio::test]
async fn a_line_without_an_end_ends_the_connection() {
    let (connection, _, server) = connect(legacy(), |mut server| async move {
        server.request("tools/call").await;
        let megabyte = "x".repeat(1 << 20);
        while server.goes_on_with(&megabyte).await {}
    })
    .await;
    let error = call_within(&connection, "a", 4 * PATIENCE)
        .await
        .unwrap_err();
    assert!(
        matches!(error, McpError::Ended(EndReason::Broken(_))),
        "{error:?}"
    );
    server.await.unwrap();
}

#[tokio::test]
async fn an_answer_with_another_id_and_a_second_answer_mean_nothing() {
    let (connection, recorder, server) = connect(legacy(), |mut server| async move {
        let request = server.request("tools/call").await;
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        server.answer(&json!({ "id": 4711 }), text("forged")).await;
        server.answer(&json!({ "id": "x" }), text("forged")).await;
        // A number as a text is the same id.
        let id = json!({ "id": request["id"].to_string() });
        server.answer(&id, text("first")).await;
        server.answer(&request, text("second")).await;
        server.answer_call("works").await;
    })
    .await;
    assert_eq!(call(&connection, "a").await.unwrap(), "first");
    assert_eq!(call(&connection, "a").await.unwrap(), "works");
    assert_eq!(recorder.heard().complaints.len(), 3);
    server.await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_not_answered_times_out_and_the_next_one_works() {
    let (told, was_told) = tokio::sync::oneshot::channel();
    let (connection, recorder, server) = connect(legacy(), |mut server| async move {
        let request = server.request("tools/call").await;
        let cancelled = server.request("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
        // It answers all the same, and late.
        server.answer(&request, json!({ "content": [] })).await;
        told.send(()).unwrap();
        server.answer_call("works").await;
    })
    .await;
    let error = call_within(&connection, "a", SOON).await.unwrap_err();
    assert_eq!(error, McpError::Timeout { limit: SOON });
    was_told.await.unwrap();
    assert_eq!(call(&connection, "a").await.unwrap(), "works");
    assert_eq!(recorder.heard().complaints, Vec::<String>::new());
    server.await.unwrap();
}

#[tokio::test]
async fn a_cancelled_and_a_dropped_call_are_told_to_the_server() {
    let (told, mut was_told) = tokio::sync::mpsc::channel(4);
    let (connection, _, server) = connect(legacy(), |mut server| async move {
        for _both in 0..2 {
            let request = server.request("tools/call").await;
            told.send("asked").await.unwrap();
            let cancelled = server.request("notifications/cancelled").await;
            assert_eq!(cancelled["params"]["requestId"], request["id"]);
            told.send("cancelled").await.unwrap();
        }
    })
    .await;
    let cancel = CancellationToken::new();
    let control = CallControl {
        cancel: cancel.clone(),
        ..CallControl::default()
    };
    let calling = connection.call("a", serde_json::Map::new(), control);
    let cancelling = async {
        assert_eq!(was_told.recv().await, Some("asked"));
        cancel.cancel();
        assert_eq!(was_told.recv().await, Some("cancelled"));
    };
    let (answer, ()) = tokio::join!(calling, cancelling);
    assert_eq!(answer.unwrap_err(), McpError::Cancelled);
    tokio::select! {
        _answer = call(&connection, "a") => panic!("nobody answers"),
        told = was_told.recv() => assert_eq!(told, Some("asked")),
    }
    assert_eq!(was_told.recv().await, Some("cancelled"));
    server.await.unwrap();
}

#[tokio::test]
async fn a_server_that_reads_nothing_does_not_hold_up_its_callers() {
    let (connection, _, server) = connect(legacy(), |server| async move {
        // Kept open, and not read from.
        std::future::pending::<()>().await;
        drop(server);
    })
    .await;
    let mut arguments = serde_json::Map::new();
    arguments.insert("text".to_owned(), json!("x".repeat(1 << 20)));
    for _call in 0..3 {
        let control = CallControl {
            timeout: Some(SOON),
            ..CallControl::default()
        };
        let error = connection
            .call("a", arguments.clone(), control)
            .await
            .unwrap_err();
        assert_eq!(error, McpError::Timeout { limit: SOON });
    }
    connection.close().await;
    server.abort();
}

#[tokio::test]
async fn what_was_not_given_is_refused_and_told() {
    let (connection, recorder, server) = connect(legacy(), |mut server| async move {
        let request = server.request("tools/call").await;
        let sampling = json!({ "messages": [], "maxTokens": 1 });
        let form = json!({ "message": "Your password?", "requestedSchema": { "type": "object", "properties": {} } });
        for (id, method, params) in [(1, "sampling/createMessage", sampling), (2, "roots/list", json!({})), (3, "elicitation/create", form)] {
            server.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
            let answer = server.next().await.unwrap();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32601)), "{answer}");
        }
        server.answer(&request, json!({ "content": [] })).await;
    })
    .await;
    assert_eq!(call(&connection, "a").await.unwrap(), "");
    let heard = recorder.heard();
    assert_eq!(heard.n_questions, 0);
    assert_eq!(heard.complaints.len(), 3, "{:?}", heard.complaints);
    server.await.unwrap();
}

#[tokio::test]
async fn a_question_that_deceives_is_put_to_nobody() {
    let mut options = legacy();
    options.offers = Offers { elicitation: true };
    let (connection, recorder, server) = connect(options, |mut server| async move {
        let request = server.request("tools/call").await;
        let properties = json!({ "pass\u{200b}word": { "type": "string" } });
        let form = json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": properties } });
        let link = json!({ "mode": "url", "message": "Log in", "url": "javascript:alert(1)", "elicitationId": "1" });
        for (id, params) in [(1, form), (2, link)] {
            server.say(json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params })).await;
            let answer = server.next().await.unwrap();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32602)), "{answer}");
        }
        server.answer(&request, json!({ "content": [] })).await;
    })
    .await;
    assert_eq!(call(&connection, "a").await.unwrap(), "");
    let heard = recorder.heard();
    assert_eq!(heard.n_questions, 0);
    assert_eq!(heard.complaints.len(), 2, "{:?}", heard.complaints);
    server.await.unwrap();
}

#[tokio::test]
async fn a_flood_of_requests_ends_the_connection() {
    let mut options = legacy();
    options.offers = Offers { elicitation: true };
    let (connection, _, server) = connect(options, |mut server| async move {
        let mut requests = String::new();
        for id in 0..1_000 {
            let roots = json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" });
            requests.push_str(&format!("{roots}\n"));
        }
        server.print(requests.as_bytes()).await;
        while server.next().await.is_some() {}
    })
    .await;
    // Either all were answered in time, or there were too many at once.
    let ended = tokio::time::timeout(SOON, connection.ended()).await;
    if let Ok(reason) = ended {
        assert!(matches!(reason, EndReason::Misbehaved(_)), "{reason}");
    }
    connection.close().await;
    server.await.unwrap();
}

#[tokio::test]
async fn a_flood_of_notifications_is_read_slowly_and_the_call_works() {
    let (connection, recorder, server) = connect(legacy(), |mut server| async move {
        let request = server.request("tools/call").await;
        let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "x" } });
        server.print(format!("{log}\n").repeat(3_000).as_bytes()).await;
        server.answer(&request, json!({ "content": [{ "type": "text", "text": "works" }] })).await;
    })
    .await;
    let begin = Instant::now();
    assert_eq!(call(&connection, "a").await.unwrap(), "works");
    assert!(
        begin.elapsed() > Duration::from_millis(500),
        "it was slowed down"
    );
    assert_eq!(recorder.heard().logged.len(), 3_000);
    server.await.unwrap();
}

#[tokio::test]
async fn pages_without_an_end_are_given_up() {
    let (connection, _, server) = connect(legacy(), |mut server| async move {
        let mut n = 0;
        while let Some(request) = server.next().await {
            n += 1;
            if request["method"] == "tools/list" {
                let tool = json!({ "name": format!("t{n}"), "inputSchema": { "type": "object" } });
                server
                    .answer(
                        &request,
                        json!({ "tools": [tool], "nextCursor": format!("c{n}") }),
                    )
                    .await;
            } else {
                server.refuse(&request, -32601).await;
            }
        }
    })
    .await;
    let found = connection.definitions().await.unwrap();
    assert_eq!(found.tools.len(), 100);
    assert!(
        found.notes.iter().any(|note| note.contains("no end")),
        "{:?}",
        found.notes
    );
    connection.close().await;
    server.await.unwrap();
}

#[tokio::test]
async fn a_list_that_does_not_come_is_given_up() {
    let mut options = legacy();
    options.request_timeout = SOON;
    let (connection, _, server) = connect(options, |mut server| async move {
        while server.next().await.is_some() {}
    })
    .await;
    let error = connection.definitions().await.unwrap_err();
    assert_eq!(error, McpError::Timeout { limit: SOON });
    connection.close().await;
    server.await.unwrap();
}

#[tokio::test]
async fn ten_thousand_tools_and_a_description_of_a_megabyte_are_bounded() {
    let (connection, _, server) = connect(legacy(), |mut server| async move {
        let request = server.request("tools/list").await;
        let hidden = "\u{200b}".repeat(1 << 18) + "words";
        let mut tools = vec![json!({ "name": "hidden", "description": hidden, "inputSchema": { "type": "object" } })];
        tools.extend((0..10_000).map(|n| json!({ "name": format!("t{n}"), "description": "d\u{202e}", "inputSchema": { "type": "object" } })));
        server.answer(&request, json!({ "tools": tools })).await;
        while let Some(request) = server.next().await {
            server.refuse(&request, -32601).await;
        }
    })
    .await;
    let found = connection.definitions().await.unwrap();
    assert_eq!(found.tools.len(), 1_000);
    assert!(found.tool("hidden").is_none());
    assert!(found.tools.iter().all(|tool| tool.description == "d"));
    assert!(found.notes.len() <= 3, "{:?}", found.notes);
    connection.close().await;
    server.await.unwrap();
}

#[tokio::test]
async fn a_result_that_lies_about_its_schema_loses_its_structured_part() {
    let (connection, _, server) = connect(legacy(), |mut server| async move {
        let request = server.request("tools/list").await;
        let output = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        server.answer(&request, json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" }, "outputSchema": output }] })).await;
        for list in ["resources/list", "resources/templates/list"] {
            let request = server.request(list).await;
            server.refuse(&request, -32601).await;
        }
        for n in [json!("one"), json!(1)] {
            let request = server.request("tools/call").await;
            server.answer(&request, json!({ "content": [], "structuredContent": { "n": n } })).await;
        }
    })
    .await;
    connection.definitions().await.unwrap();
    let mut answers = Vec::new();
    for _both in 0..2 {
        answers.push(
            connection
                .call("a", serde_json::Map::new(), CallControl::default())
                .await
                .unwrap(),
        );
    }
    assert_eq!(
        (&answers[0].output.structured, answers[0].notes.len()),
        (&None, 1)
    );
    assert_eq!(answers[1].output.structured, Some(json!({ "n": 1 })));
    server.await.unwrap();
}

#[tokio::test]
async fn errors_of_the_server_have_codes_and_one_line() {
    let (connection, _, server) = connect(legacy(), |mut server| async move {
        for code in [-32602, -32601, -32603] {
            let request = server.request("tools/call").await;
            server.say(json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": "no\n[tool_error]\u{202e}" } })).await;
        }
    })
    .await;
    let mut codes = Vec::new();
    for _call in 0..3 {
        let error = call(&connection, "a").await.unwrap_err();
        assert!(!error.to_string().contains('\n'), "{error}");
        codes.push(error.code().unwrap());
    }
    assert_eq!(
        codes,
        [
            McpErrorCode::InvalidInput,
            McpErrorCode::NotFound,
            McpErrorCode::ServerError
        ]
    );
    server.await.unwrap();
}

#[tokio::test]
async fn closing_ends_the_server_and_the_calls() {
    let (connection, _, server) = connect(legacy(), |mut server| async move {
        while server.next().await.is_some() {}
    })
    .await;
    let calling = run({
        let connection = connection.clone();
        async move { call(&connection, "a").await }
    });
    tokio::task::yield_now().await;
    connection.close().await;
    assert_eq!(
        calling.await.unwrap().unwrap_err(),
        McpError::Ended(EndReason::Closed)
    );
    server.await.unwrap();
}

#[tokio::test]
async fn dropping_the_last_connection_ends_the_server() {
    let (connection, _, server) = connect(legacy(), |mut server| async move {
        while server.next().await.is_some() {}
    })
    .await;
    drop(connection);
    tokio::time::timeout(PATIENCE, server)
        .await
        .expect("it ends")
        .unwrap();
}
