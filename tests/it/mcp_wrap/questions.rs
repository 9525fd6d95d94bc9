//! What passes while a call runs: its progress, what the server asks, and the end of both.

use serde_json::json;

use super::{product, wrapped};
use crate::mcp_client::{result, text};

#[test]
fn progress_questions_and_cancellation_pass() {
    let product = product();
    let mut client = wrapped(&product, &[], &json!({"elicitation": {}}));
    let params = json!({"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": "p"}});
    let id = client.begin("tools/call", params);
    let told = client.told("notifications/progress");
    assert_eq!(
        (&told["params"]["progressToken"], &told["params"]["total"]),
        (&json!("p"), &json!(3.0)),
        "{told}"
    );
    result(client.answer(id));

    let id = client.begin_call("ask", json!({}));
    let asked = client.told("elicitation/create");
    assert_eq!(asked["params"]["message"], "What is your name?", "{asked}");
    client.reply(
        &asked["id"],
        json!({"action": "accept", "content": {"name": "Ada"}}),
    );
    let done = result(client.answer(id));
    assert!(text(&done).contains("Ada"), "{done}");

    let id = client.begin_call("wait", json!({}));
    client.notify("notifications/cancelled", json!({"requestId": id}));
    // The server goes on with the next one.
    assert_eq!(text(&client.call("echo", json!({"text": "next"}))), "next");
}

#[test]
fn a_question_that_nobody_waits_for_is_taken_back() {
    let product = product();
    let mut client = wrapped(&product, &[], &json!({"elicitation": {}}));
    let read = ("resources/read", json!({"uri": "note:one"}));
    for tool in ["leave", "withdraw", "ask"] {
        let call = client.begin_call(tool, json!({}));
        let asked = client.told("elicitation/create");
        match tool {
            "ask" => client.notify("notifications/cancelled", json!({"requestId": call})),
            // The server waits for it before it goes on.
            _ => drop(result(client.request(read.0, read.1.clone()))),
        }
        let told = client.told("notifications/cancelled");
        assert_eq!(told["params"]["requestId"], asked["id"], "{tool}: {told}");
        if tool == "withdraw" {
            // The call was open all the time.
            client.request(read.0, read.1.clone());
        }
    }
}
