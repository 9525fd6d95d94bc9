//! A tool as the protocol describes it.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{JsonObject, Tool as McpTool, ToolAnnotations};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use zeph_core::argument::{Disagreement, Parameters};
use zeph_core::schema::Schema;
use zeph_core::tool::{Annotations, Backend, Tool};

/// The longest that a structured result is waited for while it is checked.
const CHECK_PATIENCE: Duration = Duration::from_secs(10);

/// `tool` under the name it is exposed by.
pub fn described(tool: &Tool, exposed: &str, output: Option<&OutputSchema>) -> McpTool {
    let input = Arc::new(input_schema(tool));
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

/// The schema of the arguments as the tool gave it; that of a tool without any in the form the protocol recommends, unless it is a server's:
/// an object without properties takes any.
fn input_schema(tool: &Tool) -> JsonObject {
    match tool.parameters.schema() {
        Value::Object(schema) if is_servers(tool) || takes_arguments(schema) => schema.clone(),
        schema => {
            let properties = schema.get("properties").cloned();
            let properties = properties.map(|none| ("properties".to_owned(), none));
            let none = [
                ("type".to_owned(), json!("object")),
                ("additionalProperties".to_owned(), json!(false)),
            ];
            none.into_iter().chain(properties).collect()
        }
    }
}

fn is_servers(tool: &Tool) -> bool {
    matches!(tool.backend, Backend::Mcp(_))
}

fn takes_arguments(schema: &Map<String, Value>) -> bool {
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    let says_nothing = |(key, value): (&String, &Value)| match key.as_str() {
        "type" | "$schema" | "title" | "description" => true,
        "properties" => is_empty(value),
        "required" => value.as_array().is_some_and(Vec::is_empty),
        "additionalProperties" => *value == json!(false),
        _ => false,
    };
    let names = ["properties", "additionalProperties"];
    let is_free = !names.iter().any(|name| schema.contains_key(*name));
    is_free || !schema.iter().all(says_nothing)
}

/// What the structured part of every result of a tool agrees with: of its successes, and of its failures, which hold an `error`.
#[derive(Debug, Clone)]
pub struct OutputSchema {
    schema: Arc<JsonObject>,
    /// The same, as results are checked against it.
    check: Parameters,
    /// As its author wrote it: what a success that disagrees is told of.
    own: Parameters,
}

impl OutputSchema {
    /// The one of `tool`; `None` when it has none that clients of every revision can read: they take schemas of objects only.
    pub fn of(tool: &Tool) -> Option<Self> {
        let own = tool.output.as_ref()?;
        let schema = own.as_object()?;
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        is_object.then(|| Self {
            own: Parameters::trusted(own.clone()),
            ..Self::plain(Arc::new(with_failures(schema)))
        })
    }

    /// Of `schema` as it stands, for the results of servers.
    pub(crate) fn plain(schema: Arc<JsonObject>) -> Self {
        let shared = Arc::clone(&schema);
        let check = Schema::later(move || Value::Object(JsonObject::clone(&shared)));
        let check = Parameters::trusted(check);
        Self {
            schema,
            own: check.clone(),
            check,
        }
    }

    /// As clients see it.
    pub fn schema(&self) -> &JsonObject {
        &self.schema
    }

    /// What a success with this structured part, which is left as it is, lacks to agree: a clause for people and models. `None` when it
    /// agrees.
    pub async fn lack(&self, structured: &mut Option<Value>) -> Option<String> {
        let Some(structured) = structured else {
            return Some(
                "there is no structured result, which the tool's own schema promises".to_owned(),
            );
        };
        let lack = self.looked_at(structured, Self::lack_now).await;
        lack.unwrap_or_else(|| Some(lack_of(&Disagreement::TooLong)))
    }

    fn lack_now(&self, structured: &Value) -> Option<String> {
        let problem = self.agrees_now(structured).err()?;
        let lack = lack_of(&problem);
        let place = match problem {
            Disagreement::Mismatch => self.own.disagreement(structured),
            Disagreement::TooLong | Disagreement::Unusable(_) => None,
        };
        Some(match place {
            Some(place) => format!("{lack}: {place}"),
            None => lack,
        })
    }

    /// Whether `structured`, which is left as it is, agrees with it. Unless that takes a moment only, it is checked on a blocking
    /// thread: its author is not trusted, and the check may take seconds.
    ///
    /// Errors: it does not, or that is not known in time.
    pub async fn agrees(&self, structured: &mut Value) -> Result<(), Disagreement> {
        let agrees = self.looked_at(structured, Self::agrees_now).await;
        agrees.unwrap_or(Err(Disagreement::TooLong))
    }

    /// What `look` finds; `None` when that takes too long.
    async fn looked_at<T: Send + 'static>(
        &self,
        structured: &mut Value,
        look: fn(&Self, &Value) -> T,
    ) -> Option<T> {
        if self.check.is_quick(structured) {
            return Some(look(self, structured));
        }
        let (schema, shared) = (self.clone(), Arc::new(structured.take()));
        let value = Arc::clone(&shared);
        let looked = tokio::task::spawn_blocking(move || look(&schema, &value));
        let found = match timeout(CHECK_PATIENCE, looked).await {
            Ok(Ok(found)) => Some(found),
            Ok(Err(_)) | Err(_) => None,
        };
        *structured = Arc::unwrap_or_clone(shared);
        found
    }

    /// Whether `structured`, a small one, agrees with it.
    ///
    /// Errors: as for [`agrees`](Self::agrees).
    pub fn agrees_now(&self, structured: &Value) -> Result<(), Disagreement> {
        self.check.agrees(structured)
    }
}

fn lack_of(problem: &Disagreement) -> String {
    format!("its structured result {problem}")
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
