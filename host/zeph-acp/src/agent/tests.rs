//! The messages of agents as they are written.

use serde_json::json;

use super::{InitializeRequest, LoadSessionRequest, McpServer, NewSessionRequest};

#[test]
fn what_a_client_does_not_name_it_cannot_do() {
    let read = |value| serde_json::from_value::<InitializeRequest>(value).unwrap();
    let bare = read(json!({"protocolVersion": 1, "clientCapabilities": null}));
    assert!(!bare.client_capabilities.terminal);
    let able = read(json!({
        "protocolVersion": 7,
        "clientCapabilities": {"fs": {"readTextFile": true}, "terminal": true, "new": {}},
        "clientInfo": {"name": "editor", "version": "1"},
    }));
    assert!(able.client_capabilities.terminal);
    assert!(able.client_capabilities.fs.read_text_file);
    assert!(!able.client_capabilities.elicitation.form);
    for (elicitation, has_form) in [
        (json!({}), false),
        (json!(null), false),
        (json!({"url": {}}), false),
        (json!({"form": null}), false),
        (json!({"form": {}, "url": {}}), true),
    ] {
        let read = read(json!({
            "protocolVersion": 1,
            "clientCapabilities": {"elicitation": elicitation},
        }));
        assert_eq!(read.client_capabilities.elicitation.form, has_form);
    }
    assert!(!able.client_capabilities.fs.write_text_file);
}

#[test]
fn servers_are_programs_or_addresses() {
    let request: NewSessionRequest = serde_json::from_value(json!({
        "cwd": "/src",
        "mcpServers": [
            {"name": "a", "command": "/bin/a", "args": ["x"], "env": [{"name": "K", "value": "v"}]},
            {"type": "http", "name": "b", "url": "https://b.example/mcp", "headers": []},
        ],
    }))
    .unwrap();
    assert!(matches!(&request.mcp_servers[0], McpServer::Stdio { name, .. } if name == "a"));
    assert!(matches!(&request.mcp_servers[1], McpServer::Remote { kind, .. } if kind == "http"));
    assert!(!format!("{request:?}").contains("\"v\""), "{request:?}");
}

#[test]
fn a_session_that_goes_on_has_a_place() {
    let request: LoadSessionRequest =
        serde_json::from_value(json!({"sessionId": "s", "cwd": "/src", "mcpServers": []})).unwrap();
    assert_eq!(
        (request.session_id.as_str(), request.place.cwd.as_str()),
        ("s", "/src")
    );
}
