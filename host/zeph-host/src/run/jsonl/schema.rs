//! The form of the lines, as JSON Schema: what a program that speaks to `zeph-host run` may write, and what it reads.
//!
//! The schemas are made from the types of the lines and kept in `schema/`, where programs of others find them; a test compares. That of
//! requests is strict: it knows no other key, where the door ignores one with a note. Every line that agrees with it is understood.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

#[cfg(test)]
use super::answer::OutputLine;
use super::request::{NAME_CHARS_MAX, RawAnswers};

/// The schema of a line of input.
pub(crate) const REQUEST: &str = include_str!("../../../schema/request.json");

/// The schema of a line of output.
pub(crate) const ANSWER: &str = include_str!("../../../schema/answer.json");

/// A line of input.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "the form of what `request` reads key by key, for the sake of its messages"
)]
enum RequestLine {
    Call(CallLine),
    Cancel(CancelLine),
    Begin(BeginLine),
}

/// A call; it is answered once, when it has ended.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = {"required": ["params", "arguments"]}))]
#[schemars(extend("dependentRequired" = {"goal_id": ["turn"], "skill_name": ["turn"]}))]
#[expect(dead_code, reason = "a form")]
struct CallLine {
    /// Comes back with the answer: any JSON value. Without it the answer names the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    id: Option<Value>,
    /// The tool.
    tool: String,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    params: Option<Map<String, Value>>,
    /// Another name of `params`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    arguments: Option<Map<String, Value>>,
    /// Answers to what the tool asked when the same call was made before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RawAnswers")]
    answer: Option<RawAnswers>,
    /// The turn it belongs to, by a name of the caller's: the turn before goes on if it has the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Name")]
    turn: Option<Name>,
    /// The goal of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Name")]
    goal_id: Option<Name>,
    /// The skill used in the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Name")]
    skill_name: Option<Name>,
    /// Who makes the call; without it the caller of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Name")]
    caller_id: Option<Name>,
}

/// Ends every call with this id, waiting or running. Each is still answered.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "a form")]
struct CancelLine {
    /// The `id` of the calls.
    cancel: Value,
}

/// Begins a turn, names the caller of the lines that follow, or tells what the user said. It is not answered.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
#[schemars(extend("dependentRequired" = {"goal_id": ["turn"], "skill_name": ["turn"]}))]
#[expect(dead_code, reason = "a form")]
struct BeginLine {
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Name")]
    turn: Option<Name>,
    /// Its goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Name")]
    goal_id: Option<Name>,
    /// The skill used in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Name")]
    skill_name: Option<Name>,
    /// Who makes the calls of lines that name nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Name")]
    caller_id: Option<Name>,
    /// What the user said. From then on a tool asks before it reaches an address that stands neither there nor in an earlier result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    user: Option<String>,
}

/// An identifier of the caller's.
struct Name;

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "string",
            "minLength": 1,
            "maxLength": NAME_CHARS_MAX,
            "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
        })
    }
}

/// Both schemas, by the direction of the lines.
pub(crate) fn both() -> Value {
    let schema = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
    json!({ "requests": schema(REQUEST), "answers": schema(ANSWER) })
}

#[cfg(test)]
mod tests;
