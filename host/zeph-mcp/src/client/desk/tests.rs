use std::sync::Arc;
use std::time::Duration;

use rmcp::model::RequestId;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::complaint::Complaints;
use super::super::listener::{Deaf, ServerListener};
use super::{Desk, Verdict};

/// The desk of a server of which nothing is heard.
fn desk() -> Desk {
    let listener: Arc<dyn ServerListener> = Arc::new(Deaf);
    Desk::new(Arc::clone(&listener), Complaints::new(listener))
}

fn sends(desk: &Desk, message: Value) {
    desk.sent(&mut serde_json::from_value(message).unwrap());
}

fn receives(desk: &Desk, message: Value) {
    let verdict = desk.received(serde_json::from_value(message).unwrap());
    assert!(matches!(verdict, Verdict::Pass(_)));
}

fn calls(desk: &Desk, id: i64) {
    let params = json!({"name": "ask", "arguments": {}});
    sends(
        desk,
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}),
    );
}

fn is_asked(desk: &Desk, id: &str) {
    let form = json!({"type": "object", "properties": {}});
    let params = json!({"message": "Who?", "requestedSchema": form});
    receives(
        desk,
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}),
    );
}

/// Which of the questions nobody waits for any more.
async fn given_up(desk: &Desk, ids: &[&'static str]) -> Vec<&'static str> {
    let mut all = Vec::new();
    for id in ids {
        let asked = RequestId::String((*id).into());
        let over = desk.nobody_waits(&asked);
        if timeout(Duration::ZERO, over).await.is_ok() {
            all.push(*id);
        }
    }
    all
}

#[tokio::test]
async fn a_question_is_given_up_with_the_last_call_it_may_be_for() {
    let desk = desk();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    sends(&desk, list);
    is_asked(&desk, "before");
    calls(&desk, 2);
    calls(&desk, 3);
    is_asked(&desk, "both");
    receives(
        &desk,
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}),
    );
    let result = json!({"content": []});
    receives(&desk, json!({"jsonrpc": "2.0", "id": 2, "result": result}));
    is_asked(&desk, "later");
    let all = ["before", "both", "later"];
    assert_eq!(given_up(&desk, &all).await, [""; 0]);
    sends(
        &desk,
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}),
    );
    assert_eq!(given_up(&desk, &all).await, ["both", "later"]);
}
