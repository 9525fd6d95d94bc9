//! Who may do what: permissions, modes, and what they never allow.

use serde_json::{Value, json};

use super::client::Client;
use super::model::{Model, calls, says};
use super::{plain, product};
use crate::guest::HOSTILE;

fn write(path: &str) -> super::model::Answer {
    calls("write", json!({"path": path, "content": "new\n"}))
}

/// Answers every question for permission with this option, and counts them.
fn choose<'a>(option: &'a str, n_asked: &'a mut usize) -> impl FnMut(&mut Client, &Value) + 'a {
    move |client, request| {
        assert_eq!(request["method"], "session/request_permission", "{request}");
        *n_asked += 1;
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        client.answer(request, &outcome);
    }
}

#[test]
fn a_rejected_call_does_not_run_and_the_model_is_told() {
    let model = Model::new([write("a.txt"), says("pity")]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    let mut asked = Vec::new();
    let stop = client.prompt(&session, "write", |client, request| {
        asked.push(request.clone());
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
        client.answer(request, &outcome);
    });
    assert_eq!(stop, "end_turn");
    let (begun, ended) = client.ended_call();
    assert_eq!(asked.len(), 1);
    let params = &asked[0]["params"];
    assert_eq!(params["toolCall"]["toolCallId"], begun["toolCallId"]);
    let kinds: Vec<&Value> = params["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| &option["kind"])
        .collect();
    assert_eq!(
        kinds,
        ["allow_once", "allow_always", "reject_once", "reject_always"]
    );
    let shown = params["toolCall"]["content"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(
        shown.contains("a.txt") && shown.contains("It asks because"),
        "{shown}"
    );
    assert_eq!(ended["status"], "failed");
    assert!(!product.work.join("a.txt").exists());
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("the user did not approve it"), "{told}");
}

#[test]
fn an_edit_that_is_allowed_ends_with_its_diff() {
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "three"});
    let model = Model::new([calls("edit", edit), says("done")]);
    let product = product(&model);
    product.file("a.txt", "one\ntwo\n");
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    let mut n_asked = 0;
    client.prompt(&session, "edit", choose("allow_once", &mut n_asked));
    assert_eq!(n_asked, 1);
    assert_eq!(product.read("a.txt"), "one\nthree\n");
    let (begun, ended) = client.ended_call();
    let path = product.work.join("a.txt");
    assert_eq!(
        begun["content"],
        json!([{"type": "diff", "path": path, "oldText": "two", "newText": "three"}])
    );
    assert_eq!(
        (&begun["kind"], &ended["status"]),
        (&json!("edit"), &json!("completed"))
    );
    let diff = &ended["content"][0];
    assert_eq!(
        (&diff["type"], &diff["path"]),
        (&json!("diff"), &json!(path))
    );
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!("one\ntwo\n"), &json!("one\nthree\n"))
    );
    assert_eq!(ended["locations"][0]["path"], json!(path));
}

#[test]
fn always_holds_for_exactly_the_call_and_outlives_the_process() {
    let model = Model::new([
        write("a.txt"),
        says("1"),
        write("a.txt"),
        says("2"),
        write("b.txt"),
        says("3"),
    ]);
    let product = product(&model);
    for (n_expected, path) in [(1, "a.txt"), (0, "a.txt"), (1, "b.txt")] {
        let mut client = Client::start(&product, &[], plain());
        let session = client.session(&product.work);
        let mut n_asked = 0;
        client.prompt(&session, "write", choose("allow_always", &mut n_asked));
        assert_eq!(n_asked, n_expected, "{path}");
        assert_eq!(product.read(path), "new\n");
        client.leave();
    }
}

#[test]
fn what_is_rejected_for_good_is_not_asked_again_in_the_session() {
    let model = Model::new([
        write("a.txt"),
        says("1"),
        write("a.txt"),
        says("2"),
        write("b.txt"),
        says("3"),
    ]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    for n_expected in [1, 0, 1] {
        let mut n_asked = 0;
        client.prompt(&session, "write", choose("reject_always", &mut n_asked));
        assert_eq!(n_asked, n_expected);
    }
    assert!(!product.work.join("a.txt").exists());
}

#[test]
fn nothing_but_an_offered_answer_allows_a_call() {
    let answers = [
        json!({"outcome": {"outcome": "selected", "optionId": "yes"}}),
        json!({"outcome": {"outcome": "cancelled"}}),
        json!({"outcome": "allow_once"}),
        json!(null),
    ];
    let script = answers.iter().flat_map(|_| [write("a.txt"), says("no")]);
    let model = Model::new(script);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    for answer in &answers {
        let stop = client.prompt(&session, "write", |client, request| {
            client.answer(request, answer);
        });
        assert_eq!(stop, "end_turn", "{answer}");
        assert!(!product.work.join("a.txt").exists(), "{answer}");
    }
    // A client driven by another model cannot approve with words either: it is asked.
    let waiting = product.run(&["approve", "--json"]).stdout;
    assert!(waiting.contains("a.txt"), "{waiting}");
    let mut n_asked = 0;
    client.prompt(
        &session,
        "/approve write",
        choose("reject_once", &mut n_asked),
    );
    assert_eq!(n_asked, 1);
}

#[test]
fn an_answer_after_the_cancel_of_its_command_approves_nothing() {
    let model = Model::new([write("a.txt"), says("no")]);
    let product = product(&model);
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    client.prompt(&session, "write", |client, request| {
        client.answer(request, &json!({"outcome": {"outcome": "cancelled"}}));
    });
    let turn = client.send_prompt(&session, "/approve write");
    let asked = client.until(|message| message["method"] == "session/request_permission");
    client.notify("session/cancel", &json!({"sessionId": session}));
    let answer = client.wait(turn, |_, request| panic!("{request}")).unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
    let allow = json!({"outcome": {"outcome": "selected", "optionId": "allow_always"}});
    client.answer(&asked, &allow);
    client.prompt(&session, "/cost", |_, request| panic!("{request}"));
    let waiting = product.run(&["approve", "--json"]).stdout;
    assert!(waiting.contains("a.txt"), "{waiting}");
    // One in time does, and is recorded as one of the editor.
    let mut n_asked = 0;
    client.prompt(
        &session,
        "/approve write",
        choose("allow_always", &mut n_asked),
    );
    assert_eq!(n_asked, 1);
    let listed = product.run(&["approve"]).stdout;
    assert!(listed.contains("(test 1)"), "{listed}");
}

#[test]
fn edits_are_allowed_in_their_mode_but_not_what_programs_obey() {
    let model = Model::new([
        write("a.txt"),
        write(".git/hooks/pre-commit"),
        calls("bash", json!({"command": "true"})),
        says("done"),
    ]);
    let product = product(&model);
    product.file(".git/HEAD", "ref: refs/heads/main\n");
    let mut client = Client::start(&product, &[], plain());
    let session = client.session(&product.work);
    client
        .ask(
            "session/set_mode",
            json!({"sessionId": session, "modeId": "edit"}),
        )
        .unwrap();
    let mut n_asked = 0;
    client.prompt(&session, "write", choose("reject_once", &mut n_asked));
    assert_eq!(n_asked, 2, "the hook and the command ask");
    assert_eq!(product.read("a.txt"), "new\n");
    assert!(!product.work.join(".git/hooks/pre-commit").exists());
}

#[test]
fn read_only_beats_every_rule_and_also_a_permission_that_comes_later() {
    let model = Model::new([
        write("a.txt"),
        says("1"),
        calls("bash", json!({"command": "touch b.txt"})),
        calls("read", json!({"path": "c.txt"})),
        says("2"),
    ]);
    let product = product(&model);
    product.file("c.txt", "content\n");
    let mut client = Client::start(&product, &["--allow", "write"], plain());
    let session = client.session(&product.work);
    let mode = |mode: &str| json!({"sessionId": session, "modeId": mode});
    client.ask("session/set_mode", mode("read-only")).unwrap();
    client.prompt(&session, "write", |_, request| panic!("{request}"));
    assert_eq!(client.ended_call().1["status"], "failed");
    assert!(!product.work.join("a.txt").exists());
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("read-only"), "{told}");

    client.ask("session/set_mode", mode("ask")).unwrap();
    client.updates.clear();
    client.prompt(&session, "run", |client, request| {
        // In the middle of the turn, then allowed.
        let set = client.request("session/set_mode", &mode("read-only"));
        client.until(|message| message["id"] == json!(set));
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        client.answer(request, &outcome);
    });
    assert!(!product.work.join("b.txt").exists());
    let ends = client.of_kind("tool_call_update");
    let states: Vec<&Value> = ends.iter().map(|end| &end["status"]).collect();
    assert_eq!(states, ["failed", "completed"]);
}

/// A client that can show forms.
fn with_forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

#[test]
fn questions_of_a_tool_are_forms_of_a_client_that_has_them() {
    let model = Model::new([calls("asks", json!({"n": 1})), says("thanks")]);
    let product = product(&model);
    product.drop_in("hostile", HOSTILE);
    let mut client = Client::start(&product, &[], with_forms());
    let session = client.session(&product.work);
    let mut forms = Vec::new();
    client.prompt(&session, "ask", |client, request| {
        if request["method"] != "elicitation/create" {
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
            return client.answer(request, &outcome);
        }
        forms.push(request["params"].clone());
        // The first answer does not fit: the question is put once more.
        let content = match forms.len() {
            1 => json!({"branch": 7}),
            _ => json!({"branch": "main"}),
        };
        client.answer(request, &json!({"action": "accept", "content": content}));
    });
    assert_eq!(forms.len(), 2, "{forms:#?}");
    let (begun, ended) = client.ended_call();
    for form in &forms {
        assert_eq!(form["sessionId"], session);
        assert_eq!(form["mode"], "form");
        assert_eq!(form["toolCallId"], begun["toolCallId"]);
        assert_eq!(form["requestedSchema"]["type"], "object");
        assert!(
            form["message"].as_str().unwrap().contains("`asks`"),
            "{form}"
        );
    }
    assert!(
        forms[1]["message"]
            .as_str()
            .unwrap()
            .contains("does not fit"),
        "{}",
        forms[1]
    );
    assert_eq!(ended["status"], "completed", "{ended}");
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.contains("main"), "{told}");
}

#[test]
fn a_client_without_forms_or_an_answer_ends_the_call_with_its_questions() {
    for (capabilities, answers) in [(plain(), 0), (with_forms(), 1)] {
        let model = Model::new([calls("asks", json!({"n": 1})), says("pity")]);
        let product = product(&model);
        product.drop_in("hostile", HOSTILE);
        let mut client = Client::start(&product, &[], capabilities);
        let session = client.session(&product.work);
        let mut n_asked = 0;
        client.prompt(&session, "ask", |client, request| {
            if request["method"] != "elicitation/create" {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
                return client.answer(request, &outcome);
            }
            n_asked += 1;
            client.answer(request, &json!({"action": "later"}));
        });
        assert_eq!(n_asked, answers);
        assert_eq!(client.ended_call().1["status"], "failed");
    }
}
