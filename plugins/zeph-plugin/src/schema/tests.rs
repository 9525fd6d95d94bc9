//! Nothing outside the common subset is left, and nothing a model needs is lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{input_schema, output_schema};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Plain {
    First,
    Second,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Documented {
    /// The first.
    First,
    /// The second.
    Second,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Inner {
    /// How deep.
    depth: u8,
}

fn seven() -> u32 {
    7
}

/// The whole.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Arguments {
    /// Where.
    path: String,
    /// How many.
    limit: Option<u64>,
    #[serde(default = "seven")]
    #[schemars(range(min = 1, max = 10))]
    count: u32,
    #[serde(default)]
    globs: Vec<String>,
    plain: Option<Plain>,
    documented: Documented,
    inner: Inner,
    optional_inner: Option<Inner>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[test]
fn arguments_are_reduced() {
    let inner = json!({
        "type": "object",
        "properties": {"depth": {"type": "integer", "minimum": 0, "maximum": 255, "description": "How deep."}},
        "required": ["depth"]
    });
    assert_eq!(
        input_schema::<Arguments>(),
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where."},
                "limit": {"type": "integer", "minimum": 0, "description": "How many."},
                "count": {"type": "integer", "minimum": 1, "maximum": 10, "default": 7},
                "globs": {"type": "array", "items": {"type": "string"}, "default": []},
                "plain": {"type": "string", "enum": ["first", "second"]},
                "documented": {"type": "string", "enum": ["first", "second"]},
                "inner": inner,
                "optional_inner": inner
            },
            "required": ["path", "documented", "inner"]
        })
    );
}

#[test]
fn output_follows_serialisation() {
    assert_eq!(
        output_schema::<Output>(),
        json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "diff": {"type": "string"}},
            "required": ["path"]
        })
    );
}

#[test]
fn no_arguments_is_an_empty_object() {
    assert_eq!(
        input_schema::<Nothing>(),
        json!({"type": "object", "properties": {}})
    );
    let _: Nothing = serde_json::from_value(Value::Object(serde_json::Map::new())).unwrap();
}
