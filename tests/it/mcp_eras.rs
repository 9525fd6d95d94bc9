//! Servers of each generation of the protocol, wrapped for clients of each: how they are found out, and how their questions get through.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::{McpClient, PATIENCE, result, text};
use crate::product::Product;
use crate::site::Site;

/// The server: Python without dependencies.
const SERVER: &str = include_str!("mcp_eras/server.py");

fn product() -> Product {
    let product = Product::new();
    product.file("server.py", SERVER);
    product
}

fn command(mode: &str) -> [&str; 7] {
    [
        "wrap",
        "--name",
        "native",
        "--",
        "python3",
        "server.py",
        mode,
    ]
}

/// A client of the old revisions, whose user answers.
fn legacy(product: &Product, mode: &str) -> McpClient {
    McpClient::shaken(product, &command(mode), &json!({"elicitation": {}}))
}

/// A client of the new revision, whose user answers.
fn modern(product: &Product, mode: &str) -> McpClient {
    McpClient::modern_of(product, &command(mode), &json!({"elicitation": {}}))
}

fn echoes(client: &mut McpClient) {
    let said = client.call("echo", json!({"text": "hello"}));
    assert_eq!(text(&said), r#"{"text": "hello"}"#, "{said}");
}

fn ada() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}})
}

fn audit(product: &Product) -> Vec<Value> {
    product.run(&["audit", "query", "--json"]).json_lines()
}

#[test]
fn each_generation_is_found_out() {
    for mode in ["legacy", "ends", "silent", "stateless", "both"] {
        let product = product();
        echoes(&mut legacy(&product, mode));
        let begun = Instant::now();
        // Both share one pin.
        echoes(&mut modern(&product, mode));
        // The library would wait ten seconds for a silent one.
        let taken = begun.elapsed();
        assert!(
            mode != "silent" || taken < Duration::from_secs(9),
            "{taken:?}"
        );
    }
}

#[test]
fn a_generation_is_found_out_once() {
    for (mode, n_expected) in [("ends", 1), ("silent", 1), ("legacy", 2), ("stateless", 2)] {
        let product = product();
        let mut client = modern(&product, mode);
        echoes(&mut client);
        client.close();
        client.ended();
        let seen = text(&modern(&product, mode).call("seen", json!({})));
        let n_asked = seen.matches("server/discover").count();
        assert_eq!(n_asked, n_expected, "{mode}: {seen}");
    }
}

#[test]
fn a_server_that_knows_both_generations_is_spoken_to_in_that_of_its_client() {
    let product = product();
    for (seen, n_expected) in [
        (text(&legacy(&product, "both").call("seen", json!({}))), 0),
        (text(&modern(&product, "both").call("seen", json!({}))), 1),
    ] {
        assert_eq!(
            seen.matches("server/discover").count(),
            n_expected,
            "{seen}"
        );
    }
}

#[test]
fn the_level_of_a_clients_log_reaches_servers_of_each_generation() {
    let levels = |client: &mut McpClient, expected: &[&str]| {
        for level in expected {
            let log = client.told("notifications/message");
            assert_eq!(log["params"]["level"], *level, "{log}");
        }
        let mut unread = client.unread.iter();
        let more = unread.find(|message| message["method"] == "notifications/message");
        assert!(more.is_none(), "{more:?}");
    };
    for mode in ["legacy", "stateless"] {
        let product = product();
        let mut client = legacy(&product, mode);
        let set = client.request("logging/setLevel", json!({"level": "info"}));
        assert_eq!(result(set), json!({}), "{mode}");
        client.call("log", json!({}));
        levels(&mut client, &["info", "warning", "error"]);

        let mut client = modern(&product, mode);
        let call = |meta: Value| json!({"name": "log", "arguments": {}, "_meta": meta});
        // One that wants no log gets none.
        result(client.request("tools/call", call(json!({}))));
        let wanted = json!({"io.modelcontextprotocol/logLevel": "error"});
        result(client.request("tools/call", call(wanted)));
        levels(&mut client, &["error"]);
    }
}

#[test]
fn a_question_in_the_middle_of_a_call_reaches_clients_with_a_handshake() {
    for mode in ["legacy", "stateless", "both"] {
        let product = product();
        let mut client = legacy(&product, mode);
        let id = client.begin_call("ask", json!({}));
        let asked = client.told("elicitation/create");
        assert_eq!(asked["params"]["message"], "What is your name?", "{asked}");
        client.reply(&asked["id"], ada());
        let done = result(client.answer(id));
        assert!(text(&done).contains("Ada"), "{mode}: {done}");
        echoes(&mut client);
    }
}

#[test]
fn a_question_in_the_middle_of_a_call_reaches_clients_without_a_handshake() {
    for mode in ["legacy", "stateless"] {
        let product = product();
        let mut client = modern(&product, mode);
        let required = client.call("ask", json!({}));
        assert_eq!(
            required["resultType"], "input_required",
            "{mode}: {required}"
        );
        let form = &required["inputRequests"]["question"];
        assert_eq!(
            form["params"]["message"], "What is your name?",
            "{required}"
        );
        let state = &required["requestState"];

        let retry = |responses: Value| json!({"name": "ask", "arguments": {}, "requestState": state, "inputResponses": responses});
        let none = client.request("tools/call", retry(json!({})));
        assert!(
            none["error"]["message"]
                .as_str()
                .unwrap()
                .contains("question"),
            "{none}"
        );
        let done = result(client.request("tools/call", retry(json!({"question": ada()}))));
        assert!(text(&done).contains("Ada"), "{mode}: {done}");
        let again = client.request("tools/call", retry(json!({"question": ada()})));
        assert!(
            again["error"]["message"]
                .as_str()
                .unwrap()
                .contains("no longer"),
            "{again}"
        );
        let rows = audit(&product);
        let asks = rows.iter().filter(|row| row["tool"] == "mcp_native_ask");
        assert_eq!(asks.count(), 1, "{rows:#?}");
    }
}

#[test]
fn a_question_reaches_a_client_that_wants_to_know_how_its_call_is_getting_on() {
    for mode in ["legacy", "stateless"] {
        let product = product();
        let mut client = modern(&product, mode);
        let ask = |state: Value, responses: Value| {
            json!({
                "name": "ask", "arguments": {}, "requestState": state, "inputResponses": responses,
                "_meta": {"progressToken": "p"},
            })
        };
        let first = json!({"name": "ask", "arguments": {}, "_meta": {"progressToken": "p"}});
        let required = result(client.request("tools/call", first));
        let state = required["requestState"].clone();
        let answers = json!({"question": ada()});
        let done = result(client.request("tools/call", ask(state, answers)));
        assert!(text(&done).contains("Ada"), "{mode}: {done}");
    }
}

/// It takes the ten seconds after which a call becomes a task.
#[test]
fn a_question_reaches_the_owner_of_a_task() {
    let product = product();
    let capable = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut client = McpClient::modern_of(&product, &command("legacy"), &capable);
    let begun = client.call("late", json!({}));
    assert_eq!(begun["resultType"], "task", "{begun}");
    let task = begun["taskId"].clone();
    product.file("go", "");
    let deadline = Instant::now() + PATIENCE;
    let until = |client: &mut McpClient, status: &str| loop {
        let state = result(client.request("tasks/get", json!({"taskId": task})));
        if state["status"] == status {
            return state;
        }
        assert!(Instant::now() < deadline, "{state}");
        thread::sleep(Duration::from_millis(20));
    };
    let asked = until(&mut client, "input_required");
    let form = &asked["inputRequests"]["question-1"]["params"];
    assert_eq!(form["message"], "What is your name?", "{asked}");
    let answers = json!({"taskId": task, "inputResponses": {"question-1": ada()}});
    result(client.request("tasks/update", answers));
    let done = until(&mut client, "completed");
    assert!(text(&done["result"]).contains("Ada"), "{done}");
}

#[test]
fn a_server_knows_which_questions_its_client_shows() {
    for (declared, told) in [
        (json!({}), "null"),
        (json!({"elicitation": {}}), r#"{"form": {}}"#),
        (
            json!({"elicitation": {"form": {}, "url": {}}}),
            r#"{"form": {}, "url": {}}"#,
        ),
    ] {
        let product = product();
        for begin in [McpClient::shaken, McpClient::modern_of] {
            let mut client = begin(&product, &command("legacy"), &declared);
            let said = client.call("client", json!({}));
            assert_eq!(text(&said), told, "{declared}");
            client.close();
            client.ended();
        }
    }
}

#[test]
fn lists_are_those_of_the_moment() {
    for mode in ["legacy", "stateless"] {
        let product = product();
        let mut client = legacy(&product, mode);
        let mut uris = || {
            let listed = result(client.request("resources/list", json!({})));
            let resources = listed["resources"].as_array().unwrap().clone();
            let uris = resources.iter().map(|one| one["uri"].clone());
            uris.collect::<Vec<Value>>()
        };
        let new = json!("note:new");
        assert!(!uris().contains(&new), "{mode}");
        product.file("more", "");
        assert!(uris().contains(&new), "{mode}");
        let prompts = result(client.request("prompts/list", json!({})));
        assert_eq!(prompts["prompts"][0]["name"], "greet", "{prompts}");
        // What is pinned and not what was accepted is not served.
        product.file("other", "");
        let refused = client.request("prompts/list", json!({}));
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("mcp approve native"), "{refused}");
    }
}

#[test]
fn a_question_before_a_resource_passes_in_rounds() {
    let product = product();
    let mut client = modern(&product, "stateless");
    let uri = json!({"uri": "note:mine"});
    let required = result(client.request("resources/read", uri));
    let form = &required["inputRequests"]["name"];
    assert_eq!(
        form["params"]["message"], "What is your name?",
        "{required}"
    );
    let answers = json!({"uri": "note:mine", "requestState": required["requestState"], "inputResponses": {"name": ada()}});
    let read = result(client.request("resources/read", answers));
    assert!(
        read["contents"][0]["text"]
            .as_str()
            .unwrap()
            .contains("Ada"),
        "{read}"
    );
}

#[test]
fn names_inside_schemas_and_long_descriptions_are_served() {
    let product = product();
    let mut client = legacy(&product, "legacy");
    let tools = client.tools();
    let person = tools.iter().find(|tool| tool["name"] == "person").unwrap();
    assert_eq!(
        person["inputSchema"]["$defs"]["address"]["$anchor"], "address",
        "{person}"
    );
    assert!(person["description"].as_str().unwrap().len() > 8_000);
    let done = client.call("person", json!({"home": {"city": "Bern"}}));
    assert_eq!(done["isError"], false, "{done}");
    let refused = client.call("person", json!({"home": {}}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains("city"), "{refused}");
}

#[test]
fn hosts_that_a_server_reached_or_was_refused_are_recorded() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let product = Product::new();
    product.file("server.py", include_str!("mcp_wrap/server.py"));
    product.file("site.pem", &site.certificate);
    let (host, port) = (format!("localhost:{}", site.port), site.port);
    let private =
        format!("tools.egress.private=[{{host=\"localhost\",ports=[{port}],plain_http=false}}]");
    let certificate = format!("SSL_CERT_FILE={}", product.work.join("site.pem").display());
    let options = [
        "--set", &private, "wrap", "--name", "native", "--host", &host,
    ];
    // Programs do not use a proxy for this machine's own name unless they are told to.
    let script = "no_proxy= NO_PROXY= exec python3 server.py";
    let command = ["--env", &certificate, "--", "sh", "-c", script];
    let mut client = McpClient::shaken(&product, &[&options[..], &command].concat(), &json!({}));
    let page = client.call("visit", json!({"url": site.url("/a")}));
    assert_eq!(text(&page), "hello", "{page}");
    let refused = client.call("visit", json!({"url": "https://api.example.com/x"}));
    assert_eq!(refused["isError"], true, "{refused}");
    client.call("echo", json!({"text": "x"}));
    client.close();
    client.ended();

    let rows = audit(&product);
    let hosts = |about: &str| -> Value {
        let row = rows
            .iter()
            .find(|row| row["command"].as_str().unwrap().contains(about));
        row.unwrap_or_else(|| panic!("{about}: {rows:#?}"))["hosts"].clone()
    };
    let reached = hosts("localhost");
    assert_eq!(reached[0]["host"], json!(host), "{rows:#?}");
    assert_eq!(reached[0]["n_connections"], 1, "{reached}");
    assert!(
        reached[0]["received_bytes"].as_u64().unwrap() > 0,
        "{reached}"
    );
    let tried = hosts("api.example.com");
    assert_eq!(tried[0]["host"], "api.example.com:443", "{rows:#?}");
    assert_eq!(
        (&tried[0]["n_refused"], tried.as_array().unwrap().len()),
        (&json!(1), 1),
        "{tried}"
    );
    assert!(
        hosts("\"x\"").is_null() || hosts("\"x\"") == json!([]),
        "{rows:#?}"
    );
}

#[test]
fn what_is_passed_on_is_recorded() {
    let product = product();
    let mut client = legacy(&product, "legacy");
    result(client.request("resources/read", json!({"uri": "note:one"})));
    let none = client.request("resources/read", json!({"uri": "note:none"}));
    assert!(none["error"].is_object(), "{none}");
    result(client.request("prompts/get", json!({"name": "greet"})));
    client.close();
    client.ended();
    let rows = audit(&product);
    let of =
        |method: &str| -> Vec<&Value> { rows.iter().filter(|row| row["tool"] == method).collect() };
    let (reads, prompts) = (of("resources/read"), of("prompts/get"));
    assert_eq!((reads.len(), prompts.len()), (2, 1), "{rows:#?}");
    for row in reads.iter().chain(&prompts) {
        assert_eq!(row["mcp_server_id"], "native", "{row}");
        assert_eq!(row["claim_source"], "mcp", "{row}");
    }
    let about = |uri: &str| {
        let found = reads
            .iter()
            .find(|row| row["command"].as_str().unwrap().contains(uri));
        found.unwrap()["result"].to_string()
    };
    assert!(about("note:one").contains("success"), "{rows:#?}");
    assert!(about("note:none").contains("no such note"), "{rows:#?}");
}
