//! JSON Schemas derived from Rust types, reduced to the subset that every model provider accepts.
//!
//! Kept: `type`, `description`, `properties`, `required`, `items`, `enum`, `minimum`, `maximum`, `default`. An optional
//! value is one that is not required, never a union with null. References are inlined, so a type that contains itself
//! has no such schema; do not use one for arguments.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Keywords that survive as they are.
const KEPT: [&str; 6] = [
    "type",
    "description",
    "required",
    "enum",
    "minimum",
    "maximum",
];

/// The schema of a tool's arguments.
pub fn input_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12())
}

/// The schema of the structured part of a result.
pub fn output_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let generator = settings
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator();
    let mut schema = reduce(generator.into_root_schema_for::<T>().to_value());
    // The description of the arguments as a whole is the tool's own.
    if let Value::Object(schema) = &mut schema {
        schema.remove("description");
        schema
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

fn reduce(schema: Value) -> Value {
    let Value::Object(wide) = schema else {
        return Value::Object(Map::new());
    };
    let mut narrow = Map::new();
    for union in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(variants)) = wide.get(union) {
            narrow = merge(variants);
        }
    }
    for (key, value) in wide {
        match (key.as_str(), value) {
            ("type", Value::Array(types)) => {
                narrow.extend(
                    types
                        .into_iter()
                        .find(|name| name != "null")
                        .map(|name| (key, name)),
                );
            }
            ("const", value) => {
                narrow.insert("enum".to_owned(), Value::Array(vec![value]));
            }
            ("enum", Value::Array(values)) => {
                let values = values
                    .into_iter()
                    .filter(|value| !value.is_null())
                    .collect();
                narrow.insert(key, Value::Array(values));
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties
                    .into_iter()
                    .map(|(name, schema)| (name, reduce(schema)));
                narrow.insert(key, Value::Object(properties.collect()));
            }
            ("items", items) => {
                narrow.insert(key, reduce(items));
            }
            ("default", value) if !value.is_null() => {
                narrow.insert(key, value);
            }
            (name, value) if KEPT.contains(&name) => {
                narrow.insert(key, value);
            }
            _ => {}
        }
    }
    Value::Object(narrow)
}

/// One schema for all `variants`: null is dropped, enumerated values are put together, else the first one counts.
fn merge(variants: &[Value]) -> Map<String, Value> {
    let mut merged = Map::new();
    for variant in variants {
        if variant.get("type").is_some_and(|name| name == "null") {
            continue;
        }
        let Value::Object(variant) = reduce(variant.clone()) else {
            continue;
        };
        if merged.is_empty() {
            merged = variant;
        } else if let (Some(Value::Array(known)), Some(Value::Array(more))) =
            (merged.get_mut("enum"), variant.get("enum"))
        {
            known.extend(more.iter().cloned());
            // One variant's description would be wrong for the others.
            merged.remove("description");
        }
    }
    merged
}

#[cfg(test)]
mod tests;
