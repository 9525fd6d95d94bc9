//! Sequences of calls, trust and anomalies bind every front end alike, that of editors among them; and code search answers at each.

use std::fs;

use serde_json::{Value, json};

use super::client::Client;
use super::model::{Model, calls, says};
use super::{plain, with_config};
use crate::guest::HOSTILE;
use crate::mcp_client::McpClient;
use crate::mcp_http_client::HttpServer;
use crate::product::Product;
use crate::running::Running;
use crate::search::lsp;
use crate::terminal::Prompt;

const CONFIG: &str = "[tools.governance]\n\
    blocked_sequences = [[\"read\", \"one.txt\", \"read\", \"two.txt\"], [\"read\", \"secret.txt\"]]\n\
    [tools.anomaly]\nwindow_size = 4\nfailure_threshold = 0.5\n[tools.retry]\nmax_attempts = 1\n";

const DOORS: [&str; 6] = [
    "JSON lines",
    "command line",
    "prompt",
    "MCP on standard streams",
    "MCP over HTTP",
    "an editor",
];

/// A front end.
enum Door<'m> {
    Lines(Running),
    /// Each call is a process, and a conversation, of its own.
    CommandLine,
    Prompt(Prompt),
    Mcp(Box<McpClient>),
    Http(HttpServer),
    Editor(Box<Client>, String, &'m Model),
}

impl Door<'_> {
    /// Makes a call, and compares what its caller is told.
    fn check(&mut self, product: &Product, (tool, arguments): (&str, &Value), words: &str) {
        let told = match self {
            Self::Lines(running) => running.call(tool, arguments).to_string(),
            Self::CommandLine => {
                let ran = product.run(&["call", tool, "--json", &arguments.to_string()]);
                ran.stdout + &ran.stderr
            }
            Self::Prompt(prompt) => {
                let given = arguments.as_object().unwrap().iter();
                let given =
                    given.map(|(name, value)| format!(" {name}={}", value.as_str().unwrap()));
                prompt.type_line(&format!("{tool}{}", given.collect::<String>()));
                // Keys count once the prompt is there.
                prompt.until_all(&[words, "zeph"]);
                prompt.shown().to_owned()
            }
            Self::Mcp(client) => client.call(tool, arguments.clone()).to_string(),
            Self::Http(server) => server.call("", tool, arguments).body,
            Self::Editor(client, session, model) => {
                model.add(calls(tool, arguments.clone()));
                model.add(says("Done."));
                client.prompt(session, "go on", |_, request| panic!("{request}"));
                model.requests().last().unwrap().to_string()
            }
        };
        assert!(told.contains(words), "{tool} {arguments}: {words}: {told}");
    }

    /// A call over HTTP that hands on no conversation begins one.
    fn is_one_conversation(&self) -> bool {
        !matches!(self, Self::CommandLine | Self::Http(_))
    }
}

/// Starts a front end of this name.
fn door<'m>(name: &str, product: &Product, model: &'m Model) -> Door<'m> {
    let allow = ["--allow", "*"];
    match name {
        "JSON lines" => Door::Lines(Running::start(product, &allow)),
        "command line" => Door::CommandLine,
        "prompt" => {
            let command = product.command(&["run", "--no-model"]);
            Door::Prompt(Prompt::run(command, Some((1_000, 50)), "zeph"))
        }
        "MCP on standard streams" => {
            Door::Mcp(Box::new(McpClient::modern(product, &allow, &json!({}))))
        }
        "MCP over HTTP" => Door::Http(HttpServer::start(product, &allow)),
        _ => {
            let mut client = Client::start(product, &allow, plain());
            let session = client.session(&product.work);
            Door::Editor(Box::new(client), session, model)
        }
    }
}

#[test]
fn sequences_trust_and_anomalies_bind_every_front_end() {
    let model = Model::new([]);
    let product = with_config(&model, CONFIG);
    product.drop_in("hostile", HOSTILE);
    for name in ["one", "two", "secret"] {
        product.file(&format!("{name}.txt"), format!("content of {name}\n"));
    }
    let trust = |args: &[&str]| {
        let ran = product.run(&[&["trust"], args].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    let read = |name: &str| json!({ "path": format!("{name}.txt") });
    let (echo, panics) = ("hostile__echo", "hostile__panics");
    let blocked = |n: u8| format!("tools.governance.blocked_sequences[{n}]");
    for name in DOORS {
        let mut door = door(name, &product, &model);
        door.check(&product, ("read", &read("secret")), &blocked(1));
        door.check(&product, ("read", &read("one")), "content of one");
        if door.is_one_conversation() {
            door.check(&product, ("read", &read("two")), &blocked(0));
        }

        let text = json!({ "text": "here" });
        door.check(&product, (echo, &text), "here");
        trust(&["set", echo, "blocked"]);
        door.check(&product, (echo, &text), "zeph-host trust set");
        trust(&["reset", echo]);
        door.check(&product, (echo, &text), "here");

        let reset = format!("trust reset {panics}");
        for words in ["crashed", "crashed", &reset, "tools.anomaly"] {
            door.check(&product, (panics, &text), words);
        }
        trust(&["reset", panics]);
    }
}

#[test]
fn code_search_asks_a_language_server_at_every_front_end() {
    let model = Model::new([]);
    let product = with_config(&model, "");
    let config = product.home.join(".config/zeph-host/config.toml");
    let before = fs::read_to_string(&config).unwrap();
    let server = lsp::configured(&product, "honest", "trusted");
    fs::write(&config, format!("{before}\n{server}")).unwrap();
    product.file("src/auth.rs", "// A layer.\npub fn auth_layer() {}\n");
    product.file("src/notes.rs", "// uses it by a macro\n");
    let query = json!({ "query": "auth_layer" });
    for name in DOORS {
        let mut door = door(name, &product, &model);
        // In no layer but that of the server.
        door.check(&product, ("search_code", &query), "uses it by a macro");
    }
}
