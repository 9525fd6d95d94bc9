//! The one place where values of `zeph:plugin` become values of the host, and the other way round.

use std::time::Duration;

use zeph_core::call::CallFrame;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::inquiry::{Inquiry, Resumption, UserAction, UserAnswer, UserQuestion};
use zeph_core::output::{Blob, Content, FileLocation, RawOutput, ResourceBody};

use crate::bindings::zeph::plugin::types as wit;
use crate::context::millis;
use crate::json;

/// What a part of a result counts for besides its texts, so that a million empty ones are not free.
const PART_BYTES: usize = 64;

/// Most bytes of a failure's message. A model is shown a quarter of it at most.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// What a guest came to.
pub(crate) enum GuestOutcome {
    Done(RawOutput),
    Ask(Inquiry),
    /// It failed, and says how.
    Failed(ToolFailure),
}

/// The frame of a call. `remaining` is the time a guest can plan with.
pub(crate) fn context(
    frame: &CallFrame,
    resumption: Option<&Resumption>,
    remaining: Duration,
) -> wit::CallContext {
    let turn = frame.turn.as_ref();
    let answered = resumption.map(|resumption| &resumption.answered);
    let answers = answered.into_iter().flat_map(|answered| &answered.answers);
    wit::CallContext {
        call_id: frame.id.to_string(),
        conversation_id: frame.conversation.to_string(),
        turn_id: turn.map(|turn| turn.turn_id.clone()),
        goal_id: turn.and_then(|turn| turn.goal_id.clone()),
        caller_id: frame.principal.caller_id().map(str::to_owned),
        remaining_ms: millis(remaining),
        answers: answers.map(answer).collect(),
        state: answered.and_then(|answered| answered.state.clone()),
    }
}

fn answer(answer: &UserAnswer) -> wit::Answer {
    wit::Answer {
        id: answer.id.clone(),
        action: match answer.action {
            UserAction::Accept => wit::AnswerAction::Accept,
            UserAction::Decline => wit::AnswerAction::Decline,
            UserAction::Cancel => wit::AnswerAction::Cancel,
        },
        content: answer
            .content
            .as_ref()
            .and_then(|content| serde_json::to_string(content).ok()),
    }
}

/// What a guest returned, checked against `output_bytes_max`.
pub(crate) fn result(
    result: Result<wit::Outcome, wit::ToolError>,
    output_bytes_max: u64,
) -> Result<GuestOutcome, ToolFailure> {
    match result {
        Ok(wit::Outcome::Done(output)) => done(output, output_bytes_max).map(GuestOutcome::Done),
        Ok(wit::Outcome::Ask(ask)) => inquiry(ask).map(GuestOutcome::Ask).map_err(broken),
        Err(error) => Ok(GuestOutcome::Failed(failure(error))),
    }
}

fn inquiry(ask: wit::Ask) -> Result<Inquiry, String> {
    let question = |question: wit::Question| {
        let schema = json::read(&question.schema)
            .map_err(|error| format!("the schema of a question is not valid JSON: {error}"))?;
        UserQuestion::new(question.id, &question.message, schema)
    };
    let questions = ask.questions.into_iter().map(question);
    Inquiry::new(questions.collect::<Result<_, _>>()?, ask.state)
}

fn done(output: wit::ToolOutput, output_bytes_max: u64) -> Result<RawOutput, ToolFailure> {
    let wit::ToolOutput {
        content,
        structured,
        locations,
    } = output;
    let structured_bytes = structured.as_ref().map_or(0, String::len);
    let location_bytes = locations
        .iter()
        .map(|location| PART_BYTES + location.path.len());
    let n_bytes = content.iter().map(content_bytes).sum::<usize>()
        + location_bytes.sum::<usize>()
        + structured_bytes;
    if n_bytes as u64 > output_bytes_max {
        return Err(broken(format!(
            "the result has {n_bytes} bytes, more than {output_bytes_max} (`limits.output_bytes`)"
        )));
    }
    let structured = structured
        .as_deref()
        .map(json::read)
        .transpose()
        .map_err(|error| broken(format!("the structured result is not valid JSON: {error}")))?;
    Ok(RawOutput {
        content: content.into_iter().map(self::content).collect(),
        structured,
        locations: locations
            .into_iter()
            .map(|wit::FileLocation { path, line, column }| FileLocation { path, line, column })
            .collect(),
    })
}

fn content(content: wit::Content) -> Content {
    match content {
        wit::Content::Text(text) => Content::Text(text),
        wit::Content::Image(blob) => Content::Image(self::blob(blob)),
        wit::Content::Audio(blob) => Content::Audio(self::blob(blob)),
        wit::Content::Resource(wit::ResourceContent {
            uri,
            media_type,
            body,
        }) => Content::Resource {
            uri,
            media_type,
            body: match body {
                wit::ResourceBody::Text(text) => ResourceBody::Text(text),
                wit::ResourceBody::Bytes(bytes) => ResourceBody::Bytes(bytes),
            },
        },
        wit::Content::Link(wit::ResourceLink {
            uri,
            name,
            media_type,
            description,
        }) => Content::Link {
            uri,
            name,
            media_type,
            description,
        },
    }
}

fn blob(wit::Blob { media_type, data }: wit::Blob) -> Blob {
    Blob { media_type, data }
}

fn content_bytes(content: &wit::Content) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    PART_BYTES
        + match content {
            wit::Content::Text(text) => text.len(),
            wit::Content::Image(blob) | wit::Content::Audio(blob) => {
                blob.media_type.len() + blob.data.len()
            }
            wit::Content::Resource(resource) => {
                let body = match &resource.body {
                    wit::ResourceBody::Text(text) => text.len(),
                    wit::ResourceBody::Bytes(bytes) => bytes.len(),
                };
                resource.uri.len() + optional(&resource.media_type) + body
            }
            wit::Content::Link(link) => {
                let named = link.uri.len() + link.name.len();
                named + optional(&link.media_type) + optional(&link.description)
            }
        }
}

fn failure(error: wit::ToolError) -> ToolFailure {
    let wit::ToolError {
        category,
        message,
        http_status,
        retry_after_ms,
    } = error;
    ToolFailure {
        category: match category {
            wit::ErrorCategory::InvalidParameters => ErrorCategory::InvalidParameters,
            wit::ErrorCategory::TypeMismatch => ErrorCategory::TypeMismatch,
            wit::ErrorCategory::PolicyBlocked => ErrorCategory::PolicyBlocked,
            wit::ErrorCategory::PermanentFailure => ErrorCategory::PermanentFailure,
            wit::ErrorCategory::Cancelled => ErrorCategory::Cancelled,
            wit::ErrorCategory::RateLimited => ErrorCategory::RateLimited,
            wit::ErrorCategory::ServerError => ErrorCategory::ServerError,
            wit::ErrorCategory::NetworkError => ErrorCategory::NetworkError,
            wit::ErrorCategory::Timeout => ErrorCategory::Timeout,
        },
        phase: ErrorPhase::Execution,
        message: cut(message),
        http_status,
        retry_after_ms,
        exit: None,
        // It says so itself.
        is_arguable: true,
    }
}

fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        message.push('…');
    }
    message
}

fn broken(message: String) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::ResultInterpretation,
        message,
    )
}
