use proptest::prelude::*;
use rmcp::model::ServerResult;

use super::*;

fn message_of(line: &str) -> ServerJsonRpcMessage {
    match read(line.as_bytes()) {
        Incoming::Message(message) => *message,
        other => panic!("no message: {other:?}"),
    }
}

fn error_of(line: &[u8]) -> (Option<RequestId>, String) {
    match read(line) {
        Incoming::Message(message) => match *message {
            ServerJsonRpcMessage::Error(error) => {
                assert!(is_unusable(&error.error));
                (error.id, error.error.message.to_string())
            }
            other => panic!("no error: {other:?}"),
        },
        other => panic!("no message: {other:?}"),
    }
}

#[test]
fn empty_lines_are_nothing_and_texts_are_garbage() {
    for line in ["", "  ", "\r", "\u{feff}"] {
        assert!(
            matches!(read(line.as_bytes()), Incoming::Nothing),
            "{line:?}"
        );
    }
    for line in [
        "Server running on stdio",
        "[1,2]",
        "{",
        "{}",
        "\"text\"",
        "1",
        "{\"jsonrpc\":\"2.0\"}",
    ] {
        assert!(
            matches!(read(line.as_bytes()), Incoming::Garbage(_)),
            "{line:?}"
        );
    }
}

/// JavaScript cuts texts between the halves of an emoji: that cost the result, or with a cut description the server.
#[test]
fn what_readers_refuse_costs_its_place_alone() {
    let line =
        |result: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#).into_bytes();
    let read_result = |bytes: &[u8]| {
        let Incoming::Message(message) = read(bytes) else {
            panic!("no message: {}", String::from_utf8_lossy(bytes));
        };
        serde_json::to_value(&*message).unwrap()["result"].take()
    };
    let half = line(r#"{"content":[{"type":"text","text":"a\ud83db"}]}"#);
    let mut latin = line(r#"{"content":[{"type":"text","text":"a?b"}]}"#);
    let place = latin.iter().position(|byte| *byte == b'?').unwrap();
    latin[place] = 0xe9;
    for bytes in [half, latin] {
        let result = read_result(&bytes);
        assert_eq!(result["content"][0]["text"], "a\u{fffd}b");
        assert_eq!(result["_meta"][REPLACED_KEY], 1);
    }
    let number = line(r#"{"content":[],"structuredContent":{"n":1e400}}"#);
    assert_eq!(
        read_result(&number)["structuredContent"],
        json!({"n": null})
    );
    let deep = "{\"a\":".repeat(300) + "1" + &"}".repeat(300);
    let tools = format!(
        r#"{{"tools":[{{"name":"deep","inputSchema":{deep}}},{{"name":"good","inputSchema":{{"type":"object"}}}}]}}"#
    );
    let tools = read_result(&line(&tools));
    assert_eq!(tools["tools"][1]["name"], "good");
    assert_eq!(tools["_meta"][REPLACED_KEY], 1);
}

#[test]
fn an_answer_that_cannot_be_parsed_fails_its_request_at_once() {
    for (result, why) in [
        ("{\"a\":tru}", "expected ident"),
        ("{\"a\":01}", "invalid number"),
    ] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{result}}}");
        let (id, said) = error_of(line.as_bytes());
        assert_eq!(id, Some(RequestId::Number(7)));
        assert!(said.contains(why), "{said}");
    }
    for line in [
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":tru}",
        "{\"id\":7,\"result\":tru}",
    ] {
        assert!(
            matches!(read(line.as_bytes()), Incoming::Garbage(_)),
            "{line}"
        );
    }
}

#[test]
fn a_byte_order_mark_and_white_space_are_forgiven() {
    let line = "\u{feff} {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}} \r";
    assert!(matches!(
        message_of(line),
        ServerJsonRpcMessage::Response(_)
    ));
}

#[test]
fn one_malformed_tool_does_not_cost_the_list() {
    let line = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "no schema"},
        {"inputSchema": {"type": "object"}},
        7,
    ]}});
    let ServerJsonRpcMessage::Response(answer) = message_of(&line.to_string()) else {
        panic!("no response");
    };
    let ServerResult::ListToolsResult(list) = answer.result else {
        panic!("no list: {:?}", answer.result);
    };
    assert_eq!(list.tools.len(), 1);
    assert_eq!(list.meta.unwrap()[OMITTED_KEY], json!(3));
}

#[test]
fn an_answer_that_cannot_be_read_fails_its_request() {
    let line = br#"{"jsonrpc":"2.0","id":7,"error":{"code":"not a number","message":"x"}}"#;
    assert_eq!(error_of(line).0, Some(RequestId::Number(7)));
}

#[test]
fn a_message_of_too_many_values_fails_its_request() {
    let values = "[],".repeat(VALUES_MAX);
    let line = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"content":[{values}[]]}}}}"#);
    let (id, why) = error_of(line.as_bytes());
    assert_eq!(id, Some(RequestId::Number(3)));
    assert!(why.contains("values"), "{why}");
    let last = format!(r#"{{"result":{{"content":[{values}[]]}},"jsonrpc":"2.0","id":"4"}}"#);
    assert_eq!(
        error_of(last.as_bytes()).0,
        Some(RequestId::String("4".into()))
    );
}

#[test]
fn commas_in_texts_are_no_values() {
    let text = ",[{".repeat(VALUES_MAX);
    let line =
        json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}});
    assert!(matches!(
        message_of(&line.to_string()),
        ServerJsonRpcMessage::Response(_)
    ));
}

#[test]
fn the_ends_of_a_long_message_name_its_request() {
    let middle = vec![b'x'; 10 * ENDS_BYTES];
    for (first, last, id) in [
        (
            r#"{"jsonrpc":"2.0","id":5,"result":"#,
            "}",
            Some(RequestId::Number(5)),
        ),
        (
            r#"{"result":"#,
            r#","jsonrpc":"2.0","id": -6}"#,
            Some(RequestId::Number(-6)),
        ),
        (r#"{"result":"#, "}", None),
    ] {
        let mut ends = Ends::default();
        ends.push(first.as_bytes());
        ends.push(&middle);
        ends.push(last.as_bytes());
        assert_eq!(ends.n_bytes(), first.len() + middle.len() + last.len());
        assert!(ends.first.len() <= ENDS_BYTES && ends.last.len() <= ENDS_BYTES);
        match (ends.unusable(100), id) {
            (Incoming::Message(message), Some(id)) => match *message {
                ServerJsonRpcMessage::Error(error) => assert_eq!(error.id, Some(id)),
                other => panic!("no error: {other:?}"),
            },
            (Incoming::Garbage(_), None) => {}
            (other, id) => panic!("{other:?} for {id:?}"),
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(line in prop::collection::vec(any::<u8>(), 0..300)) {
        let _read = read(&line);
    }

    #[test]
    fn messages_with_a_byte_changed_are_read(at in 0_usize..200, byte in any::<u8>()) {
        let mut line = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [
            {"type": "text", "text": "a \"quoted\" text"}, {"type": "image", "data": "QQ==", "mimeType": "image/png"},
        ], "isError": false}}).to_string().into_bytes();
        let at = at % line.len();
        line[at] = byte;
        let _read = read(&line);
    }

    #[test]
    fn ends_hold_what_was_pushed(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..900), 0..6)) {
        let whole = pieces.concat();
        let mut ends = Ends::default();
        pieces.iter().for_each(|piece| ends.push(piece));
        prop_assert_eq!(ends.n_bytes(), whole.len());
        prop_assert_eq!(&ends.first[..], &whole[..whole.len().min(ENDS_BYTES)]);
        let last: Vec<u8> = ends.last.into_iter().collect();
        prop_assert_eq!(&last[..], &whole[whole.len().saturating_sub(ENDS_BYTES)..]);
    }
}

#[test]
fn a_tool_that_needs_a_task_is_marked() {
    let support = |support: &str| json!({ "name": "t", "inputSchema": {}, "execution": { "taskSupport": support } });
    for (tool, is_marked) in [
        (support("required"), true),
        (support("optional"), false),
        (json!({ "name": "t", "inputSchema": {} }), false),
    ] {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [tool] } }).to_string();
        let ServerJsonRpcMessage::Response(answer) = message_of(&line) else {
            panic!("{line}");
        };
        let ServerResult::ListToolsResult(list) = answer.result else {
            panic!("{line}");
        };
        let meta = list.tools[0].meta.as_ref();
        let marked = meta.is_some_and(|meta| meta.contains_key(TASK_KEY));
        assert_eq!(marked, is_marked, "{line}");
    }
}
