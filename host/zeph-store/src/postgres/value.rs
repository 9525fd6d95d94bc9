//! Values of rows and statements.

use std::borrow::Cow;
use std::error::Error;
use std::str::FromStr;

use bytes::BytesMut;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type};

use crate::operations::{OperationFault, Outcome};

/// The types that columns have here, the most frequent first.
const TYPES: [Type; 9] = [
    Type::TEXT,
    Type::INT8,
    Type::BOOL,
    Type::BYTEA,
    Type::INT4,
    Type::FLOAT8,
    Type::TEXT_ARRAY,
    Type::INT8_ARRAY,
    Type::BYTEA_ARRAY,
];

/// The type of a value, by what it can be written as.
pub(super) fn type_of(value: &(dyn ToSql + Sync)) -> Type {
    let mut scratch = BytesMut::new();
    let mut is_type = |of_column: &&Type| {
        scratch.clear();
        value.to_sql_checked(of_column, &mut scratch).is_ok()
    };
    TYPES
        .iter()
        .find(&mut is_type)
        .cloned()
        .unwrap_or(Type::UNKNOWN)
}

/// The values with their types, for statements that are not prepared.
pub(super) fn typed<'a>(
    values: &'a [&'a (dyn ToSql + Sync)],
) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    let typed = values.iter().map(|value| (*value, type_of(*value)));
    typed.collect()
}

/// A value as the server can keep it.
#[derive(Debug)]
pub(super) struct Storable<'a>(pub(super) &'a (dyn ToSql + Sync));

/// What stands in a text for a zero byte, which no text of the server can hold.
const SUBSTITUTE: char = '\u{1a}';

/// A text as it will be read back.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', SUBSTITUTE.encode_utf8(&mut [0; 4]))),
        false => Cow::Borrowed(text),
    }
}

impl ToSql for Storable<'_> {
    fn to_sql(&self, of_column: &Type, out: &mut BytesMut) -> Written {
        self.to_sql_checked(of_column, out)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, of_column: &Type) -> Format {
        self.0.encode_format(of_column)
    }

    fn to_sql_checked(&self, of_column: &Type, out: &mut BytesMut) -> Written {
        let from = out.len();
        let is_null = self.0.to_sql_checked(of_column, out)?;
        if *of_column == Type::TEXT {
            let zeros = out.iter_mut().skip(from).filter(|byte| **byte == 0);
            zeros.for_each(|byte| *byte = SUBSTITUTE as u8);
        }
        Ok(is_null)
    }
}

type Written = Result<IsNull, Box<dyn Error + Sync + Send>>;

/// A column.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Outcome<T> {
    Ok(row.try_get(column)?)
}

/// A column of text that says what it is.
pub(super) fn parsed<T>(row: &Row, column: usize) -> Outcome<T>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    let text: &str = get(row, column)?;
    text.parse().map_err(|error| unreadable(column, error))
}

/// A column that counts.
pub(super) fn count(row: &Row, column: usize) -> Outcome<u64> {
    let n: i64 = get(row, column)?;
    Ok(u64::try_from(n).unwrap_or(0))
}

/// A column of JSON; nothing when it is null, or was written by a program that knows more than this one.
pub(super) fn from_json<T: DeserializeOwned>(row: &Row, column: usize) -> Outcome<Option<T>> {
    let text: Option<&str> = get(row, column)?;
    Ok(text.and_then(|text| serde_json::from_str(text).ok()))
}

/// The word for a value of an enum, as in JSON.
pub(super) fn label<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    json.trim_matches('"').to_owned()
}

/// A column that holds such a word.
pub(super) fn labelled<T: DeserializeOwned>(row: &Row, column: usize) -> Outcome<T> {
    let text: String = get(row, column)?;
    let value = serde_json::from_value(serde_json::Value::String(text));
    value.map_err(|error| unreadable(column, error))
}

/// A column that holds what no program of ours has written.
pub(super) fn unreadable(
    column: usize,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> OperationFault {
    let error = error.into();
    OperationFault::Database(format!("column {column} cannot be read: {error}").into())
}
