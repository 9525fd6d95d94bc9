use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::argument::compile;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..4_i64).prop_map(Value::from),
        prop_oneof![Just(1.0), Just(1.5), Just(1e30)].prop_map(Value::from),
        "[aé]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[ab]", inner, 0..3)
                .prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

/// Keywords with values that are right, and with some that are not.
fn keyword(schema: BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    let name = prop_oneof![proptest::sample::select(TYPES.to_vec()), Just("text")];
    let names = || proptest::collection::vec("[ab]", 0..3);
    let limits = proptest::sample::select(vec![
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "pattern",
        "not",
    ]);
    let schemas = proptest::sample::select(vec!["items", "additionalProperties"]);
    let inner = proptest::collection::btree_map("[ab]", schema.clone(), 0..3);
    prop_oneof![
        name.clone()
            .prop_map(|name| ("type".to_owned(), json!(name))),
        proptest::collection::vec(name, 0..3).prop_map(|all| ("type".to_owned(), json!(all))),
        proptest::collection::vec(value(), 0..3).prop_map(|all| ("enum".to_owned(), json!(all))),
        value().prop_map(|one| ("const".to_owned(), one)),
        proptest::sample::select(DRAFTS.to_vec())
            .prop_map(|draft| ("$schema".to_owned(), json!(draft))),
        names().prop_map(|all| ("required".to_owned(), json!(all))),
        (limits, -1..3_i64).prop_map(|(key, limit)| (key.to_owned(), json!(limit))),
        (schemas, schema).prop_map(|(key, schema)| (key.to_owned(), schema)),
        inner.prop_map(|all| ("properties".to_owned(), json!(all))),
    ]
    .boxed()
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = any::<bool>().prop_map(Value::from);
    leaf.prop_recursive(3, 16, 4, |inner| {
        proptest::collection::vec(keyword(inner.boxed()), 0..4)
            .prop_map(|all| Value::Object(all.into_iter().collect()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn what_is_said_to_agree_does(schema in schema(), value in value()) {
        if is_plain(&schema) {
            let validator = compile(&schema);
            prop_assert!(validator.is_ok(), "{schema}: {validator:?}");
            if agrees(&schema, &value) {
                prop_assert!(validator.is_ok_and(|all| all.accepts(&value)), "{schema} {value}");
            }
        }
    }
}

#[test]
fn ordinary_arguments_need_no_validator() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where.", "minLength": 1},
            "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 10},
            "names": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    assert!(is_plain(&schema));
    for fine in [
        json!({"path": "a"}),
        json!({"path": "a", "limit": 3, "names": ["b"]}),
        json!({"path": "a", "limit": null}),
    ] {
        assert!(agrees(&schema, &fine), "{fine}");
    }
    for wrong in [
        json!({}),
        json!({"path": ""}),
        json!({"path": "a", "limit": 11}),
        json!({"path": "a", "names": [1]}),
        json!({"path": "a", "more": 1}),
    ] {
        assert!(!agrees(&schema, &wrong), "{wrong}");
    }
}

#[test]
fn what_is_not_known_is_not_plain() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"pattern": "a"}),
        json!({"items": [true]}),
        json!({"type": "text"}),
        json!({"type": ["string", "string"]}),
        json!({"properties": {"a": {"oneOf": []}}}),
    ] {
        assert!(!is_plain(&schema), "{schema}");
    }
}
