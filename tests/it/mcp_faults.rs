//! Faults of the protocol over standard input: one clear answer each, and the next call works.

use serde_json::{Value, json};

use crate::mcp_client::{MODERN, McpClient, modern_meta, text};
use crate::product::Product;

fn works(client: &mut McpClient) {
    let done = client.call("list_directory", json!({"path": "."}));
    assert_eq!(done["isError"], false, "{done}");
}

#[test]
fn what_is_no_message_has_one_answer_and_the_next_call_works() {
    let product = Product::new();
    let lines: &[(&[u8], i64)] = &[
        (b"{", -32700),
        (b"\xff\xff", -32700),
        (b"[]", -32600),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32600,
        ),
        (b"\"text\"", -32600),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/list\"}",
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/list\"}",
            -32600,
        ),
        (b"{\"jsonrpc\":\"2.0\"}", -32600),
    ];
    for mut client in McpClient::each(&product, &[]) {
        for (line, code) in lines {
            client.write(line);
            let answer = client.answer(Value::Null);
            let shown = String::from_utf8_lossy(line);
            assert_eq!(answer["error"]["code"], *code, "{shown}: {answer}");
            works(&mut client);
        }
        assert!(client.unread.is_empty(), "{:#?}", client.unread);
    }
}

#[test]
fn what_asks_for_nothing_that_there_is_has_one_answer() {
    let product = Product::new();
    for mut client in McpClient::each(&product, &[]) {
        for (method, params, code) in [
            ("tools/nothing", json!({}), -32601),
            ("", json!({}), -32601),
            ("logging/setLevel", json!({"level": "debug"}), -32601),
            ("prompts/get", json!({"name": "x"}), -32601),
            ("tools/call", json!({}), -32602),
            ("tools/call", json!({"name": 5}), -32602),
            (
                "tools/call",
                json!({"name": "read", "arguments": [1]}),
                -32602,
            ),
            (
                "tools/call",
                json!({"name": "x".repeat(100_000), "arguments": {}}),
                -32602,
            ),
            ("tools/list", json!({"cursor": "x"}), -32602),
            ("resources/read", json!({}), -32602),
        ] {
            let answer = client.request(method, params);
            assert_eq!(answer["error"]["code"], code, "{method}: {answer:.500}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.len() < 4_000, "{method}: {}", message.len());
            works(&mut client);
        }
    }
}

#[test]
fn a_line_of_a_hundred_megabytes_has_one_answer() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &[], &json!({}));
    let huge = json!({
        "jsonrpc": "2.0", "id": 77, "method": "tools/call",
        "params": {"name": "grep", "arguments": {"pattern": "x".repeat(100 << 20)}},
    });
    client.write(huge.to_string());
    let answer = client.answer(json!(77));
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("mcp.serve.max_body_bytes"), "{message}");
    works(&mut client);
}

#[test]
fn the_second_request_of_an_id_in_progress_is_refused() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &["--allow", "bash"], &json!({}));
    let id = client.begin_call(
        "bash",
        json!({"command": "echo first; until [ -e go ]; do sleep 0.02; done"}),
    );
    client.write(json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string());
    let refused = client.answer(id);
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    product.file("go", "");
    let answer = client.answer(id);
    assert!(text(&answer["result"]).contains("first"), "{answer}");
    // An id that is answered is free again.
    client.write(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string());
    assert_eq!(client.answer(id)["result"], json!({}));
}

#[test]
fn a_revision_that_there_is_not_is_refused_by_name() {
    let product = Product::new();
    // The old revisions agree on one that both speak.
    let mut client = McpClient::start(&product, &[]);
    let params = json!({
        "protocolVersion": "1999-01-01",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let answer = client.request("initialize", params);
    assert_eq!(
        answer["result"]["protocolVersion"], "2025-11-25",
        "{answer}"
    );
    works(&mut client);

    // In the new one each request names its own.
    let mut client = McpClient::modern(&product, &[], &json!({}));
    let mut meta = modern_meta(&json!({}));
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    for _ in 0..2 {
        let refused = client.request("tools/list", json!({"_meta": meta}));
        assert_eq!(refused["error"]["code"], -32022, "{refused}");
        let supported = refused["error"]["data"]["supported"].as_array().unwrap();
        assert!(supported.contains(&json!(MODERN)), "{refused}");
        works(&mut client);
    }
}

#[test]
fn nothing_before_the_beginning_ends_the_server() {
    let product = Product::new();
    let mut client = McpClient::start(&product, &[]);
    client.notify("notifications/initialized", json!({}));
    client.notify("notifications/cancelled", json!({"requestId": 1}));
    client.reply(&json!(9), json!({}));
    let refused = client.request("tools/list", json!({}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    client.write("{");
    assert_eq!(client.answer(Value::Null)["error"]["code"], -32700);
    client.meta = Some(modern_meta(&json!({})));
    works(&mut client);
}
