//! What the operator makes of the tools of a server: names, descriptions, arguments. Rules and records keep the server's own names.

use std::fs;

use serde_json::{Value, json};

use crate::product::{Product, answer};

/// A product with one server, and the choices for its tool `echo`.
fn product(choices: &str) -> Product {
    let product = Product::new();
    let server = product.work.parent().unwrap().join("server");
    let script = server.join("server.py");
    fs::create_dir(&server).unwrap();
    fs::write(&script, include_str!("mcp_servers/server.py")).unwrap();
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "[mcp.servers.notes]\ncommand = \"python3\"\nargs = [{script:?}]\nallow_read = [{server:?}]\n\n{choices}\n",
    );
    fs::write(folder.join("config.toml"), config).unwrap();
    product
}

fn call(product: &Product, args: &[&str], tool: &str, params: Value) -> Value {
    let line = json!({"id": 1, "tool": tool, "params": params}).to_string() + "\n";
    answer(&product.answers(args, line), 1).clone()
}

fn shown(product: &Product, name: &str) -> Option<Value> {
    let listed = product.run(&["tools", "--json"]).json();
    let found = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == name);
    found.cloned()
}

#[test]
fn rules_and_records_hold_under_either_name() {
    let product = product(
        "[mcp.servers.notes.tools.echo]\nname = \"say\"\ndescription = \"Says it again.\"\n",
    );
    let tool = shown(&product, "say").unwrap();
    assert_eq!(tool["description"], "Says it again.");
    assert_eq!(tool["backend"]["mcp"]["tool"], "echo");
    for rule in ["say", "mcp_notes_echo"] {
        let said = call(
            &product,
            &["--allow", rule],
            "say",
            json!({"text": "hello"}),
        );
        assert_eq!(said["status"], "ok", "{rule}: {said:#}");
    }
    let asked = call(&product, &[], "say", json!({"text": "hello"}));
    assert_eq!(
        asked["error"]["category"], "confirmation_required",
        "{asked:#}"
    );
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let last = records.last().unwrap();
    assert_eq!(last["tool"], "mcp_notes_echo", "{last:#}");
}

#[test]
fn arguments_are_fixed_and_restricted() {
    let product =
        product("[mcp.servers.notes.tools.echo.arguments]\ntext = { allow = [\"hello*\"] }\n");
    let allowed = ["--allow", "mcp_notes_echo"];
    let said = call(
        &product,
        &allowed,
        "mcp_notes_echo",
        json!({"text": "hello you"}),
    );
    assert_eq!(said["status"], "ok", "{said:#}");
    let refused = call(
        &product,
        &allowed,
        "mcp_notes_echo",
        json!({"text": "other"}),
    );
    assert_eq!(
        refused["error"]["category"], "policy_blocked",
        "{refused:#}"
    );
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("mcp.servers.notes.tools.echo.arguments.text.allow"),
        "{message}"
    );
    // The record of the refusal names the server, too.
    let rows = product.run(&["audit", "query", "--json"]).json_lines();
    assert_eq!(rows.len(), 2, "{rows:#?}");
    for row in &rows {
        assert_eq!(row["tool"], "mcp_notes_echo", "{row}");
        assert_eq!(row["mcp_server_id"], "notes", "{row}");
    }
}

#[test]
fn a_fixed_argument_is_not_seen() {
    let product =
        product("[mcp.servers.notes.tools.echo.arguments]\ntext = { fixed = \"always\" }\n");
    let tool = shown(&product, "mcp_notes_echo").unwrap();
    assert!(
        tool["parameters"]["properties"]["text"].is_null(),
        "{tool:#}"
    );
    let said = call(
        &product,
        &["--allow", "mcp_notes_echo"],
        "mcp_notes_echo",
        json!({}),
    );
    assert!(
        said["text"].as_str().unwrap_or_default().contains("always"),
        "{said:#}"
    );
}

#[test]
fn a_tool_that_is_not_enabled_is_not_there() {
    let product = product("[mcp.servers.notes.tools.echo]\nenabled = false\n");
    assert!(shown(&product, "mcp_notes_echo").is_none());
    assert!(shown(&product, "mcp_notes_files_read").is_some());
}
