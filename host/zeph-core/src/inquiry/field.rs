//! The fields of an answer: a text, a number, yes or no, one of several values, or several of them.

use serde_json::{Map, Value};

use crate::text::plain_line;

/// Most characters of a title or description.
const WORDS_CHARS_MAX: usize = 300;

/// The types of a field with one value.
const TYPES: [&str; 4] = ["string", "number", "integer", "boolean"];

/// What else may be said of a field with one value.
const KEYWORDS: [&str; 11] = [
    "enum",
    "const",
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "format",
    "writeOnly",
];

/// What may be said of a field with several values.
const LIST_KEYWORDS: [&str; 4] = ["minItems", "maxItems", "uniqueItems", "default"];

/// One of the values a field offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The value.
    pub value: Value,
    /// What it is called for people, when it has a name of its own.
    pub title: Option<String>,
}

/// What a field of a question's schema offers, in its order; for a list, what its items can be. Empty when anything of its type is
/// taken.
pub fn choices(field: &Value) -> Vec<Choice> {
    let of = match is_list(field) {
        true => field.get("items").unwrap_or(&Value::Null),
        false => field,
    };
    let titled = ["oneOf", "anyOf"]
        .iter()
        .find_map(|key| of.get(*key)?.as_array());
    if let Some(titled) = titled {
        let choice = |choice: &Value| {
            let title = choice.get("title").and_then(Value::as_str);
            Some(Choice {
                value: choice.get("const")?.clone(),
                title: title.map(str::to_owned),
            })
        };
        return titled.iter().filter_map(choice).collect();
    }
    let values = match (of.get("enum").and_then(Value::as_array), of.get("const")) {
        (Some(values), _) => values.clone(),
        (None, only) => only.into_iter().cloned().collect(),
    };
    let titles = of.get("enumNames").and_then(Value::as_array);
    let title = |idx: usize| titles?.get(idx)?.as_str().map(str::to_owned);
    let values = values.into_iter().enumerate();
    values
        .map(|(idx, value)| Choice {
            value,
            title: title(idx),
        })
        .collect()
}

/// Whether a field takes several values.
pub fn is_list(field: &Value) -> bool {
    field.get("type").and_then(Value::as_str) == Some("array")
}

/// The schema of a field, made of what is known of `property` only.
///
/// Errors: one sentence for the plugin's author.
pub(super) fn field(name: &str, property: &Value) -> Result<Value, String> {
    let mut field = match is_list(property) {
        true => list(name, property)?,
        false => single(name, property)?,
    };
    for words in ["title", "description"] {
        if let Some(text) = property.get(words).and_then(Value::as_str) {
            field.insert(words.to_owned(), plain_line(text, WORDS_CHARS_MAX).into());
        }
    }
    Ok(Value::Object(field))
}

fn single(name: &str, property: &Value) -> Result<Map<String, Value>, String> {
    let kind = property.get("type").and_then(Value::as_str);
    let Some(kind) = kind.filter(|kind| TYPES.contains(kind)) else {
        return Err(format!(
            "the field `{name}` must be of one of these types: {}, array",
            TYPES.join(", ")
        ));
    };
    let mut field = copied(property, &KEYWORDS);
    field.insert("type".to_owned(), kind.into());
    if let Some(titles) = property.get("enumNames") {
        field.insert("enumNames".to_owned(), names(name, property, titles)?);
    }
    if let Some(choices) = property.get("oneOf") {
        field.insert("oneOf".to_owned(), titled(name, choices)?);
    }
    Ok(field)
}

fn list(name: &str, property: &Value) -> Result<Map<String, Value>, String> {
    let items = property.get("items").unwrap_or(&Value::Null);
    let values = items.get("enum").and_then(Value::as_array);
    let choices = ["anyOf", "oneOf"].iter().find_map(|key| items.get(*key));
    let items = match (values, choices) {
        (Some(values), None) if !values.is_empty() && values.iter().all(Value::is_string) => {
            serde_json::json!({ "type": "string", "enum": values })
        }
        (None, Some(choices)) => serde_json::json!({ "anyOf": titled(name, choices)? }),
        _ => {
            return Err(format!(
                "the field `{name}` is a list: its `items` must offer texts, with `enum` or with `anyOf`"
            ));
        }
    };
    let mut field = copied(property, &LIST_KEYWORDS);
    field.insert("type".to_owned(), "array".into());
    field.insert("items".to_owned(), items);
    Ok(field)
}

fn copied(property: &Value, keywords: &[&str]) -> Map<String, Value> {
    let value = |keyword: &&str| Some(((*keyword).to_owned(), property.get(*keyword)?.clone()));
    keywords.iter().filter_map(value).collect()
}

/// The names of the values of an `enum`.
fn names(name: &str, property: &Value, titles: &Value) -> Result<Value, String> {
    let n_values = property.get("enum").and_then(Value::as_array).map(Vec::len);
    let titles = titles
        .as_array()
        .filter(|titles| Some(titles.len()) == n_values);
    let titles = titles.map(|titles| titles.iter().map(title).collect::<Option<Vec<_>>>());
    match titles.flatten() {
        Some(titles) => Ok(titles.into()),
        None => Err(format!(
            "the field `{name}`: `enumNames` must have one text for each value of `enum`"
        )),
    }
}

/// Texts with a name each.
fn titled(name: &str, choices: &Value) -> Result<Value, String> {
    let choice = |choice: &Value| {
        let value = choice.get("const").filter(|value| value.is_string())?;
        let title = title(choice.get("title")?)?;
        Some(serde_json::json!({ "const": value, "title": title }))
    };
    let choices = choices.as_array().filter(|choices| !choices.is_empty());
    let choices = choices.map(|choices| choices.iter().map(choice).collect::<Option<Vec<_>>>());
    match choices.flatten() {
        Some(choices) => Ok(choices.into()),
        None => Err(format!(
            "the field `{name}`: each of the values it offers must have a text as `const` and a `title`"
        )),
    }
}

fn title(title: &Value) -> Option<Value> {
    Some(plain_line(title.as_str()?, WORDS_CHARS_MAX).into())
}
