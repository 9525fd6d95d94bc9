//! Calls that outlive their request, and a catalog that is searched, over the Model Context Protocol.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::{McpClient, PATIENCE, result, text};
use crate::product::Product;

pub(crate) fn capable() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Asks about a task until it has ended.
pub(crate) fn ended(client: &mut McpClient, task: &Value) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = result(client.request("tasks/get", json!({"taskId": task})));
        if state["status"] != "working" {
            return state;
        }
        assert!(Instant::now() < deadline, "{state}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_command_in_the_background_is_a_task_that_carries_its_output() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &["--allow", "bash"], &capable());
    let command = "until [ -e go ]; do sleep 0.01; done; echo finished; exit 3";
    let begun = client.call("bash", json!({"command": command, "background": true}));
    assert_eq!(begun["resultType"], "task", "{begun}");
    let task = begun["taskId"].clone();
    let working = result(client.request("tasks/get", json!({"taskId": task})));
    assert_eq!(working["status"], "working", "{working}");
    product.file("go", "");
    let done = ended(&mut client, &task);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["isError"], true, "{done}");
    assert!(text(&done["result"]).contains("finished"), "{done}");
    // It is told once.
    let next = client.call("list_runs", json!({}));
    assert!(!text(&next).contains("finished"), "{next}");
}

/// Whatever a server was killed over is told as unknown by the next one, which makes no call again.
#[test]
fn a_task_of_a_killed_server_ends_at_the_next() {
    let product = Product::new();
    let conversation = "--conversation=01900000-0000-7000-8000-000000000001";
    let args = ["--allow", "bash", conversation];
    let mut client = McpClient::modern(&product, &args, &capable());
    let command = json!({"command": "sleep 1000", "background": true});
    let begun = client.call("bash", command);
    assert_eq!(begun["resultType"], "task", "{begun}");
    client.kill();
    let mut client = McpClient::modern(&product, &args, &capable());
    let done = ended(&mut client, &begun["taskId"]);
    assert_eq!(done["status"], "failed", "{done}");
    assert!(
        done["statusMessage"].to_string().contains("not made again"),
        "{done}"
    );
}

#[test]
fn cancelling_a_task_ends_what_it_runs() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &["--allow", "bash"], &capable());
    let begun = client.call(
        "bash",
        json!({"command": "echo $$ > pid; sleep 1000", "background": true}),
    );
    let task = begun["taskId"].clone();
    result(client.request("tasks/cancel", json!({"taskId": task})));
    let cancelled = ended(&mut client, &task);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    let runs = client.call("list_runs", json!({}));
    assert!(text(&runs).contains("Nothing runs"), "{runs}");
}

/// It takes the ten seconds after which a call becomes a task.
#[test]
fn a_long_call_becomes_a_task_that_can_be_cancelled() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &["--allow", "bash"], &capable());
    let long = json!({"command": "echo begun; until [ -e go ]; do sleep 0.01; done; echo over"});
    let ids = [(); 2].map(|()| client.begin_call("bash", long.clone()));
    let [first, second] = ids.map(|id| {
        let begun = result(client.answer(id));
        assert_eq!(begun["resultType"], "task", "{begun}");
        begun["taskId"].clone()
    });
    result(client.request("tasks/cancel", json!({"taskId": first})));
    assert_eq!(ended(&mut client, &first)["status"], "cancelled");
    product.file("go", "");
    let done = ended(&mut client, &second);
    assert_eq!(done["status"], "completed", "{done}");
    assert!(text(&done["result"]).contains("over"), "{done}");
}

/// A server whose one tool asks once there is a file `ask`, and goes on without an answer once there is a file `go-on`.
const LATE: &str = r#"
import json, os, sys, threading, time

def out(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.02)

def call(id):
    wait_for("ask")
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    out({"id": "q", "method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}})
    wait_for("go-on")
    out({"method": "notifications/cancelled", "params": {"requestId": "q"}})
    out({"id": id, "result": {"content": [{"type": "text", "text": "went on without an answer"}]}})

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method is None or id is None:
        continue
    if method == "initialize":
        info = {"name": "late", "version": "1"}
        out({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        out({"id": id, "result": {"tools": [{"name": "late", "description": "late", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        threading.Thread(target=call, args=[id], daemon=True).start()
    else:
        out({"id": id, "error": {"code": -32601, "message": "no"}})
"#;

/// A client with a task whose server asks it something.
fn asking(product: &Product) -> (McpClient, Value) {
    product.file("late.py", LATE);
    let args = ["wrap", "--name", "late", "--", "python3", "late.py"];
    let mut client = McpClient::modern_of(product, &args, &capable());
    let begun = client.call("late", json!({}));
    assert_eq!(begun["resultType"], "task", "{begun}");
    let task = begun["taskId"].clone();
    product.file("ask", "");
    let asked = ended(&mut client, &task);
    assert_eq!(asked["status"], "input_required", "{asked}");
    (client, task)
}

/// It takes the ten seconds after which a call becomes a task.
#[test]
fn a_task_asks_no_more_once_its_call_has_gone_on() {
    let product = Product::new();
    let (mut client, task) = asking(&product);
    product.file("go-on", "");
    let deadline = Instant::now() + PATIENCE;
    let done = loop {
        let state = ended(&mut client, &task);
        if state["status"] != "input_required" {
            break state;
        }
        assert!(Instant::now() < deadline, "{state}");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(done["status"], "completed", "{done}");
    assert!(text(&done["result"]).contains("went on"), "{done}");
}

/// The same.
#[test]
fn a_question_that_nobody_answers_keeps_no_server_behind_its_client() {
    let product = Product::new();
    let (mut client, _task) = asking(&product);
    client.close();
    client.ended();
}

#[test]
fn a_task_is_none_of_a_client_that_has_not_begun_it() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &["--allow", "bash"], &capable());
    for method in ["tasks/get", "tasks/cancel"] {
        let unknown = client.request(method, json!({"taskId": "nobody's"}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    // A client that has not declared the extension gets no task.
    let mut plain = McpClient::modern(&product, &["--allow", "bash"], &json!({}));
    let begun = plain.call("bash", json!({"command": "true", "background": true}));
    assert_eq!(begun["resultType"], "complete", "{begun}");
    assert!(text(&begun).contains("[background] started"), "{begun}");
}

fn searching() -> [&'static str; 2] {
    ["--set", r#"mcp.serve.expose="search""#]
}

#[test]
fn a_long_catalog_is_searched() {
    let product = Product::new();
    product.file("notes.txt", "one\ntwo\n");
    for mut client in McpClient::each(&product, &searching()) {
        let tools = client.tools();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["find_tool", "call_tool", "read_overflow"]);
        let found = client.call("find_tool", json!({"query": "read a file"}));
        let best = &found["structuredContent"]["tools"][0];
        assert_eq!(best["name"], "read", "{found}");
        assert_eq!(best["inputSchema"]["required"], json!(["path"]), "{found}");
        let arguments = json!({"name": "read", "arguments": {"path": "notes.txt"}});
        let done = client.call("call_tool", arguments);
        assert!(text(&done).contains("two"), "{done}");
        let wrong = client.call("call_tool", json!({"name": "call_tool"}));
        assert_eq!(wrong["isError"], true, "{wrong}");
        let params = json!({"name": "call_tool", "arguments": {"name": "nothing"}});
        let unknown = client.request("tools/call", params);
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        let message = unknown["error"]["message"].as_str().unwrap();
        let expected = "no tool is named `nothing`; find tools with `find_tool`";
        assert_eq!(message, expected);
    }
    let mut client = McpClient::modern(&product, &[], &json!({}));
    let params = json!({"name": "find_tool", "arguments": {"query": "read"}});
    let unknown = client.request("tools/call", params);
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn rules_and_approvals_are_those_of_the_real_tool() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &searching(), &capable());
    let meant = json!({"name": "write", "arguments": {"path": "a.txt", "content": "x"}});
    let required = client.call("call_tool", meant.clone());
    let message = &required["inputRequests"]["approval"]["params"]["message"];
    let message = message.as_str().unwrap();
    assert!(
        message.contains("write") && !message.contains("call_tool"),
        "{message}"
    );
    let params = json!({
        "name": "call_tool",
        "arguments": meant,
        "requestState": required["requestState"],
        "inputResponses": {"approval": {"action": "accept"}},
    });
    let done = result(client.request("tools/call", params));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(product.read("a.txt"), "x");
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    assert!(
        records.iter().all(|record| record["tool"] == "write"),
        "{records:#?}"
    );
    let mut denied = McpClient::modern(
        &product,
        &[
            &searching()[..],
            &[
                "--set",
                r#"tools.permissions.write=[{pattern = "*", action = "deny"}]"#,
            ],
        ]
        .concat(),
        &json!({}),
    );
    let refused = denied.request("tools/call", json!({"name": "call_tool", "arguments": {"name": "write", "arguments": {"path": "b.txt", "content": "x"}}}));
    assert!(
        refused["error"].is_object() || refused["result"]["isError"] == true,
        "{refused}"
    );
    assert!(!product.work.join("b.txt").exists());
}
