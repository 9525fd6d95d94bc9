//! Conversations over HTTP: what belongs to one caller and one conversation is nobody else's.

use std::time::Instant;

use serde_json::{Value, json};

use crate::mcp_client::{PATIENCE, modern_meta, text};
use crate::mcp_ends::Sleep;
use crate::mcp_http_client::{HttpServer, add_token, message, modern_call};
use crate::product::Product;

const HANDLE: &str = "zeph.host/conversation";

/// A call in the conversation of this handle, or in one of its own.
fn call(server: &HttpServer, token: &str, handle: &Value, tool: &str, arguments: &Value) -> Value {
    let mut meta = modern_meta(&json!({}));
    if !handle.is_null() {
        meta[HANDLE] = handle.clone();
    }
    let (headers, body) = modern_call(tool, arguments, &meta);
    let reply = server.request("POST /mcp", &format!("{token}{headers}"), &body);
    reply.result()
}

fn read_resource(server: &HttpServer, token: &str, uri: &Value) -> String {
    let params = json!({"uri": uri, "_meta": modern_meta(&json!({}))});
    let headers = format!(
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: resources/read\r\nmcp-name: {}\r\n",
        uri.as_str().unwrap()
    );
    let body = message("resources/read", &params);
    server
        .request("POST /mcp", &format!("{token}{headers}"), &body)
        .body
}

fn link(result: &Value) -> Value {
    let blocks = result["content"].as_array().unwrap();
    let link = blocks.iter().find(|block| block["type"] == "resource_link");
    link.unwrap_or_else(|| panic!("{result:.2000}"))["uri"].clone()
}

#[test]
fn a_call_without_a_handle_begins_a_conversation_and_one_with_it_goes_on() {
    let product = Product::new();
    product.file("a/file.txt", "");
    let server = HttpServer::start(&product, &["--allow", "bash"]);
    let none = Value::Null;
    let first = call(&server, "", &none, "bash", &json!({"command": "cd a"}));
    let handle = first["_meta"][HANDLE].clone();
    assert!(handle.is_string(), "{first}");
    let there = call(&server, "", &handle, "bash", &json!({"command": "ls"}));
    assert_eq!(there["structuredContent"]["stdout"], "file.txt\n");
    assert_eq!(there["_meta"][HANDLE], handle);
    let other = call(&server, "", &none, "bash", &json!({"command": "ls"}));
    assert_eq!(other["structuredContent"]["stdout"], "a\n");
    assert_ne!(other["_meta"][HANDLE], handle);
}

#[test]
fn an_output_is_read_by_its_caller_alone_with_and_without_a_handle() {
    let product = Product::new();
    product.file("long.txt", "line\n".repeat(20_000));
    let server = HttpServer::start(&product, &["--allow", "bash"]);
    let alice = add_token(&product, &["alice"]);
    let bob = add_token(&product, &["bob"]);
    let none = Value::Null;
    let long = json!({"command": "cat long.txt"});
    let cut = call(&server, &alice, &none, "bash", &long);
    let (uri, handle) = (link(&cut), cut["_meta"][HANDLE].clone());
    let page = json!({"id": uri, "limit": 1});
    for handle in [&none, &handle] {
        let read = call(&server, &alice, handle, "read_overflow", &page);
        assert_eq!(read["isError"], false, "{read}");
        assert!(text(&read).contains("line"), "{read}");
    }
    let other = call(&server, &alice, &none, "bash", &json!({"command": "true"}));
    let foreign = call(
        &server,
        &alice,
        &other["_meta"][HANDLE],
        "read_overflow",
        &page,
    );
    assert_eq!(foreign["isError"], true, "{foreign}");
    let foreign = call(&server, &bob, &none, "read_overflow", &page);
    assert_eq!(foreign["isError"], true, "{foreign}");
    assert!(read_resource(&server, &alice, &uri).contains("line\\nline"));
    let refused = read_resource(&server, &bob, &uri);
    assert!(
        refused.contains("-32602") && !refused.contains("line\\nline"),
        "{refused}"
    );
}

#[test]
fn a_session_is_a_conversation_and_its_end_ends_its_runs() {
    let product = Product::new();
    product.file("a/file.txt", "");
    let server = HttpServer::start(&product, &["--allow", "bash"]);
    let session = server.open_session("");
    let bash = |arguments: Value| {
        let params = json!({"name": "bash", "arguments": arguments});
        let body = message("tools/call", &params);
        server.request("POST /mcp", &session, &body).result()
    };
    let first = bash(json!({"command": "cd a"}));
    let there = bash(json!({"command": "ls"}));
    assert_eq!(
        there["structuredContent"]["stdout"], "file.txt\n",
        "{there}"
    );
    assert_eq!(there["_meta"][HANDLE], first["_meta"][HANDLE]);
    let behind = Sleep::new();
    let mut background = behind.command();
    background["background"] = json!(true);
    bash(background);
    behind.begins();
    let ended = server.request("DELETE /mcp", &session, "");
    assert!(ended.status < 300, "{ended:?}");
    behind.ends();
}

#[test]
fn an_approved_call_is_made_again_without_a_handle() {
    let product = Product::new();
    let tokens = ["ann", "bob"].map(|name| add_token(&product, &[name]));
    let server = HttpServer::start(&product, &[]);
    let arguments = json!({"path": "a.txt", "content": "x"});
    let made = |token: &str| call(&server, token, &Value::Null, "write", &arguments);
    let asked = text(&made(&tokens[0]));
    let (_, line) = asked.split_once("one call with `").expect(&asked);
    let (_, rest) = line.split_once(" approve ").expect(&asked);
    let id: String = rest
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
        .collect();
    let approved = product.run(&["approve", &id, "--yes"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    // It is an approval of the one who asked.
    assert_eq!(made(&tokens[1])["isError"], true);
    let done = made(&tokens[0]);
    assert_eq!(done["isError"], false, "{done}");
}

#[test]
fn a_revoked_token_ends_its_background_commands_and_its_conversation() {
    let product = Product::new();
    let token = add_token(&product, &["ann"]);
    let server = HttpServer::start(&product, &["--allow", "bash"]);
    let behind = Sleep::new();
    let mut background = behind.command();
    background["background"] = json!(true);
    let begun = call(&server, &token, &Value::Null, "bash", &background);
    behind.begins();
    let revoked = product.run(&["token", "revoke", "ann"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    behind.ends();
    let anew = add_token(&product, &["ann"]);
    let mut meta = modern_meta(&json!({}));
    meta[HANDLE] = begun["_meta"][HANDLE].clone();
    let (headers, body) = modern_call("bash", &json!({"command": "true"}), &meta);
    let reply = server.request("POST /mcp", &format!("{anew}{headers}"), &body);
    assert!(reply.body.contains("-32602"), "{reply:?}");
}

/// What a client with this token is answered about a task.
fn asked(server: &HttpServer, token: &str, task: &Value) -> String {
    let id = task.as_str().unwrap();
    let headers = format!(
        "{token}mcp-protocol-version: 2026-07-28\r\nmcp-method: tasks/get\r\nmcp-name: {id}\r\n"
    );
    let body = message("tasks/get", &json!({"taskId": id, "_meta": capable()}));
    server.request("POST /mcp", &headers, &body).body
}

fn capable() -> Value {
    modern_meta(&json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}))
}

#[test]
fn what_a_task_came_to_is_read_with_the_token_that_began_it_alone() {
    let product = Product::new();
    let token = add_token(&product, &["ann"]);
    let server = HttpServer::start(&product, &["--allow", "bash"]);
    let command = json!({"command": "echo one two three", "background": true});
    let (headers, body) = modern_call("bash", &command, &capable());
    let begun = server.request("POST /mcp", &format!("{token}{headers}"), &body);
    let task = begun.result()["taskId"].clone();
    let deadline = Instant::now() + PATIENCE;
    while !asked(&server, &token, &task).contains("completed") {
        assert!(Instant::now() < deadline, "{begun:?}");
    }
    assert!(asked(&server, &token, &task).contains("one two three"));
    let revoked = product.run(&["token", "revoke", "ann"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    let anew = add_token(&product, &["ann"]);
    let answer = asked(&server, &anew, &task);
    assert!(answer.contains("-32602"), "{answer}");
    assert!(!answer.contains("one two three"), "{answer}");
}
