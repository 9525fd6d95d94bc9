use std::collections::BTreeSet;
use std::path::Path;

use jsonschema::Validator;
use schemars::generate::SchemaSettings;

use super::*;
use crate::run::jsonl::request::{KEYS, decode};

/// The schemas as the types say them now.
fn made() -> [(&'static str, Value); 2] {
    let request = SchemaSettings::draft2020_12().for_deserialize();
    let answer = SchemaSettings::draft2020_12().for_serialize();
    [
        (
            "request.json",
            request
                .into_generator()
                .into_root_schema_for::<RequestLine>()
                .to_value(),
        ),
        (
            "answer.json",
            answer
                .into_generator()
                .into_root_schema_for::<OutputLine<'static>>()
                .to_value(),
        ),
    ]
}

/// With `ZEPH_BLESS=1` the kept ones are written anew.
#[test]
fn the_kept_schemas_are_those_of_the_types() {
    for ((file, made), kept) in made().into_iter().zip([REQUEST, ANSWER]) {
        let made = serde_json::to_string_pretty(&made).unwrap() + "\n";
        if std::env::vars().any(|(name, _)| name == "ZEPH_BLESS") {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("schema")
                .join(file);
            std::fs::write(path, &made).unwrap();
        } else {
            assert_eq!(made, kept, "{file}: run it with ZEPH_BLESS=1");
        }
    }
}

fn validator(schema: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

/// The keys of all kinds of lines together.
fn keys(schema: &Value) -> BTreeSet<String> {
    let lines = schema["$defs"].as_object().unwrap();
    let lines = lines.iter().filter(|(name, _)| name.ends_with("Line"));
    let keys = lines.flat_map(|(_, line)| line["properties"].as_object().unwrap().keys());
    keys.cloned().collect()
}

#[test]
fn every_key_of_a_request_is_in_the_schema_and_no_other() {
    let known: BTreeSet<String> = KEYS.iter().map(|key| (*key).to_owned()).collect();
    assert_eq!(keys(&serde_json::from_str(REQUEST).unwrap()), known);
}

/// Every combination of keys, with values of several kinds: what the schema lets through is understood, without a remark.
#[test]
fn a_line_that_agrees_with_the_schema_is_understood() {
    let schema = validator(REQUEST);
    let answer = json!({"state": "s", "answers": [{"id": "a", "content": {}}, {"id": "b", "action": "decline"}]});
    let values = |key: &str| match key {
        "params" | "arguments" => vec![json!({}), json!([1]), Value::Null],
        "answer" => vec![
            answer.clone(),
            json!({"state": 1}),
            json!({"state": "s", "answers": [], "x": 1}),
        ],
        "tool" | "user" => vec![json!("t"), json!(7)],
        "id" | "cancel" => vec![json!({"any": 1}), Value::Null],
        _ => vec![
            json!("n"),
            json!(""),
            json!("a\nb"),
            json!("x".repeat(129)),
            json!("x".repeat(128)),
            json!(1),
        ],
    };
    let (mut n_good, mut n_lines) = (0, 0);
    for picked in 0_u32..1 << KEYS.len() {
        for variant in 0..6 {
            let keys = KEYS
                .iter()
                .enumerate()
                .filter(|(idx, _)| picked & (1 << idx) != 0);
            let line: Map<String, Value> = keys
                .map(|(idx, key)| {
                    let values = values(key);
                    // Mostly the good value, in all places but one.
                    let pick = if idx == variant { variant } else { 0 };
                    ((*key).to_owned(), values[pick % values.len()].clone())
                })
                .collect();
            let line = Value::Object(line);
            n_lines += 1;
            if schema.is_valid(&line) {
                n_good += 1;
                let read = decode(line.to_string().as_bytes());
                assert!(read.is_ok(), "{line}: {read:?}");
            }
        }
    }
    assert!(n_good > 500 && n_good < n_lines, "{n_good} of {n_lines}");
}

#[test]
fn lines_of_everyday_agree_with_the_schema() {
    let schema = validator(REQUEST);
    for line in [
        r#"{"id": 1, "tool": "read", "params": {"path": "README.md"}}"#,
        r#"{"tool": "read"}"#,
        r#"{"cancel": 1}"#,
        r#"{"turn": "8", "goal_id": "g"}"#,
        r#"{"user": "look at https://example.org"}"#,
        r#"{"caller_id": "ann"}"#,
    ] {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(schema.is_valid(&value), "{line}");
    }
}

#[test]
fn what_is_wrong_does_not_agree() {
    let schema = validator(REQUEST);
    for line in [
        "{}",
        "[]",
        r#"{"tool":"t","parms":{}}"#,
        r#"{"tool":"t","cancel":1}"#,
        r#"{"goal_id":"g"}"#,
    ] {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(!schema.is_valid(&value), "{line}");
    }
    let answers = validator(ANSWER);
    for line in [
        r#"{"status":"fine"}"#,
        r#"{"role":"system","text":""}"#,
        r#"{"status":"ok","txt":"x"}"#,
    ] {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(!answers.is_valid(&value), "{line}");
    }
}
