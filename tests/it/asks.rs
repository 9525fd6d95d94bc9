//! What a guest knows of its call, and questions of tools: over JSON lines, at the prompt and on the command line.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::guest::HOSTILE;
use crate::product::{Product, answer};
use crate::running::Running;
use crate::terminal::Prompt;

fn product() -> Product {
    let product = Product::new();
    product.drop_in("hostile", HOSTILE);
    product
}

fn main_branch(asked: &Value) -> Value {
    let content = json!({"branch": "main"});
    json!({"state": asked["question"]["state"], "answers": [{"id": "where", "content": content}]})
}

/// Makes the call `asks n=N`, with the answer to an earlier one.
fn ask(host: &mut Running, n: u64, given: &Value) -> Value {
    host.begin_line(json!({"tool": "asks", "params": {"n": n}, "answer": given}));
    host.answer()
}

fn is_asked(answer: &Value, round: u64) {
    assert_eq!(answer["status"], "refused", "{answer}");
    assert_eq!(
        answer["error"]["category"], "confirmation_required",
        "{answer}"
    );
    let question = &answer["question"];
    assert_eq!(question["round"], round, "{answer}");
    assert_eq!(question["questions"][0]["id"], "where", "{answer}");
    // What would steer a terminal is gone.
    assert_eq!(
        question["questions"][0]["message"],
        "Which branch is it[2J to be?"
    );
    let schema = &question["questions"][0]["schema"];
    assert_eq!(schema["required"], json!(["branch"]), "{answer}");
}

fn is_invalid(answer: &Value, words: &str) {
    assert_eq!(
        answer["error"]["category"], "invalid_parameters",
        "{answer}"
    );
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains(words), "{answer}");
    assert!(answer.get("question").is_none(), "{answer}");
}

fn answer_of<'a>(records: &'a [Value], call: &Value) -> &'a Value {
    let found = records.iter().find(|record| record["call_id"] == *call);
    found.unwrap_or_else(|| panic!("no {call} in {records:#?}"))
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the guest's times are compared with the clock"
)]
fn a_guest_knows_its_call() {
    let product = product();
    let lines = [
        r#"{"id":1,"tool":"knows","turn":"first","goal_id":"g-7","skill_name":"release","caller_id":"reviewer"}"#,
        r#"{"id":2,"tool":"knows"}"#,
        r#"{"id":3,"tool":"knows","turn":"second"}"#,
    ];
    let answers = product.answers(&["--jobs", "1"], lines.join("\n"));
    let knows = |id: u64| &answer(&answers, id)["structured"];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    for id in 1..=3 {
        let (knows, answer) = (knows(id), answer(&answers, id));
        assert_eq!(knows["call"], answer["call_id"], "{answer}");
        // The functions and the record say the same.
        for key in ["call", "conversation", "turn", "goal", "caller"] {
            assert_eq!(knows[key], knows["frame"][key], "{key}: {answer}");
        }
        assert_eq!(knows["turn"].as_str().unwrap().len(), 36, "{answer}");
        let started = knows["started"].as_u64().unwrap();
        assert!((1..=now.as_millis()).contains(&started.into()), "{answer}");
        let remaining = knows["remaining"].as_u64().unwrap();
        assert!((1..=30_000).contains(&remaining), "{answer}");
    }
    assert_eq!(knows(1)["goal"], "g-7");
    assert_eq!(knows(1)["skill"], "release");
    assert_eq!(knows(1)["caller"], "reviewer");
    // The turn goes on; the caller was that of one line.
    assert_eq!(knows(2)["turn"], knows(1)["turn"]);
    assert_eq!(knows(2)["skill"], "release");
    assert_eq!(knows(2)["caller"], Value::Null);
    assert_ne!(knows(3)["turn"], knows(1)["turn"]);
    assert_eq!(knows(3)["goal"], Value::Null);

    // The audit says the same, and how each call was decided.
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let record = |id: u64| answer_of(&records, &answer(&answers, id)["call_id"]);
    for (id, key, of_guest) in [
        (1, "turn_id", "turn"),
        (1, "goal_id", "goal"),
        (1, "skill_name", "skill"),
        (1, "caller_id", "caller"),
        (2, "skill_name", "skill"),
        (3, "turn_id", "turn"),
    ] {
        assert_eq!(record(id)[key], knows(id)[of_guest], "{id} {key}");
    }
    assert_eq!(record(3).get("goal_id"), None);
    let decided = record(1)["policy_match"].as_str().unwrap();
    assert!(decided.contains("[default: allow"), "{decided}");

    // A person is nobody's caller.
    let typed = product.run(&["call", "knows", "--output", "json"]).json();
    assert_eq!(typed["structured"]["caller"], Value::Null, "{typed}");
    assert_eq!(typed["structured"]["skill"], Value::Null, "{typed}");
}

#[test]
fn a_program_answers_what_a_tool_asks() {
    let product = product();
    let mut host = Running::start(&product, &[]);
    let first = host.call("asks", &json!({"n": 2}));
    is_asked(&first, 1);
    let second = ask(&mut host, 2, &main_branch(&first));
    is_asked(&second, 2);
    let declined = json!({
        "state": second["question"]["state"],
        "answers": [{"id": "where", "action": "decline"}],
    });
    let done = ask(&mut host, 2, &declined);
    assert_eq!(done["status"], "ok", "{done}");
    assert_eq!(done["text"], r#"[{"branch":"main"},"declined"]"#);
    is_invalid(&ask(&mut host, 2, &declined), "answered before");
}

#[test]
fn answers_of_another_call_are_refused() {
    let product = product();
    let mut host = Running::start(&product, &[]);
    let asked = host.call("asks", &json!({"n": 1}));
    let answers = main_branch(&asked);
    is_invalid(&ask(&mut host, 2, &answers), "does not belong to this call");
    host.begin_line(json!({"tool": "echo", "params": {"text": "a"}, "answer": answers}));
    is_invalid(&host.answer(), "does not belong to this call");
    host.begin_line(json!({"tool": "list_runs", "answer": answers}));
    is_invalid(&host.answer(), "asks the user nothing");
    let wrong =
        json!({"state": asked["question"]["state"], "answers": [{"id": "where", "content": {}}]});
    is_invalid(&ask(&mut host, 1, &wrong), "the answer to `where`");

    // Neither counts in another conversation, nor in another run.
    let mut other = Running::start(&product, &[]);
    is_invalid(
        &ask(&mut other, 1, &answers),
        "does not belong to this call",
    );

    // What was refused has used nothing up.
    let done = ask(&mut host, 1, &answers);
    assert_eq!(done["text"], r#"[{"branch":"main"}]"#, "{done}");
}

#[test]
fn a_tool_that_asks_for_ever_is_ended() {
    let product = product();
    let mut host = Running::start(&product, &[]);
    let mut asked = host.call("asks", &json!({"n": 100}));
    for round in 1..=8 {
        is_asked(&asked, round);
        asked = ask(&mut host, 100, &main_branch(&asked));
    }
    assert_eq!(asked["error"]["category"], "permanent_failure", "{asked}");
    let message = asked["error"]["message"].as_str().unwrap();
    assert!(message.contains("8 times"), "{asked}");
}

/// Who agreed to a call agreed to all of it.
#[test]
fn an_approval_covers_the_answers() {
    let product = product();
    let rule = r#"tools.permissions.asks=[{pattern = "*", action = "ask"}]"#;
    let mut host = Running::start(&product, &["--set", rule]);
    let refused = host.call("asks", &json!({"n": 1}));
    assert!(refused.get("question").is_none(), "{refused}");
    let approved = product.run(&["approve", "asks", "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let asked = host.call("asks", &json!({"n": 1}));
    is_asked(&asked, 1);
    let done = ask(&mut host, 1, &main_branch(&asked));
    assert_eq!(done["status"], "ok", "{done}");
    // It was for once.
    let again = host.call("asks", &json!({"n": 1}));
    assert!(again.get("question").is_none(), "{again}");
}

#[test]
fn a_person_answers_at_the_prompt() {
    let product = product();
    let mut prompt = Prompt::start(&product);
    prompt.type_line("asks n=1");
    prompt.until("asks:");
    prompt.until("branch –");
    prompt.type_line("main");
    prompt.until("force –");
    prompt.type_line("perhaps");
    prompt.until_all(&["`yes` or `no`", "force –"]);
    prompt.type_line("yes");
    prompt.until(r#"[{"branch":"main","force":true}]"#);

    prompt.type_line("asks n=1");
    prompt.until("branch –");
    prompt.press(b"\x04");
    prompt.until(r#"["declined"]"#);
}

#[test]
fn a_signal_ends_a_question() {
    let product = product();
    let call = Prompt::start_with(&product, &["call", "asks", "n=1"], "branch –");
    assert_eq!(call.terminate(), Some(143));

    let mut prompt = Prompt::start(&product);
    prompt.type_line("asks n=1");
    prompt.until("branch –");
    assert_eq!(prompt.terminate(), Some(143));
}

#[test]
fn a_person_answers_on_the_command_line() {
    let product = product();
    let mut prompt = Prompt::start_with(&product, &["call", "asks", "n=1"], "asks:");
    prompt.until("branch –");
    prompt.press(b"\x03");
    prompt.until(r#"["cancelled"]"#);

    // Without a terminal nobody is asked.
    let ran = product.run(&["call", "asks", "n=1"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.stderr.contains("`asks` asks the user: Which branch"),
        "{ran:?}"
    );
}
