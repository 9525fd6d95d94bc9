use serde_json::{Value, json};
use zeph_filter::{BUILTIN, Filters};

use super::event::{Agent, EventKind, HookEvent};
use super::rewrite::rewritten;
use super::{after, before};

fn check_rewrite(command: &str, expect: Option<&str>) {
    let (filters, _) = Filters::load(BUILTIN, None);
    let got = rewritten(&filters, command, "zeph-host");
    assert_eq!(got.as_deref(), expect, "{command}");
}

#[test]
fn only_a_plain_command_with_a_rule_is_rewritten() {
    check_rewrite(
        "cargo test --workspace",
        Some("zeph-host filter -- cargo test --workspace"),
    );
    check_rewrite(
        "cargo test 2>&1",
        Some("zeph-host filter -- cargo test 2>&1"),
    );
    for untouched in [
        "cd x && cargo test",
        "cargo test | tail -5",
        "cargo test | grep FAIL",
        "FOO=1 cargo test",
        "cargo test > log",
        "cargo test; rm -rf x",
        "cargo test & cargo build",
        "cargo test $(cat args)",
        "(cargo test)",
        "sudo cargo test",
        "echo hello",
        "cargo test\nrm x",
        "eval cargo test",
        "cargo test < input 2>&1",
        "",
    ] {
        check_rewrite(untouched, None);
    }
}

fn event(agent: Agent, input: Value) -> Option<EventKind> {
    HookEvent::read(agent, None, &input)
        .ok()
        .flatten()
        .map(|event| event.kind)
}

fn input(name: &str) -> Value {
    json!({
        "hook_event_name": name,
        "tool_name": "Bash",
        "tool_input": {"command": "cargo test", "timeout": 5},
        "tool_response": {"stdout": "a", "stderr": "b", "interrupted": false},
    })
}

#[test]
fn events_are_read_as_each_agent_sends_them() {
    let plain = EventKind::After {
        output: "a\nb".to_owned(),
        exit_code: Some(0),
    };
    assert_eq!(
        event(Agent::Claude, input("PostToolUse")),
        Some(plain.clone())
    );
    assert_eq!(event(Agent::Codex, input("PostToolUse")), None);
    let mut interrupted = input("PostToolUse");
    interrupted["tool_response"]["interrupted"] = json!(true);
    let Some(EventKind::After { exit_code, .. }) = event(Agent::Claude, interrupted) else {
        panic!("an interrupted command has an output");
    };
    assert_eq!(exit_code, None);
    let mut interpreted = input("PostToolUse");
    interpreted["tool_response"]["returnCodeInterpretation"] = json!("No matches found");
    let Some(EventKind::After { exit_code, .. }) = event(Agent::Claude, interpreted) else {
        panic!("a command without a match has an output");
    };
    assert_eq!(exit_code, None);
    let mut other = input("PostToolUse");
    other["tool_name"] = json!("Read");
    assert_eq!(event(Agent::Claude, other), None);
    let asks = EventKind::Before { is_unasked: false };
    assert_eq!(event(Agent::Codex, input("PreToolUse")), Some(asks));
    let mut unasked = input("PreToolUse");
    unasked["permission_mode"] = json!("bypassPermissions");
    let asks_nothing = EventKind::Before { is_unasked: true };
    assert_eq!(event(Agent::Codex, unasked), Some(asks_nothing));
    let named = HookEvent::read(Agent::Claude, Some("post-tool-use"), &input("Stop"));
    assert_eq!(named.unwrap().map(|event| event.kind), Some(plain));
    assert!(HookEvent::read(Agent::Claude, None, &json!([])).is_err());
    assert!(Agent::named("cursor").is_err());
}

#[test]
fn answers_keep_the_form_of_what_they_replace() {
    let mut given = input("PostToolUse");
    given["tool_response"]["persistedOutputPath"] = json!("/tmp/x");
    let output = &after(&given, "short")["hookSpecificOutput"];
    assert_eq!(
        output["updatedToolOutput"],
        json!({"stdout": "short", "stderr": "", "interrupted": false})
    );
    given["tool_response"] = json!("text");
    assert_eq!(
        after(&given, "short")["hookSpecificOutput"]["updatedToolOutput"],
        "short"
    );
    let output = &before(&given, "other")["hookSpecificOutput"];
    assert_eq!(
        output["updatedInput"],
        json!({"command": "other", "timeout": 5})
    );
    assert_eq!(output["permissionDecision"], "allow");
}
