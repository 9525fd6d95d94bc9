//! The forgiving half: rewrites arguments into the form the schema wants, where only one meaning is possible.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::{ArgumentProblem, unknown_key_note};
use crate::category::ErrorCategory;
use crate::failure::one_line;

/// Most unknown keys that are noted one by one.
const UNKNOWN_MAX: usize = 16;

/// What the caller should know.
#[derive(Default)]
pub(super) struct Notes {
    notes: Vec<String>,
    /// Unknown keys without a note.
    n_more: usize,
}

impl Notes {
    fn unknown(&mut self, key: &str, properties: &Map<String, Value>) {
        match self.notes.len() < UNKNOWN_MAX {
            true => self.notes.push(unknown_key_note(key, properties)),
            false => self.n_more += 1,
        }
    }

    /// One sentence each.
    pub(super) fn told(mut self) -> Vec<String> {
        if self.n_more > 0 {
            let n = self.n_more;
            self.notes
                .push(format!("ignored {n} more unknown arguments"));
        }
        self.notes
    }
}

/// Brings the whole argument value into the shape of the object `schema`.
pub(super) fn arguments(
    schema: &Value,
    arguments: Value,
    notes: &mut Notes,
) -> Result<Map<String, Value>, ArgumentProblem> {
    let arguments = match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => parsed(&text, Value::is_object).unwrap_or(Value::String(text)),
        other => other,
    };
    let Value::Object(values) = arguments else {
        return Err(mismatch("the arguments", "an object", &arguments));
    };
    object(schema, values, "", notes)
}

fn object(
    schema: &Value,
    values: Map<String, Value>,
    place: &str,
    notes: &mut Notes,
) -> Result<Map<String, Value>, ArgumentProblem> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        // A free-form object (no properties named) takes every key.
        return Ok(values);
    };
    let open = is_open(schema);
    let mut read = Map::new();
    for (key, value) in rename_keys(values, properties) {
        let Some(property) = properties.get(&key) else {
            if open {
                read.insert(key, value);
            } else {
                notes.unknown(&key, properties);
            }
            continue;
        };
        if value.is_null() && !is_required(schema, &key) && !allows(property, "null") {
            continue;
        }
        let inner = join(place, &key);
        read.insert(key, self::value(property, value, &inner, notes)?);
    }
    match required(schema).find(|key| !read.contains_key(*key)) {
        Some(missing) => Err(ArgumentProblem {
            category: ErrorCategory::InvalidParameters,
            message: format!("missing required argument `{}`", join(place, missing)),
        }),
        None => Ok(read),
    }
}

/// Turns camelCase keys into the snake_case ones the schema has, unless the exact key is there as well.
fn rename_keys(
    values: Map<String, Value>,
    properties: &Map<String, Value>,
) -> Vec<(String, Value)> {
    let given: HashSet<String> = values.keys().cloned().collect();
    values
        .into_iter()
        .map(|(key, value)| {
            let snake = snake_case(&key);
            let is_alias = !properties.contains_key(&key)
                && properties.contains_key(&snake)
                && !given.contains(&snake);
            (if is_alias { snake } else { key }, value)
        })
        .collect()
}

fn value(
    schema: &Value,
    value: Value,
    place: &str,
    notes: &mut Notes,
) -> Result<Value, ArgumentProblem> {
    match value {
        Value::String(text) => string(schema, text, place, notes),
        Value::Number(number) => Ok(Value::Number(whole(schema, number))),
        Value::Object(values) if allows(schema, "object") => {
            object(schema, values, place, notes).map(Value::Object)
        }
        Value::Array(items) if allows(schema, "array") => array(schema, items, place, notes),
        other if is_untyped(schema) || allows(schema, json_type(&other)) => Ok(other),
        other => Err(mismatch(&format!("`{place}`"), &wanted(schema), &other)),
    }
    .and_then(|read| {
        let fits = is_untyped(schema)
            || allows(schema, json_type(&read))
            || (json_type(&read) == "integer" && allows(schema, "number"));
        if fits {
            Ok(read)
        } else {
            Err(mismatch(&format!("`{place}`"), &wanted(schema), &read))
        }
    })
}

/// A string stays one when the schema takes strings; otherwise it may hold the JSON of the wanted type.
fn string(
    schema: &Value,
    text: String,
    place: &str,
    notes: &mut Notes,
) -> Result<Value, ArgumentProblem> {
    if is_untyped(schema) || allows(schema, "string") {
        return Ok(Value::String(text));
    }
    let fits = |found: &Value| {
        allows(schema, json_type(found))
            || (found.is_number() && allows(schema, "number"))
            || (is_whole(found) && allows(schema, "integer"))
    };
    match parsed(&text, |found| {
        !found.is_string() && !found.is_null() && fits(found)
    }) {
        Some(found) => value(schema, found, place, notes),
        None => Ok(Value::String(text)),
    }
}

fn array(
    schema: &Value,
    items: Vec<Value>,
    place: &str,
    notes: &mut Notes,
) -> Result<Value, ArgumentProblem> {
    let Some(item_schema) = schema.get("items").filter(|items| items.is_object()) else {
        return Ok(Value::Array(items));
    };
    let read: Result<Vec<Value>, ArgumentProblem> = items
        .into_iter()
        .enumerate()
        .map(|(idx, item)| value(item_schema, item, &format!("{place}[{idx}]"), notes))
        .collect();
    read.map(Value::Array)
}

/// 5.0 is the integer 5, when an integer is wanted.
fn whole(schema: &Value, number: Number) -> Number {
    let wants_integer = allows(schema, "integer") && !allows(schema, "number");
    let is_float = number.as_i64().is_none() && number.as_u64().is_none();
    if !(wants_integer && is_float) {
        return number;
    }
    // JSON's interoperable integers end at 2^53 (RFC 8259, section 6).
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole and within 2^53 by the guard"
    )]
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0 => {
            Number::from(float as i64)
        }
        _ => number,
    }
}

fn parsed(text: &str, accept: impl Fn(&Value) -> bool) -> Option<Value> {
    serde_json::from_str::<Value>(text).ok().filter(accept)
}

fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn allows(schema: &Value, type_name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == type_name,
        Some(Value::Array(names)) => names.iter().any(|name| name == type_name),
        _ => false,
    }
}

fn is_untyped(schema: &Value) -> bool {
    schema.get("type").is_none()
}

fn is_open(schema: &Value) -> bool {
    let additional = schema.get("additionalProperties");
    additional.is_some_and(|rule| rule == &Value::Bool(true) || rule.is_object())
        || schema.get("patternProperties").is_some()
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn is_required(schema: &Value, key: &str) -> bool {
    required(schema).any(|name| name == key)
}

fn wanted(schema: &Value) -> String {
    match schema.get("type") {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        Some(Value::String(name)) => name.clone(),
        _ => "another type".to_owned(),
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn mismatch(what: &str, wanted: &str, got: &Value) -> ArgumentProblem {
    ArgumentProblem {
        category: ErrorCategory::TypeMismatch,
        message: format!(
            "{what} must be {wanted}, not the {} {}",
            json_type(got),
            one_line(&got.to_string(), 60)
        ),
    }
}

fn join(place: &str, key: &str) -> String {
    let key = one_line(key, 60);
    if place.is_empty() {
        key
    } else {
        format!("{place}.{key}")
    }
}

fn snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 4);
    for character in key.chars() {
        if character.is_ascii_uppercase() {
            if !snake.is_empty() && !snake.ends_with('_') {
                snake.push('_');
            }
            snake.push(character.to_ascii_lowercase());
        } else {
            snake.push(if character == '-' { '_' } else { character });
        }
    }
    snake
}
