//! One value against what its key takes: from parsed TOML or from the text of a variable or a flag.
//!
//! Messages have the form "found …, wanted …"; the caller adds place and key.

use std::ops::Range;

use toml::de::{DeArray, DeInteger, DeTable, DeValue};
use zeph_core::failure::one_line;

use super::keys::KeyKind;
use super::record;

/// Characters of a wrong value that a message shows, enough to recognise it.
const FOUND_CHARS_MAX: usize = 60;

/// A value that does not fit its key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The part of the text that does not fit, when it is not the whole value.
    pub(crate) span: Option<Range<usize>>,
    /// "found …, wanted …"
    pub(crate) message: String,
}

/// The value, when it is what `kind` takes.
pub(crate) fn typed(kind: &KeyKind, found: &DeValue<'_>) -> Result<toml::Value, Mismatch> {
    match (kind, found) {
        (KeyKind::Boolean, DeValue::Boolean(value)) => Ok(toml::Value::Boolean(*value)),
        (KeyKind::Integer { min, max }, DeValue::Integer(value)) => integer(value)
            .filter(|value| (min..=max).contains(&value))
            .map(toml::Value::Integer)
            .ok_or_else(|| mismatch(kind, found)),
        (KeyKind::Number { min, max }, DeValue::Integer(_) | DeValue::Float(_)) => number(found)
            .filter(|value| is_within(*value, *min, *max))
            .map(toml::Value::Float)
            .ok_or_else(|| mismatch(kind, found)),
        (KeyKind::Choice(one_of), DeValue::String(text)) => allowed_item(one_of, text, None),
        (KeyKind::Text, DeValue::String(text)) => Ok(toml::Value::String(text.to_string())),
        (KeyKind::TextList { one_of, items_max }, DeValue::Array(items)) => {
            short_enough(list(one_of, items)?, *items_max)
        }
        (
            KeyKind::IntegerList {
                min,
                max,
                items_max,
            },
            DeValue::Array(items),
        ) => short_enough(integers(*min, *max, items)?, *items_max),
        (KeyKind::Table, DeValue::Table(_)) | (KeyKind::Any, _) => any(found),
        (KeyKind::List { items_max }, DeValue::Array(_)) => short_enough(any(found)?, *items_max),
        (KeyKind::Record(record) | KeyKind::TextOr(record), DeValue::Table(table)) => {
            let (value, wrong) = record::read_one(record, table);
            match wrong {
                None => Ok(value),
                Some(wrong) => Err(Mismatch {
                    span: wrong.start.map(|start| start..start),
                    message: format!("{}{}", colon(wrong.at), wrong.message),
                }),
            }
        }
        (KeyKind::TextOr(_), DeValue::String(text)) => Ok(toml::Value::String(text.to_string())),
        (KeyKind::Map { of, names_max }, DeValue::Table(table)) => map(of, *names_max, table),
        (KeyKind::Records { record, items_max }, DeValue::Array(items)) => {
            let records = record::read(record, *items_max, items);
            match records.wrong.into_iter().next() {
                None => Ok(toml::Value::Array(records.values)),
                Some(wrong) => Err(Mismatch {
                    span: wrong.start.map(|start| start..start),
                    message: format!("{}{}", colon(wrong.at), wrong.message),
                }),
            }
        }
        _ => Err(mismatch(kind, found)),
    }
}

/// A table whose keys are names.
fn map(of: &KeyKind, names_max: usize, table: &DeTable<'_>) -> Result<toml::Value, Mismatch> {
    if table.len() > names_max {
        let message = format!("found {} names, wanted at most {names_max}", table.len());
        return Err(Mismatch {
            span: None,
            message,
        });
    }
    let members = table.iter().map(|(name, item)| {
        let value = typed(of, item.get_ref()).map_err(|wrong| Mismatch {
            span: wrong.span.or(Some(name.span())),
            message: format!(
                "`{}`: {}",
                one_line(name.get_ref(), FOUND_CHARS_MAX),
                wrong.message
            ),
        })?;
        Ok((name.get_ref().to_string(), value))
    });
    Ok(toml::Value::Table(members.collect::<Result<_, _>>()?))
}

/// A value that may be anything, as it stands.
fn any(found: &DeValue<'_>) -> Result<toml::Value, Mismatch> {
    let wrong = |wanted| Mismatch {
        span: None,
        message: format!("found {}, wanted {wanted}", self::found(found)),
    };
    Ok(match found {
        DeValue::String(text) => toml::Value::String(text.to_string()),
        DeValue::Boolean(value) => toml::Value::Boolean(*value),
        DeValue::Datetime(value) => toml::Value::Datetime(*value),
        DeValue::Integer(value) => {
            let value = integer(value).ok_or_else(|| wrong("a number of 64 bits"))?;
            toml::Value::Integer(value)
        }
        DeValue::Float(value) => match value.as_str().parse::<f64>() {
            Ok(value) if value.is_finite() => toml::Value::Float(value),
            _ => return Err(wrong("a finite number")),
        },
        DeValue::Array(items) => {
            let items = items
                .iter()
                .map(|item| any(item.get_ref()).map_err(at(item)));
            toml::Value::Array(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => {
            let members = table.iter().map(|(name, item)| {
                let item = any(item.get_ref()).map_err(at(item))?;
                Ok((name.get_ref().to_string(), item))
            });
            toml::Value::Table(members.collect::<Result<_, _>>()?)
        }
    })
}

/// Says where a part of a value stands, unless a part of that part is known.
fn at<T>(part: &toml::Spanned<T>) -> impl FnOnce(Mismatch) -> Mismatch {
    let span = part.span();
    |wrong| Mismatch {
        span: wrong.span.or(Some(span)),
        ..wrong
    }
}

/// What stands before a message about a part of a value.
fn colon(at: String) -> String {
    if at.is_empty() {
        at
    } else {
        format!("`{at}`: ")
    }
}

fn integers(min: i64, max: i64, items: &DeArray<'_>) -> Result<toml::Value, Mismatch> {
    let kind = KeyKind::Integer { min, max };
    items
        .iter()
        .map(|item| {
            typed(&kind, item.get_ref()).map_err(|wrong| Mismatch {
                span: Some(item.span()),
                ..wrong
            })
        })
        .collect::<Result<Vec<_>, _>>()
        .map(toml::Value::Array)
}

/// The value a variable or a flag says: TOML where the text is TOML of the right type, else the text itself.
///
/// Shape: a list is a TOML array or is split at commas, its items trimmed; the empty text is the empty list.
pub(crate) fn from_text(kind: &KeyKind, text: &str) -> Result<toml::Value, Mismatch> {
    let parsed = DeValue::parse(text.trim()).ok();
    let parsed = parsed.as_ref().map(|value| value.get_ref());
    let bare = || DeValue::String(text.into());
    match kind {
        KeyKind::Boolean
        | KeyKind::Integer { .. }
        | KeyKind::Number { .. }
        | KeyKind::Table
        | KeyKind::Record(_)
        | KeyKind::Map { .. }
        | KeyKind::TextOr(_)
        | KeyKind::Any => typed(kind, parsed.unwrap_or(&bare())),
        KeyKind::Text | KeyKind::Choice(_) => match parsed {
            Some(DeValue::String(_)) => typed(kind, parsed.unwrap_or(&bare())),
            _ => typed(kind, &bare()),
        },
        KeyKind::TextList { one_of, items_max } => {
            let items = match parsed {
                Some(DeValue::Array(items)) => list(one_of, items)?,
                _ => split(one_of, text)?,
            };
            short_enough(items, *items_max)
        }
        KeyKind::Records { .. } | KeyKind::List { .. } => typed(kind, parsed.unwrap_or(&bare())),
        // A list without brackets, such as `1,2`.
        KeyKind::IntegerList { .. } => match parsed {
            Some(DeValue::Array(_)) => typed(kind, parsed.unwrap_or(&bare())),
            _ => match DeValue::parse(&format!("[{}]", text.trim())) {
                Ok(list) => typed(kind, list.get_ref()),
                Err(_) => typed(kind, &bare()),
            },
        },
    }
}

fn split(one_of: &[&str], text: &str) -> Result<toml::Value, Mismatch> {
    text.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(|item| allowed_item(one_of, item, None))
        .collect::<Result<Vec<_>, _>>()
        .map(toml::Value::Array)
}

fn list(one_of: &[&str], items: &DeArray<'_>) -> Result<toml::Value, Mismatch> {
    items
        .iter()
        .map(|item| match item.get_ref() {
            DeValue::String(text) => allowed_item(one_of, text, Some(item.span())),
            other => Err(Mismatch {
                span: Some(item.span()),
                message: format!("found {}, wanted a string", found(other)),
            }),
        })
        .collect::<Result<Vec<_>, _>>()
        .map(toml::Value::Array)
}

fn short_enough(items: toml::Value, items_max: usize) -> Result<toml::Value, Mismatch> {
    let n_items = items.as_array().map_or(0, Vec::len);
    if n_items <= items_max {
        return Ok(items);
    }
    let message = format!("found {n_items} items, wanted at most {items_max}");
    Err(Mismatch {
        span: None,
        message,
    })
}

fn allowed_item(
    one_of: &[&str],
    text: &str,
    span: Option<Range<usize>>,
) -> Result<toml::Value, Mismatch> {
    if one_of.is_empty() || one_of.contains(&text) {
        return Ok(toml::Value::String(text.to_owned()));
    }
    let shown = one_line(text, FOUND_CHARS_MAX);
    let message = format!("found the string \"{shown}\", wanted {}", quoted(one_of));
    Err(Mismatch { span, message })
}

fn mismatch(kind: &KeyKind, value: &DeValue<'_>) -> Mismatch {
    let message = format!("found {}, wanted {}", found(value), wanted(kind));
    Mismatch {
        span: None,
        message,
    }
}

/// What a key takes, in words.
pub(crate) fn wanted(kind: &KeyKind) -> String {
    match kind {
        KeyKind::Boolean => "true or false".to_owned(),
        KeyKind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        KeyKind::Number {
            min: i64::MIN,
            max: i64::MAX,
        } => "a number".to_owned(),
        KeyKind::Number { min, max } => format!("a number from {min} to {max}"),
        KeyKind::Text => "a string".to_owned(),
        KeyKind::Choice(one_of) => quoted(one_of),
        KeyKind::Table | KeyKind::Record(_) | KeyKind::Map { .. } => "a table".to_owned(),
        KeyKind::TextOr(_) => "a string or a table".to_owned(),
        KeyKind::Any => "any value".to_owned(),
        KeyKind::List { .. } => "a list".to_owned(),
        KeyKind::Records { .. } => "a list of tables".to_owned(),
        KeyKind::TextList { one_of: [], .. } => "a list of strings".to_owned(),
        KeyKind::TextList { one_of, .. } => format!("a list of {}", quoted(one_of)),
        KeyKind::IntegerList { min, max, .. } => {
            format!("a list of whole numbers from {min} to {max}")
        }
    }
}

/// A value in words, on one line.
pub(crate) fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string \"{}\"", one_line(text, FOUND_CHARS_MAX)),
        DeValue::Integer(value) => one_line(&value.to_string(), FOUND_CHARS_MAX),
        DeValue::Float(value) => one_line(value.as_str(), FOUND_CHARS_MAX),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(value) => format!("the date {value}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn integer(value: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(value.as_str(), value.radix()).ok()
}

/// A number with or without a fraction.
fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(value) => integer(value)?.to_string().parse().ok(),
        DeValue::Float(value) => value.as_str().replace('_', "").parse().ok(),
        _ => None,
    }
}

/// Whether a number is between bounds, which are small enough to be told exactly. Where there are none any number is, one that is not
/// finite too.
#[expect(
    clippy::cast_precision_loss,
    reason = "bounds of keys are far below 2^53"
)]
fn is_within(value: f64, min: i64, max: i64) -> bool {
    let is_unbounded = (min, max) == (i64::MIN, i64::MAX);
    is_unbounded || (min as f64..=max as f64).contains(&value)
}

fn quoted(items: &[&str]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("\"{item}\"")).collect();
    quoted.join(", ")
}
