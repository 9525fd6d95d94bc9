//! Values that agree with a plain schema, found without a validator.
//!
//! Making a validator takes a program that is started for one call longer than most of what it does. Here only a clear yes is said:
//! whatever is not plain, or not right, is for the validator, which also says what is wrong.

use serde_json::{Map, Number, Value};

/// The names of types.
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// What schemas of servers call their language, most of them one of these two.
const DRAFTS: [&str; 3] = [
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Whether `schema` is right, and consists of keywords that [`agrees`] knows.
///
/// Limits: recurses as deep as the schema, whose depth the reader of JSON bounds.
pub(super) fn is_plain(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(keywords) => keywords.iter().all(is_plain_keyword),
        _ => false,
    }
}

fn is_plain_keyword((keyword, value): (&String, &Value)) -> bool {
    match (keyword.as_str(), value) {
        ("title" | "description" | "format", Value::String(_))
        | ("examples", Value::Array(_))
        | ("minimum" | "maximum", Value::Number(_))
        | ("default" | "const", _) => true,
        ("type", Value::String(name)) => TYPES.contains(&name.as_str()),
        ("type", Value::Array(names)) => {
            let is_type = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
            !names.is_empty() && are_texts_of_their_own(names) && names.iter().all(is_type)
        }
        ("$schema", Value::String(draft)) => DRAFTS.contains(&draft.as_str()),
        ("enum", Value::Array(values)) => !values.is_empty(),
        ("required", Value::Array(names)) => are_texts_of_their_own(names),
        ("minLength" | "maxLength" | "minItems" | "maxItems", Value::Number(n)) => n.is_u64(),
        ("properties", Value::Object(schemas)) => schemas.values().all(is_plain),
        ("items" | "additionalProperties", schema) => is_plain(schema),
        _ => false,
    }
}

/// Whether values are texts, each of them once.
fn are_texts_of_their_own(values: &[Value]) -> bool {
    let is_new = |(at, value): (usize, &Value)| value.is_string() && !values[..at].contains(value);
    values.iter().enumerate().all(is_new)
}

/// Whether `value` surely agrees with a plain `schema`.
pub(super) fn agrees(schema: &Value, value: &Value) -> bool {
    match schema {
        Value::Bool(agrees) => *agrees,
        Value::Object(keywords) => keywords
            .iter()
            .all(|(keyword, limit)| agrees_with((keyword, limit), keywords, value)),
        _ => false,
    }
}

fn agrees_with(
    (keyword, limit): (&str, &Value),
    beside: &Map<String, Value>,
    value: &Value,
) -> bool {
    match (keyword, value) {
        ("type", value) => match limit {
            Value::Array(names) => names.iter().any(|name| is_of(name, value)),
            name => is_of(name, value),
        },
        ("enum", value) => limit.as_array().is_some_and(|all| all.contains(value)),
        ("const", value) => limit == value,
        ("minimum", Value::Number(number)) => is_ordered(limit.as_number(), Some(number)),
        ("maximum", Value::Number(number)) => is_ordered(Some(number), limit.as_number()),
        ("minLength", Value::String(text)) => limit.as_u64() <= Some(length(text)),
        ("maxLength", Value::String(text)) => limit.as_u64() >= Some(length(text)),
        ("minItems", Value::Array(items)) => limit.as_u64() <= Some(items.len() as u64),
        ("maxItems", Value::Array(items)) => limit.as_u64() >= Some(items.len() as u64),
        ("items", Value::Array(items)) => items.iter().all(|item| agrees(limit, item)),
        ("required", Value::Object(values)) => {
            let mut names = limit.as_array().into_iter().flatten();
            names.all(|name| name.as_str().is_some_and(|name| values.contains_key(name)))
        }
        ("properties", Value::Object(values)) => values.iter().all(|(name, value)| {
            let schema = limit.get(name);
            schema.is_none_or(|schema| agrees(schema, value))
        }),
        ("additionalProperties", Value::Object(values)) => values.iter().all(|(name, value)| {
            let named = beside.get("properties").and_then(|all| all.get(name));
            named.is_some() || agrees(limit, value)
        }),
        // What says nothing, or nothing about such a value.
        _ => true,
    }
}

fn is_of(name: &Value, value: &Value) -> bool {
    match name.as_str() {
        Some("array") => value.is_array(),
        Some("boolean") => value.is_boolean(),
        // One with a fraction of zero is one too: the validator knows.
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("object") => value.is_object(),
        Some("string") => value.is_string(),
        _ => false,
    }
}

/// Whether two whole numbers are in order; fractions are not compared here.
fn is_ordered(less: Option<&Number>, more: Option<&Number>) -> bool {
    let whole = |number: Option<&Number>| number?.as_i128();
    matches!((whole(less), whole(more)), (Some(less), Some(more)) if less <= more)
}

fn length(text: &str) -> u64 {
    text.chars().count() as u64
}

#[cfg(test)]
mod tests;
