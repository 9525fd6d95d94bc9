//! An entry put into a JSON file, with or without comments, through a tree that keeps every character of what it does not change.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast, parse_to_value};
use serde_json::Value;

use super::entry::{Change, Edits, Entry, Field};
use super::error::MergeError;

/// What a client's parser accepts beyond JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    comments: bool,
    trailing_commas: bool,
}

impl Dialect {
    pub(super) const STRICT: Self = Self {
        comments: false,
        trailing_commas: false,
    };
    pub(super) const COMMENTS: Self = Self {
        comments: true,
        trailing_commas: false,
    };
    pub(super) const COMMENTS_AND_COMMAS: Self = Self {
        comments: true,
        trailing_commas: true,
    };

    fn options(self) -> ParseOptions {
        ParseOptions {
            allow_comments: self.comments,
            allow_trailing_commas: self.trailing_commas,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        }
    }
}

/// `text` with `entry` in the object `servers`. A text of white space alone is an empty object.
pub(super) fn merge(
    text: &str,
    dialect: &Dialect,
    servers: &str,
    entry: &Entry<'_>,
    force: bool,
) -> Result<String, MergeError> {
    let root = parse(text, dialect)?;
    let shape = |key: &str| MergeError::Shape(key.to_owned());
    let top = root.object_value_or_create().ok_or(MergeError::NoObject)?;
    only(&top, servers)?;
    let list = top
        .object_value_or_create(servers)
        .ok_or_else(|| shape(servers))?;
    match only(&list, entry.name)? {
        None => drop(list.append(entry.name, value(entry))),
        Some(there) => change(&there, entry, force)?,
    }
    if let Some(input) = entry.input {
        ask(&top, input)?;
    }
    let mut merged = root.to_string();
    if text.trim().is_empty() {
        merged = format!("{}\n", merged.trim());
    }
    Ok(merged)
}

/// The entries below `servers`, in their order. None in a text of white space, or without that key.
pub(super) fn entries(
    text: &str,
    dialect: &Dialect,
    servers: &str,
) -> Result<Vec<(String, Value)>, MergeError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let Some(list) = list(&parse(text, dialect)?, servers)? else {
        return Ok(Vec::new());
    };
    let mut names = BTreeSet::new();
    let named = |property: CstObjectProp| {
        let name = property.decoded_name().unwrap_or_default();
        if !names.insert(name.clone()) {
            return Err(MergeError::Twice(name));
        }
        let value = property.value().and_then(|node| node.to_serde_value());
        Ok((name, value.unwrap_or_default()))
    };
    list.properties().into_iter().map(named).collect()
}

/// `text` with these changes in the entries of these names. It is read once, however many they are.
pub(super) fn edit(
    text: &str,
    dialect: &Dialect,
    servers: &str,
    edits: &[(String, Edits)],
) -> Result<String, MergeError> {
    let root = parse(text, dialect)?;
    let list = list(&root, servers)?;
    let entries = list.map(|list| by_name(&list)).transpose()?;
    let entries = entries.unwrap_or_default();
    for (name, edits) in edits {
        let entry = entries.get(name).and_then(CstObjectProp::object_value);
        let entry = entry.ok_or_else(|| MergeError::Shape(name.clone()))?;
        edit_entry(&entry, edits)?;
    }
    Ok(root.to_string())
}

fn edit_entry(entry: &CstObject, edits: &Edits) -> Result<(), MergeError> {
    for (key, field) in &edits.set {
        set(entry, key, field)?;
    }
    for (table, key) in &edits.unset {
        let table = only(entry, table)?.and_then(|table| table.object_value());
        let there = table.map(|table| only(&table, key)).transpose()?;
        there.flatten().into_iter().for_each(CstObjectProp::remove);
    }
    for key in &edits.removed {
        only(entry, key)?
            .into_iter()
            .for_each(CstObjectProp::remove);
    }
    Ok(())
}

/// `text` with the entries `names` spelled as in `from`.
pub(super) fn restore(
    text: &str,
    from: &str,
    dialect: &Dialect,
    servers: &str,
    names: &[String],
) -> Result<String, MergeError> {
    let (old, new) = (
        spans(from, dialect, servers)?,
        spans(text, dialect, servers)?,
    );
    let mut places = Vec::new();
    for name in names {
        let place = new.get(name).zip(old.get(name));
        let (there, before) = place.ok_or_else(|| MergeError::Shape(name.clone()))?;
        places.push((there, before));
    }
    places.sort_by_key(|(there, _)| there.start);
    let (mut restored, mut copied) = (String::new(), 0);
    for (there, before) in places {
        restored.push_str(&text[copied..there.start]);
        restored.push_str(&from[before.clone()]);
        copied = there.end;
    }
    restored.push_str(&text[copied..]);
    Ok(restored)
}

/// The bytes of the value of each entry, by its name.
fn spans(
    text: &str,
    dialect: &Dialect,
    servers: &str,
) -> Result<BTreeMap<String, Range<usize>>, MergeError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &dialect.options());
    let value = parsed.map_err(|error| syntax(&error))?.value;
    let list = value.as_ref().and_then(ast::Value::as_object);
    let list = list.and_then(|top| top.get_object(servers));
    let entries = list.into_iter().flat_map(|list| &list.properties);
    let span = |entry: &ast::ObjectProp<'_>| {
        let value = &entry.value;
        (entry.name.as_str().to_owned(), value.start()..value.end())
    };
    Ok(entries.map(span).collect())
}

/// The object with the servers, if there is one.
fn list(root: &CstRootNode, servers: &str) -> Result<Option<CstObject>, MergeError> {
    let shape = |key: &str| MergeError::Shape(key.to_owned());
    let top = root.object_value().ok_or(MergeError::NoObject)?;
    let Some(list) = only(&top, servers)? else {
        return Ok(None);
    };
    list.object_value().map(Some).ok_or_else(|| shape(servers))
}

fn parse(text: &str, dialect: &Dialect) -> Result<CstRootNode, MergeError> {
    let options = dialect.options();
    // The tree has comments in it whatever the options say; this reading does not.
    let read = parse_to_value(text, &options).and_then(|_| CstRootNode::parse(text, &options));
    read.map_err(|error| syntax(&error))
}

fn syntax(error: &ParseError) -> MergeError {
    MergeError::Syntax {
        line: error.line_display(),
        column: error.column_display(),
        problem: error.kind().to_string(),
    }
}

/// The property of this name.
///
/// Errors: there are two.
fn only(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, MergeError> {
    let is_it = |property: &CstObjectProp| property.decoded_name().as_deref() == Some(name);
    let mut found = object.properties().into_iter().filter(is_it);
    match (found.next(), found.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(MergeError::Twice(name.to_owned())),
    }
}

/// The properties of an object, by name.
///
/// Errors: two have one name.
fn by_name(object: &CstObject) -> Result<BTreeMap<String, CstObjectProp>, MergeError> {
    let mut named = BTreeMap::new();
    for property in object.properties() {
        let name = property.decoded_name().unwrap_or_default();
        if named.insert(name.clone(), property).is_some() {
            return Err(MergeError::Twice(name));
        }
    }
    Ok(named)
}

fn change(there: &CstObjectProp, entry: &Entry<'_>, force: bool) -> Result<(), MergeError> {
    let object = there.object_value();
    let old = there.value().and_then(|old| old.to_serde_value());
    match (entry.over(&old.unwrap_or_default(), force)?, &object) {
        (Change::Update, Some(object)) => {
            let fields = &entry.fields;
            fields
                .iter()
                .try_for_each(|(key, field)| set(object, key, field))
        }
        _ => {
            there.set_value(value(entry));
            Ok(())
        }
    }
}

/// Sets one key, unless it has this value already.
fn set(object: &CstObject, key: &str, field: &Field) -> Result<(), MergeError> {
    if let Field::Within(inner, text) = field {
        only(object, key)?;
        let below = object.object_value_or_create(key);
        let below = below.ok_or_else(|| MergeError::Shape(key.to_owned()))?;
        return set(&below, inner, &Field::Text(text.clone()));
    }
    match only(object, key)? {
        None => drop(object.append(key, input(field))),
        Some(there) if there.value().is_some_and(|node| is(&node, field)) => {}
        Some(there) => there.set_value(input(field)),
    }
    Ok(())
}

fn is(node: &CstNode, field: &Field) -> bool {
    let wanted = match field {
        Field::Text(text) => Value::from(text.as_str()),
        Field::List(list) => Value::from(list.as_slice()),
        Field::Within(..) => return false,
    };
    node.to_serde_value() == Some(wanted)
}

/// Makes the client ask for a value once and keep it, unless it does.
fn ask(top: &CstObject, id: &str) -> Result<(), MergeError> {
    let shape = || MergeError::Shape("inputs".to_owned());
    only(top, "inputs")?;
    let inputs = top.array_value_or_create("inputs").ok_or_else(shape)?;
    let has_id = |node: &CstNode| {
        let input = node.to_serde_value().unwrap_or_default();
        input.get("id").and_then(Value::as_str) == Some(id)
    };
    if !inputs.elements().iter().any(has_id) {
        inputs.ensure_multiline();
        inputs.append(CstInputValue::Object(vec![
            ("type".to_owned(), "promptString".into()),
            ("id".to_owned(), id.into()),
            ("description".to_owned(), "Token of zeph-host".into()),
            ("password".to_owned(), true.into()),
        ]));
    }
    Ok(())
}

fn value(entry: &Entry<'_>) -> CstInputValue {
    let fields = entry.fields.iter();
    CstInputValue::Object(
        fields
            .map(|(key, field)| ((*key).to_owned(), input(field)))
            .collect(),
    )
}

fn input(field: &Field) -> CstInputValue {
    match field {
        Field::Text(text) => text.as_str().into(),
        Field::List(list) => {
            CstInputValue::Array(list.iter().map(|one| one.as_str().into()).collect())
        }
        Field::Within(key, text) => {
            CstInputValue::Object(vec![(key.clone(), text.as_str().into())])
        }
    }
}
