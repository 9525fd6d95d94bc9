//! Messages, errors, and the first steps of a session.

use serde_json::{Value, json};

use super::client::Client;
use super::model::{Answer, Model, calls, says};
use super::{plain, product};

fn code(answer: Result<Value, Value>) -> i64 {
    answer.unwrap_err()["code"].as_i64().unwrap()
}

#[test]
fn the_connection_begins_with_initialize_and_survives_nonsense() {
    let model = Model::new([]);
    let product = product(&model);
    let mut client = Client::silent(&product, &[]);
    assert_eq!(
        code(client.ask("session/new", json!({"cwd": "/", "mcpServers": []}))),
        -32600
    );
    let answer = client
        .ask("initialize", json!({"protocolVersion": 9}))
        .unwrap();
    assert_eq!(answer["protocolVersion"], 1);
    assert_eq!(answer["agentInfo"]["name"], "zeph-host");
    let can = &answer["agentCapabilities"];
    assert_eq!(can["loadSession"], true);
    assert_eq!(
        can["promptCapabilities"],
        json!({"image": true, "audio": false, "embeddedContext": true})
    );
    assert_eq!(can["sessionCapabilities"]["close"], json!({}));
    client.send_line("{");
    assert_eq!(client.next()["error"]["code"], -32700);
    client.send_line("[]");
    assert_eq!(client.next()["error"]["code"], -32600);
    client.notify("x/unknown", &json!({}));
    client.notify("session/cancel", &json!({"sessionId": "nobody"}));
    assert_eq!(code(client.ask("x/unknown", json!({}))), -32601);
    assert_eq!(
        code(client.ask("authenticate", json!({"methodId": "x"}))),
        -32602
    );
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn a_session_needs_a_directory_and_a_prompt_a_session() {
    let model = Model::new([Answer::Hangs("so ".to_owned())]);
    let product = product(&model);
    product.file("file", "");
    let mut client = Client::start(&product, &[], plain());
    let file = product.work.join("file");
    for cwd in ["relative", "/no/such/directory", file.to_str().unwrap()] {
        let answer = client.ask("session/new", json!({"cwd": cwd, "mcpServers": []}));
        assert_eq!(code(answer), -32602, "{cwd}");
    }
    let unknown = "019a0000-0000-7000-8000-000000000000";
    for (method, params) in [
        (
            "session/prompt",
            json!({"sessionId": unknown, "prompt": [{"type": "text", "text": "x"}]}),
        ),
        (
            "session/load",
            json!({"sessionId": unknown, "cwd": product.work, "mcpServers": []}),
        ),
        (
            "session/resume",
            json!({"sessionId": "nonsense", "cwd": product.work}),
        ),
        ("session/close", json!({"sessionId": unknown})),
        (
            "session/set_mode",
            json!({"sessionId": unknown, "modeId": "ask"}),
        ),
    ] {
        assert_eq!(code(client.ask(method, params)), -32602, "{method}");
    }
    let session = client.session(&product.work);
    let long = json!([{"type": "text", "text": "x".repeat((1 << 20) + 1)}]);
    let answer = client.ask(
        "session/prompt",
        json!({"sessionId": session, "prompt": long}),
    );
    assert_eq!(code(answer), -32602);
    let mode = json!({"sessionId": session, "modeId": "code"});
    assert_eq!(code(client.ask("session/set_mode", mode)), -32602);

    let turn = client.send_prompt(&session, "go");
    client.until(|message| message["params"]["update"]["content"]["text"] == "so ");
    let second = json!({"sessionId": session, "prompt": [{"type": "text", "text": "x"}]});
    assert_eq!(code(client.ask("session/prompt", second)), -32600);
    client.notify("session/cancel", &json!({"sessionId": session}));
    let answer = client.wait(turn, |_, request| panic!("{request}")).unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
}

#[test]
fn text_streams_and_a_call_is_announced_and_ended_once() {
    let model = Model::new([
        calls("read", json!({"path": "a.txt"})),
        Answer::Says(vec!["It says ".to_owned(), "hello.".to_owned()]),
    ]);
    let product = product(&model);
    product.file("a.txt", "hello\n");
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    let stop = client.prompt(&session, "what does it say?", |_, request| {
        panic!("{request}")
    });
    assert_eq!(stop, "end_turn");
    assert_eq!(client.text(), "It says hello.");
    assert_eq!(client.of_kind("agent_message_chunk").len(), 2);
    let (begun, ended) = client.ended_call();
    let path = product.work.join("a.txt");
    assert_eq!(
        (&begun["kind"], &begun["name"]),
        (&json!("read"), &json!("read"))
    );
    assert_eq!(begun["title"], "read a.txt");
    assert_eq!(begun["rawInput"], json!({"path": "a.txt"}));
    assert_eq!(begun["locations"][0]["path"], json!(path));
    assert_eq!(ended["status"], "completed");
    assert!(
        ended["content"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("hello")
    );
    let usage = client.of_kind("usage_update");
    assert_eq!(usage.len(), 2);
    assert!(usage[1]["cost"]["amount"].as_f64() > usage[0]["cost"]["amount"].as_f64());
    assert!(usage[0]["size"].as_u64() > usage[0]["used"].as_u64());
    // The commands came before the first turn.
    let commands = client.of_kind("available_commands_update");
    let names: Vec<&str> = commands[0]["availableCommands"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|command| command["name"].as_str())
        .collect();
    assert!(
        names.contains(&"clear") && names.iter().all(|name| !name.contains('/')),
        "{names:?}"
    );
}

#[test]
fn a_model_that_fails_is_an_error_only_when_nothing_was_said() {
    let model = Model::new([
        Answer::Fails,
        calls("read", json!({"path": "a.txt"})),
        Answer::Fails,
    ]);
    let product = product(&model);
    product.file("a.txt", "hello\n");
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    let turn = client.send_prompt(&session, "go");
    let error = client
        .wait(turn, |_, request| panic!("{request}"))
        .unwrap_err();
    assert!(
        error["message"].as_str().unwrap().contains("out of order"),
        "{error}"
    );
    let stop = client.prompt(&session, "go", |_, request| panic!("{request}"));
    assert_eq!(stop, "end_turn");
    assert!(client.text().contains("out of order"), "{}", client.text());
}

#[test]
fn a_turn_ends_at_the_bound_of_rounds() {
    let look = || calls("list_directory", json!({"path": "."}));
    let answers = (0..5).map(|n| match n {
        0 => look(),
        n => calls("read", json!({"path": format!("{n}.txt")})),
    });
    let model = Model::new(answers);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    let stop = client.prompt(&session, "go", |_, request| panic!("{request}"));
    assert_eq!(stop, "max_turn_requests");
    assert_eq!(client.of_kind("tool_call").len(), 3);
    assert_eq!(client.of_kind("tool_call")[0]["kind"], "search");
}

#[test]
fn pictures_documents_and_links_reach_the_model() {
    let model = Model::new([says("seen")]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    let prompt = json!([
        {"type": "text", "text": "look at "},
        {"type": "resource_link", "uri": "file:///src/b.rs", "name": "b.rs"},
        {"type": "resource", "resource": {"uri": "file:///src/c.rs", "text": "fn c() {}"}},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    ]);
    let answer = client.ask(
        "session/prompt",
        json!({"sessionId": session, "prompt": prompt}),
    );
    assert_eq!(answer.unwrap()["stopReason"], "end_turn");
    let sent = model.requests()[0]["messages"].to_string();
    for part in [
        "look at ",
        "file:///src/b.rs",
        "fn c() {}",
        "data:image/png;base64,iVBORw0KGgo=",
    ] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    let sound = json!([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]);
    let answer = client.ask(
        "session/prompt",
        json!({"sessionId": session, "prompt": sound}),
    );
    assert_eq!(code(answer), -32602);
}

#[test]
fn slash_commands_are_answered_without_the_model() {
    let model = Model::new([]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    for (command, expected) in [
        ("/tools", "list_directory"),
        ("/cost", "script-1"),
        ("/approve", "no call waits"),
        ("/undo 0", "/undo N"),
        ("/tols", "did you mean `/tools`"),
        ("/clear", "begins"),
    ] {
        client.updates.clear();
        let stop = client.prompt(&session, command, |_, request| panic!("{request}"));
        assert_eq!(stop, "end_turn", "{command}");
        assert!(
            client.text().contains(expected),
            "{command}: {}",
            client.text()
        );
    }
    assert!(model.requests().is_empty());
}

#[test]
fn the_model_and_the_mode_are_options() {
    let model = Model::new([says("one"), says("two")]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let new = json!({"cwd": product.work, "mcpServers": []});
    let answer = client.ask("session/new", new).unwrap();
    let session = answer["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(answer["modes"]["currentModeId"], "ask");
    let modes = answer["modes"]["availableModes"].as_array().unwrap();
    let ids: Vec<&Value> = modes.iter().map(|mode| &mode["id"]).collect();
    assert_eq!(ids, ["ask", "edit", "read-only"]);
    let option = |answer: &Value, id: &str| {
        let options = answer["configOptions"].as_array().unwrap();
        options
            .iter()
            .find(|option| option["id"] == id)
            .unwrap()
            .clone()
    };
    assert_eq!(option(&answer, "model")["currentValue"], "scripted");
    let set = |value: &str| json!({"sessionId": session, "configId": "model", "value": value});
    let changed = client
        .ask("session/set_config_option", set("other"))
        .unwrap();
    assert_eq!(option(&changed, "model")["currentValue"], "other");
    assert_eq!(
        code(client.ask("session/set_config_option", set("none"))),
        -32602
    );
    let mode = json!({"sessionId": session, "configId": "mode", "value": "read-only"});
    let changed = client.ask("session/set_config_option", mode).unwrap();
    assert_eq!(option(&changed, "mode")["currentValue"], "read-only");
    assert_eq!(
        client.of_kind("current_mode_update")[0]["currentModeId"],
        "read-only"
    );
    let stop = client.prompt(&session, "hello", |_, request| panic!("{request}"));
    assert_eq!(stop, "end_turn");
}

#[test]
fn the_tasks_of_a_goal_are_the_plan() {
    let tasks = |state: &str| json!({"tasks": [{"id": "1", "title": "read it", "state": state}, {"id": "2", "title": "no", "state": "skipped"}]});
    let model = Model::new([
        calls("update_plan", tasks("running")),
        calls("update_plan", tasks("completed")),
        says("done"),
    ]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    let stop = client.prompt(&session, "/plan understand it", |_, request| {
        panic!("{request}")
    });
    assert_eq!(stop, "end_turn");
    assert!(client.text().contains("understand it"), "{}", client.text());
    let stop = client.prompt(&session, "go", |_, request| panic!("{request}"));
    assert_eq!(stop, "end_turn");
    let entries = |update: &Value| update["entries"].clone();
    let told: Vec<Value> = client.of_kind("plan").iter().map(entries).collect();
    let task =
        |status: &str| json!([{"content": "read it", "priority": "medium", "status": status}]);
    assert_eq!(told, [task("in_progress"), task("completed")]);
}
