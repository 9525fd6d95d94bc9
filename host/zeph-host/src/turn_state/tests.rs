use serde_json::{Value, json};
use zeph_core::call::{CallFrame, TurnContext};
use zeph_core::execution::SecretValue;
use zeph_core::id::ConversationId;
use zeph_core::output::{FileLocation, RawOutput};
use zeph_core::principal::Principal;
use zeph_core::redact::Redactor;

use super::{BYTES_MAX, ITEMS_MAX, TurnStates, search};

fn turn(id: &str) -> TurnContext {
    TurnContext {
        turn_id: id.to_owned(),
        goal_id: None,
        skill_name: None,
        timestamp_ms: 0,
    }
}

fn frame(id: &str, caller: Option<&str>) -> CallFrame {
    let principal = Principal::Model {
        caller_id: caller.map(str::to_owned),
    };
    CallFrame::new(ConversationId::new(), principal, Some(turn(id)), 0)
}

fn take(states: &TurnStates, text: &str) {
    let turn = turn("1");
    states.take(None, (&turn, &turn), &RawOutput::text(text));
}

fn told(states: &TurnStates) -> Value {
    states.of(&frame("1", None), &Redactor::default())
}

#[test]
fn addresses_paths_and_json_are_found() {
    let text = "See https://example.org/a?b=c, or (http://localhost:8080/x).\n\
        src/main.rs:10:5: error\n./run.sh and/or text/html 1/2 3.14\nREADME.md\n\
        {\"name\": \"zeph\", \"list\": [1, 2]}\n  [1]\n[{\"a\": 1},\n {\"a\": 2}]\n{broken\n--- a/b/c.txt\n";
    assert_eq!(
        search::urls(text),
        ["https://example.org/a?b=c", "http://localhost:8080/x"]
    );
    assert_eq!(
        search::paths(text),
        ["src/main.rs", "./run.sh", "README.md", "a/b/c.txt"]
    );
    assert_eq!(
        search::json(text),
        [
            json!({"name": "zeph", "list": [1, 2]}),
            json!([{"a": 1}, {"a": 2}])
        ]
    );
}

#[test]
fn a_name_without_a_slash_stands_alone() {
    let text = "prose of many words\n  README.md\t\nsee a.md\na.md b.md\na\tb.md\nb.md,\n1.5\nc/d.md e.md\n";
    assert_eq!(search::paths(text), ["README.md", "c/d.md"]);
}

#[test]
fn the_latest_stay_in_their_order() {
    let states = TurnStates::default();
    take(&states, "d/0\n");
    let text: String = (0..3 * ITEMS_MAX)
        .map(|n| format!("d/{}/\n", n % 150))
        .collect();
    take(&states, &text);
    let expected: Vec<String> = (0..3 * ITEMS_MAX)
        .skip(2 * ITEMS_MAX)
        .map(|n| format!("d/{}/", n % 150))
        .collect();
    assert_eq!(told(&states)["paths"], json!(expected));
}

#[test]
fn nothing_holds_a_password_or_the_rest_of_a_secret() {
    let text = "https://me:secret@example.org/ https://example.org/?key=[redacted:K] https:// http";
    assert!(search::urls(text).is_empty());
}

#[test]
fn a_turn_begins_with_nothing_and_ends_for_good() {
    let states = TurnStates::default();
    take(&states, "https://example.org/one");
    let late = RawOutput::text("https://example.org/late");
    states.take(None, (&turn("0"), &turn("1")), &late);
    assert_eq!(told(&states)["urls"], json!(["https://example.org/one"]));
    let second = frame("2", None);
    assert_eq!(
        states.of(&second, &Redactor::default()),
        json!({"urls": [], "paths": [], "json": []})
    );
    states.take(None, (&turn("2"), &turn("2")), &RawOutput::text("a/b.c"));
    assert_eq!(told(&states)["urls"], json!([]));
}

#[test]
fn callers_do_not_see_what_others_were_shown() {
    let states = TurnStates::default();
    let turn = turn("1");
    let of_alice = RawOutput {
        locations: vec![FileLocation {
            path: "alice.txt".to_owned(),
            line: None,
            column: None,
        }],
        ..RawOutput::default()
    };
    states.take(Some("alice"), (&turn, &turn), &of_alice);
    let of = |caller| states.of(&frame("1", caller), &Redactor::default());
    assert_eq!(of(Some("alice"))["paths"], json!(["alice.txt"]));
    for other in [None, Some("bob")] {
        assert_eq!(of(other)["paths"], json!([]), "{other:?}");
    }
}

#[test]
fn what_becomes_a_secret_is_told_no_more() {
    let states = TurnStates::default();
    take(&states, "{\"key\": \"s3cr3t-value\"}");
    let redactor = Redactor::new(&[SecretValue {
        name: "KEY".to_owned(),
        value: "s3cr3t-value".to_owned(),
    }]);
    let told = states.of(&frame("1", None), &redactor);
    assert!(!told.to_string().contains("s3cr3t-value"), "{told}");
}

#[test]
fn it_is_bounded_and_the_latest_stay() {
    let states = TurnStates::default();
    let many: String = (0..500).map(|n| format!("src/file_{n}.rs\n")).collect();
    take(&states, &many);
    take(&states, "src/file_450.rs");
    let paths = told(&states)["paths"].as_array().unwrap().clone();
    assert_eq!(paths.len(), ITEMS_MAX);
    assert_eq!(paths[ITEMS_MAX - 1], "src/file_450.rs");
    for n in 0..50 {
        take(
            &states,
            &format!("{{\"n\": {n}, \"text\": \"{}\"}}", "x".repeat(5_000)),
        );
    }
    take(
        &states,
        &format!("{{\"text\": \"{}\"}}", "x".repeat(BYTES_MAX)),
    );
    let values = told(&states)["json"].as_array().unwrap().clone();
    assert!(
        values.len() < 14 && values.last().unwrap()["n"] == 49,
        "{}",
        values.len()
    );
    take(&states, &"[".repeat(1_000_000));
    take(&states, &"{\"a\":".repeat(100_000));
}
