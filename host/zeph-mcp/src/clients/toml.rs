//! An entry put into a TOML file, through a document that keeps comments, order and spelling.

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, TomlError, Value};

use super::entry::{Change, Edits, Entry, Field};
use super::error::MergeError;

/// `text` with `entry` in the table `servers`.
pub(super) fn merge(
    text: &str,
    servers: &str,
    entry: &Entry<'_>,
    force: bool,
) -> Result<String, MergeError> {
    let mut document = parse(text)?;
    let list = table_in(document.as_table_mut(), servers, true)?;
    match list.get_mut(entry.name) {
        None => drop(list.insert(entry.name, Item::Table(table(entry)))),
        Some(there) => change(there, entry, force)?,
    }
    Ok(spelled(&document, text))
}

/// The entries of the table `servers`, in their order. None without that table.
pub(super) fn entries(text: &str, servers: &str) -> Result<Vec<(String, Json)>, MergeError> {
    let document = parse(text)?;
    let Some(list) = document.get(servers) else {
        return Ok(Vec::new());
    };
    let list = list.as_table_like();
    let list = list.ok_or_else(|| MergeError::Shape(servers.to_owned()))?;
    let entries = list.iter().map(|(key, item)| (key.to_owned(), json(item)));
    Ok(entries.collect())
}

/// `text` with these changes in the entries of these names. It is read once, however many they are.
pub(super) fn edit(
    text: &str,
    servers: &str,
    edits: &[(String, Edits)],
) -> Result<String, MergeError> {
    let mut document = parse(text)?;
    let list = table_in(document.as_table_mut(), servers, true)?;
    for (name, edits) in edits {
        edit_entry(table_in(list, name, false)?, edits)?;
    }
    Ok(spelled(&document, text))
}

fn edit_entry(entry: &mut dyn TableLike, edits: &Edits) -> Result<(), MergeError> {
    for (key, field) in &edits.set {
        set(entry, key, field)?;
    }
    for (table, key) in &edits.unset {
        let table = entry.get_mut(table).and_then(Item::as_table_like_mut);
        table.into_iter().for_each(|table| drop(table.remove(key)));
    }
    for key in &edits.removed {
        entry.remove(key);
    }
    Ok(())
}

/// `text` with the entries `names` spelled as in `from`.
pub(super) fn restore(
    text: &str,
    from: &str,
    servers: &str,
    names: &[String],
) -> Result<String, MergeError> {
    let (mut document, from) = (parse(text)?, parse(from)?);
    let list = table_in(document.as_table_mut(), servers, true)?;
    for name in names {
        let shape = || MergeError::Shape(name.clone());
        let old = from.get(servers).and_then(|list| list.get(name));
        let old = old.ok_or_else(shape)?.clone();
        *list.get_mut(name).ok_or_else(shape)? = old;
    }
    Ok(spelled(&document, text))
}

/// A document that was read from `text`, with the ends of lines that this has: the document itself knows one kind alone.
fn spelled(document: &DocumentMut, text: &str) -> String {
    let spelled = document.to_string();
    let n_lines = text.matches('\n').count();
    match text.matches("\r\n").count() {
        n_crlf if n_crlf > 0 && n_crlf == n_lines => {
            spelled.replace("\r\n", "\n").replace('\n', "\r\n")
        }
        _ => spelled,
    }
}

fn parse(text: &str) -> Result<DocumentMut, MergeError> {
    text.parse().map_err(|error| syntax(text, &error))
}

/// An item as JSON: dates become texts.
fn json(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => json_value(value),
        Item::Table(table) => object(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| object(table)).collect(),
    }
}

fn json_value(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(boolean) => (*boolean.value()).into(),
        Value::Datetime(date) => date.value().to_string().into(),
        Value::Array(array) => array.iter().map(json_value).collect(),
        Value::InlineTable(table) => object(table),
    }
}

fn object(table: &dyn TableLike) -> Json {
    let pairs = table.iter().map(|(key, item)| (key.to_owned(), json(item)));
    Json::Object(pairs.collect())
}

fn syntax(text: &str, error: &TomlError) -> MergeError {
    let at = error.span().map_or(0, |span| span.start);
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    MergeError::Syntax {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        problem: error.message().to_owned(),
    }
}

/// The table of this name, made if there is none. `is_heading` leaves out the header of a table that has only tables in it.
fn table_in<'a>(
    parent: &'a mut dyn TableLike,
    name: &str,
    is_heading: bool,
) -> Result<&'a mut dyn TableLike, MergeError> {
    if parent.get(name).is_none() {
        let item = match is_heading {
            true => {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            }
            false => Item::Value(Value::InlineTable(InlineTable::new())),
        };
        parent.insert(name, item);
    }
    let table = parent.get_mut(name).and_then(Item::as_table_like_mut);
    table.ok_or_else(|| MergeError::Shape(name.to_owned()))
}

fn change(there: &mut Item, entry: &Entry<'_>, force: bool) -> Result<(), MergeError> {
    let change = entry.over(&json(there), force)?;
    match (change, there.as_table_like_mut()) {
        (Change::Update, Some(table)) => {
            let mut fields = entry.fields.iter();
            fields.try_for_each(|(key, field)| set(table, key, field))
        }
        (Change::Replace, Some(table)) => {
            let keys: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
            keys.iter().for_each(|key| drop(table.remove(key)));
            let mut fields = entry.fields.iter();
            fields.try_for_each(|(key, field)| set(table, key, field))
        }
        (_, None) => Err(MergeError::Shape(entry.name.to_owned())),
    }
}

/// Sets one key, unless it has this value already.
fn set(table: &mut dyn TableLike, key: &str, field: &Field) -> Result<(), MergeError> {
    if let Field::Within(inner, text) = field {
        let below = table_in(table, key, false)?;
        return set(below, inner, &Field::Text(text.clone()));
    }
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(there) if is(there, field) => {}
        // What is written around the value stays: a comment behind it, say.
        Some(there) => {
            let decor = there.decor().clone();
            *there = value(field);
            *there.decor_mut() = decor;
        }
        None => drop(table.insert(key, Item::Value(value(field)))),
    }
    Ok(())
}

fn is(there: &Value, field: &Field) -> bool {
    match field {
        Field::Text(text) => there.as_str() == Some(text),
        Field::List(list) => {
            let texts = there
                .as_array()
                .map(|array| array.iter().map(Value::as_str));
            texts.is_some_and(|texts| texts.eq(list.iter().map(|text| Some(text.as_str()))))
        }
        Field::Within(..) => false,
    }
}

fn table(entry: &Entry<'_>) -> Table {
    let fields = entry.fields.iter();
    fields.map(|(key, field)| (*key, value(field))).collect()
}

fn value(field: &Field) -> Value {
    match field {
        Field::Text(text) => text.as_str().into(),
        Field::List(list) => Value::Array(list.iter().collect::<Array>()),
        Field::Within(key, text) => {
            Value::InlineTable([(key.as_str(), text.as_str())].into_iter().collect())
        }
    }
}
