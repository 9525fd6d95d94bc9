use std::path::Path;

use serde_json::{Value, json};
use zeph_core::argument::Parameters;
use zeph_core::id::ToolName;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
use zeph_store::{BoundCall, ShownCall};

use super::{call, one_line, why};

fn shown(arguments: Value) -> ShownCall {
    let tool = Tool {
        name: ToolName::new("bash").unwrap(),
        title: None,
        description: String::new(),
        parameters: Parameters::new(json!({ "type": "object" })).unwrap(),
        output: None,
        kind: ToolKind::Execute,
        annotations: Annotations::default(),
        backend: Backend::Builtin,
    };
    let arguments = arguments.as_object().unwrap();
    let bound = BoundCall::new(&tool, None, arguments, Some(Path::new("/srv/a")));
    bound.shown().clone()
}

fn check(arguments: Value, expect: &str) {
    let mut page = call(&shown(arguments.clone()), Some(60));
    why(
        &mut page,
        "`rm ` asks",
        &["bash:rm *".to_owned(), "bash:ls".to_owned()],
    );
    let text = anstream::adapter::strip_str(page.as_str()).to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(lines.join("\n"), expect, "{arguments}");
}

#[test]
fn a_person_sees_every_character_of_a_call() {
    check(
        json!({ "command": "rm -r build", "timeout": 5 }),
        "bash · in /srv/a
    command
        rm -r build
    timeout
        5
It asks because: `rm ` asks
Such calls run with: --allow 'bash:rm *' --allow bash:ls",
    );
    check(
        json!({ "command": "echo hi\rrm -rf /\u{1b}[2K\u{202e}x\nnext", "z": "" }),
        "bash · in /srv/a
    command
        echo hi\\rrm -rf /\\u{1b}[2K\\u{202e}x
        next
    z
        (empty)

It asks because: `rm ` asks
Such calls run with: --allow 'bash:rm *' --allow bash:ls",
    );
}

#[test]
fn no_line_of_a_stranger_begins_where_ours_do() {
    let long = format!("{}It asks because: nothing", "a ".repeat(40));
    let page = call(
        &shown(json!({ "command": long, "It asks because: x": 1 })),
        Some(60),
    );
    let text = anstream::adapter::strip_str(page.as_str()).to_string();
    for line in text.lines() {
        assert!(!line.starts_with("It asks"), "{text}");
        assert!(line.chars().count() <= 60, "{text}");
    }
}

#[test]
fn what_cannot_be_shown_whole_says_so() {
    let page = call(&shown(json!({ "content": "a".repeat(100_000) })), None);
    assert!(page.as_str().contains("of 100014 bytes can be shown"));
}

#[test]
fn a_call_on_one_line() {
    for (arguments, expect) in [
        (json!({ "command": "ls -l", "timeout": 5 }), "ls -l"),
        (json!({ "path": "a.txt", "content": "x" }), "a.txt"),
        (json!({ "url": "x" }), r#"{"url":"x"}"#),
        (json!({ "command": ["x"] }), r#"{"command":["x"]}"#),
    ] {
        assert_eq!(one_line(&shown(arguments)), expect);
    }
}
