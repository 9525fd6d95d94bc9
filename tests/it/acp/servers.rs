//! MCP servers of the client: in our sandbox, pinned, under our rules.

use serde_json::json;

use super::client::Client;
use super::model::{Model, calls, says};
use super::{plain, product, with_config};

const SERVER: &str = include_str!("../mcp_servers/server.py");

#[test]
fn a_server_of_the_client_runs_in_the_sandbox() {
    let model = Model::new([
        calls("mcp_notes_variable", json!({"text": "COLOR"})),
        calls("mcp_notes_files_read", json!({"path": "../home/secret"})),
        says("done"),
    ]);
    let product = product(&model);
    product.file("server.py", SERVER);
    let secret = product.home.join("secret");
    std::fs::write(&secret, "hidden\n").unwrap();
    let mut client = Client::start(&product, &[], plain());
    let server = json!({
        "name": "notes", "command": "python3", "args": [product.work.join("server.py")],
        "env": [{"name": "COLOR", "value": "given-by-the-editor"}],
    });
    let new = json!({"cwd": product.work, "mcpServers": [server]});
    let session = client.ask("session/new", new).unwrap()["sessionId"].clone();
    let mut n_asked = 0;
    client.prompt(session.as_str().unwrap(), "go", |client, request| {
        assert_eq!(request["method"], "session/request_permission");
        n_asked += 1;
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        client.answer(request, &outcome);
    });
    assert_eq!(n_asked, 2, "an untrusted server is believed nothing");
    let ends = client.of_kind("tool_call_update");
    assert_eq!(ends.len(), 2);
    assert!(
        ends[0]["content"]
            .to_string()
            .contains("given-by-the-editor"),
        "{}",
        ends[0]
    );
    let told = model.requests()[2]["messages"].to_string();
    assert!(!told.contains("hidden"), "{told}");
    assert_eq!(client.leave(), Some(0));
    // Its tools are pinned now: one that says something else is off.
    let lock = std::fs::read_to_string(product.home.join(".config/zeph-host/zeph.lock")).unwrap();
    assert!(lock.contains("notes"), "{lock}");
}

/// Its reason stood in the log of the editor alone.
#[test]
fn a_server_of_the_client_that_fails_to_start_is_told_to_its_user() {
    let model = Model::new([]);
    let product = product(&model);
    product.file("server.py", SERVER);
    let mut client = Client::start(&product, &[], plain());
    let servers = json!([
        {"name": "gone", "command": product.work.join("no-such-program"), "args": [], "env": []},
        {"name": "notes", "command": "python3", "args": [product.work.join("server.py")], "env": []},
    ]);
    let new = json!({"cwd": product.work, "mcpServers": servers});
    client.ask("session/new", new).unwrap();
    client.until(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    let told = client.text();
    assert!(
        told.starts_with("MCP server `gone`: it does not run: "),
        "{told}"
    );
    assert!(
        told.contains("sandbox") && !told.contains("`notes`"),
        "{told}"
    );
    assert_eq!(client.of_kind("agent_message_chunk").len(), 1, "{told}");
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn a_server_of_the_operator_is_not_replaced_by_one_of_the_client() {
    let model = Model::new([
        calls("mcp_notes_variable", json!({"text": "WHO"})),
        says("done"),
    ]);
    let product = with_config(
        &model,
        "[mcp.servers.notes]\ncommand = \"python3\"\nargs = [\"server.py\"]\nenv = { WHO = \"operator\" }\nallow_read = [\".\"]",
    );
    product.file("server.py", SERVER);
    let mut client = Client::start(&product, &["--allow", "mcp_notes_variable"], plain());
    let server = json!({
        "name": "notes", "command": "false", "args": [],
        "env": [{"name": "WHO", "value": "client"}],
    });
    let new = json!({"cwd": product.work, "mcpServers": [server]});
    let session = client.ask("session/new", new).unwrap()["sessionId"].clone();
    client.prompt(session.as_str().unwrap(), "go", |_, request| {
        panic!("{request}")
    });
    let (_, ended) = client.ended_call();
    assert!(ended["content"].to_string().contains("operator"), "{ended}");
}

/// The operator's rules for `notes` do not cover it.
#[test]
fn a_server_of_the_client_takes_no_names_of_one_of_the_operator() {
    let model = Model::new([
        calls("mcp_notes-more_variable", json!({"text": "WHO"})),
        says("done"),
    ]);
    let product = with_config(
        &model,
        "[mcp.servers.notes]\ncommand = \"python3\"\nargs = [\"server.py\"]\nallow_read = [\".\"]",
    );
    product.file("server.py", SERVER);
    let mut client = Client::start(&product, &["--allow", "mcp_notes_*"], plain());
    let server = json!({
        "name": "notes_more", "command": "python3", "args": [product.work.join("server.py")],
        "env": [{"name": "WHO", "value": "client"}],
    });
    let new = json!({"cwd": product.work, "mcpServers": [server]});
    let session = client.ask("session/new", new).unwrap()["sessionId"].clone();
    let mut n_asked = 0;
    client.prompt(session.as_str().unwrap(), "go", |client, request| {
        n_asked += 1;
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        client.answer(request, &outcome);
    });
    assert_eq!(n_asked, 1);
    let (_, ended) = client.ended_call();
    assert!(ended["content"].to_string().contains("client"), "{ended}");
}

/// Names in letters of other scripts come to the same one.
#[test]
fn servers_of_the_client_with_names_that_are_alike_are_both_there() {
    let who = |tool: &str| calls(tool, json!({"text": "WHO"}));
    let tools = [
        "mcp_server_variable",
        "mcp_server-2_variable",
        "mcp_My-Notes_variable",
        "mcp_My-Notes-2_variable",
    ];
    let model = Model::new(tools.map(who).into_iter().chain([says("done")]));
    let product = with_config(&model, "");
    product.file("server.py", SERVER);
    let args = ["--set", "agent.max_tool_iterations=9"];
    let mut client = Client::start(&product, &args, plain());
    let names = ["数据库", "文件服", "My Notes", "My-Notes"];
    let servers = names.iter().enumerate().map(|(idx, name)| {
        json!({
            "name": name, "command": "python3", "args": [product.work.join("server.py")],
            "env": [{"name": "WHO", "value": format!("number {idx} it is")}],
        })
    });
    let servers: Vec<_> = servers.collect();
    let new = json!({"cwd": product.work, "mcpServers": servers});
    let session = client.ask("session/new", new).unwrap()["sessionId"].clone();
    client.prompt(session.as_str().unwrap(), "go", |client, request| {
        assert_eq!(request["method"], "session/request_permission");
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        client.answer(request, &outcome);
    });
    let told = model.requests().pop().unwrap()["messages"].to_string();
    for idx in 0..names.len() {
        assert!(
            told.contains(&format!("number {idx} it is")),
            "{idx}: {told}"
        );
    }
}

#[test]
fn a_server_that_cannot_be_is_refused_in_words() {
    let model = Model::new([]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    for server in [
        json!({"type": "sse", "name": "a", "url": "https://example.com/sse", "headers": []}),
        json!({"type": "http", "name": "b", "url": "ftp://example.com", "headers": []}),
        json!({"name": "c", "command": "x", "args": [], "env": [{"name": "A=B", "value": "secret-value"}]}),
    ] {
        let new = json!({"cwd": product.work, "mcpServers": [server]});
        let error = client.ask("session/new", new).unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(!error.to_string().contains("secret-value"), "{error}");
    }
}
