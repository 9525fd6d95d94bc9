//! What is forgiven and what is not.

use proptest::prelude::*;
use serde_json::{Value, json};
use zeph_schema::{Reading, Validator};

use super::{Arguments, Parameters};
use crate::failure::ToolFailure;

fn parameters() -> Parameters {
    Parameters::new(json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "offset": {"type": "integer", "minimum": 0},
            "max_results": {"type": "integer"},
            "ratio": {"type": "number"},
            "case_sensitive": {"type": "boolean"},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "options": {"type": "object", "properties": {"deep": {"type": "integer"}}, "required": ["deep"]},
            "globs": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["path"],
    }))
    .unwrap()
}

fn read(arguments: Value) -> Result<Arguments, ToolFailure> {
    parameters().read(arguments)
}

#[test]
fn forgiven() {
    let table = [
        (
            json!({"path": "a", "offset": "5"}),
            json!({"path": "a", "offset": 5}),
        ),
        (
            json!({"path": "a", "offset": 5.0}),
            json!({"path": "a", "offset": 5}),
        ),
        (
            json!({"path": "a", "offset": "5.0"}),
            json!({"path": "a", "offset": 5}),
        ),
        (json!({"path": "a", "offset": null}), json!({"path": "a"})),
        (
            json!({"path": "a", "maxResults": 3}),
            json!({"path": "a", "max_results": 3}),
        ),
        (
            json!({"path": "a", "ratio": "0.5"}),
            json!({"path": "a", "ratio": 0.5}),
        ),
        (
            json!({"path": "a", "ratio": 1}),
            json!({"path": "a", "ratio": 1}),
        ),
        (
            json!({"path": "a", "case_sensitive": "false"}),
            json!({"path": "a", "case_sensitive": false}),
        ),
        (
            json!({"path": "a", "options": "{\"deep\": \"2\"}"}),
            json!({"path": "a", "options": {"deep": 2}}),
        ),
        (
            json!({"path": "a", "globs": "[\"*.rs\"]"}),
            json!({"path": "a", "globs": ["*.rs"]}),
        ),
        (json!("{\"path\": \"a\"}"), json!({"path": "a"})),
        (json!({"path": "5"}), json!({"path": "5"})),
        (json!({"path": "{\"a\":1}"}), json!({"path": "{\"a\":1}"})),
    ];
    for (input, expect) in table {
        let got = read(input.clone()).unwrap_or_else(|e| panic!("{input}: {}", e.message));
        assert_eq!(Value::Object(got.values), expect, "{input}");
        assert!(got.notes.is_empty(), "{input}: {:?}", got.notes);
    }
}

#[test]
fn refused() {
    let table = [
        (
            json!({}),
            "invalid_parameters",
            "missing required argument `path`",
        ),
        (
            json!(null),
            "invalid_parameters",
            "missing required argument `path`",
        ),
        (
            json!({"path": null}),
            "type_mismatch",
            "`path` must be string, not the null null",
        ),
        (
            json!({"path": 5}),
            "type_mismatch",
            "`path` must be string, not the integer 5",
        ),
        (
            json!([]),
            "type_mismatch",
            "the arguments must be an object",
        ),
        (
            json!("read it"),
            "type_mismatch",
            "the arguments must be an object",
        ),
        (
            json!({"path": "a", "offset": "five"}),
            "type_mismatch",
            "`offset` must be integer, not the string \"five\"",
        ),
        (
            json!({"path": "a", "offset": 1.5}),
            "type_mismatch",
            "`offset` must be integer",
        ),
        (
            json!({"path": "a", "offset": -1}),
            "invalid_parameters",
            "`offset`: -1 is less than the minimum of 0",
        ),
        (
            json!({"path": "a", "case_sensitive": "yes"}),
            "type_mismatch",
            "`case_sensitive` must be boolean",
        ),
        (
            json!({"path": "a", "case_sensitive": 1}),
            "type_mismatch",
            "`case_sensitive` must be boolean",
        ),
        (
            json!({"path": "a", "mode": "c"}),
            "invalid_parameters",
            "`mode`",
        ),
        (
            json!({"path": "a", "options": {}}),
            "invalid_parameters",
            "missing required argument `options.deep`",
        ),
        (
            json!({"path": "a", "globs": "*.rs"}),
            "type_mismatch",
            "`globs` must be array",
        ),
        (
            json!({"path": "a", "globs": ["a", 1]}),
            "type_mismatch",
            "`globs[1]` must be string",
        ),
        (
            json!({"path": "a", "offset": 99999999999999999999999.0}),
            "type_mismatch",
            "`offset` must be integer",
        ),
    ];
    for (input, category, message) in table {
        let failure = read(input.clone()).expect_err(&input.to_string());
        assert_eq!(
            failure.category.label(),
            category,
            "{input}: {}",
            failure.message
        );
        assert!(
            failure.message.contains(message),
            "{input}: {}",
            failure.message
        );
        assert!(
            failure.message.contains("; expected {path: string, "),
            "{}",
            failure.message
        );
    }
}

#[test]
fn unknown_keys_are_noted_and_left_out() {
    let got = read(json!({"path": "a", "ofset": 3, "zzz": 1})).unwrap();
    assert_eq!(Value::Object(got.values), json!({"path": "a"}));
    assert_eq!(
        got.notes,
        [
            "ignored the unknown argument `ofset` (did you mean `offset`?)",
            "ignored the unknown argument `zzz`",
        ]
    );
}

#[test]
fn an_alias_never_overrides_the_exact_key() {
    let got = read(json!({"path": "a", "max_results": 1, "maxResults": 2})).unwrap();
    assert_eq!(got.values["max_results"], 1);
    assert_eq!(got.notes.len(), 1);
}

#[test]
fn a_schema_must_describe_an_object() {
    assert!(Parameters::new(json!({"type": "string"})).is_err());
    assert!(Parameters::new(json!(true)).is_err());
}

#[test]
fn no_pattern_takes_for_ever() {
    let read = |pattern: &str, text: String| {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
        let failure = Parameters::new(schema).unwrap().read(json!({"a": text}));
        failure.unwrap_err().message
    };
    let backtracks = read(r"^(a*)*(a*)*\1b$", "a".repeat(50));
    assert!(backtracks.contains("backtracking"), "{backtracks}");
    let huge = read("(((a{100}){100}){100})", "a".to_owned());
    assert!(huge.contains("cannot be used"), "{huge}");
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(
                (
                    prop_oneof!["path|offset|options|globs|mode|ratio", "[a-z]{1,6}"],
                    inner
                ),
                0..6
            )
            .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever comes in: no panic, what is accepted agrees with the schema, and reading it again changes nothing.
    #[test]
    fn accepted_arguments_are_stable(input in json()) {
        if let Ok(first) = read(input) {
            let again = read(Value::Object(first.values.clone())).unwrap();
            prop_assert_eq!(again.values, first.values);
            prop_assert!(again.notes.is_empty());
        }
    }
}

#[test]
fn both_drafts_say_the_same_about_common_schemas() {
    let schemas = [
        json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2}}}),
        json!({"type": "object", "required": ["a"], "additionalProperties": false, "properties": {"a": {"enum": [1, "x", null]}}}),
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "maxLength": 2}, "maxItems": 2, "uniqueItems": true}}}),
        json!({"type": "object", "properties": {"a": {"anyOf": [{"const": 1}, {"type": "string", "pattern": "^x+$"}], "description": "d"}}}),
        json!({"type": "object", "properties": {"a": {"type": ["number", "null"], "default": 1}, "b": {"not": {"type": "string"}}}}),
        // What is no schema.
        json!({"type": "object", "properties": {"a": {"minimum": "1"}}}),
        json!({"type": "object", "required": "a"}),
        json!({"type": "object", "properties": {"a": {"type": "text"}}}),
        json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
    ];
    let values = [1, 2, 10].map(|a| json!({"a": a}));
    let others = [
        json!("x"),
        json!("xy"),
        json!(null),
        json!([]),
        json!(["a", "a"]),
        json!(["a", "abc"]),
        json!(1.5),
        json!(2.0),
    ];
    let others = others.map(|a| json!({"a": a, "b": a}));
    for schema in &schemas {
        assert!(super::draft::is_common(schema), "{schema}");
        let read = |reading| {
            let validator = Validator::new(schema, reading)?;
            let said = values.iter().chain(&others);
            let said = said.map(|value| validator.mismatch(value));
            Ok::<_, String>(said.collect::<Vec<_>>())
        };
        assert_eq!(read(Reading::Newest), read(Reading::Draft7), "{schema}");
    }
}

#[test]
fn what_the_drafts_disagree_about_is_not_common() {
    for schema in [
        json!({"$ref": "#/$defs/a", "minimum": 1}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}),
        json!({"type": "object", "properties": {"a": {"prefixItems": [true]}}}),
        json!({"type": "object", "properties": {"a": {"items": [{"type": "string"}]}}}),
        json!({"type": "object", "properties": {"a": {"contentEncoding": "base64"}}}),
        json!({"anyOf": [{"unevaluatedProperties": false}]}),
        json!({"dependentRequired": {}}),
    ] {
        assert!(!super::draft::is_common(&schema), "{schema}");
    }
}
