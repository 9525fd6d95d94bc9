use serde_json::{Value, json};
use zeph_core::inquiry::UserQuestion;

use super::fields;

fn question() -> UserQuestion {
    let schema = json!({
        "type": "object",
        "properties": {
            "a_note": {"type": "string", "title": "Note"},
            "branch": {"type": "string", "description": "Which branch."},
            "checks": {"type": "array", "items": {"type": "string", "enum": ["fmt", "lint"]}, "default": ["fmt"]},
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
            "force": {"type": "boolean", "default": false},
            "level": {"type": "integer", "enum": [1, 2]},
            "share": {"type": "number"},
        },
        "required": ["branch", "level", "share"],
    });
    UserQuestion::new("q".to_owned(), "Which?", schema).unwrap()
}

#[test]
fn fields_say_what_they_take() {
    let question = question();
    let fields = fields(&question);
    let labels: Vec<String> = fields.iter().map(super::Field::label).collect();
    assert_eq!(
        labels,
        [
            "branch – Which branch.",
            "level (1|2)",
            "share (number)",
            "Note [none]",
            "checks (some of fmt|lint, with commas) [fmt]",
            "colour (r: Red) [none]",
            "force (yes|no) [no]",
        ]
    );
}

#[test]
fn lines_become_values_of_the_field() {
    let question = question();
    let fields = fields(&question);
    let value = |name: &str, line: &str| {
        let field = fields.iter().find(|field| field.name == name).unwrap();
        field.value(line)
    };
    for (name, line, expect) in [
        ("branch", "main", Some(json!("main"))),
        ("branch", "7", Some(json!("7"))),
        ("a_note", "", None),
        ("force", "", Some(json!(false))),
        ("force", "Yes", Some(json!(true))),
        ("force", "n", Some(json!(false))),
        ("level", "2", Some(json!(2))),
        ("share", "0.5", Some(json!(0.5))),
        ("checks", "lint, fmt", Some(json!(["lint", "fmt"]))),
        ("colour", "r", Some(json!("r"))),
        ("colour", "Red", Some(json!("r"))),
    ] {
        assert_eq!(
            value(name, line),
            Ok::<Option<Value>, String>(expect),
            "{name} {line:?}"
        );
    }
    for (name, line, expect) in [
        ("branch", "", "has to be answered"),
        ("level", "3", "one of: 1, 2"),
        ("share", "half", "a number"),
        ("share", "[1]", "a number"),
        ("force", "perhaps", "`yes` or `no`"),
    ] {
        let problem = value(name, line).unwrap_err();
        assert!(problem.contains(expect), "{name} {line:?}: {problem}");
    }
}
