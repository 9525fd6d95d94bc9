//! What `build.rs` made of `config/schema.json` and `config/default.toml`: the keys, and the built-in layer.

use toml::Value;

use super::keys::{Key, KeyKind};
use super::record::{ConfigRecord, Field};

/// What `config/default.toml` says of one key.
#[derive(Debug)]
pub(crate) struct Default {
    /// Dotted.
    pub(crate) key: &'static str,
    pub(crate) value: DefaultValue,
    /// Its line in the file, counted from 1.
    pub(crate) line: usize,
}

/// A value that needs no work before the program runs.
#[derive(Debug)]
pub(crate) enum DefaultValue {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(&'static str),
    List(&'static [Self]),
}

impl DefaultValue {
    /// The value as the layers hold it.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Integer(value) => Value::Integer(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Text(text) => Value::String((*text).to_owned()),
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/known.rs"));
