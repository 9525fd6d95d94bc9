//! What asks, over the Model Context Protocol: approvals and questions of tools, in both eras.

use serde_json::{Value, json};

use crate::guest::HOSTILE;
use crate::mcp_client::{McpClient, modern_meta, result, text};
use crate::mcp_http_client::{HttpServer, add_token, message, modern_call};
use crate::product::Product;

/// A call that asks.
fn command() -> Value {
    json!({"command": "echo made >> made.txt"})
}

fn forms() -> Value {
    json!({"elicitation": {}})
}

fn lines_made(product: &Product) -> usize {
    let made = std::fs::read_to_string(product.work.join("made.txt"));
    made.map_or(0, |text| text.lines().count())
}

fn category(result: &Value) -> &Value {
    &result["structuredContent"]["error"]["category"]
}

fn is_the_form(form: &Value) {
    let message = form["params"]["message"].as_str().unwrap();
    for words in [
        "bash",
        "echo made >> made.txt",
        "It asks because",
        "--allow",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let schema = &form["params"]["requestedSchema"];
    assert_eq!(
        schema["properties"]["scope"]["enum"],
        json!(["once", "conversation"]),
        "{form}"
    );
    assert!(schema["required"].is_null(), "{form}");
}

/// The one that a call of a client of the old era waits for.
fn asked(client: &mut McpClient) -> Value {
    let form = client.told("elicitation/create");
    is_the_form(&form);
    form["id"].clone()
}

/// What came of the newest call, and who agreed to it.
fn newest(product: &Product) -> Value {
    let args = ["audit", "query", "--limit", "1", "--json"];
    product.run(&args).json_lines().remove(0)
}

/// A retry of `bash` in the new era.
fn retry(client: &mut McpClient, arguments: Value, state: &Value, answer: Value) -> u64 {
    let params = json!({
        "name": "bash",
        "arguments": arguments,
        "requestState": state,
        "inputResponses": {"approval": answer},
    });
    client.begin("tools/call", params)
}

fn is_required(result: &Value) -> Value {
    assert_eq!(result["resultType"], "input_required", "{result}");
    assert!(result["requestState"].is_string(), "{result}");
    result["requestState"].clone()
}

fn is_refused(answer: &Value, words: &str) {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains(words), "{answer}");
}

#[test]
fn a_person_agrees_while_the_call_waits() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &[], &forms());
    let id = client.begin_call("bash", command());
    let form = asked(&mut client);
    assert_eq!(lines_made(&product), 0);
    client.reply(&form, json!({"action": "accept", "content": {}}));
    let done = result(client.answer(id));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(lines_made(&product), 1);
    let agreement = json!({"how": "elicitation", "client": "test 1"});
    assert_eq!(newest(&product)["agreement"], agreement);
    // Nothing is left for the command line.
    let waiting = product.run(&["approve"]);
    assert!(waiting.stdout.contains("no call waits"), "{waiting:?}");

    // It was for once; then for all of the conversation.
    let id = client.begin_call("bash", command());
    let form = asked(&mut client);
    let scope = json!({"scope": "conversation"});
    client.reply(&form, json!({"action": "accept", "content": scope}));
    result(client.answer(id));
    let done = client.call("bash", command());
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(lines_made(&product), 3);
    assert_eq!(newest(&product)["agreement"], agreement);
}

#[test]
fn a_person_who_does_not_agree_is_obeyed() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &[], &forms());
    for action in ["decline", "cancel"] {
        let id = client.begin_call("bash", command());
        let form = asked(&mut client);
        client.reply(&form, json!({"action": action}));
        let refused = result(client.answer(id));
        assert_eq!(refused["isError"], true, "{refused}");
        assert_eq!(category(&refused), "policy_blocked", "{refused}");
        assert!(text(&refused).contains("did not approve"), "{refused}");
    }
    // An answer that fits no form agrees to nothing.
    let id = client.begin_call("bash", command());
    let form = asked(&mut client);
    let scope = json!({"scope": "always"});
    client.reply(&form, json!({"action": "accept", "content": scope}));
    let refused = result(client.answer(id));
    assert_eq!(category(&refused), "confirmation_required", "{refused}");
    assert_eq!(lines_made(&product), 0);
}

#[test]
fn a_client_without_forms_is_told_the_command() {
    let product = Product::new();
    for mut client in McpClient::each(&product, &[]) {
        let refused = client.call("bash", command());
        assert_eq!(refused["isError"], true, "{refused}");
        assert_eq!(category(&refused), "confirmation_required", "{refused}");
        assert!(text(&refused).contains("zeph-host approve "), "{refused}");
    }
    let url_only = json!({"elicitation": {"url": {}}});
    let mut client = McpClient::legacy(&product, &[], &url_only);
    let refused = client.call("bash", command());
    assert_eq!(category(&refused), "confirmation_required", "{refused}");
    assert_eq!(lines_made(&product), 0);
}

#[test]
fn what_the_command_line_approves_runs_and_is_recorded_as_such() {
    let product = Product::new();
    let [mut client, _] = McpClient::each(&product, &[]);
    client.call("bash", command());
    let approved = product.run(&["approve", "bash", "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let done = client.call("bash", command());
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(newest(&product)["agreement"]["how"], "command_line");
    // It was for once.
    let again = client.call("bash", command());
    assert_eq!(category(&again), "confirmation_required", "{again}");
    assert_eq!(lines_made(&product), 1);
}

#[test]
fn a_cancelled_call_takes_its_form_away() {
    let product = Product::new();
    let mut client = McpClient::legacy(&product, &[], &forms());
    let id = client.begin_call("bash", command());
    let form = asked(&mut client);
    client.notify("notifications/cancelled", json!({"requestId": id}));
    let withdrawn = client.told("notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], form, "{withdrawn}");
    let done = client.call("list_directory", json!({"path": "."}));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(lines_made(&product), 0);
}

#[test]
fn a_call_of_the_new_era_is_made_again_with_the_answer() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &[], &forms());
    let required = client.call("bash", command());
    let state = is_required(&required);
    let form = &required["inputRequests"]["approval"];
    assert_eq!(form["method"], "elicitation/create", "{required}");
    is_the_form(form);
    assert_eq!(lines_made(&product), 0);
    let accept = json!({"action": "accept", "content": {"scope": "once"}});

    // Other arguments, an altered state, an answer that is none: nothing runs, and nothing is used up.
    let other = json!({"command": "echo other >> made.txt"});
    let id = retry(&mut client, other, &state, accept.clone());
    is_refused(&client.answer(id), "belongs to another call");
    let altered = json!(format!("{}A", state.as_str().unwrap()));
    let id = retry(&mut client, command(), &altered, accept.clone());
    is_refused(&client.answer(id), "altered");
    let id = retry(&mut client, command(), &state, json!("accept"));
    is_refused(&client.answer(id), "no answer to a form");
    assert_eq!(lines_made(&product), 0);

    let id = retry(&mut client, command(), &state, accept.clone());
    let done = result(client.answer(id));
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(lines_made(&product), 1);
    let agreement = json!({"how": "elicitation", "client": "test 1"});
    assert_eq!(newest(&product)["agreement"], agreement);

    let id = retry(&mut client, command(), &state, accept.clone());
    is_refused(&client.answer(id), "used before");
    // An answer without the state is nobody's.
    let params = json!({
        "name": "bash", "arguments": command(), "inputResponses": {"approval": accept},
    });
    is_required(&result(client.request("tools/call", params)));
    assert_eq!(lines_made(&product), 1);
}

#[test]
fn of_two_retries_at_once_one_runs() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &[], &forms());
    let state = is_required(&client.call("bash", command()));
    let accept = json!({"action": "accept"});
    let ids = [(); 4].map(|()| retry(&mut client, command(), &state, accept.clone()));
    let answers = ids.map(|id| client.answer(id));
    let n_done = answers
        .iter()
        .filter(|answer| answer["result"]["isError"] == false)
        .count();
    assert_eq!((n_done, lines_made(&product)), (1, 1), "{answers:#?}");
    for answer in answers.iter().filter(|answer| answer["error"].is_object()) {
        is_refused(answer, "used before");
    }
}

#[test]
fn a_person_of_the_new_era_can_decline() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &[], &forms());
    let state = is_required(&client.call("bash", command()));
    let id = retry(&mut client, command(), &state, json!({"action": "decline"}));
    let refused = result(client.answer(id));
    assert_eq!(category(&refused), "policy_blocked", "{refused}");
    let id = retry(&mut client, command(), &state, json!({"action": "accept"}));
    is_refused(&client.answer(id), "used before");
    assert_eq!(lines_made(&product), 0);
}

#[test]
fn no_argument_approves() {
    let product = Product::new();
    let mut client = McpClient::modern(&product, &[], &forms());
    let mut arguments = command();
    arguments["approval"] = json!({"action": "accept"});
    is_required(&client.call("bash", arguments.clone()));
    arguments["inputResponses"] = json!({"approval": {"action": "accept"}});
    arguments["requestState"] = json!("x");
    is_required(&client.call("bash", arguments));
    assert_eq!(lines_made(&product), 0);
}

#[test]
fn a_tool_asks_through_the_client() {
    let product = Product::new();
    product.drop_in("hostile", HOSTILE);
    let mut client = McpClient::legacy(&product, &[], &forms());
    let id = client.begin_call("asks", json!({"n": 2}));
    let form = client.told("elicitation/create");
    let message = form["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("`asks` asks, in its own words:\n\n> Which"),
        "{form}"
    );
    // What does not fit is asked again.
    client.reply(&form["id"], json!({"action": "accept", "content": {}}));
    let form = client.told("elicitation/create");
    let message = form["params"]["message"].as_str().unwrap();
    assert!(message.contains("does not fit"), "{form}");
    let content = json!({"branch": "main"});
    client.reply(&form["id"], json!({"action": "accept", "content": content}));
    let form = client.told("elicitation/create");
    client.reply(&form["id"], json!({"action": "decline"}));
    let done = result(client.answer(id));
    assert_eq!(text(&done), r#"[{"branch":"main"},"declined"]"#, "{done}");
}

#[test]
fn a_tool_asks_the_person_of_the_new_era() {
    let product = Product::new();
    product.drop_in("hostile", HOSTILE);
    let rule = r#"tools.permissions.asks=[{pattern = "*", action = "ask"}]"#;
    let mut client = McpClient::modern(&product, &["--set", rule], &forms());
    let make = |client: &mut McpClient, state: &Value, responses: Value| {
        let params = json!({
            "name": "asks", "arguments": {"n": 2}, "requestState": state, "inputResponses": responses,
        });
        client.request("tools/call", params)
    };
    let approve = is_required(&client.call("asks", json!({"n": 2})));
    let accepted = json!({"approval": {"action": "accept"}});
    let first = result(make(&mut client, &approve, accepted));
    let state = is_required(&first);
    assert!(
        first["inputRequests"]["where"]["params"]["message"].is_string(),
        "{first}"
    );
    // An answer that is missing or does not fit is asked for again.
    for wrong in [
        json!({}),
        json!({"where": {"action": "accept", "content": {}}}),
    ] {
        let again = result(make(&mut client, &state, wrong));
        is_required(&again);
        let message = &again["inputRequests"]["where"]["params"]["message"];
        assert!(
            message.as_str().unwrap().contains("does not fit"),
            "{again}"
        );
    }
    let main = json!({"where": {"action": "accept", "content": {"branch": "main"}}});
    let second = result(make(&mut client, &state, main.clone()));
    let next = is_required(&second);
    let declined = json!({"where": {"action": "decline"}});
    let done = result(make(&mut client, &next, declined));
    assert_eq!(text(&done), r#"[{"branch":"main"},"declined"]"#, "{done}");
    // Each answer counts once.
    let again = make(&mut client, &state, main);
    let again = result(again);
    assert_eq!(category(&again), "invalid_parameters", "{again}");
    // Who agreed to the call agreed to its answers.
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let ran = records
        .iter()
        .filter(|record| record["agreement"].is_object());
    assert_eq!(ran.count(), 3, "{records:#?}");
}

/// A request of `bash` over HTTP in the new era, by the caller of `token`.
fn over_http(server: &HttpServer, token: &str, more: &Value) -> Value {
    let (headers, _) = modern_call("bash", &command(), &json!({}));
    let mut params = json!({
        "name": "bash", "arguments": command(), "_meta": modern_meta(&forms()),
    });
    let fields = more.as_object().unwrap().clone();
    params.as_object_mut().unwrap().extend(fields);
    let body = message("tools/call", &params);
    let reply = server.request("POST /mcp", &format!("{token}{headers}"), &body);
    let data = reply.body.lines().map(|line| line.strip_prefix("data: "));
    let answer = data.flatten().find(|data| data.starts_with('{'));
    serde_json::from_str(answer.unwrap_or(&reply.body)).unwrap_or_else(|_| panic!("{reply:?}"))
}

#[test]
fn an_approval_of_one_caller_is_none_of_another() {
    let product = Product::new();
    let server = HttpServer::start(&product, &[]);
    let [ann, bob] = ["ann", "bob"].map(|name| add_token(&product, &[name]));
    let required = over_http(&server, &ann, &json!({}))["result"].clone();
    let agreed = json!({
        "requestState": is_required(&required),
        "inputResponses": { "approval": { "action": "accept", "content": {} } },
    });
    is_refused(&over_http(&server, &bob, &agreed), "");
    assert_eq!(lines_made(&product), 0);
    let done = over_http(&server, &ann, &agreed);
    assert_eq!(done["result"]["isError"], false, "{done}");
    assert_eq!(lines_made(&product), 1);
    assert_eq!(newest(&product)["agreement"]["who"], "ann");
    is_refused(&over_http(&server, &ann, &agreed), "");
    assert_eq!(lines_made(&product), 1);
}
