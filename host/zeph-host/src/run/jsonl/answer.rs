//! One line of output: what became of a call, as JSON.
//!
//! The same object is what `zeph-host call --output json` prints. The only file that knows its form. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::exit::CommandExit;
use zeph_core::failure::ToolFailure;
use zeph_core::id::CallId;
use zeph_core::output::{Content, FileLocation, Outcome, ResourceBody};

use super::request::RequestId;
use crate::calls::CallReport;
use crate::questions::SealedInquiry;

/// How a request ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The tool did its work.
    Ok,
    /// The call failed.
    Failed,
    /// A rule or a grant forbids it, or a person has to agree first.
    Refused,
    /// It was cancelled.
    Cancelled,
    /// The request itself is malformed; nothing was tried.
    Invalid,
}

impl Status {
    /// The status of a call that ended with `outcome`.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let Outcome::Failed(failure) = outcome else {
            return Self::Ok;
        };
        match failure.category {
            ErrorCategory::PolicyBlocked | ErrorCategory::ConfirmationRequired => Self::Refused,
            ErrorCategory::Cancelled => Self::Cancelled,
            ErrorCategory::ToolNotFound
            | ErrorCategory::InvalidParameters
            | ErrorCategory::TypeMismatch
            | ErrorCategory::PermanentFailure
            | ErrorCategory::RateLimited
            | ErrorCategory::ServerError
            | ErrorCategory::NetworkError
            | ErrorCategory::Timeout => Self::Failed,
        }
    }
}

/// Which request an answer belongs to: its id, or its line when it has none or is malformed.
#[derive(Debug, Clone)]
pub(crate) struct RequestOrigin {
    /// As the request gave it.
    pub(crate) id: Option<RequestId>,
    /// Counted from 1.
    pub(crate) line: Option<u64>,
}

/// A line of output.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum OutputLine<'a> {
    /// The answer to a request; every request gets one, but a cancellation.
    Answer(&'a AnswerLine<'a>),
    /// A message for the model that answers no request, such as the end of a command in the background.
    Message(MessageLine<'a>),
}

/// What became of a request.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerLine<'a> {
    /// That of the request, letter by letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    id: Option<&'a RawValue>,
    /// The line of the request, counted from 1; of one without an id, or that is malformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    line: Option<u64>,
    /// How it ended.
    status: Status,
    /// What a model is to read: the result, or the block about the failure with what there was before it.
    text: &'a str,
    /// The structured part of a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    structured: Option<&'a Value>,
    /// What is no text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment<'a>>,
    /// Files it read or changed.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<LocationForm>")]
    locations: &'a [FileLocation],
    /// What the caller should know, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'a str>,
    /// Why it did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CallError<'a>")]
    error: Option<CallError<'a>>,
    /// What the tool asks the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "QuestionSet<'a>")]
    question: Option<QuestionSet<'a>>,
    /// From request to answer; absent when no call was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    duration_ms: Option<f64>,
    /// The handle of the full text, `overflow:UUID`, for `read_overflow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    overflow: Option<String>,
    /// Whether `text` is cut.
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
    /// The call in the audit: a UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    call_id: Option<CallId>,
}

/// A message for the model.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageLine<'a> {
    /// Whose turn it belongs into.
    role: MessageRole,
    /// The message.
    text: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MessageRole {
    User,
}

/// The form of [`FileLocation`].
#[derive(JsonSchema)]
#[serde(rename = "FileLocation", deny_unknown_fields)]
#[expect(dead_code, reason = "the form of a type of a crate without schemas")]
struct LocationForm {
    /// The path, as the tool reported it.
    path: String,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    line: Option<u32>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    column: Option<u32>,
}

fn categories(_: &mut SchemaGenerator) -> Schema {
    let names = ErrorCategory::ALL.map(ErrorCategory::label);
    json_schema!({"type": "string", "enum": names})
}

/// Every phase.
const PHASES: [ErrorPhase; 4] = [
    ErrorPhase::Setup,
    ErrorPhase::ParamHandling,
    ErrorPhase::Execution,
    ErrorPhase::ResultInterpretation,
];

fn phases(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": PHASES})
}

/// Why a call did not succeed.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallError<'a> {
    /// The kind of failure.
    #[schemars(schema_with = "categories")]
    category: ErrorCategory,
    /// The part of the call in which it occurred.
    #[schemars(schema_with = "phases")]
    phase: ErrorPhase,
    /// What was wrong.
    message: &'a str,
    /// One sentence of advice for the model.
    suggestion: &'static str,
    /// Whether the same call may succeed later.
    retryable: bool,
    /// Of a command that ran to its end; `null` when a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    exit_code: Option<Option<i32>>,
    /// The HTTP status behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u16")]
    http_status: Option<u16>,
    /// How long to wait before the call is made again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    retry_after_ms: Option<u64>,
}

impl<'a> CallError<'a> {
    fn of(failure: &'a ToolFailure) -> Self {
        let ToolFailure {
            category,
            phase,
            message,
            http_status,
            retry_after_ms,
            exit,
            is_arguable: _,
        } = failure;
        Self {
            category: *category,
            phase: *phase,
            message,
            suggestion: failure.suggestion(),
            retryable: category.is_retryable(),
            exit_code: exit.map(CommandExit::code),
            http_status: *http_status,
            retry_after_ms: *retry_after_ms,
        }
    }
}

/// What a tool asks the user. The same call, made again with the answers and the state, goes on.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionSet<'a> {
    /// The questions; each needs an answer.
    questions: Vec<QuestionField<'a>>,
    /// Comes back with the answers; it counts once.
    state: &'a str,
    /// Until when they can be answered, in milliseconds since 1970.
    expires_ms: i64,
    /// How often the call has asked, this time included.
    round: u32,
}

/// A question.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionField<'a> {
    /// Names it in the answer.
    id: &'a str,
    /// What the user is asked.
    message: &'a str,
    /// The JSON Schema of the answer's content.
    schema: &'a Value,
}

impl<'a> QuestionSet<'a> {
    fn of(asked: &'a SealedInquiry) -> Self {
        let questions = asked.inquiry.questions().iter();
        let questions = questions.map(|question| QuestionField {
            id: question.id(),
            message: question.message(),
            schema: question.schema().schema(),
        });
        Self {
            questions: questions.collect(),
            state: &asked.state,
            expires_ms: asked.expires_ms,
            round: asked.round,
        }
    }
}

/// A part of a result that is no text. `data` is base64 (RFC 4648, section 4).
#[derive(Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Attachment<'a> {
    /// An image.
    Image {
        media_type: &'a str,
        #[schemars(with = "String")]
        data: Base64<'a>,
    },
    /// A sound.
    Audio {
        media_type: &'a str,
        #[schemars(with = "String")]
        data: Base64<'a>,
    },
    /// A document: its text, or its bytes.
    Resource {
        uri: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        media_type: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        text: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        data: Option<Base64<'a>>,
    },
    /// A reference to a document.
    Link {
        uri: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        media_type: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        description: Option<&'a str>,
    },
}

impl<'a> Attachment<'a> {
    /// `None` for text, which stands in `text`.
    fn of(content: &'a Content) -> Option<Self> {
        Some(match content {
            Content::Text(_) => return None,
            Content::Image(blob) => Self::Image {
                media_type: &blob.media_type,
                data: Base64(&blob.data),
            },
            Content::Audio(blob) => Self::Audio {
                media_type: &blob.media_type,
                data: Base64(&blob.data),
            },
            Content::Resource {
                uri,
                media_type,
                body,
            } => {
                let (text, data) = match body {
                    ResourceBody::Text(text) => (Some(text.as_str()), None),
                    ResourceBody::Bytes(bytes) => (None, Some(Base64(bytes))),
                };
                Self::Resource {
                    uri,
                    media_type: media_type.as_deref(),
                    text,
                    data,
                }
            }
            Content::Link {
                uri,
                name,
                media_type,
                description,
            } => Self::Link {
                uri,
                name,
                media_type: media_type.as_deref(),
                description: description.as_deref(),
            },
        })
    }
}

/// The answer to a call that was made, without a line feed.
///
/// `notes` are those of the door; they come before those of the call.
pub(crate) fn of_report(origin: &RequestOrigin, report: &CallReport, notes: &[String]) -> String {
    let output = &report.output;
    let failure = match &output.outcome {
        Outcome::Done => None,
        Outcome::Failed(failure) => Some(failure),
    };
    answer_json(&AnswerLine {
        id: origin.id.as_ref().map(RequestId::raw),
        line: origin.line,
        status: Status::of(&output.outcome),
        text: &output.text,
        structured: output.structured.as_ref(),
        attachments: output
            .attachments
            .iter()
            .filter_map(Attachment::of)
            .collect(),
        locations: &output.locations,
        notes: notes
            .iter()
            .chain(&output.notes)
            .map(String::as_str)
            .collect(),
        error: failure.map(CallError::of),
        question: report.asked.as_ref().map(QuestionSet::of),
        // Whole microseconds: finer digits would only be noise.
        duration_ms: Some((report.duration.as_secs_f64() * 1e6).round() / 1e3),
        overflow: output.overflow.map(|id| format!("overflow:{id}")),
        truncated: output.is_cut,
        call_id: Some(report.id),
    })
}

/// A message to the model that answers no request, such as the end of a background run: without a line feed.
pub(crate) fn of_message(text: &str) -> String {
    to_json(&OutputLine::Message(MessageLine {
        role: MessageRole::User,
        text,
    }))
}

/// The answer to a request of which no call was made, without a line feed.
pub(crate) fn of_failure(origin: &RequestOrigin, status: Status, failure: &ToolFailure) -> String {
    answer_json(&AnswerLine {
        id: origin.id.as_ref().map(RequestId::raw),
        line: origin.line,
        status,
        text: &failure.feedback(),
        structured: None,
        attachments: Vec::new(),
        locations: &[],
        notes: Vec::new(),
        error: Some(CallError::of(failure)),
        question: None,
        duration_ms: None,
        overflow: None,
        truncated: false,
        call_id: None,
    })
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn answer_json(answer: &AnswerLine<'_>) -> String {
    to_json(&OutputLine::Answer(answer))
}

fn to_json(line: &OutputLine<'_>) -> String {
    serde_json::to_string(line).expect("bug: every key is a string and no writer is involved")
}

/// Bytes as standard base64 with padding (RFC 4648, section 4).
struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.0))
    }
}

#[cfg(test)]
mod tests;
