//! Think-augmented function calling: complex tools get a field in which the model reasons before it fills in the arguments. Pure.
//!
//! The field is in the schema that a model is shown and nowhere else: it is taken out of the arguments before they are read.

use serde_json::{Map, Value, json};

/// The field.
pub const FIELD: &str = "thinking";

/// What a model is told of the field.
const MEANING: &str = "Write this first: which values the other arguments need and why, step by step. It is discarded before the call.";

/// Required arguments, levels of nesting and choices at which each alone makes a tool as complex as [`SHARE`].
const REQUIRED_MANY: f64 = 8.0;
const DEPTH_MANY: f64 = 4.0;
const CHOICES_MANY: f64 = 16.0;

/// How complex one of the three makes a tool at most: more than any usual threshold, and less than two of them together.
const SHARE: f64 = 0.75;

/// Levels that are looked at; schemas are bounded where they come in.
const LEVELS_MAX: usize = 64;

/// How complex the arguments of a tool are, from 0 to 1: by the number of required ones, the depth of the schema below its properties,
/// and the longest list of choices. Each counts by itself, and together they count more.
pub fn complexity(schema: &Value) -> f64 {
    let shape = shape(schema, 0);
    let parts = [
        (shape.n_required, REQUIRED_MANY),
        (shape.depth.saturating_sub(1), DEPTH_MANY),
        (shape.n_choices, CHOICES_MANY),
    ];
    let simple = parts.map(|(n, many)| 1.0 - SHARE * (number(n) / many).min(1.0));
    1.0 - simple.iter().product::<f64>()
}

#[expect(clippy::cast_precision_loss, reason = "counts of a schema are small")]
fn number(n: usize) -> f64 {
    n as f64
}

/// The counts of a schema.
#[derive(Debug, Clone, Copy, Default)]
struct SchemaShape {
    n_required: usize,
    depth: usize,
    n_choices: usize,
}

fn shape(schema: &Value, level: usize) -> SchemaShape {
    let Some(fields) = schema.as_object().filter(|_| level < LEVELS_MAX) else {
        return SchemaShape::default();
    };
    let length = |name: &str| {
        fields
            .get(name)
            .and_then(Value::as_array)
            .map_or(0, Vec::len)
    };
    let mut shape = SchemaShape {
        n_required: length("required"),
        depth: 0,
        n_choices: length("enum"),
    };
    let properties = fields.get("properties").and_then(Value::as_object);
    let inner = properties
        .into_iter()
        .flatten()
        .map(|(_, inner)| (inner, 1));
    let items = fields.get("items").into_iter().map(|inner| (inner, 1));
    let either = ["anyOf", "oneOf", "allOf"]
        .iter()
        .filter_map(|name| fields.get(*name)?.as_array());
    let either = either.flatten().map(|inner| (inner, 0));
    for (inner, deeper) in inner.chain(items).chain(either) {
        let inner = self::shape(inner, level + 1);
        shape.n_required += inner.n_required;
        shape.depth = shape.depth.max(inner.depth + deeper);
        shape.n_choices = shape.n_choices.max(inner.n_choices);
    }
    shape
}

/// The schema with room to think; `None` when the tool is not complex enough, or has an argument of that name.
pub fn augmented(schema: &Value, threshold: f64) -> Option<Value> {
    if has_field(schema) || complexity(schema) < threshold {
        return None;
    }
    let mut schema = schema.clone();
    let fields = schema.as_object_mut()?;
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    properties.as_object_mut()?.insert(
        FIELD.to_owned(),
        json!({ "type": "string", "description": MEANING }),
    );
    let required = fields.entry("required").or_insert_with(|| json!([]));
    required.as_array_mut()?.insert(0, FIELD.into());
    Some(schema)
}

/// Takes the thoughts out of the arguments of a tool with this schema of its own.
pub fn strip(schema: &Value, arguments: &mut Map<String, Value>) {
    if !has_field(schema) {
        arguments.remove(FIELD);
    }
}

/// Whether a tool has an argument of that name, which is the tool's then.
fn has_field(schema: &Value) -> bool {
    schema
        .get("properties")
        .is_some_and(|properties| properties.get(FIELD).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{augmented, complexity, strip};

    fn with_required(n: usize) -> Value {
        let names: Vec<String> = (0..n).map(|n| format!("a{n}")).collect();
        let properties = names
            .iter()
            .map(|name| (name.clone(), json!({ "type": "string" })));
        json!({ "type": "object", "properties": properties.collect::<serde_json::Map<_, _>>(), "required": names })
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(
            json!({ "type": "string" }),
            |inner, _| json!({ "type": "object", "properties": { "inner": inner } }),
        )
    }

    #[test]
    fn each_kind_of_complexity_counts_alone_and_together() {
        assert!(complexity(&json!({ "type": "object" })).abs() < 1e-9);
        assert!(complexity(&with_required(3)) < 0.3);
        assert!(complexity(&with_required(8)) > 0.7);
        assert!(complexity(&nested(2)) < 0.3 && complexity(&nested(5)) > 0.7);
        let choices: Vec<u32> = (0..20).collect();
        let choice = json!({ "type": "object", "properties": { "a": { "enum": choices } } });
        assert!(complexity(&choice) > 0.7);
        let mut some = with_required(4);
        some["properties"]["a0"] = nested(2);
        some["properties"]["a1"] = json!({ "enum": [1, 2, 3, 4, 5, 6, 7, 8] });
        assert!(complexity(&some) > 0.6 && complexity(&with_required(4)) < 0.6);
        assert!(complexity(&nested(200)) <= 1.0);
    }

    #[test]
    fn a_complex_schema_gets_the_field_and_the_arguments_lose_it() {
        let schema = with_required(8);
        let shown = augmented(&schema, 0.6).unwrap();
        assert_eq!(shown["properties"]["thinking"]["type"], "string");
        assert_eq!(shown["required"][0], "thinking");
        assert_eq!(augmented(&with_required(2), 0.6), None);
        let mut arguments = json!({ "thinking": "hm", "a0": "x" });
        strip(&schema, arguments.as_object_mut().unwrap());
        assert_eq!(arguments, json!({ "a0": "x" }));
    }

    #[test]
    fn an_argument_of_the_tool_stays_the_tools() {
        let mut schema = with_required(8);
        schema["properties"]["thinking"] = json!({ "type": "boolean" });
        assert_eq!(augmented(&schema, 0.0), None);
        let mut arguments = json!({ "thinking": true });
        strip(&schema, arguments.as_object_mut().unwrap());
        assert_eq!(arguments, json!({ "thinking": true }));
    }
}
