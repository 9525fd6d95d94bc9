//! One line of input: a call, a cancel, or what is wrong with it.
//!
//! A call is `{"id": 1, "tool": "read", "params": {"path": "README.md"}}`. Nothing here looks at the arguments: that is
//! the line every call follows. Pure.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use zeph_core::failure::one_line;
use zeph_core::inquiry::{GivenAnswer, GivenAnswers, UserAction};
use zeph_core::nearest::nearest;

/// What a good line asks for.
#[derive(Debug)]
pub(crate) enum LineRequest {
    /// Make a call.
    Call(CallRequest),
    /// End every running call with this id.
    Cancel(RequestId),
    /// Begin something without a call.
    Begin(StreamDefaults),
}

/// What a line says of those that follow it.
#[derive(Debug, Default)]
pub(crate) struct StreamDefaults {
    /// The turn that begins: what the last one left behind is told.
    pub(crate) turn: Option<TurnOf>,
    /// Who makes the calls that name nobody.
    pub(crate) caller_id: Option<String>,
    /// What the user said. From then on a tool asks before it reaches an address that stands nowhere.
    pub(crate) user: Option<String>,
}

/// The turn a line belongs to, as its caller names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnOf {
    /// The caller's name for it: the same name as before goes on with the turn.
    pub(crate) name: String,
    /// The goal that is pursued in it.
    pub(crate) goal_id: Option<String>,
    /// The skill that is used in it.
    pub(crate) skill_name: Option<String>,
}

/// A call as asked for.
#[derive(Debug)]
pub(crate) struct CallRequest {
    /// Comes back with the answer.
    pub(crate) id: Option<RequestId>,
    /// The tool's name as given.
    pub(crate) tool: String,
    /// The arguments as given; null when there are none.
    pub(crate) arguments: Value,
    /// Answers to what the tool asked when the same call was made before.
    pub(crate) answers: Option<GivenAnswers>,
    /// The turn it belongs to; none for the one that goes on.
    pub(crate) turn: Option<TurnOf>,
    /// Who makes it; none for the caller of the stream.
    pub(crate) caller_id: Option<String>,
    /// What the caller should know about how the line was read, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// A line that asks for nothing that can be done.
#[derive(Debug)]
pub(crate) struct Invalid {
    /// The id, when the line has a readable one.
    pub(crate) id: Option<RequestId>,
    /// What is wrong, on one line.
    pub(crate) message: String,
}

/// The caller's name for a request: any JSON value, given back letter by letter.
#[derive(Debug, Clone)]
pub(crate) struct RequestId {
    raw: Box<RawValue>,
    canonical: String,
}

impl RequestId {
    fn new(raw: Box<RawValue>) -> Self {
        let canonical = match serde_json::from_str::<Value>(raw.get()) {
            Ok(value) => value.to_string(),
            // A number or a nesting beyond what can be compared by value: compared by letter.
            Err(_) => raw.get().to_owned(),
        };
        Self { raw, canonical }
    }

    /// The id as it was written.
    pub(crate) fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// Whether both are the same JSON value.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

/// How a request looks, for messages.
const EXAMPLE: &str = r#"{"id": 1, "tool": "read", "params": {"path": "README.md"}}"#;

/// The keys of a request.
pub(super) const KEYS: [&str; 11] = [
    "id",
    "tool",
    "params",
    "arguments",
    "cancel",
    "turn",
    "goal_id",
    "skill_name",
    "caller_id",
    "answer",
    "user",
];

/// Characters of the name of a turn, a goal, a skill or a caller: an identifier, not a text.
pub(super) const NAME_CHARS_MAX: usize = 128;

/// Characters of a caller's text that a message shows.
const SHOWN_CHARS_MAX: usize = 60;

/// Reads one line.
///
/// Shape: any bytes → exactly one result. Columns in messages count characters from 1.
pub(crate) fn decode(line: &[u8]) -> Result<LineRequest, Invalid> {
    let mut fields = Fields::default();
    let read = match std::str::from_utf8(line) {
        Err(error) => Err(not_utf8(line, &error)),
        Ok(text) => fields.read(text),
    };
    let read = read.and_then(|()| fields.request());
    read.map_err(|message| Invalid {
        id: fields.id(),
        message,
    })
}

/// The parts of a line, as far as they could be read.
#[derive(Default)]
struct Fields {
    known: [Option<Box<RawValue>>; KEYS.len()],
    unknown: Vec<String>,
}

/// Unknown keys that are named; the rest is only counted by their effect: they are ignored.
const UNKNOWN_KEYS_MAX: usize = 5;

impl Fields {
    fn read(&mut self, text: &str) -> Result<(), String> {
        let mut json = serde_json::Deserializer::from_str(text);
        self.deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|error| not_json(text, &error))
    }

    fn known(&self, key: &str) -> Option<&RawValue> {
        let idx = KEYS.iter().position(|known| *known == key)?;
        self.known[idx].as_deref()
    }

    fn id(&self) -> Option<RequestId> {
        let raw = self.known("id")?;
        Some(RequestId::new(raw.to_owned()))
    }

    fn request(&self) -> Result<LineRequest, String> {
        if let Some(id) = self.known("cancel") {
            return match self.known("tool") {
                None => Ok(LineRequest::Cancel(RequestId::new(id.to_owned()))),
                Some(_) => {
                    Err("a line is a call (`tool`) or a cancel (`cancel`), not both".to_owned())
                }
            };
        }
        let turn = self.turn()?;
        let caller_id = self.name("caller_id")?;
        let user = self.user()?;
        let begins = turn.is_some() || user.is_some() || self.names_a_caller_alone();
        if self.known("tool").is_none() && begins {
            return Ok(LineRequest::Begin(StreamDefaults {
                turn,
                caller_id,
                user,
            }));
        }
        if user.is_some() {
            return Err("`user` stands on a line without a call, before it".to_owned());
        }
        Ok(LineRequest::Call(CallRequest {
            id: self.id(),
            turn,
            caller_id,
            tool: self.tool()?,
            arguments: self.arguments()?,
            answers: self.answers()?,
            notes: self
                .unknown
                .iter()
                .map(|key| unknown_key_note(key))
                .collect(),
        }))
    }

    /// Whether the line names a caller and nothing that belongs to a call, which would want an answer.
    fn names_a_caller_alone(&self) -> bool {
        let is_given = |key: &&str| self.known(key).is_some();
        is_given(&"caller_id") && !["id", "params", "arguments"].iter().any(is_given)
    }

    fn turn(&self) -> Result<Option<TurnOf>, String> {
        let goal_id = self.name("goal_id")?;
        let skill_name = self.name("skill_name")?;
        let Some(name) = self.name("turn")? else {
            return match (goal_id, skill_name) {
                (None, None) => Ok(None),
                _ => Err(
                    "`goal_id` and `skill_name` belong to a turn: name it with `turn`".to_owned(),
                ),
            };
        };
        Ok(Some(TurnOf {
            name,
            goal_id,
            skill_name,
        }))
    }

    /// What the user said; null is nothing.
    fn user(&self) -> Result<Option<String>, String> {
        let Some(raw) = self.known("user") else {
            return Ok(None);
        };
        match value(raw, "user")? {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            _ => Err("`user` must be a string: what the user said".to_owned()),
        }
    }

    /// An identifier of the caller's; null is none.
    fn name(&self, key: &str) -> Result<Option<String>, String> {
        let Some(raw) = self.known(key) else {
            return Ok(None);
        };
        match value(raw, key)? {
            Value::Null => Ok(None),
            Value::String(name) if is_name(&name) => Ok(Some(name)),
            _ => Err(format!(
                "`{key}` must be a string of 1 to {NAME_CHARS_MAX} characters, none of them a control character"
            )),
        }
    }

    fn tool(&self) -> Result<String, String> {
        let Some(raw) = self.known("tool") else {
            return Err(format!("`tool` is missing; write {EXAMPLE}"));
        };
        match value(raw, "tool")? {
            Value::String(tool) => Ok(tool),
            other => {
                let shown = one_line(&other.to_string(), SHOWN_CHARS_MAX);
                Err(format!("`tool` must be a string, not {shown}"))
            }
        }
    }

    fn answers(&self) -> Result<Option<GivenAnswers>, String> {
        let Some(raw) = self.known("answer") else {
            return Ok(None);
        };
        let answers: Option<RawAnswers> = serde_json::from_str(raw.get())
            .map_err(|error| format!("`answer`: {}", without_place(&error)))?;
        Ok(answers.map(GivenAnswers::from))
    }

    fn arguments(&self) -> Result<Value, String> {
        match (self.known("params"), self.known("arguments")) {
            (None, None) => Ok(Value::Null),
            (Some(raw), None) => value(raw, "params"),
            (None, Some(raw)) => value(raw, "arguments"),
            (Some(_), Some(_)) => {
                Err("`params` and `arguments` are the same thing; give one".to_owned())
            }
        }
    }
}

/// The answers to a tool's questions, exactly.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Answers")]
pub(super) struct RawAnswers {
    /// As it came with the questions.
    state: String,
    /// One for each question.
    answers: Vec<RawAnswer>,
}

/// The answer to one question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Answer")]
struct RawAnswer {
    /// The question.
    id: String,
    /// What the user did.
    #[serde(default)]
    action: RawAction,
    /// What the user said, where that was accepted: it agrees with the schema of the question.
    content: Option<Value>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "UserAction")]
enum RawAction {
    #[default]
    Accept,
    Decline,
    Cancel,
}

impl From<RawAnswers> for GivenAnswers {
    fn from(RawAnswers { state, answers }: RawAnswers) -> Self {
        let answers = answers.into_iter().map(|answer| GivenAnswer {
            id: answer.id,
            action: match answer.action {
                RawAction::Accept => UserAction::Accept,
                RawAction::Decline => UserAction::Decline,
                RawAction::Cancel => UserAction::Cancel,
            },
            content: answer.content,
        });
        Self {
            state,
            answers: answers.collect(),
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_CHARS_MAX).contains(&name.chars().count()) && !name.chars().any(char::is_control)
}

/// Reads a part whose syntax is known to be right: only its depth or a number in it can be too large.
fn value(raw: &RawValue, key: &str) -> Result<Value, String> {
    serde_json::from_str(raw.get()).map_err(|error| format!("`{key}`: {}", without_place(&error)))
}

impl<'de> DeserializeSeed<'de> for &mut Fields {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Fields {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object such as {EXAMPLE}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let Some(idx) = KEYS.iter().position(|known| *known == key) else {
                map.next_value::<IgnoredAny>()?;
                if self.unknown.len() < UNKNOWN_KEYS_MAX {
                    self.unknown.push(key);
                }
                continue;
            };
            let value = map.next_value()?;
            if self.known[idx].replace(value).is_some() {
                return Err(serde::de::Error::custom(format!(
                    "the key `{key}` occurs twice"
                )));
            }
        }
        Ok(())
    }
}

fn unknown_key_note(key: &str) -> String {
    let shown = one_line(key, SHOWN_CHARS_MAX);
    match nearest(&shown, KEYS) {
        Some(near) => format!("ignored the unknown key `{shown}` (did you mean `{near}`?)"),
        None => format!("ignored the unknown key `{shown}`"),
    }
}

fn not_utf8(line: &[u8], error: &std::str::Utf8Error) -> String {
    let column = column_of(&String::from_utf8_lossy(&line[..error.valid_up_to()]));
    format!("the line is not UTF-8 at column {column}")
}

fn not_json(text: &str, error: &serde_json::Error) -> String {
    // A line has no line feed, so the parser's column is a count of bytes from the start.
    let n_bytes = text.floor_char_boundary(error.column().saturating_sub(1));
    let column = column_of(&text[..n_bytes]);
    let message = without_place(error);
    let is_object = text.trim_start().starts_with('{');
    match error.classify() {
        _ if !is_object => format!("not a JSON object; write {EXAMPLE}"),
        serde_json::error::Category::Data => format!("column {column}: {message}"),
        _ => format!("not JSON at column {column}: {message}"),
    }
}

/// The column that follows `before`, in characters from 1.
fn column_of(before: &str) -> usize {
    before.chars().count() + 1
}

/// The parser's sentence without its place.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(message, _)| message);
    one_line(message, 300)
}

#[cfg(test)]
mod tests;
