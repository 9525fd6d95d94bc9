use serde_json::{Value, json};
use zeph_core::argument::Parameters;
use zeph_core::id::{PluginId, ToolName};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::of_tool;

/// Words of each problem and of each piece of advice.
fn check(description: &str, schema: Value, problems: &[&str], advice: &[&str]) {
    let tool = Tool {
        name: ToolName::new("t").unwrap(),
        title: None,
        description: description.to_owned(),
        parameters: Parameters::new(schema.clone()).unwrap(),
        output: None,
        kind: ToolKind::Other,
        annotations: Annotations::default(),
        backend: Backend::Wasm(PluginId("x".to_owned())),
    };
    let found = of_tool(&tool);
    for (found, expect) in [(&found.problems, problems), (&found.advice, advice)] {
        assert_eq!(found.len(), expect.len(), "{schema}: {found:?}");
        for (sentence, words) in found.iter().zip(expect) {
            assert!(sentence.contains(words), "{sentence}: no {words:?}");
        }
    }
}

fn of(property: Value) -> Value {
    json!({"type": "object", "properties": {"p": property}})
}

#[test]
fn ordinary_tools_are_fine() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "d"},
            "all": {"type": "boolean", "description": "d", "default": false},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "description": "d"},
            "at": {
                "type": "object",
                "description": "d",
                "properties": {"x": {"type": "number"}},
                "additionalProperties": false
            },
        },
        "required": ["path"],
    });
    check("Does it.", schema, &[], &[]);
    check("Does it.", json!({"type": "object"}), &[], &[]);
}

#[test]
fn what_a_provider_refuses_is_a_problem() {
    let described = |schema: Value| {
        let mut schema = schema;
        schema["description"] = json!("d");
        of(schema)
    };
    check("", json!({"type": "object"}), &["no description"], &[]);
    check(
        &"x".repeat(1025),
        json!({"type": "object"}),
        &["1025 characters"],
        &[],
    );
    check(&"x".repeat(1024), json!({"type": "object"}), &[], &[]);
    let union = json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    check("d", union, &["`oneOf` at the top"], &[]);
    check(
        "d",
        described(json!({"type": "array"})),
        &["`p`: an array without `items`"],
        &[],
    );
    let names = json!({"type": "object", "properties": {
        "a b": {"type": "string", "description": "d"},
        "ok.ok-ok_1": {"type": "string", "description": "d"},
    }});
    check("d", names, &["`a b`"], &[]);
    let long = json!({"type": "object", "properties": {"x".repeat(65): {"type": "string", "description": "d"}}});
    check("d", long, &["1 to 64"], &[]);
    let inner = described(json!({"type": "object", "properties": {"é": {"type": "string"}}}));
    check("d", inner, &["`é`"], &[]);
}

#[test]
fn what_a_provider_reads_differently_is_advice() {
    for (property, words) in [
        (json!({"type": "string"}), "`p` has no description"),
        (json!(true), "want a type"),
        (
            json!({"type": ["string", "null"], "description": "d"}),
            "one type",
        ),
        (
            json!({"type": "integer", "enum": [1, 2], "description": "d"}),
            "`enum` of strings",
        ),
        (
            json!({"type": "string", "pattern": "a", "description": "d"}),
            "`pattern`",
        ),
        (
            json!({"oneOf": [{"type": "string"}], "description": "d"}),
            "`oneOf`",
        ),
        (
            json!({"type": "array", "items": {"type": "string", "const": "a"}, "description": "d"}),
            "`p[]`: some providers leave out or refuse `const`",
        ),
    ] {
        check("d", of(property), &[], &[words]);
    }
    let mut deep = json!({"type": "string", "description": "d"});
    for _ in 0..6 {
        deep = json!({"type": "object", "properties": {"p": deep}, "description": "d"});
    }
    check("d", deep, &[], &["5 levels"]);
}

#[test]
fn the_sentences_are_bounded() {
    let names = (0..1000).map(|n| (format!("a b {n}"), json!({"type": "string"})));
    let properties: serde_json::Map<_, _> = names.collect();
    let schema = json!({"type": "object", "properties": properties});
    let words = ["some providers take names"; 12];
    check("d", schema, &words, &["has no description"; 12]);
}
