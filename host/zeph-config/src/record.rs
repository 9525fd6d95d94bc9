//! Lists of tables, such as rules: each table against the fields it may have, with the place of every field.
//!
//! Everything that is wrong in a list is found at once, up to a limit. Nothing is compiled here.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Value;
use toml::de::{DeArray, DeTable, DeValue};
use zeph_core::failure::one_line;
use zeph_core::nearest::nearest;

use super::keys::KeyKind;
use super::value;

/// What is wrong in one list that is told. With more of it wrong, another kind of list was meant.
const WRONG_MAX: usize = 20;

/// Characters of an unknown field that a message shows.
const FIELD_CHARS_MAX: usize = 100;

/// The fields of the tables in a list, sorted by name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigRecord {
    pub(crate) fields: &'static [Field],
}

/// One field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: KeyKind,
    pub(crate) is_required: bool,
}

/// What one list says.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// A table each.
    pub(crate) values: Vec<Value>,
    /// Where each stands, in the order of `values`.
    pub(crate) spots: Vec<Spots>,
    pub(crate) wrong: Vec<RecordProblem>,
}

/// Where one table stands: bytes from the beginning of the text.
#[derive(Debug)]
pub(crate) struct Spots {
    pub(crate) start: usize,
    pub(crate) fields: BTreeMap<String, usize>,
}

/// One thing that is wrong in a list.
#[derive(Debug)]
pub(crate) struct RecordProblem {
    /// What follows the key: `[0].effect`.
    pub(crate) at: String,
    pub(crate) start: Option<usize>,
    pub(crate) message: String,
}

/// Reads a list of at most `items_max` tables.
pub(crate) fn read(record: &ConfigRecord, items_max: usize, items: &DeArray<'_>) -> Records {
    let mut records = Records::default();
    if items.len() > items_max {
        records.wrong.push(RecordProblem {
            at: String::new(),
            start: None,
            message: format!("found {} items, wanted at most {items_max}", items.len()),
        });
        return records;
    }
    for (idx, item) in items.iter().enumerate() {
        let at = format!("[{idx}]");
        match item.get_ref() {
            DeValue::Table(table) => records.table(record, &at, item.span().start, table),
            other => records.wrong(
                at,
                item.span(),
                format!("found {}, wanted a table", value::found(other)),
            ),
        }
    }
    records.wrong.truncate(WRONG_MAX);
    records
}

/// Reads one table: what it says, and the first thing that is wrong in it.
pub(crate) fn read_one(
    record: &ConfigRecord,
    table: &DeTable<'_>,
) -> (Value, Option<RecordProblem>) {
    let mut records = Records::default();
    // A field stands by itself in a message, without the dot before it.
    records.table(record, "", 0, table);
    let value = records.values.pop().unwrap_or(Value::Boolean(false));
    let wrong = records.wrong.into_iter().next().map(|wrong| RecordProblem {
        at: wrong.at.trim_start_matches('.').to_owned(),
        // A field that is missing stands nowhere.
        start: wrong.start.filter(|start| *start > 0),
        message: wrong.message,
    });
    (value, wrong)
}

/// Reads one table that is the value of a key, `start` bytes after the beginning of the text.
pub(crate) fn read_table(record: &ConfigRecord, start: usize, table: &DeTable<'_>) -> Records {
    let mut records = Records::default();
    records.table(record, "", start, table);
    records.wrong.truncate(WRONG_MAX);
    records
}

impl Records {
    fn table(&mut self, record: &ConfigRecord, at: &str, start: usize, table: &DeTable<'_>) {
        let mut found = toml::Table::new();
        let mut fields = BTreeMap::new();
        for (name, value) in table {
            let field = name.get_ref().as_ref();
            let Some(known) = record.field(field) else {
                if self.wrong.len() < WRONG_MAX {
                    let message = record.unknown(field);
                    self.wrong(at.to_owned(), name.span(), message);
                }
                continue;
            };
            match value::typed(&known.kind, value.get_ref()) {
                Ok(value) => {
                    found.insert(field.to_owned(), value);
                    fields.insert(field.to_owned(), name.span().start);
                }
                Err(wrong) => {
                    let span = wrong.span.unwrap_or(name.span());
                    self.wrong(format!("{at}.{field}"), span, wrong.message);
                }
            }
        }
        for Field { name, .. } in record.fields.iter().filter(|field| field.is_required) {
            if !table.iter().any(|(found, _)| found.get_ref() == name) {
                let message = format!("`{name}` is missing");
                self.wrong(at.to_owned(), start..start, message);
            }
        }
        self.values.push(Value::Table(found));
        self.spots.push(Spots { start, fields });
    }

    fn wrong(&mut self, at: String, span: Range<usize>, message: String) {
        self.wrong.push(RecordProblem {
            at,
            start: Some(span.start),
            message,
        });
    }
}

impl ConfigRecord {
    fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    fn unknown(&self, field: &str) -> String {
        let field = one_line(field, FIELD_CHARS_MAX);
        let names: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
        match nearest(&field, names.iter().copied()) {
            Some(meant) => format!("unknown key `{field}`; did you mean `{meant}`?"),
            None => format!("unknown key `{field}`; the keys are: {}", names.join(", ")),
        }
    }
}
