//! An entry put into a TOML file, through a document that keeps comments, order and spelling.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, TomlError, Value};

use super::entry::{Change, Entry, Field};
use super::error::MergeError;

/// `text` with `entry` in the table `servers`.
pub(super) fn merge(
    text: &str,
    servers: &str,
    entry: &Entry<'_>,
    force: bool,
) -> Result<String, MergeError> {
    let mut document: DocumentMut = text.parse().map_err(|error| syntax(text, &error))?;
    let list = table_in(document.as_table_mut(), servers, true)?;
    match list.get_mut(entry.name) {
        None => drop(list.insert(entry.name, Item::Table(table(entry)))),
        Some(there) => change(there, entry, force)?,
    }
    Ok(document.to_string())
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
    let object = there.as_table_like();
    let text = |key: &str| object?.get(key)?.as_str().map(str::to_owned);
    let change = entry.over(text, force)?;
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
            Value::InlineTable([(*key, text.as_str())].into_iter().collect())
        }
    }
}
