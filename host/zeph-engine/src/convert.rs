//! The one place where values of `zeph:plugin` become values of the host, and the other way round.

use std::time::Duration;

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::output::{Blob, Content, FileLocation, RawOutput, ResourceBody};
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::Tool;

use crate::bindings::zeph::plugin::types as wit;
use crate::json;

/// What a part of a result counts for besides its texts, so that a million empty ones are not free.
const PART_BYTES: usize = 64;

/// Most bytes of a failure's message. A model is shown a quarter of it at most.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// The frame of a call.
pub(crate) fn context<W>(call: &AuthorizedCall<W>, remaining: Duration) -> wit::CallContext {
    let frame = call.frame();
    let turn = frame.turn.as_ref();
    wit::CallContext {
        call_id: frame.id.to_string(),
        conversation_id: frame.conversation.to_string(),
        turn_id: turn.map(|turn| turn.turn_id.clone()),
        goal_id: turn.and_then(|turn| turn.goal_id.clone()),
        caller_id: frame.principal.caller_id().map(str::to_owned),
        remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
        answers: Vec::new(),
        state: None,
    }
}

/// What a guest returned, checked against `output_bytes_max`.
pub(crate) fn result(
    tool: &Tool,
    result: Result<wit::Outcome, wit::ToolError>,
    output_bytes_max: u64,
) -> Result<RawOutput, ToolFailure> {
    match result {
        Ok(wit::Outcome::Done(output)) => done(output, output_bytes_max),
        Ok(wit::Outcome::Ask(ask)) => Err(asks(tool, &ask)),
        Err(error) => Err(failure(error)),
    }
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
    }
}

fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        message.push('…');
    }
    message
}

fn asks(tool: &Tool, ask: &wit::Ask) -> ToolFailure {
    let questions: Vec<String> = ask
        .questions
        .iter()
        .take(8)
        .map(|question| one_line(&question.message, 200))
        .collect();
    let message = format!(
        "`{}` wants to ask the user: {}; there is no user to answer",
        tool.name,
        questions.join(" / ")
    );
    ToolFailure::new(
        ErrorCategory::ConfirmationRequired,
        ErrorPhase::Execution,
        message,
    )
}

fn broken(message: String) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::PermanentFailure,
        ErrorPhase::ResultInterpretation,
        message,
    )
}
