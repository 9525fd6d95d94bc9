//! The forgiving half: rewrites arguments into the form the schema wants, where only one meaning is possible.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::{ArgumentProblem, unknown_key_note};
use crate::category::ErrorCategory;
use crate::failure::one_line;

/// Most unknown keys that are noted one by one.
const UNKNOWN_MAX: usize = 16;

/// Most schemas that are looked at for the types of one value: references multiply them.
const SCHEMAS_MAX: usize = 64;

/// Keywords whose schemas speak of the same object.
const COMBINED: [&str; 7] = ["allOf", "anyOf", "oneOf", "if", "then", "else", "not"];

/// Keywords that say what a key makes necessary.
const DEPENDENT: [&str; 3] = ["dependentRequired", "dependentSchemas", "dependencies"];

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

/// Reads the arguments of one call.
pub(super) struct Coercion<'s> {
    /// The whole schema, which references in it point into.
    pub(super) root: &'s Value,
    /// Whether an object that does not say otherwise takes keys that its schema does not name, as in JSON Schema.
    pub(super) is_open: bool,
    pub(super) notes: Notes,
}

impl<'s> Coercion<'s> {
    /// Brings the whole argument value into the shape of the object schema.
    pub(super) fn arguments(
        &mut self,
        arguments: Value,
    ) -> Result<Map<String, Value>, ArgumentProblem> {
        let arguments = match arguments {
            Value::Null => Value::Object(Map::new()),
            Value::String(text) => parsed(&text, Value::is_object).unwrap_or(Value::String(text)),
            other => other,
        };
        let Value::Object(values) = arguments else {
            return Err(mismatch("the arguments", "an object", &arguments));
        };
        self.object(self.root, values, "")
    }

    fn object(
        &mut self,
        schema: &'s Value,
        values: Map<String, Value>,
        place: &str,
    ) -> Result<Map<String, Value>, ArgumentProblem> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            // A free-form object (no properties named) takes every key.
            return Ok(values);
        };
        let takes_others = takes_others(schema);
        let is_open = takes_others.unwrap_or(self.is_open);
        let mut read = Map::new();
        for (key, value) in rename_keys(values, properties) {
            let Some(property) = properties.get(&key) else {
                let is_named = || is_named_elsewhere(self.root, schema, &key);
                if is_open || takes_others.is_none() && is_named() {
                    read.insert(key, value);
                } else {
                    self.notes.unknown(&key, properties);
                }
                continue;
            };
            if value.is_null() && !is_required(schema, &key) && !self.types(property).has("null") {
                continue;
            }
            let inner = join(place, &key);
            read.insert(key, self.value(property, value, &inner)?);
        }
        match required(schema).find(|key| !read.contains_key(*key)) {
            Some(missing) => Err(ArgumentProblem {
                category: ErrorCategory::InvalidParameters,
                message: format!("missing required argument `{}`", join(place, missing)),
            }),
            None => Ok(read),
        }
    }

    fn value(
        &mut self,
        schema: &'s Value,
        value: Value,
        place: &str,
    ) -> Result<Value, ArgumentProblem> {
        let types = self.types(schema);
        let read = match value {
            Value::String(text) => self.string(schema, &types, text, place)?,
            Value::Number(number) => Value::Number(whole(&types, number)),
            Value::Object(values) if types.names("object") => {
                Value::Object(self.object(schema, values, place)?)
            }
            Value::Array(items) if types.names("array") => self.array(schema, items, place)?,
            other => other,
        };
        let of = json_type(&read);
        match types.has(of) || of == "integer" && types.has("number") {
            true => Ok(read),
            false => Err(mismatch(&format!("`{place}`"), &types.wanted(), &read)),
        }
    }

    /// A string stays one when the schema takes strings; otherwise it may hold the JSON of the wanted type.
    fn string(
        &mut self,
        schema: &'s Value,
        types: &Types<'s>,
        text: String,
        place: &str,
    ) -> Result<Value, ArgumentProblem> {
        if types.has("string") {
            return Ok(Value::String(text));
        }
        let fits = |found: &Value| {
            types.has(json_type(found))
                || (found.is_number() && types.has("number"))
                || (is_whole(found) && types.has("integer"))
        };
        match parsed(&text, |found| {
            !found.is_string() && !found.is_null() && fits(found)
        }) {
            Some(found) => self.value(schema, found, place),
            None => Ok(Value::String(text)),
        }
    }

    fn array(
        &mut self,
        schema: &'s Value,
        items: Vec<Value>,
        place: &str,
    ) -> Result<Value, ArgumentProblem> {
        let Some(item_schema) = schema.get("items").filter(|items| items.is_object()) else {
            return Ok(Value::Array(items));
        };
        let read: Result<Vec<Value>, ArgumentProblem> = items
            .into_iter()
            .enumerate()
            .map(|(idx, item)| self.value(item_schema, item, &format!("{place}[{idx}]")))
            .collect();
        read.map(Value::Array)
    }

    /// The types that values of `schema` can have.
    fn types(&self, schema: &'s Value) -> Types<'s> {
        let mut names = Vec::new();
        let mut n_left = SCHEMAS_MAX;
        let says = add_types(self.root, schema, &mut names, &mut n_left);
        names.dedup();
        Types(says.map(|()| names))
    }
}

/// The names of types; none when a schema does not say, so that it may be any.
struct Types<'v>(Option<Vec<&'v str>>);

impl Types<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.is_none() || self.names(name)
    }

    /// Whether it is this type among others that are named.
    fn names(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|names| names.contains(&name))
    }

    fn wanted(&self) -> String {
        match &self.0 {
            Some(names) => names.join(" or "),
            None => "another type".to_owned(),
        }
    }
}

/// Adds the types of `schema` to `names`; `None` when it does not say which they are, or that takes more than `n_left` schemas.
fn add_types<'v>(
    root: &'v Value,
    schema: &'v Value,
    names: &mut Vec<&'v str>,
    n_left: &mut usize,
) -> Option<()> {
    *n_left = n_left.checked_sub(1)?;
    let get = |keyword: &str| schema.get(keyword);
    match get("type") {
        Some(Value::String(name)) => {
            names.push(name);
            return Some(());
        }
        Some(Value::Array(list)) => {
            names.extend(list.iter().filter_map(Value::as_str));
            return Some(());
        }
        _ => {}
    }
    let listed = get("enum").and_then(Value::as_array).map(Vec::as_slice);
    if let Some(values) = listed.or_else(|| get("const").map(std::slice::from_ref)) {
        names.extend(values.iter().map(|value| -> &'v str { json_type(value) }));
        return Some(());
    }
    if let Some(choices) = get("anyOf").or_else(|| get("oneOf")) {
        let mut choices = choices.as_array()?.iter();
        return choices.try_for_each(|choice| add_types(root, choice, names, n_left));
    }
    if let Some(parts) = get("allOf").and_then(Value::as_array) {
        // What one of them says holds for all.
        let mut said = parts.iter().filter_map(|part| {
            let mut names = Vec::new();
            add_types(root, part, &mut names, n_left).map(|()| names)
        });
        names.extend(said.next()?);
        return Some(());
    }
    let pointer = get("$ref")?.as_str()?.strip_prefix('#')?;
    add_types(root, root.pointer(pointer)?, names, n_left)
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

/// 5.0 is the integer 5, when an integer is wanted.
fn whole(types: &Types<'_>, number: Number) -> Number {
    let wants_integer = types.names("integer") && !types.names("number");
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

/// Whether an object takes keys that its schema does not name; `None` when the schema does not say.
fn takes_others(schema: &Value) -> Option<bool> {
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => Some(schema.get("patternProperties").is_some()),
        Some(Value::Bool(true) | Value::Object(_)) => Some(true),
        _ => schema.get("patternProperties").map(|_| true),
    }
}

/// Whether `schema` names `key` somewhere else than in its own `properties`, or finding out takes more than [`SCHEMAS_MAX`] schemas.
fn is_named_elsewhere(root: &Value, schema: &Value, key: &str) -> bool {
    let mut open = vec![schema];
    for _ in 0..SCHEMAS_MAX {
        let Some(schema) = open.pop() else {
            return false;
        };
        let is_in = |keyword: &str| {
            schema
                .get(keyword)
                .is_some_and(|map| map.get(key).is_some())
        };
        let is_listed = |list: &Value| {
            let mut names = list.as_array().into_iter().flatten();
            names.any(|name| name == key)
        };
        let dependents = DEPENDENT.iter().filter_map(|keyword| schema.get(keyword));
        let dependents: Vec<&Value> = dependents
            .filter_map(Value::as_object)
            .flat_map(Map::values)
            .collect();
        if is_required(schema, key)
            || is_in("properties")
            || DEPENDENT.iter().any(|keyword| is_in(keyword))
            || dependents.iter().any(|list| is_listed(list))
            || takes_others(schema) == Some(true)
        {
            return true;
        }
        open.extend(dependents.into_iter().filter(|of| of.is_object()));
        for keyword in COMBINED {
            match schema.get(keyword) {
                Some(Value::Array(parts)) => open.extend(parts),
                Some(part) => open.push(part),
                None => {}
            }
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let meant = reference
                .strip_prefix('#')
                .and_then(|pointer| root.pointer(pointer));
            match meant {
                Some(meant) => open.push(meant),
                None => return true,
            }
        }
    }
    true
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
    let got = match got {
        Value::Null => "null".to_owned(),
        _ => format!("the {} {}", json_type(got), one_line(&got.to_string(), 60)),
    };
    ArgumentProblem {
        category: ErrorCategory::TypeMismatch,
        message: format!("{what} must be {wanted}, not {got}"),
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
