//! One line of output: what became of a call, as JSON.
//!
//! The same object is what `zeph-host call --output json` prints. The only file that knows its form. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

#[derive(Serialize)]
struct AnswerLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    status: Status,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    locations: &'a [FileLocation],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error<'a>>,
    /// What the tool asks the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionSet<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overflow: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<CallId>,
}

#[derive(Serialize)]
struct Error<'a> {
    category: ErrorCategory,
    phase: ErrorPhase,
    message: &'a str,
    suggestion: &'static str,
    retryable: bool,
    /// Of a command that ran to its end; `null` when a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<Option<i32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl<'a> Error<'a> {
    fn of(failure: &'a ToolFailure) -> Self {
        let ToolFailure {
            category,
            phase,
            message,
            http_status,
            retry_after_ms,
            exit,
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

/// What the line with the answers needs.
#[derive(Serialize)]
struct QuestionSet<'a> {
    questions: Vec<QuestionField<'a>>,
    state: &'a str,
    expires_ms: i64,
    round: u32,
}

#[derive(Serialize)]
struct QuestionField<'a> {
    id: &'a str,
    message: &'a str,
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

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Attachment<'a> {
    Image {
        media_type: &'a str,
        data: Base64<'a>,
    },
    Audio {
        media_type: &'a str,
        data: Base64<'a>,
    },
    Resource {
        uri: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Base64<'a>>,
    },
    Link {
        uri: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
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
    to_json(&AnswerLine {
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
        error: failure.map(Error::of),
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
    serde_json::json!({ "role": "user", "text": text }).to_string()
}

/// The answer to a request of which no call was made, without a line feed.
pub(crate) fn of_failure(origin: &RequestOrigin, status: Status, failure: &ToolFailure) -> String {
    to_json(&AnswerLine {
        id: origin.id.as_ref().map(RequestId::raw),
        line: origin.line,
        status,
        text: &failure.feedback(),
        structured: None,
        attachments: Vec::new(),
        locations: &[],
        notes: Vec::new(),
        error: Some(Error::of(failure)),
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

fn to_json(answer: &AnswerLine<'_>) -> String {
    serde_json::to_string(answer).expect("bug: every key is a string and no writer is involved")
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
