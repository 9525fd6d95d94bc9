//! The argument layer: forgives how models write arguments, never guesses what they mean.
//!
//! Forgiven: `"5"` where an integer is wanted, null for an absent optional that cannot be null, an object or array sent as a JSON
//! string, camelCase for snake_case, unknown extra keys (omitted, and reported in a note). Everything else is
//! `invalid_parameters` or `type_mismatch` with one line of what was wrong and the compact schema.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use zeph_schema::{Mismatch, Reading, Validator};

use crate::category::{ErrorCategory, ErrorPhase};
use crate::failure::{ToolFailure, one_line};
use crate::nearest::nearest;
use crate::schema::Schema;

mod coerce;
mod compact;
mod cost;
mod draft;
mod plain;

use self::coerce::{Coercion, Notes};
use self::cost::Weights;

/// Most parts of a value that is [quick](Parameters::is_quick) to read, and most bytes of its keys and of texts that may hold JSON: for each
/// key it is looked what was meant by it, and such a text may become a value of many parts.
const QUICK_PARTS: usize = 256;
const QUICK_BYTES: usize = 1024;

/// Most bytes of its other texts. They are passed over a few times at most, which takes a millisecond or so.
const QUICK_TEXT_BYTES: usize = 1 << 20;

/// A tool's JSON Schema, with its validator compiled at the first call that needs it.
#[derive(Clone)]
pub struct Parameters(Arc<ParametersData>);

struct ParametersData {
    schema: Schema,
    /// What it takes to check values.
    weights: OnceLock<Result<Weights, BadSchema>>,
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

/// Why a value does not count as one that agrees with a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// It does not.
    #[error("does not agree with the tool's own schema")]
    Mismatch,
    /// The check would take longer than its budget allows.
    #[error("would take too long to check against the tool's own schema")]
    TooLong,
    /// The schema cannot be used, for this reason.
    #[error("cannot be checked, since the tool's own schema cannot be used: {0}")]
    Unusable(String),
}

/// Whether a value is so small that reading it takes a moment, whatever is checked.
fn is_small(value: &Value) -> bool {
    let (mut n_parts, mut n_bytes, mut n_text_bytes) = (0, 0, 0);
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                n_bytes += text.len();
            }
            Value::String(text) => n_text_bytes += text.len(),
            Value::Array(items) if items.len() <= QUICK_PARTS => rest.extend(items),
            Value::Object(map) if map.len() <= QUICK_PARTS => {
                n_bytes += map.keys().map(String::len).sum::<usize>();
                rest.extend(map.values());
            }
            Value::Array(_) | Value::Object(_) => return false,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        n_parts += 1;
        let has_much_text = n_bytes > QUICK_BYTES || n_text_bytes > QUICK_TEXT_BYTES;
        if n_parts > QUICK_PARTS || has_much_text {
            return false;
        }
    }
    true
}

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
        cost::weights(&schema)?;
        Ok(Self::trusted(schema.into()))
    }

    /// Takes a JSON Schema that [`new`](Self::new) would take, without looking at it: one of the program itself, or one that was taken
    /// before.
    pub fn trusted(schema: Schema) -> Self {
        Self(Arc::new(ParametersData {
            schema,
            weights: OnceLock::new(),
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

    /// Whether to read or check `value` takes a moment only. Others are to be read where nothing else waits.
    pub fn is_quick(&self, value: &Value) -> bool {
        is_small(value) && self.weights().is_ok_and(|all| all.work(value).is_little())
    }

    /// Reads `arguments` against the schema. That may take seconds, see [`is_quick`](Self::is_quick). Unknown keys are omitted, unless the
    /// schema says that it takes them.
    ///
    /// Errors: `type_mismatch` when a JSON type is wrong, `invalid_parameters` for everything else, and when checking them would take
    /// too long.
    pub fn read(&self, arguments: Value) -> Result<Arguments, ToolFailure> {
        self.coerced(arguments, false)
    }

    /// Reads `arguments` against the schema of a tool whose author knows JSON Schema alone: unknown keys stay, unless the schema says
    /// `"additionalProperties": false`. That may take seconds, see [`is_quick`](Self::is_quick).
    ///
    /// Errors: `type_mismatch` when a JSON type is wrong, `invalid_parameters` for everything else, and when checking them would take
    /// too long.
    pub fn read_open(&self, arguments: Value) -> Result<Arguments, ToolFailure> {
        self.coerced(arguments, true)
    }

    fn coerced(&self, arguments: Value, is_open: bool) -> Result<Arguments, ToolFailure> {
        let mut coercion = Coercion {
            root: &self.0.schema,
            is_open,
            notes: Notes::default(),
        };
        let values = coercion
            .arguments(arguments)
            .map_err(|wrong| self.failure(wrong))?;
        let notes = coercion.notes.told();
        let values = Value::Object(values);
        self.validate(&values)?;
        let Value::Object(values) = values else {
            unreachable!("bug: built as an object two lines above");
        };
        Ok(Arguments { values, notes })
    }

    /// Checks `value` as it stands. That may take seconds, see [`is_quick`](Self::is_quick).
    ///
    /// Errors: it does not agree with the schema, or that cannot be told.
    pub fn agrees(&self, value: &Value) -> Result<(), Disagreement> {
        if self.weights()?.work(value).is_too_much() {
            return Err(Disagreement::TooLong);
        }
        let is_plain = self.is_plain() && plain::agrees(&self.0.schema, value);
        match is_plain || self.validator()?.accepts(value) {
            true => Ok(()),
            false => Err(Disagreement::Mismatch),
        }
    }

    fn weights(&self) -> Result<&Weights, Disagreement> {
        let data = &*self.0;
        let weights = data.weights.get_or_init(|| cost::weights(&data.schema));
        let weights = weights.as_ref();
        weights.map_err(|bad| Disagreement::Unusable(bad.0.clone()))
    }

    fn validator(&self) -> Result<&Validator, Disagreement> {
        let data = &*self.0;
        let validator = data.validator.get_or_init(|| compile(&data.schema));
        let validator = validator.as_ref();
        validator.map_err(|reason| Disagreement::Unusable(reason.clone()))
    }

    fn validate(&self, values: &Value) -> Result<(), ToolFailure> {
        let problem = match self.agrees(values) {
            Ok(()) => return Ok(()),
            Err(Disagreement::Mismatch) => self.mismatch(values),
            Err(Disagreement::TooLong) => ArgumentProblem {
                category: ErrorCategory::InvalidParameters,
                message: "the arguments would take too long to check: give fewer or shorter ones"
                    .to_owned(),
            },
            Err(Disagreement::Unusable(reason)) => {
                return Err(ToolFailure::new(
                    ErrorCategory::PermanentFailure,
                    ErrorPhase::ParamHandling,
                    format!("this tool's schema cannot be used: {reason}"),
                ));
            }
        };
        Err(self.failure(problem))
    }

    /// Where `value` does not agree, and how, on one line. `None`: it agrees, or has too much in it to say that. That may take
    /// seconds, see [`is_quick`](Self::is_quick).
    pub fn disagreement(&self, value: &Value) -> Option<String> {
        self.first_mismatch(value).as_ref().map(told)
    }

    fn first_mismatch(&self, value: &Value) -> Option<Mismatch> {
        let is_explained = self.weights().ok()?.work(value).is_explained();
        let validator = self.validator().ok().filter(|_| is_explained);
        validator?.mismatch(value)
    }

    /// What is wrong with values that do not agree.
    fn mismatch(&self, values: &Value) -> ArgumentProblem {
        let Some(mismatch) = self.first_mismatch(values) else {
            return ArgumentProblem {
                category: ErrorCategory::InvalidParameters,
                message:
                    "the arguments do not agree with the schema, and are too many to say where"
                        .to_owned(),
            };
        };
        ArgumentProblem {
            category: if mismatch.is_type {
                ErrorCategory::TypeMismatch
            } else {
                ErrorCategory::InvalidParameters
            },
            message: told(&mismatch),
        }
    }

    fn failure(&self, wrong: ArgumentProblem) -> ToolFailure {
        ToolFailure::new(
            wrong.category,
            ErrorPhase::ParamHandling,
            format!("{}; expected {}", wrong.message, self.compact()),
        )
    }
}

/// The place of a mismatch and what is wrong there.
fn told(mismatch: &Mismatch) -> String {
    let place = mismatch.pointer.trim_start_matches('/').replace('/', ".");
    let text = one_line(&mismatch.message, 300);
    if place.is_empty() {
        text
    } else {
        format!("`{place}`: {text}")
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
