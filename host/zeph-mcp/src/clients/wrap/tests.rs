//! Wrapped and turned back: files as people have them, in every client's format.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Unwrappable, Wrapped, WrappedFile, Wrapper};
use crate::clients::{CLIENTS, Client, Format, Server, Transport, Unwrapped};

const PROGRAM: &str = "/opt/bin/zeph-host";

fn client(name: &str) -> &'static Client {
    Client::by_name(name).expect("a client")
}

fn wrapped(client: &Client, text: &str) -> WrappedFile {
    let wrapper = Wrapper {
        program: PROGRAM,
        options: &[],
        is_secret: &|name, value| name.contains("TOKEN") || value.starts_with("sk-"),
        readable: &|args| {
            args.iter()
                .filter(|arg| arg.starts_with("/data"))
                .cloned()
                .collect()
        },
        pinned: &|name| {
            let line = ["npx", "[redacted: KEY]"].map(str::to_owned);
            (name == "db").then(|| line.to_vec())
        },
        loads_code: &|name| name == "NODE_OPTIONS",
        stored: BTreeMap::from([("gh_TOKEN".to_owned(), "another value".to_owned())]),
    };
    client.wrap(text, &wrapper).expect("wrapped")
}

fn entry(client: &Client, text: &str, name: &str) -> Value {
    let entries = client.entries(text).expect("entries");
    let found = entries.into_iter().find(|(there, _)| there == name);
    found.expect("an entry").1
}

/// The secrets that were moved, as the host keeps them.
fn secrets(file: &WrappedFile) -> BTreeMap<String, String> {
    let servers = file.servers.iter();
    let moved = servers.flat_map(|(_, wrapped)| match wrapped {
        Wrapped::Changed(server) => server.secrets.clone(),
        Wrapped::Unchanged(_) => Vec::new(),
    });
    moved.map(|secret| (secret.name, secret.value)).collect()
}

fn unwrapped(
    client: &Client,
    text: &str,
    old: &[&str],
    known: &BTreeMap<String, String>,
) -> String {
    let old: Vec<String> = old.iter().map(|text| (*text).to_owned()).collect();
    let file = client.unwrap(text, &old, &|name| known.get(name).cloned());
    file.expect("unwrapped").text
}

const FILES: [(&str, &str); 9] = [
    (
        "claude-code",
        "{\n\t\"mcpServers\": {\n\t\t\"gh\": {\"command\": \"npx\", \"args\": [\"-y\",\t\"server\"], \"env\": {\"TOKEN\": \"t0p s3cret\", \"A\": \"1\"}}\n\t},\n\t\"z\": 1.50\n}\n",
    ),
    (
        "claude-desktop",
        "{\"mcpServers\":{\"gh\":{\"command\":\"npx\",\"args\":[\"/data/notes\"]},\"two\":{\"command\":\"uvx\"}}}",
    ),
    (
        "cursor",
        "{\n  // mine\n  \"mcpServers\": {\n    \"gh\": { // hub\n      \"env\": { \"TOKEN\": \"t0p s3cret\", /* kept */ \"B\": \"${env:B}\" },\n      \"type\": \"stdio\",\n      \"command\": \"npx\", // runs\n      \"disabled\": true,\n    },\n  },\n}\n",
    ),
    (
        "vscode",
        "{\r\n  \"inputs\": [],\r\n  \"servers\": {\r\n    \"gh\": { \"command\": \"npx\", \"env\": { \"TOKEN\": \"${input:t}\" } },\r\n    \"far\": { \"url\": \"https://x.example.com/mcp\" }\r\n  }\r\n}\r\n",
    ),
    (
        "zed",
        "// Zed\n{\n  \"context_servers\": {\n    \"gh\": { \"source\": \"custom\", \"command\": \"npx\", \"args\": [], \"env\": {} },\n    \"ext\": { \"settings\": {} },\n  },\n}\n",
    ),
    (
        "gemini",
        "{\n  \"mcpServers\": {\n    \"gh\": { \"command\": \"npx\", \"trust\": false, \"timeout\": 5000, \"env\": { \"TOKEN\": \"$TOKEN\" } }\n  }\n}\n",
    ),
    (
        "codex",
        "# mine\nmodel = 'o3'   # so\n\n[mcp_servers.gh]\n# hub\ncommand = \"npx\" # runs\nargs = [\n  \"-y\", # yes\n  \"server\",\n]\nenv_vars = [\"HUB\", { name = \"FAR\", source = \"remote\" }]\n\n[mcp_servers.gh.env]\nTOKEN = 't0p s3cret' # key\nA = \"1\"\n\n[features]\nweb = true\n",
    ),
    (
        "codex",
        "mcp_servers = { gh = { command = \"npx\", env = { TOKEN = \"t0p s3cret\" } } } # one line\n",
    ),
    (
        "codex",
        "mcp_servers.gh.command = \"npx\"\nmcp_servers.gh.env.TOKEN = \"t0p s3cret\"\n",
    ),
];

#[test]
fn a_wrapped_file_comes_back_to_the_byte() {
    for (name, text) in FILES {
        let client = client(name);
        let file = wrapped(client, text);
        assert_ne!(file.text, text, "{name}");
        assert!(!file.text.contains("t0p s3cret"), "{name}: {}", file.text);
        assert!(client.has_wrapped(&file.text).expect("read"), "{name}");
        assert_eq!(
            unwrapped(client, &file.text, &[text], &BTreeMap::new()),
            text,
            "{name}"
        );
        // Wrapped twice is wrapped once.
        assert_eq!(wrapped(client, &file.text).text, file.text, "{name}");
    }
}

/// Took an hour when the file was read anew for every server.
#[test]
fn thousands_of_servers_are_wrapped_and_turned_back() {
    let name = |idx: usize| format!("server-{idx}");
    let json = |idx| {
        (
            name(idx),
            json!({ "command": "npx", "args": ["-y", name(idx)] }),
        )
    };
    let servers: Map<String, Value> = (0..5_000).map(json).collect();
    let toml = |idx| {
        format!(
            "[mcp_servers.{0}]\ncommand = \"npx\"\nargs = [\"{0}\"]\n",
            name(idx)
        )
    };
    let files = [
        (
            "claude-code",
            serde_json::to_string_pretty(&json!({ "mcpServers": servers })).expect("JSON"),
        ),
        ("codex", (0..5_000).map(toml).collect::<String>()),
    ];
    for (which, text) in files {
        let client = client(which);
        let file = wrapped(client, &text);
        assert_eq!(file.servers.len(), 5_000, "{which}");
        // Edited since, so that it is put back entry by entry.
        let edited = file.text.replace("npx", "pnpx");
        let known = BTreeMap::new();
        let entries = |text: &str| client.entries(text).expect("entries");
        assert_eq!(
            entries(&unwrapped(client, &edited, &[&text], &known)),
            entries(&text.replace("npx", "pnpx")),
            "{which}"
        );
        let spaced = format!("{}\n", file.text);
        assert_eq!(
            unwrapped(client, &spaced, &[&text], &known),
            format!("{text}\n"),
            "{which}"
        );
    }
}

#[test]
fn a_wrapped_entry_starts_the_server_through_the_host() {
    let of = |name: &str, text: &str| entry(client(name), &wrapped(client(name), text).text, "gh");
    assert_eq!(
        of(FILES[0].0, FILES[0].1),
        json!({
            "command": PROGRAM,
            "args": ["wrap", "--name", "gh", "--env", "A", "--secret", "TOKEN=gh_TOKEN-2", "--", "npx", "-y", "server"],
            "env": {"A": "1"},
        })
    );
    assert_eq!(
        of(FILES[1].0, FILES[1].1)["args"],
        json!([
            "wrap",
            "--name",
            "gh",
            "--allow-read",
            "/data/notes",
            "--",
            "npx",
            "/data/notes"
        ])
    );
    // A reference stays, and its variable is let through; so are those that the client hands on.
    assert_eq!(
        of(FILES[5].0, FILES[5].1)["args"],
        json!(["wrap", "--name", "gh", "--env", "TOKEN", "--", "npx"])
    );
    let args = of(FILES[6].0, FILES[6].1)["args"].clone();
    let expected = json!([
        "wrap",
        "--name",
        "gh",
        "--env",
        "A",
        "--env",
        "FAR",
        "--env",
        "HUB",
        "--secret",
        "TOKEN=gh_TOKEN-2",
        "--",
        "npx",
        "-y",
        "server"
    ]);
    assert_eq!(args, expected);
}

#[test]
fn edits_made_since_stay() {
    let later = Server {
        name: "later".into(),
        transport: Transport::Stdio {
            command: "/bin/later".into(),
            args: Vec::new(),
        },
    };
    for (name, text) in FILES {
        let client = client(name);
        let file = wrapped(client, text);
        let edited = client.merge(&file.text, &later, false).expect("merged");
        let expected = client.merge(text, &later, false).expect("merged");
        let back = unwrapped(client, &edited, &["no file", text], &BTreeMap::new());
        match client.format {
            Format::Json(_) => assert_eq!(back, expected, "{name}"),
            Format::Toml => assert_eq!(client.entries(&back), client.entries(&expected), "{name}"),
        }
    }
}

/// An entry that says something else than before keeps that, and a file whose copy is gone comes back too.
#[test]
fn an_edited_entry_is_turned_back_from_what_it_says() {
    let client = client("claude-code");
    let file = wrapped(client, FILES[0].1);
    let known = secrets(&file);
    let edited = file.text.replace("\"server\"", "\"server\", \"--verbose\"");
    let result = client.unwrap(&edited, &[FILES[0].1.to_owned()], &|name| {
        known.get(name).cloned()
    });
    let result = result.expect("unwrapped");
    assert_eq!(
        result.servers,
        [("gh".to_owned(), Unwrapped::FromArguments)]
    );
    assert_eq!(
        entry(client, &result.text, "gh"),
        json!({"command": "npx", "args": ["-y", "server", "--verbose"], "env": {"A": "1", "TOKEN": "t0p s3cret"}})
    );
    let lost = client.unwrap(&file.text, &[], &|_| None).expect("read");
    assert_eq!(lost.servers[0].1, Unwrapped::NoSecret("gh_TOKEN-2".into()));
    assert_eq!(lost.text, file.text);
}

#[test]
fn what_cannot_be_wrapped_stays() {
    let text = r#"{"mcpServers": {
        "far": {"url": "https://x.example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
        "login": {"url": "https://me:pass@x.example.com/mcp", "headers": {"X-Team": "a"}},
        "older": {"type": "sse", "url": "https://x.example.com/sse", "headers": {"X-Team": "a"}},
        "ours": {"command": "/usr/bin/zeph-host", "args": ["serve"]},
        "files": {"command": "x", "envFile": ".env"},
        "odd": {"command": {"path": "x"}},
        "args": {"command": "x", "args": "y"},
        "env": {"command": "x", "env": {"A=B": "1"}},
        "box": {"command": "/usr/bin/docker", "args": ["run", "-i", "mcp/x"]},
        "none": null
    }}"#;
    let file = wrapped(client("cursor"), text);
    assert_eq!(file.text, text);
    let reasons: Vec<Unwrappable> = file
        .servers
        .into_iter()
        .map(|(name, wrapped)| match wrapped {
            Wrapped::Unchanged(why) => why,
            Wrapped::Changed(_) => panic!("{name} is wrapped"),
        })
        .collect();
    let expected = [
        Unwrappable::Remote,
        Unwrappable::Login,
        Unwrappable::Kind("sse".into()),
        Unwrappable::Host,
        Unwrappable::VariableFile,
        Unwrappable::Shape("command"),
        Unwrappable::Shape("args"),
        Unwrappable::Variable("A=B".into()),
        Unwrappable::Container("docker".into()),
        Unwrappable::Shape("command"),
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn what_stays_in_the_file_and_looks_like_a_secret_is_told() {
    let text = r#"{"mcpServers": {"a b": {"command": "x", "args": ["sk-1", "--token", "v"], "env": {"TOKEN": "short"}}, "a-b": {"command": "y"},
        "far": {"type": "http", "url": "https://x.example.com/mcp?v=1&key=sk-1#a", "headers": {"X-Team": "a"}}}}"#;
    let file = wrapped(client("claude-code"), text);
    let [
        (_, Wrapped::Changed(first)),
        (_, Wrapped::Changed(second)),
        (_, Wrapped::Changed(far)),
    ] = &file.servers[..]
    else {
        panic!("{file:?}");
    };
    assert_eq!(first.exposed, ["`env.TOKEN`", "argument 1"]);
    assert_eq!(far.exposed, ["the address"]);
    assert_eq!(
        (first.name.as_str(), second.name.as_str()),
        ("a-b", "a-b-2")
    );
}

#[test]
fn a_server_behind_an_address_is_wrapped_when_its_headers_are_literal() {
    let json = |servers: &str, url: &str| {
        format!(
            "{{\n  \"{servers}\": {{\n    \"far\": {{ \"{url}\": \"https://x.example.com/mcp\", \"headers\": {{ \"Authorization\": \"Bearer t0p-s3cret\", \"X-Team\": \"blue\" }} }}\n  }}\n}}\n"
        )
    };
    let toml = "[mcp_servers.far]\nurl = \"https://x.example.com/mcp\" # far\nhttp_headers = { Authorization = \"Bearer t0p-s3cret\", X-Team = \"blue\" }\n";
    for (name, text) in [
        (
            "claude-code",
            json("mcpServers", "url").replace("{ \"url\"", "{ \"type\": \"http\", \"url\""),
        ),
        ("codex", toml.to_owned()),
        ("cursor", json("mcpServers", "url")),
        (
            "vscode",
            json("servers", "url").replace("{ \"url\"", "{ \"type\": \"http\", \"url\""),
        ),
        ("zed", json("context_servers", "url")),
        ("gemini", json("mcpServers", "httpUrl")),
    ] {
        let client = client(name);
        let file = wrapped(client, &text);
        assert!(!file.text.contains("t0p-s3cret"), "{name}: {}", file.text);
        let far = entry(client, &file.text, "far");
        let expected = json!([
            "wrap",
            "--name",
            "far",
            "--url",
            "https://x.example.com/mcp",
            "--secret-header",
            "Authorization=far_Authorization",
            "--header",
            "X-Team=blue"
        ]);
        assert_eq!(far["args"], expected, "{name}");
        assert!(
            far.get("url").is_none() && far.get("httpUrl").is_none(),
            "{name}: {far}"
        );
        assert_ne!(far.get("type"), Some(&json!("http")), "{name}");
        assert_eq!(
            unwrapped(client, &file.text, &[&text], &BTreeMap::new()),
            text,
            "{name}"
        );
        let alone = unwrapped(client, &file.text, &[], &secrets(&file));
        let plain_of = |text: &str| plain(client.entries(text).expect("read"));
        assert_eq!(plain_of(&alone), plain_of(&text), "{name}");
    }
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "sk-[a-z0-9]{8,12}",
        Just("--".to_owned()),
        Just("wrap".to_owned()),
        Just("${X}".to_owned()),
        "\\PC{0,6}",
    ]
}

fn server() -> impl Strategy<Value = Value> {
    let env = prop::collection::btree_map("[A-Z]{1,3}|TOKEN", value(), 0..3);
    let args = prop::collection::vec(value(), 0..4);
    (
        "[a-z/]{1,8}",
        prop::option::of(args),
        prop::option::of(env),
        any::<bool>(),
    )
        .prop_map(|(command, args, env, extra)| {
            let mut server = Map::from_iter([("command".to_owned(), json!(command))]);
            server.extend(args.map(|args| ("args".to_owned(), json!(args))));
            server.extend(env.map(|env| ("env".to_owned(), json!(env))));
            server.extend(extra.then(|| ("disabled".to_owned(), json!(true))));
            Value::Object(server)
        })
}

/// A client's file with these servers.
fn file_of(client: &Client, servers: &BTreeMap<String, Value>) -> String {
    match client.format {
        Format::Json(_) => {
            let file = json!({"first": [1, 2], client.servers: servers, "last": {}});
            serde_json::to_string_pretty(&file).expect("JSON")
        }
        Format::Toml => {
            let mut text = String::from("first = [1, 2]\n");
            for (name, server) in servers {
                text.push_str(&format!("\n[{}.{}]\n", client.servers, json!(name)));
                for (key, value) in server.as_object().expect("an object") {
                    text.push_str(&format!("{key} = {}\n", toml_of(value)));
                }
            }
            text
        }
    }
}

fn toml_of(value: &Value) -> String {
    match value {
        Value::String(text) => toml_edit::Value::from(text.as_str()).to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_of).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{key} = {}", toml_of(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

/// Without what says nothing.
fn plain(entries: Vec<(String, Value)>) -> BTreeMap<String, Map<String, Value>> {
    let plain = |entry| super::inner::plainest(entry);
    entries
        .into_iter()
        .map(|(name, entry)| (name, plain(entry)))
        .collect()
}

proptest! {
    /// With its copy a file comes back to the byte, and without it to the same meaning, for every client.
    #[test]
    fn every_file_comes_back(servers in prop::collection::btree_map("[a-zA-Z ._-]{1,6}", server(), 0..4), which in 0..CLIENTS.len()) {
        let client = &CLIENTS[which];
        let text = file_of(client, &servers);
        let file = wrapped(client, &text);
        let known = secrets(&file);
        prop_assert_eq!(unwrapped(client, &file.text, &[&text], &BTreeMap::new()), text.clone());
        let alone = unwrapped(client, &file.text, &[], &known);
        prop_assert_eq!(plain(client.entries(&alone).expect("read")), plain(client.entries(&text).expect("read")));
        for value in known.values() {
            prop_assert!(!file.text.contains(&json!(value).to_string()), "{}", file.text);
        }
    }
}

#[test]
fn a_name_under_which_another_server_is_pinned_is_not_taken() {
    let name = |command: &str, args: Value| {
        let entry = json!({"mcpServers": {"db": {"command": command, "args": args}}});
        let file = wrapped(client("cursor"), &entry.to_string());
        match &file.servers[0].1 {
            Wrapped::Changed(server) => server.name.clone(),
            Wrapped::Unchanged(why) => panic!("{why}"),
        }
    };
    // What is pinned has no secrets, and the client fills in its variables.
    assert_eq!(name("npx", json!(["--key=k9"])), "db");
    assert_eq!(name("npx", json!(["${KEY}"])), "db");
    assert_eq!(name("npx", json!(["--key=k9", "more"])), "db-2");
    assert_eq!(name("node", json!(["--key=k9"])), "db-2");
}

/// As it is kept until the server ran: with it, a second server of this name gets another one.
#[test]
fn what_a_name_was_given_for_holds_no_secret() {
    let launch = |entry: Value| {
        let entry = json!({"mcpServers": {"a": entry}});
        let file = wrapped(client("cursor"), &entry.to_string());
        match &file.servers[0].1 {
            Wrapped::Changed(server) => server.launch.clone(),
            Wrapped::Unchanged(why) => panic!("{why}"),
        }
    };
    let args = json!({"command": "node", "args": ["a.js", "--key", "sk-9", "${KEY}"]});
    let expected = ["node", "a.js", "--key", "[redacted: argument]", "${KEY}"];
    assert_eq!(launch(args), expected);
    let far = |url: &str| json!({"url": url, "headers": {"X-Team": "a"}});
    let plain = "https://a.example.com/mcp";
    assert_eq!(launch(far(plain)), [plain]);
    let secret = far("https://a.example.com/mcp?key=sk-1");
    assert_eq!(launch(secret), ["[redacted: address]"]);
}

#[test]
fn a_server_with_a_variable_that_is_not_passed_is_not_wrapped() {
    let entry = json!({"mcpServers": {"a": {"command": "node", "env": {"NODE_OPTIONS": "-r x"}}}});
    let file = wrapped(client("cursor"), &entry.to_string());
    let loader = Unwrappable::Loader("NODE_OPTIONS".to_owned());
    assert_eq!(file.servers[0].1, Wrapped::Unchanged(loader));
    assert_eq!(file.text, entry.to_string());
}
