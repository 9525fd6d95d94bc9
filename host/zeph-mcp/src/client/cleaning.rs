//! Texts and schemas of a stranger, made fit to be shown: nothing that deceives, nothing without bounds. Pure.

use serde_json::{Map, Value};
use zeph_core::text::{is_deceptive, plain_line, plain_text};

/// Keywords of a schema whose texts only explain.
const EXPLANATIONS: [&str; 3] = ["title", "description", "$comment"];

/// Keywords whose values only illustrate.
const ILLUSTRATIONS: [&str; 2] = ["default", "examples"];

/// Most levels of JSON in a schema.
const DEPTH_MAX: usize = 64;

/// `text` without deceptive characters, at most `bytes_max` bytes; one that is cut ends in `…`, and counts in `n_cut`.
pub(super) fn text(text: &str, bytes_max: usize, n_cut: &mut usize) -> String {
    // What is left of a megabyte is the beginning anyway, and an invisible character has four bytes at most.
    let mut beginning = text.len().min(bytes_max.saturating_mul(16));
    while !text.is_char_boundary(beginning) {
        beginning -= 1;
    }
    let mut clean = plain_text(&text[..beginning]);
    if beginning == text.len() && clean.len() <= bytes_max {
        return clean;
    }
    *n_cut += 1;
    let mut end = clean.len().min(bytes_max.saturating_sub('…'.len_utf8()));
    while !clean.is_char_boundary(end) {
        end -= 1;
    }
    clean.truncate(end);
    clean.push('…');
    clean
}

/// `title` on one line; `None` when nothing is left of it.
pub(super) fn title(title: Option<&str>) -> Option<String> {
    let line = plain_line(title?, 200);
    (!line.is_empty()).then_some(line)
}

/// Whether `name` can be shown as it is: 1 to 256 bytes on one line, without deceptive characters.
pub(super) fn is_name(name: &str) -> bool {
    (1..=256).contains(&name.len()) && !name.contains(is_deceptive) && name.trim() == name
}

/// Why a schema cannot be used; one short phrase.
pub(super) type Problem = &'static str;

/// `schema` with its explanations cleaned and at most `text_bytes_max` bytes each.
///
/// Errors: when anything that checks a value holds deceptive characters, so that a person and a model would read another schema
/// than the one that counts; when it refers to what is elsewhere; when it is too deep.
pub(super) fn schema(
    schema: &Map<String, Value>,
    text_bytes_max: usize,
    n_cut: &mut usize,
) -> Result<Map<String, Value>, Problem> {
    let mut clean = schema.clone();
    object(&mut clean, text_bytes_max, n_cut, 0)?;
    Ok(clean)
}

fn object(
    map: &mut Map<String, Value>,
    text_bytes_max: usize,
    n_cut: &mut usize,
    depth: usize,
) -> Result<(), Problem> {
    for (key, value) in map.iter_mut() {
        if key.contains(is_deceptive) {
            return Err("the name of a property holds invisible or control characters");
        }
        let is_reference = matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef");
        match value {
            Value::String(words) if EXPLANATIONS.contains(&key.as_str()) => {
                *words = text(words, text_bytes_max, n_cut);
            }
            Value::String(place) if is_reference && !place.starts_with('#') => {
                return Err("it refers to a schema elsewhere");
            }
            _ if ILLUSTRATIONS.contains(&key.as_str()) && !is_schema(value) => illustration(value),
            _ => part(value, text_bytes_max, n_cut, depth + 1)?,
        }
    }
    Ok(())
}

/// A property may be named `default`: its value is a schema then. An illustration that looks like one is treated as strictly.
fn is_schema(value: &Value) -> bool {
    let keywords = ["type", "$ref", "anyOf", "enum"];
    let map = value.as_object();
    map.is_some_and(|map| keywords.iter().any(|keyword| map.contains_key(*keyword)))
}

fn part(
    value: &mut Value,
    text_bytes_max: usize,
    n_cut: &mut usize,
    depth: usize,
) -> Result<(), Problem> {
    if depth > DEPTH_MAX {
        return Err("it is nested too deeply");
    }
    match value {
        Value::Object(map) => object(map, text_bytes_max, n_cut, depth),
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| part(item, text_bytes_max, n_cut, depth + 1)),
        Value::String(text) if text.contains(deceives) => {
            Err("a value that is compared holds invisible or control characters")
        }
        _ => Ok(()),
    }
}

/// Line ends are common in values.
fn deceives(character: char) -> bool {
    !matches!(character, '\n' | '\r' | '\t') && is_deceptive(character)
}

/// Values that nothing is compared with, without deceptive characters.
pub(super) fn illustration(value: &mut Value) {
    match value {
        Value::String(text) => text.retain(|character| !deceives(character)),
        Value::Array(items) => items.iter_mut().for_each(illustration),
        Value::Object(map) => {
            map.retain(|key, _| !key.contains(is_deceptive));
            map.values_mut().for_each(illustration);
        }
        _ => {}
    }
}

/// What a server says in passing, for people: without deceptive characters.
pub(super) fn said(mut words: Value) -> Value {
    illustration(&mut words);
    words
}

#[cfg(test)]
mod tests;
