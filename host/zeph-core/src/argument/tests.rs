//! What is forgiven and what is not.

use proptest::prelude::*;
use serde_json::{Value, json};
use zeph_schema::{Reading, Validator};

use super::{Arguments, Disagreement, Parameters};
use crate::failure::ToolFailure;
use crate::schema::Schema;

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
            "`path` must be string, not null",
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

/// Python servers write `Optional` as `anyOf`, references and `allOf`.
#[test]
fn null_stays_where_the_schema_takes_it() {
    let null_or = |schema: Value| json!({"anyOf": [schema, {"type": "null"}]});
    let parameters = Parameters::new(json!({
        "type": "object",
        "$defs": {
            "Maybe": null_or(json!({"type": "string"})),
            "Color": {"enum": ["red", "blue"]},
        },
        "properties": {
            "list": {"type": ["string", "null"]},
            "any": {},
            "choice": null_or(json!({"type": "integer"})),
            "reference": {"$ref": "#/$defs/Maybe"},
            "all": {"allOf": [{"title": "x"}, {"$ref": "#/$defs/Color"}]},
            "one": {"oneOf": [{"$ref": "#/$defs/Color"}, {"const": null}]},
            "color": {"$ref": "#/$defs/Color"},
            "listed": {"enum": ["a", null]},
            "constant": {"const": 1},
            "text": {"type": "string"},
        },
    }))
    .unwrap();
    let read = |name: &str, value: Value| {
        let got = parameters
            .read(json!({name: value}))
            .map(|read| read.values);
        got.map(|values| values.get(name).cloned())
    };
    for name in ["list", "any", "choice", "reference", "one", "listed"] {
        assert_eq!(read(name, json!(null)), Ok(Some(json!(null))), "{name}");
    }
    for name in ["all", "color", "constant", "text"] {
        assert_eq!(read(name, json!(null)), Ok(None), "{name}");
    }
    assert_eq!(read("choice", json!("5")), Ok(Some(json!(5))));
    assert_eq!(read("choice", json!(5.0)), Ok(Some(json!(5))));
    assert_eq!(read("color", json!("red")), Ok(Some(json!("red"))));
    assert_eq!(read("reference", json!("5")), Ok(Some(json!("5"))));
    assert_eq!(read("constant", json!("1")), Ok(Some(json!(1))));
    let failure = read("choice", json!("x")).unwrap_err().message;
    assert!(
        failure.starts_with("`choice` must be integer or null, not"),
        "{failure}"
    );
    assert!(read("color", json!("green")).is_err());
}

#[test]
fn unknown_keys_stay_where_the_author_knows_json_schema_alone() {
    let read = |schema: Value| {
        let parameters = Parameters::new(schema).unwrap();
        let given = json!({"table": "t", "col1": "v", "inner": {"x": 1, "y": 2}});
        let got = parameters.read_open(given).unwrap();
        (Value::Object(got.values), got.notes.len())
    };
    let inner = |more: Value| {
        let mut inner = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
        inner
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        inner
    };
    let schema = |inner: Value| json!({"type": "object", "properties": {"table": {"type": "string"}, "inner": inner}});
    let all = json!({"table": "t", "col1": "v", "inner": {"x": 1, "y": 2}});
    assert_eq!(read(schema(inner(json!({})))), (all, 0));
    let closed = inner(json!({"additionalProperties": false}));
    let some = json!({"table": "t", "col1": "v", "inner": {"x": 1}});
    assert_eq!(read(schema(closed)), (some, 1));
}

#[test]
fn keys_that_other_keywords_than_properties_name_reach_the_tool() {
    let x = json!({"properties": {"x": {"type": "integer"}}, "required": ["x"]});
    let cases = [
        json!({"oneOf": [{"properties": {"y": {}}, "required": ["y"]}, x]}),
        json!({"anyOf": [{"allOf": [x]}, {"not": {}}]}),
        json!({"if": {"required": ["a"]}, "then": x, "else": false}),
        json!({"required": ["x"]}),
        json!({"dependentRequired": {"a": ["x"]}}),
        json!({"dependentSchemas": {"a": x}}),
        json!({"dependencies": {"x": ["a"]}}),
        json!({"$defs": {"more": x}, "allOf": [{"$ref": "#/$defs/more"}]}),
        json!({"allOf": [{"additionalProperties": {"type": "integer"}}]}),
    ];
    for mut schema in cases {
        let keywords = schema.as_object_mut().unwrap();
        keywords.insert("type".to_owned(), json!("object"));
        keywords.insert("properties".to_owned(), json!({"a": {"type": "integer"}}));
        let parameters = Parameters::new(schema.clone()).unwrap();
        let given = json!({"a": 1, "x": 2});
        let got = parameters.read(given.clone());
        let got = got.unwrap_or_else(|failure| panic!("{schema}: {}", failure.message));
        assert_eq!((Value::Object(got.values), got.notes), (given, Vec::new()));
    }
    // A key that nothing names is left out as ever.
    let schema = json!({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let got = Parameters::new(schema)
        .unwrap()
        .read(json!({"a": 1, "x": 2}));
    let got = got.unwrap();
    assert_eq!((got.values.len(), got.notes.len()), (1, 1));
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
fn a_long_enum_is_shown_as_shortened() {
    let all: Vec<String> = (0..13).map(|n| format!("a{n}")).collect();
    let shown = |values: &[String]| {
        let schema = json!({"type": "object", "properties": {"x": {"enum": values}}});
        Parameters::new(schema).unwrap().compact()
    };
    assert!(shown(&all).ends_with("\"a11\"|…}"), "{}", shown(&all));
    assert!(shown(&all[..12]).ends_with("\"a11\"}"));
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

/// An address as libraries of schemas describe it, with look-around.
const EMAIL: &str = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";

fn of(property: Value) -> Parameters {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string", "pattern": "^[^\\n]+$"}, "a": property}});
    Parameters::new(schema).unwrap()
}

#[test]
fn checks_without_an_end_are_not_begun() {
    let mixed: Vec<Value> = [json!("x"), json!(2)]
        .into_iter()
        .chain(vec![json!(1); 10_000])
        .collect();
    let either = vec![json!({"type": "string"}); 500];
    let nested: Vec<Value> = (0..40_000).map(|n| json!([n])).collect();
    let kinds = json!({"kind": vec!["b"; 200_000]});
    for (property, value) in [
        (json!({"items": {"enum": mixed}}), json!(vec![3; 100_000])),
        (
            json!({"contains": {"enum": mixed}}),
            json!(vec![3; 100_000]),
        ),
        (
            json!({"items": {"pattern": r"(?=a)b"}}),
            json!(vec![""; 20_000]),
        ),
        (json!({"items": {"anyOf": either}}), json!(vec![3; 200_000])),
        (json!({"uniqueItems": true}), json!(nested)),
        (
            json!({"pattern": "^(a{100}){50}$"}),
            json!("a".repeat(1 << 20)),
        ),
        (
            json!({"additionalProperties": {"items": {"not": {"enum": mixed}}}}),
            kinds,
        ),
        // By a schema that begins anew.
        (
            json!({"anyOf": [{"enum": mixed}, {"items": {"$ref": "#/properties/a"}}]}),
            json!(vec![3; 100_000]),
        ),
    ] {
        let parameters = of(property.clone());
        let agrees = parameters.agrees(&json!({"a": value}));
        assert_eq!(agrees, Err(Disagreement::TooLong), "{property}");
        let failure = parameters.read(json!({"a": value})).unwrap_err();
        assert_eq!(failure.category.label(), "invalid_parameters");
        assert!(
            failure
                .message
                .starts_with("the arguments would take too long to check"),
            "{}",
            failure.message
        );
    }
}

#[test]
fn large_ordinary_values_are_checked() {
    let names: Vec<String> = (0..500).map(|n| format!("name-{n}")).collect();
    let of_names: Vec<&String> = names.iter().cycle().take(10_000).collect();
    let id = "0b9e47b5-3ac6-4f0b-8a7d-2e6d5b8a9f10";
    let of_id = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
    for (property, value) in [
        (json!({"type": "string"}), json!("x".repeat(16 << 20))),
        (
            json!({"type": "string", "minLength": 1, "maxLength": 1 << 30}),
            json!("x".repeat(16 << 20)),
        ),
        (
            json!({"type": "array", "items": {"type": "integer", "minimum": 0}}),
            json!((0..200_000).collect::<Vec<_>>()),
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": names}}),
            json!(of_names),
        ),
        (
            json!({"type": "array", "items": {"type": "string", "pattern": of_id}}),
            json!(vec![id; 10_000]),
        ),
        (
            json!({"type": "array", "items": {"type": "string", "pattern": EMAIL}}),
            json!(vec!["somebody@mail.example.org"; 1_000]),
        ),
        (
            json!({"type": "array", "uniqueItems": true}),
            json!((0..100_000).collect::<Vec<_>>()),
        ),
    ] {
        let parameters = of(property.clone());
        let given = json!({"path": "a", "a": value});
        assert!(!parameters.is_quick(&given), "{property}");
        assert_eq!(parameters.agrees(&given), Ok(()), "{property}");
    }
}

#[test]
fn what_takes_a_moment_is_reckoned_from_schema_and_value() {
    let kinds: Vec<usize> = (0..16_000).collect();
    let text = "line of a file\n".repeat(7_000);
    for (property, value, is_quick) in [
        (json!({"type": "integer"}), json!(3), true),
        (json!({"type": "string"}), json!(text), true),
        (
            json!({"type": "string", "minLength": 1, "maxLength": 1 << 30}),
            json!(text),
            true,
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            json!(vec![3; 200]),
            true,
        ),
        // A pattern over a long text, and many comparisons for few parts.
        (
            json!({"type": "string", "pattern": "^(a{100}){50}$"}),
            json!(text),
            false,
        ),
        (
            json!({"type": "array", "items": {"enum": kinds}}),
            json!(vec![3; 200]),
            false,
        ),
        // What a text may become, and many parts.
        (
            json!({"type": "array"}),
            json!(format!(" [{}3]", "3,".repeat(1_000))),
            false,
        ),
        (json!({"type": "array"}), json!(vec![3; 300]), false),
    ] {
        let given = json!({"path": "a", "a": value});
        let parameters = of(property.clone());
        assert_eq!(parameters.is_quick(&given), is_quick, "{property}");
    }
}

#[test]
fn what_is_wrong_with_many_arguments_is_not_listed() {
    let one_of = vec![json!({"type": "string"}); 100];
    let parameters = of(json!({"type": "array", "items": {"anyOf": one_of}}));
    let message = |n: usize| {
        let failure = parameters.read(json!({"a": vec![3; n]})).unwrap_err();
        failure.message
    };
    assert!(
        message(10).starts_with("`a.0`: 3 is not valid"),
        "{}",
        message(10)
    );
    assert!(message(10_000).contains("too many to say where"));
}

#[test]
fn many_unknown_keys_are_counted() {
    let mut given = serde_json::Map::new();
    given.extend((0..20_000).map(|n| (format!("k{n}"), json!(1))));
    let got = of(json!({})).read(Value::Object(given)).unwrap();
    assert_eq!(got.notes.len(), 17);
    assert_eq!(got.notes[16], "ignored 19984 more unknown arguments");
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

#[test]
fn a_schema_that_was_damaged_lets_no_call_through() {
    let text = r#"{"type": "object", "properties": {"path": {"type": "string"}}}"#;
    let is_taken = |text: &str| {
        let parameters = Parameters::trusted(Schema::of_text(text.to_owned()));
        parameters.read(json!({"path": "a"})).is_ok()
    };
    assert!(is_taken(text));
    assert!(!is_taken(&text[..20]));
}
