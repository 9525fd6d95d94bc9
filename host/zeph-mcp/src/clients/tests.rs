//! Every client's snippet as a whole, and merges into files as people have them.

use serde_json::{Value, json};

use super::{CLIENTS, Client, MergeError, Server, Transport};

fn stdio() -> Server {
    Server {
        name: "zeph".into(),
        transport: Transport::Stdio {
            command: "/opt/bin/zeph-host".into(),
            args: vec!["serve".into(), "--root".into(), "/data/a \"b\"".into()],
        },
    }
}

fn http(token: Option<&str>) -> Server {
    Server {
        name: "zeph".into(),
        transport: Transport::Http {
            url: "http://127.0.0.1:8765/mcp".into(),
            token: token.map(str::to_owned),
        },
    }
}

fn client(name: &str) -> &'static Client {
    Client::by_name(name).expect("a client")
}

/// As the client reads it: comments and trailing commas gone, TOML as JSON.
fn read(client: &Client, text: &str) -> Value {
    match client.name {
        "codex" => {
            let document: toml_edit::DocumentMut = text.parse().expect("TOML");
            as_json(document.as_item())
        }
        _ => jsonc_parser::cst::CstRootNode::parse(text, &Default::default())
            .expect("JSON")
            .to_serde_value()
            .expect("a value"),
    }
}

fn as_json(item: &toml_edit::Item) -> Value {
    match item {
        _ if item.is_table_like() => {
            let table = item.as_table_like().expect("a table");
            let pairs = table
                .iter()
                .map(|(key, item)| (key.to_owned(), as_json(item)));
            Value::Object(pairs.collect())
        }
        _ if item.is_array() => {
            let values = item.as_array().expect("an array").iter();
            values
                .map(|value| value.as_str().map(Value::from))
                .collect()
        }
        _ => item
            .as_str()
            .map(Value::from)
            .or(item.as_integer().map(Value::from))
            .into(),
    }
}

#[test]
fn a_client_starts_the_server_as_its_documentation_says() {
    let command =
        json!({"command": "/opt/bin/zeph-host", "args": ["serve", "--root", "/data/a \"b\""]});
    let mut typed = command.clone();
    typed["type"] = "stdio".into();
    for (name, expected) in [
        ("claude-code", json!({"mcpServers": {"zeph": typed}})),
        ("claude-desktop", json!({"mcpServers": {"zeph": command}})),
        ("codex", json!({"mcp_servers": {"zeph": command}})),
        ("cursor", json!({"mcpServers": {"zeph": typed}})),
        ("vscode", json!({"servers": {"zeph": typed}})),
        ("zed", json!({"context_servers": {"zeph": command}})),
        ("gemini", json!({"mcpServers": {"zeph": command}})),
    ] {
        let snippet = client(name).snippet(&stdio()).expect("a snippet");
        assert_eq!(read(client(name), &snippet), expected, "{name}");
    }
}

#[test]
fn a_client_is_told_where_the_token_is_in_its_own_way() {
    let url = "http://127.0.0.1:8765/mcp";
    let headers = |value: &str| json!({"Authorization": format!("Bearer {value}")});
    let input = json!([{"type": "promptString", "id": "ZT", "description": "Token of zeph-host", "password": true}]);
    for (name, expected) in [
        (
            "claude-code",
            json!({"mcpServers": {"zeph": {"type": "http", "url": url, "headers": headers("${ZT}")}}}),
        ),
        (
            "codex",
            json!({"mcp_servers": {"zeph": {"url": url, "bearer_token_env_var": "ZT"}}}),
        ),
        (
            "cursor",
            json!({"mcpServers": {"zeph": {"url": url, "headers": headers("${env:ZT}")}}}),
        ),
        (
            "vscode",
            json!({"servers": {"zeph": {"type": "http", "url": url, "headers": headers("${input:ZT}")}}, "inputs": input}),
        ),
        (
            "gemini",
            json!({"mcpServers": {"zeph": {"httpUrl": url, "headers": headers("${ZT}")}}}),
        ),
    ] {
        let snippet = client(name).snippet(&http(Some("ZT"))).expect("a snippet");
        assert_eq!(read(client(name), &snippet), expected, "{name}");
    }
    let zed = client("zed");
    assert_eq!(
        zed.snippet(&http(Some("ZT"))),
        Err(MergeError::NoToken("Zed"))
    );
    let snippet = zed.snippet(&http(None)).expect("a snippet");
    assert_eq!(
        read(zed, &snippet),
        json!({"context_servers": {"zeph": {"url": url}}})
    );
    let desktop = client("claude-desktop").snippet(&http(None));
    assert_eq!(desktop, Err(MergeError::NoHttp("Claude Desktop")));
}

/// What is not the entry's stays, to the last character: the lines of the file that was are lines of the file that is, in order.
#[test]
fn whatever_else_is_in_a_file_stays() {
    for (name, text) in [
        (
            "claude-code",
            "{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t},\n\t\"z\": 1,\n\t\"a\": 1.50\n}\n",
        ),
        (
            "vscode",
            "// mine\n{\n  \"inputs\": [\n    { \"id\": \"k\" }, // a key\n  ],\n  \"servers\": {\n    /* first */\n    \"b\": { \"url\": \"u\" },\n    \"a\": { \"url\": \"v\" },\n  },\n}\n",
        ),
        (
            "zed",
            "// Zed settings\n{\n  \"theme\": \"One\", // dark\n  \"vim_mode\": true,\n}\n",
        ),
        (
            "gemini",
            "{\r\n  \"theme\": \"x\",\r\n  \"mcpServers\": {}\r\n}\r\n",
        ),
        (
            "codex",
            "# mine\nmodel = 'o3'   # spelled so\n\n[mcp_servers.other]\ncommand = \"x\"\n\n# the end\n[features]\nweb = true\n",
        ),
        (
            "codex",
            "mcp_servers = { other = { command = \"x\" } } # one line\n",
        ),
        ("codex", "mcp_servers.other.command = \"x\"\n"),
    ] {
        for server in [stdio(), http((name != "zed").then_some("ZT"))] {
            let client = client(name);
            let merged = client.merge(text, &server, false).expect("merged");
            check_kept(client, text, &merged);
            assert_eq!(
                client.merge(&merged, &server, false).as_deref(),
                Ok(merged.as_str()),
                "{name}: twice"
            );
        }
    }
}

#[track_caller]
fn check_kept(client: &Client, before: &str, after: &str) {
    let (old, new) = (read(client, before), read(client, after));
    let mut without = new.clone();
    let servers = without[client.servers].as_object_mut().expect("servers");
    assert!(servers.remove("zeph").is_some(), "{}: {after}", client.name);
    if let Some(inputs) = without["inputs"].as_array_mut() {
        inputs.retain(|input| input["id"] != "ZT");
    }
    let mut old = old;
    for value in [&mut old, &mut without] {
        let object = value.as_object_mut().expect("an object");
        object.retain(|_, value| !value.is_null() && *value != json!({}) && *value != json!([]));
    }
    assert_eq!(without, old, "{}", client.name);
    let starts = |line: &&str| ["#", "//", "/*"].iter().find_map(|mark| line.find(mark));
    let comments = before
        .lines()
        .filter_map(|line| starts(&line).map(|start| line[start..].trim()));
    for comment in comments {
        assert!(
            after.contains(comment),
            "{}: `{comment}` is gone:\n{after}",
            client.name
        );
    }
    assert_eq!(
        before.contains("\r\n"),
        after.contains("\r\n"),
        "{}",
        client.name
    );
    assert_eq!(
        before.ends_with('\n'),
        after.ends_with('\n'),
        "{}",
        client.name
    );
}

#[test]
fn an_entry_of_ours_is_updated_and_keeps_the_keys_of_its_user() {
    let old = "{\"mcpServers\": {\"zeph\": {\"command\": \"/old/zeph-host\", \"args\": [\"serve\"], \"env\": {\"A\": \"1\"}}}}";
    let client = client("claude-code");
    let merged = client.merge(old, &stdio(), false).expect("merged");
    let entry = &read(client, &merged)["mcpServers"]["zeph"];
    assert_eq!(entry["command"], "/opt/bin/zeph-host");
    assert_eq!(entry["env"], json!({"A": "1"}));

    // Another transport: what belonged to the command would be a mistake beside an address.
    let merged = client
        .merge(&merged, &http(Some("ZT")), false)
        .expect("merged");
    let entry = read(client, &merged)["mcpServers"]["zeph"].clone();
    assert_eq!(
        entry,
        json!({"type": "http", "url": "http://127.0.0.1:8765/mcp", "headers": {"Authorization": "Bearer ${ZT}"}})
    );

    // A header of its user stays beside the token.
    let mine = merged.replace("\"headers\": {", "\"headers\": {\"X-Mine\": \"1\",");
    let merged = client
        .merge(&mine, &http(Some("NEW")), false)
        .expect("merged");
    let headers = &read(client, &merged)["mcpServers"]["zeph"]["headers"];
    assert_eq!(
        *headers,
        json!({"X-Mine": "1", "Authorization": "Bearer ${NEW}"})
    );
}

#[test]
fn an_entry_of_ours_in_toml_keeps_its_comments() {
    let old = "[mcp_servers.zeph]\n# ours\ncommand = \"/old/zeph-host\" # where\nargs = [\"serve\"]\nstartup_timeout_sec = 5\n";
    let merged = client("codex").merge(old, &stdio(), false).expect("merged");
    let expected = "[mcp_servers.zeph]\n# ours\ncommand = \"/opt/bin/zeph-host\" # where\nargs = [\"serve\", \"--root\", '/data/a \"b\"']\nstartup_timeout_sec = 5\n";
    assert_eq!(merged, expected);
    let merged = client("codex")
        .merge(&merged, &http(None), false)
        .expect("merged");
    assert_eq!(
        merged,
        "[mcp_servers.zeph]\nurl = \"http://127.0.0.1:8765/mcp\"\n"
    );
}

#[test]
fn an_entry_of_ours_moves_to_another_port() {
    let old = |url: &str| json!({"mcpServers": {"zeph": {"type": "http", "url": url}}}).to_string();
    let client = client("claude-code");
    let merged = client.merge(&old("http://127.0.0.1:9000/mcp"), &http(None), false);
    let entry = read(client, &merged.expect("merged"))["mcpServers"]["zeph"].clone();
    assert_eq!(entry["url"], "http://127.0.0.1:8765/mcp");
    for other in [
        "http://127.0.0.1:9000/other",
        "https://127.0.0.1:9000/mcp",
        "http://10.0.0.1:8765/mcp",
    ] {
        let refused = client.merge(&old(other), &http(None), false);
        assert_eq!(refused, Err(MergeError::Foreign("zeph".into())), "{other}");
    }
    let mut named = http(None);
    named.name = "figma".to_owned();
    let old = old("http://127.0.0.1:3845/mcp").replace("zeph", "figma");
    let refused = client.merge(&old, &named, false);
    assert_eq!(refused, Err(MergeError::Foreign("figma".into())));
}

#[test]
fn the_ends_of_lines_stay_as_they_are() {
    let old = "# mine\r\n[mcp_servers.other]\r\ncommand = \"x\"\r\n";
    let merged = client("codex").merge(old, &stdio(), false).expect("merged");
    assert!(merged.starts_with(old), "{merged:?}");
    assert_eq!(merged.matches('\n').count(), merged.matches("\r\n").count());
}

#[test]
fn an_entry_of_another_program_is_replaced_only_by_force() {
    for (name, text) in [
        (
            "claude-code",
            "{\"mcpServers\": {\"zeph\": {\"command\": \"/bin/other\", \"env\": {\"A\": \"1\"}}}}",
        ),
        (
            "claude-code",
            "{\"mcpServers\": {\"zeph\": {\"type\": \"http\", \"url\": \"https://example.com/mcp\"}}}",
        ),
        ("claude-code", "{\"mcpServers\": {\"zeph\": null}}"),
        (
            "codex",
            "[mcp_servers.zeph]\ncommand = \"other\"\nenv = { A = \"1\" }\n",
        ),
        // Another server, which the program only wraps.
        (
            "claude-code",
            "{\"mcpServers\": {\"zeph\": {\"command\": \"/opt/bin/zeph-host\", \"args\": [\"wrap\", \"--\", \"npx\", \"db\"]}}}",
        ),
    ] {
        let client = client(name);
        let refused = client.merge(text, &stdio(), false);
        assert_eq!(refused, Err(MergeError::Foreign("zeph".into())), "{text}");
        let forced = client.merge(text, &stdio(), true).expect("forced");
        let fresh = client.snippet(&stdio()).expect("a snippet");
        assert_eq!(read(client, &forced), read(client, &fresh), "{text}");
    }
}

#[test]
fn a_broken_file_is_refused_with_its_place() {
    for (name, text, expected) in [
        (
            "claude-code",
            "{\n  // no\n  \"a\": 1\n}",
            "line 2, column 3",
        ),
        ("claude-code", "{\n  \"a\": 1,\n}", "line 2"),
        ("claude-code", "{\"mcpServers\": {}", "line 1, column 1"),
        ("vscode", "{'servers': {}}", "line 1, column 2"),
        ("vscode", "{\"servers\": {}} x", "line 1, column 17"),
        ("gemini", "{\"a\": 1,}", "line 1"),
        ("codex", "a = 1\nb = \n", "line 2, column 5"),
        ("codex", "a = 1\na = 2\n", "line 2, column 1"),
        (
            "zed",
            "[]",
            "the file has another type than the client expects: it is not an object",
        ),
        (
            "zed",
            "{\"context_servers\": []}",
            "`context_servers` has another type",
        ),
        (
            "codex",
            "mcp_servers = 1\n",
            "`mcp_servers` has another type",
        ),
        (
            "vscode",
            "{\"servers\": {}, \"servers\": {}}",
            "`servers` occurs twice",
        ),
        (
            "vscode",
            "{\"servers\": {\"zeph\": {}, \"zeph\": {}}}",
            "`zeph` occurs twice",
        ),
    ] {
        let error = client(name).merge(text, &stdio(), true).expect_err(text);
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

/// Names that mean something to a parser reach the client as they are.
#[test]
fn values_survive_every_format() {
    for value in [
        "a\\b",
        "\"",
        "'''",
        "\u{1f980}",
        "a\nb",
        "${x}",
        "\u{7f}",
        "// no comment",
    ] {
        let server = Server {
            name: "zeph".into(),
            transport: Transport::Stdio {
                command: "/opt/zeph-host".into(),
                args: vec![value.into()],
            },
        };
        for client in &CLIENTS {
            let text = client.snippet(&server).expect("a snippet");
            let read = read(client, &text);
            assert_eq!(
                read[client.servers]["zeph"]["args"],
                json!([value]),
                "{}",
                client.name
            );
            assert_eq!(
                client.merge(&text, &server, false),
                Ok(text),
                "{}",
                client.name
            );
        }
    }
}
