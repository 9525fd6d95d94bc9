//! The argument layer: forgives how models write arguments, never guesses what they mean.
//!
//! Forgiven: `"5"` where an integer is wanted, null for an absent optional, an object or array sent as a JSON
//! string, camelCase for snake_case, unknown extra keys (omitted, and reported in a note). Everything else is
//! `invalid_parameters` or `type_mismatch` with one line of what was wrong and the compact schema.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use zeph_schema::{Reading, Validator};

use crate::category::{ErrorCategory, ErrorPhase};
use crate::failure::{ToolFailure, one_line};
use crate::nearest::nearest;
use crate::schema::Schema;

mod coerce;
mod compact;
mod cost;
mod draft;
mod plain;

/// A tool's JSON Schema, with its validator compiled at the first call that needs it.
#[derive(Clone)]
pub struct Parameters(Arc<ParametersData>);

struct ParametersData {
    schema: Schema,
    /// Whether most values need no validator.
    is_plain: OnceLock<bool>,
    validator: OnceLock<Result<Validator, String>>,
}

/// Arguments that agree with the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// What the tool gets.
    pub values: Map<String, Value>,
    /// What the caller should know about how they were read, one sentence each.
    pub notes: Vec<String>,
}

/// A schema the host cannot use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSchema(pub String);

impl Parameters {
    /// Takes a JSON Schema.
    ///
    /// Errors: [`BadSchema`] when it is not an object schema, or checking values against it could take for ever.
    pub fn new(schema: Value) -> Result<Self, BadSchema> {
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        if !is_object {
            return Err(BadSchema(
                "the schema of a tool's arguments must have `\"type\": \"object\"`".to_owned(),
            ));
        }
        cost::check(&schema)?;
        Ok(Self::trusted(schema.into()))
    }

    /// Takes a JSON Schema that [`new`](Self::new) would take, without looking at it: one of the program itself, or one that was taken
    /// before.
    pub fn trusted(schema: Schema) -> Self {
        Self(Arc::new(ParametersData {
            schema,
            is_plain: OnceLock::new(),
            validator: OnceLock::new(),
        }))
    }

    /// Compiles the schema as the first call would, and keeps nothing of it: a tool that is never called costs no memory. Nor does a plain
    /// schema, which is right by what makes it plain: the library keeps what it checks schemas with, some 200 kB.
    ///
    /// Errors: [`BadSchema`] when no validator can be made of it.
    pub fn check(&self) -> Result<(), BadSchema> {
        if self.is_plain() {
            return Ok(());
        }
        compile(&self.0.schema).map(drop).map_err(BadSchema)
    }

    fn is_plain(&self) -> bool {
        let data = &*self.0;
        *data.is_plain.get_or_init(|| plain::is_plain(&data.schema))
    }

    /// The schema as the tool gave it.
    pub fn schema(&self) -> &Value {
        &self.0.schema
    }

    /// The schema on one line, for people and error messages: `{path: string, limit?: integer}`.
    pub fn compact(&self) -> String {
        compact::object(&self.0.schema)
    }

    /// Reads `arguments` against the schema.
    ///
    /// Errors: `type_mismatch` when a JSON type is wrong, `invalid_parameters` for everything else.
    pub fn read(&self, arguments: Value) -> Result<Arguments, ToolFailure> {
        let mut notes = Vec::new();
        let values = coerce::arguments(&self.0.schema, arguments, &mut notes)
            .map_err(|wrong| self.failure(wrong))?;
        let values = Value::Object(values);
        self.validate(&values)?;
        let Value::Object(values) = values else {
            unreachable!("bug: built as an object two lines above");
        };
        Ok(Arguments { values, notes })
    }

    fn validate(&self, values: &Value) -> Result<(), ToolFailure> {
        if self.is_plain() && plain::agrees(&self.0.schema, values) {
            return Ok(());
        }
        let validator = self
            .0
            .validator
            .get_or_init(|| compile(&self.0.schema))
            .as_ref()
            .map_err(|reason| {
                ToolFailure::new(
                    ErrorCategory::PermanentFailure,
                    ErrorPhase::ParamHandling,
                    format!("this tool's schema cannot be used: {reason}"),
                )
            })?;
        let Some(mismatch) = validator.mismatch(values) else {
            return Ok(());
        };
        let place = mismatch.pointer.trim_start_matches('/').replace('/', ".");
        let text = one_line(&mismatch.message, 300);
        Err(self.failure(ArgumentProblem {
            category: if mismatch.is_type {
                ErrorCategory::TypeMismatch
            } else {
                ErrorCategory::InvalidParameters
            },
            message: if place.is_empty() {
                text
            } else {
                format!("`{place}`: {text}")
            },
        }))
    }

    fn failure(&self, wrong: ArgumentProblem) -> ToolFailure {
        ToolFailure::new(
            wrong.category,
            ErrorPhase::ParamHandling,
            format!("{}; expected {}", wrong.message, self.compact()),
        )
    }
}

/// What is wrong with the arguments, before the schema is added to the sentence.
struct ArgumentProblem {
    category: ErrorCategory,
    message: String,
}

fn compile(schema: &Value) -> Result<Validator, String> {
    let reading = match draft::is_common(schema) {
        true => Reading::Draft7,
        false => Reading::Newest,
    };
    Validator::new(schema, reading).map_err(|reason| one_line(&reason, 300))
}

fn unknown_key_note(key: &str, properties: &Map<String, Value>) -> String {
    let shown = one_line(key, 60);
    match nearest(&shown, properties.keys().map(String::as_str)) {
        Some(near) => format!("ignored the unknown argument `{shown}` (did you mean `{near}`?)"),
        None => format!("ignored the unknown argument `{shown}`"),
    }
}

impl std::fmt::Debug for Parameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Parameters").field(&self.0.schema).finish()
    }
}

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.schema.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let schema = Value::deserialize(deserializer)?;
        Self::new(schema).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
