//! A tool as the protocol describes it.

use std::sync::{Arc, OnceLock};

use rmcp::model::{JsonObject, Tool as McpTool, ToolAnnotations};
use serde_json::{Map, Value, json};
use zeph_core::tool::{Annotations, Tool};
use zeph_schema::{Reading, Validator};

/// `tool` under the name it is exposed by.
pub fn described(tool: &Tool, exposed: &str, output: Option<&OutputSchema>) -> McpTool {
    let input = Arc::new(input_schema(tool.parameters.schema()));
    let mut described = McpTool::new(exposed.to_owned(), tool.description.clone(), input)
        .with_annotations(annotations(tool.annotations));
    described.title.clone_from(&tool.title);
    described.output_schema = output.map(|output| Arc::clone(&output.schema));
    described
}

fn annotations(promised: Annotations) -> ToolAnnotations {
    let Annotations {
        read_only,
        destructive,
        idempotent,
        open_world,
    } = promised;
    ToolAnnotations::new()
        .read_only(read_only)
        // What only reads destroys nothing, whatever its author wrote.
        .destructive(destructive && !read_only)
        .idempotent(idempotent)
        .open_world(open_world)
}

/// The schema of the arguments as the tool gave it; that of a tool without any in the form the protocol recommends.
fn input_schema(schema: &Value) -> JsonObject {
    match schema {
        Value::Object(schema) if takes_arguments(schema) => schema.clone(),
        _ => Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("additionalProperties".to_owned(), json!(false)),
        ]),
    }
}

fn takes_arguments(schema: &Map<String, Value>) -> bool {
    let says_nothing = |(key, value): (&String, &Value)| match key.as_str() {
        "type" | "$schema" | "title" | "description" => true,
        "properties" => value.as_object().is_some_and(Map::is_empty),
        "required" => value.as_array().is_some_and(Vec::is_empty),
        "additionalProperties" => *value == json!(false),
        _ => false,
    };
    !schema.iter().all(says_nothing)
}

/// What the structured part of every result of a tool agrees with: of its successes, and of its failures, which hold an `error`.
#[derive(Debug, Clone)]
pub struct OutputSchema {
    schema: Arc<JsonObject>,
    validator: Arc<OnceLock<Option<Validator>>>,
}

impl OutputSchema {
    /// The one of `tool`; `None` when it has none that clients of every revision can read: they take schemas of objects only.
    pub fn of(tool: &Tool) -> Option<Self> {
        let schema = tool.output.as_ref()?.as_object()?;
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        is_object.then(|| Self {
            schema: Arc::new(with_failures(schema)),
            validator: Arc::default(),
        })
    }

    /// Of `schema` as it stands, for the results of servers.
    pub(crate) fn plain(schema: Arc<JsonObject>) -> Self {
        Self {
            schema,
            validator: Arc::default(),
        }
    }

    /// As clients see it.
    pub fn schema(&self) -> &JsonObject {
        &self.schema
    }

    /// Whether `structured` agrees with it. False, too, when the schema cannot be used.
    pub fn accepts(&self, structured: &Value) -> bool {
        let validator = self.validator.get_or_init(|| compile(&self.schema));
        let validator = validator.as_ref();
        validator.is_some_and(|validator| validator.accepts(structured))
    }
}

fn compile(schema: &JsonObject) -> Option<Validator> {
    Validator::new(&Value::Object(schema.clone()), Reading::Newest)
        .inspect_err(|error| tracing::warn!(%error, "an output schema cannot be used"))
        .ok()
}

/// What an output schema may consist of so that `error` can be put beside the other properties.
const PLAIN_KEYWORDS: [&str; 10] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "title",
    "description",
    "$schema",
    "$defs",
    "definitions",
    "examples",
];

/// The same schema, by which a failed call agrees too. Some clients check the structured part of failures as well, and would hide
/// what the model has to read.
fn with_failures(schema: &Map<String, Value>) -> JsonObject {
    let mut schema = schema.clone();
    let is_plain = schema
        .keys()
        .all(|key| PLAIN_KEYWORDS.contains(&key.as_str()));
    let has_error = |schema: &Map<String, Value>| {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.is_some_and(|properties| properties.contains_key("error"))
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_open = schema
        .get("additionalProperties")
        .is_none_or(|additional| *additional == json!(true));
    // Without a required property any failure agrees with an open schema.
    let agrees = is_open && required.is_none_or(Vec::is_empty);
    if !is_plain || has_error(&schema) || agrees {
        return schema;
    }
    if let Some(required) = schema.remove("required") {
        let either = json!([{ "required": required }, { "required": ["error"] }]);
        schema.insert("anyOf".to_owned(), either);
    }
    let properties = schema
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        properties.insert("error".to_owned(), failure_schema());
    }
    schema
}

fn failure_schema() -> Value {
    json!({
        "type": "object",
        "description": "Why the call failed; absent when it did not.",
        "properties": { "category": { "type": "string" }, "message": { "type": "string" } },
        "required": ["category"],
    })
}

#[cfg(test)]
pub(crate) mod tests;
