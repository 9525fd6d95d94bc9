//! JSON Schemas that are made or read when they are first looked at.
//!
//! A process for one call knows many tools and looks at the schema of one.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

/// A JSON Schema. Clones share it.
#[derive(Clone)]
pub struct Schema(Arc<LazyValue>);

type LazyValue = LazyLock<Value, Box<dyn FnOnce() -> Value + Send>>;

impl Schema {
    /// One that is made when it is first looked at.
    pub fn later(make: impl FnOnce() -> Value + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }

    /// One whose text is read when it is first looked at. A text that is not JSON is a schema that nothing fits.
    pub fn of_text(text: String) -> Self {
        Self::later(move || {
            serde_json::from_str(&text).unwrap_or_else(|_| json!({"type": "object", "not": {}}))
        })
    }
}

impl Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl From<Value> for Schema {
    fn from(schema: Value) -> Self {
        Self::later(move || schema)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}
