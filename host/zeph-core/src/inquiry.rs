//! What a tool has to know from the user before it can finish, and what the user answered. Pure.
//!
//! The questions are the words of a plugin: they are bounded, what cannot be seen is taken out, and their schemas are rebuilt of the
//! few keywords a form needs, so that any door can show them and check what comes back.

mod field;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::argument::Parameters;
use crate::category::{ErrorCategory, ErrorPhase};
use crate::failure::{ToolFailure, one_line};
use crate::id::ToolName;
use crate::text::{is_deceptive, plain_text};

pub use self::field::{Choice, choices, is_list};

/// Most times one call is made again because its tool asks, so that no tool can keep a user busy for ever.
pub const ROUNDS_MAX: u32 = 8;

/// Most questions asked at once.
pub const QUESTIONS_MAX: usize = 8;

/// Most bytes of the state that a tool keeps from a question to its answer (`ask.state` of the contract).
pub const STATE_BYTES_MAX: usize = 64 * 1024;

/// Most characters of a question's name.
const ID_CHARS_MAX: usize = 64;

/// Most characters of a question: a few sentences.
const MESSAGE_CHARS_MAX: usize = 1_000;

/// Most fields of one answer: a form on one screen.
const FIELDS_MAX: usize = 16;

/// Most bytes of the schema of one answer.
const SCHEMA_BYTES_MAX: usize = 16 * 1024;

/// Everything a tool asks at once, and what it wants back with the answers.
#[derive(Debug, Clone)]
pub struct Inquiry {
    questions: Vec<UserQuestion>,
    state: Option<Vec<u8>>,
}

/// One question.
#[derive(Debug, Clone)]
pub struct UserQuestion {
    id: String,
    message: String,
    schema: Parameters,
}

/// What the user does about a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserAction {
    /// Answers it.
    Accept,
    /// Does not want to answer.
    Decline,
    /// Wants the call to stop.
    Cancel,
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq)]
pub struct UserAnswer {
    /// The question's name.
    pub id: String,
    /// What the user does.
    pub action: UserAction,
    /// Valid against the question's schema; only of a question that is answered.
    pub content: Option<Map<String, Value>>,
}

/// Answers as they came in through a door, not yet trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenAnswers {
    /// What came out with the questions: it says which they were and which call asked them.
    pub state: String,
    /// In any order.
    pub answers: Vec<GivenAnswer>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenAnswer {
    /// The question's name.
    pub id: String,
    /// What the user does.
    pub action: UserAction,
    /// The answer itself, of a question that is answered.
    pub content: Option<Value>,
}

/// What makes a call one that is made again with answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Resumption {
    /// What the tool gets.
    pub answered: AnswerSet,
    /// How often the tool has asked, this answer included.
    pub round: u32,
    /// The one use of these answers.
    pub ticket: Uuid,
}

/// What a call that is made again brings along.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSet {
    /// One for every question, in their order.
    pub answers: Vec<UserAnswer>,
    /// What the tool said with the questions.
    pub state: Option<Vec<u8>>,
}

impl UserQuestion {
    /// A question as a plugin puts it. `schema` describes the answer: an object whose properties are strings, numbers,
    /// booleans or lists of values to choose from.
    ///
    /// Errors: one sentence for the plugin's author.
    pub fn new(id: String, message: &str, schema: Value) -> Result<Self, String> {
        let is_plain =
            (1..=ID_CHARS_MAX).contains(&id.chars().count()) && !id.chars().any(is_deceptive);
        if !is_plain {
            return Err(format!(
                "the name of a question must have 1 to {ID_CHARS_MAX} characters that can be seen"
            ));
        }
        let message = plain_text(message);
        if !(1..=MESSAGE_CHARS_MAX).contains(&message.chars().count()) {
            return Err(format!(
                "the question `{id}` must have 1 to {MESSAGE_CHARS_MAX} characters"
            ));
        }
        let schema = flat(&schema).map_err(|problem| format!("the question `{id}`: {problem}"))?;
        Ok(Self {
            id,
            message,
            schema,
        })
    }

    /// Its name, unique within the inquiry.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the user is asked, in the plugin's words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What an answer looks like.
    pub fn schema(&self) -> &Parameters {
        &self.schema
    }

    /// The first field that is meant for a secret, if there is one: its schema says `format: password` or `writeOnly`.
    pub fn secret_field(&self) -> Option<&str> {
        let properties = self.schema.schema().get("properties");
        let mut properties = properties.and_then(Value::as_object).into_iter().flatten();
        let is_secret = |field: &Value| {
            field.get("format") == Some(&Value::from("password"))
                || field.get("writeOnly") == Some(&Value::from(true))
        };
        let secret = properties.find(|(_, field)| is_secret(field));
        secret.map(|(name, _)| name.as_str())
    }

    /// The answer that consists of `content`.
    ///
    /// Errors: `invalid_parameters` or `type_mismatch`, with what is wrong.
    pub fn accept(&self, content: Value) -> Result<UserAnswer, ToolFailure> {
        let read = self.schema.read(content).map_err(|failure| ToolFailure {
            message: format!("the answer to `{}`: {}", self.id, failure.message),
            ..failure
        })?;
        Ok(UserAnswer {
            id: self.id.clone(),
            action: UserAction::Accept,
            content: Some(read.values),
        })
    }

    /// The answer without content.
    pub fn without(&self, action: UserAction) -> UserAnswer {
        UserAnswer {
            id: self.id.clone(),
            action,
            content: None,
        }
    }
}

impl Inquiry {
    /// Questions and the state that comes back with their answers.
    ///
    /// Errors: one sentence for the plugin's author: none or too many questions, one name twice, too much state.
    pub fn new(questions: Vec<UserQuestion>, state: Option<Vec<u8>>) -> Result<Self, String> {
        if !(1..=QUESTIONS_MAX).contains(&questions.len()) {
            let n = questions.len();
            return Err(format!(
                "it asks {n} questions at once; 1 to {QUESTIONS_MAX} can be asked"
            ));
        }
        for (idx, question) in questions.iter().enumerate() {
            if questions[..idx].iter().any(|other| other.id == question.id) {
                return Err(format!("it asks two questions named `{}`", question.id));
            }
        }
        let n_bytes = state.as_ref().map_or(0, Vec::len);
        if n_bytes > STATE_BYTES_MAX {
            return Err(format!(
                "the state of its questions has {n_bytes} bytes; the limit is {STATE_BYTES_MAX}"
            ));
        }
        Ok(Self { questions, state })
    }

    /// The questions, in the plugin's order.
    pub fn questions(&self) -> &[UserQuestion] {
        &self.questions
    }

    /// What the plugin wants back.
    pub fn state(&self) -> Option<&[u8]> {
        self.state.as_deref()
    }

    /// The answers, checked, with the state for the call that is made again.
    ///
    /// Errors: `invalid_parameters` or `type_mismatch`: a question is not answered, answered twice or unknown, or an answer does not
    ///         fit its schema.
    pub fn answered(&self, mut given: Vec<GivenAnswer>) -> Result<AnswerSet, ToolFailure> {
        let mut answers = Vec::new();
        for question in &self.questions {
            let place = given.iter().position(|answer| answer.id == question.id);
            let Some(place) = place else {
                return Err(wrong(format!(
                    "the question `{}` is not answered",
                    question.id
                )));
            };
            let answer = given.swap_remove(place);
            answers.push(match answer.action {
                UserAction::Accept => question.accept(answer.content.unwrap_or_default())?,
                action => question.without(action),
            });
        }
        match given.first() {
            None => Ok(AnswerSet {
                answers,
                state: self.state.clone(),
            }),
            Some(other) => Err(wrong(format!(
                "there is an answer too many, to `{}`",
                one_line(&other.id, ID_CHARS_MAX)
            ))),
        }
    }

    /// The failure of a call whose questions nobody answers.
    pub fn unanswered(&self, tool: &ToolName) -> ToolFailure {
        let questions = self.questions.iter();
        let questions: Vec<String> = questions
            .map(|question| one_line(&question.message, 200))
            .collect();
        let message = format!(
            "`{tool}` asks the user: {}; a person at a terminal can answer, or a program with an `answer` line",
            questions.join(" / ")
        );
        ToolFailure::new(
            ErrorCategory::ConfirmationRequired,
            ErrorPhase::Execution,
            message,
        )
    }
}

fn wrong(message: String) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::InvalidParameters,
        ErrorPhase::ParamHandling,
        message,
    )
}

/// The schema of a form, made of what is known of `schema` only.
fn flat(schema: &Value) -> Result<Parameters, String> {
    if schema.to_string().len() > SCHEMA_BYTES_MAX {
        return Err(format!("its schema has more than {SCHEMA_BYTES_MAX} bytes"));
    }
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    let properties = schema.get("properties").and_then(Value::as_object);
    let (true, Some(properties)) = (is_object, properties) else {
        return Err("its schema must be one of an object with `properties`".to_owned());
    };
    if !(1..=FIELDS_MAX).contains(&properties.len()) {
        return Err(format!("its answer must have 1 to {FIELDS_MAX} fields"));
    }
    let mut fields = Map::new();
    for (name, property) in properties {
        let is_plain = !name.is_empty()
            && name.chars().count() <= ID_CHARS_MAX
            && !name.chars().any(is_deceptive);
        if !is_plain {
            return Err(format!(
                "a field's name must have 1 to {ID_CHARS_MAX} characters that can be seen"
            ));
        }
        fields.insert(name.clone(), field::field(name, property)?);
    }
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&Value> = required.into_iter().flatten().collect();
    let is_field = |name: &&Value| name.as_str().is_some_and(|name| fields.contains_key(name));
    if !required.iter().all(is_field) {
        return Err("`required` names what is no field".to_owned());
    }
    let schema = serde_json::json!({
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": false,
    });
    let parameters = Parameters::new(schema).map_err(|error| error.to_string())?;
    parameters.check().map_err(|error| error.to_string())?;
    Ok(parameters)
}

#[cfg(test)]
mod tests;
