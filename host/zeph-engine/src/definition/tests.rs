//! Definitions that break the contract, or try to get past it.

use serde_json::{Value, json};
use zeph_core::id::PluginId;
use zeph_core::tool::Tool;

use super::{DEFINITIONS_BYTES_MAX, TOOLS_MAX, tools, wit};

fn definition(name: &str, schema: &str) -> wit::ToolDefinition {
    wit::ToolDefinition {
        name: name.to_owned(),
        title: None,
        description: "says hello".to_owned(),
        parameters: schema.to_owned(),
        output: None,
        kind: wit::ToolKind::Read,
        annotations: wit::Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
    }
}

const OBJECT: &str = r#"{"type":"object"}"#;

fn list(definitions: Vec<wit::ToolDefinition>) -> Result<Vec<Tool>, String> {
    tools(&PluginId("p".to_owned()), definitions)
}

fn one(definition: wit::ToolDefinition) -> Tool {
    list(vec![definition]).unwrap().remove(0)
}

/// A schema with one property.
fn with(property: Value) -> String {
    json!({"type": "object", "properties": {"x": property}}).to_string()
}

fn check_schema(schema: &str, expected: &str) {
    for is_output in [false, true] {
        let mut definition = definition("t", schema);
        if is_output {
            definition.parameters = OBJECT.to_owned();
            definition.output = Some(schema.to_owned());
        }
        let problem = list(vec![definition]).unwrap_err();
        let what = if is_output { "output schema" } else { "schema" };
        let start = format!("`t`: its {what} {expected}");
        assert!(problem.starts_with(&start), "{problem}");
        assert!(problem.len() < 600 && !problem.contains('\n'), "{problem}");
    }
}

#[test]
fn schemas_that_cannot_be_used() {
    let deep = "{\"a\":".repeat(200) + "1" + &"}".repeat(200);
    let table = [
        ("", "is not valid JSON: "),
        ("{", "is not valid JSON: "),
        (deep.as_str(), "is not valid JSON: recursion limit"),
        (
            r#"{"type":"array"}"#,
            "cannot be used: the schema of a tool's arguments must have `\"type\": \"object\"`",
        ),
        ("true", "cannot be used: "),
        ("[]", "cannot be used: "),
        (r#"{"type":"object","properties":5}"#, "cannot be used: "),
        (&with(json!({"type": "integr"})), "cannot be used: "),
        (
            &with(json!({"type": "string", "pattern": "("})),
            "cannot be used: ",
        ),
        (
            &with(json!({"type": "string", "pattern": "((a{1000}){1000}){1000}"})),
            "cannot be used: ",
        ),
        (
            &with(json!({"$ref": "https://example.com/evil.json"})),
            "cannot be used: ",
        ),
        (
            &with(json!({"$ref": "file:///etc/passwd"})),
            "cannot be used: ",
        ),
        (&with(json!({"$ref": "other.json#/a"})), "cannot be used: "),
        (&with(json!({"$ref": "#/nowhere"})), "cannot be used: "),
        (
            &with(json!({"$schema": "https://example.com/schema"})),
            "cannot be used: ",
        ),
        (
            r#"{"type":"object","$schema":"https://example.com/schema"}"#,
            "cannot be used: ",
        ),
        (
            r##"{"type":"object","allOf":[{"$ref":"#"}]}"##,
            "cannot be used: ",
        ),
        (
            &with(json!({"type": "string", "pattern": "x".repeat(20_000)})),
            "cannot be used: its patterns",
        ),
        (
            &with(json!({"enum": ["a\u{202e}b"]})),
            "holds a character nobody sees, in `ab`",
        ),
        (
            &with(json!({"type": "object", "properties": {"na\u{200b}me": {}}})),
            "holds a character nobody sees, in `name`",
        ),
        (
            &with(json!({"default": "\u{1b}[2J"})),
            "holds a character nobody sees",
        ),
        (&" ".repeat(300_000), "is longer than 262144 bytes"),
    ];
    for (schema, expected) in table {
        check_schema(schema, expected);
    }
}

#[test]
fn references_inside_a_schema_are_followed() {
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}});
    let tool = one(definition("t", &schema.to_string()));
    assert!(tool.parameters.read(json!({"x": 1})).is_ok());
    assert!(tool.parameters.read(json!({"x": "a"})).is_err());
}

#[test]
fn words_are_made_plain() {
    let schema = json!({
        "type": "object",
        "title": "T\u{200b}",
        "properties": {"x": {"description": "first\n\u{1b}[31msecond \u{e0041}", "type": "string", "default": "\n\t"}},
    });
    let tool = one(wit::ToolDefinition {
        title: Some("A\u{202e}b\nc".to_owned()),
        description: "line\n\u{1b}]0;evil\u{7}two\u{2066}".to_owned(),
        output: Some(schema.to_string()),
        ..definition("t", &schema.to_string())
    });
    assert_eq!(tool.title.as_deref(), Some("Ab c"));
    assert_eq!(tool.description, "line\n]0;eviltwo");
    let cleaned = json!({
        "type": "object",
        "title": "T",
        "properties": {"x": {"description": "first\n[31msecond", "type": "string", "default": "\n\t"}},
    });
    assert_eq!(tool.parameters.schema(), &cleaned);
    assert_eq!(tool.output.as_deref(), Some(&cleaned));
}

#[test]
fn an_empty_title_is_none() {
    let tool = one(wit::ToolDefinition {
        title: Some("\u{200b} ".to_owned()),
        ..definition("t", OBJECT)
    });
    assert_eq!(tool.title, None);
}

#[test]
fn names() {
    for name in ["", "A", "a b", "a.b", "ä", "a\u{202e}b", &"a".repeat(49)] {
        let problem = list(vec![definition(name, OBJECT)]).unwrap_err();
        assert!(
            problem.contains("is not a valid tool name: 1 to 48 of `a-z 0-9 _ -`"),
            "{problem}"
        );
        assert!(
            problem.len() < 200 && !problem.contains('\u{202e}'),
            "{problem}"
        );
    }
    assert_eq!(
        one(definition(&"a".repeat(48), OBJECT)).name.as_str().len(),
        48
    );
}

#[test]
fn lists() {
    let many = |number: usize| {
        (0..number)
            .map(|idx| definition(&format!("t{idx}"), OBJECT))
            .collect()
    };
    assert_eq!(list(many(TOOLS_MAX)).unwrap().len(), TOOLS_MAX);
    let table: [(Vec<wit::ToolDefinition>, &str); 5] = [
        (Vec::new(), "it lists no tools"),
        (many(TOOLS_MAX + 1), "it lists 257 tools; the limit is 256"),
        (
            vec![definition("a", OBJECT), definition("a", OBJECT)],
            "it lists `a` twice",
        ),
        (
            vec![wit::ToolDefinition {
                description: "x".repeat(20_000),
                ..definition("a", OBJECT)
            }],
            "`a`: its description is longer than 16384 bytes",
        ),
        (
            (0..10)
                .map(|idx| definition(&format!("t{idx}"), &" ".repeat(210_000)))
                .collect(),
            "its definitions of tools have 2100120 bytes; the limit is 2097152",
        ),
    ];
    for (definitions, expected) in table {
        assert_eq!(list(definitions).unwrap_err(), expected);
    }
}

/// The slowest schemas that are accepted one by one cannot add up.
#[test]
fn many_slow_schemas_end_in_time() {
    let patterns: serde_json::Map<String, Value> = (0..150)
        .map(|idx| {
            (
                format!("p{idx}"),
                json!({"type": "string", "pattern": format!("{idx}\\w{{90}}x")}),
            )
        })
        .collect();
    let schema = json!({"type": "object", "properties": patterns}).to_string();
    let definitions = (0..TOOLS_MAX).map(|idx| definition(&format!("t{idx}"), &schema));
    let definitions: Vec<_> = definitions
        .take(DEFINITIONS_BYTES_MAX / schema.len())
        .collect();
    let started = std::time::Instant::now();
    let answer = list(definitions).map(|tools| tools.len());
    // Either is right: what counts is that it ends. Far more than the bound, for busy machines.
    assert!(
        started.elapsed() < std::time::Duration::from_secs(120),
        "{answer:?}"
    );
}
