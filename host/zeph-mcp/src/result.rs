//! What became of a call, as the protocol says it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::{Map, Value, json};
use url::Url;
use url::form_urlencoded::byte_serialize;
use zeph_core::exit::CommandExit;
use zeph_core::failure::ToolFailure;
use zeph_core::id::OverflowId;
use zeph_core::output::{Content, Outcome, ResourceBody, ToolOutput};

use crate::tool::OutputSchema;

/// What the URIs of stored outputs begin with.
pub const OVERFLOW_SCHEME: &str = "overflow:";

/// The result of a call.
///
/// `messages`: what ended in the background meanwhile, for the model to read first. `schema`: that of the tool's output.
/// Shape: a failure is a result too (`isError`), with the feedback block as text and the failure as `structuredContent.error`. The
/// structured part agrees with the schema or is absent. A success that lacks it is an error (`isError`) with what the tool gave as text:
/// official clients throw any other away, and the model would not learn that the call was made.
pub async fn of_output(
    messages: Vec<String>,
    mut output: ToolOutput,
    schema: Option<&OutputSchema>,
) -> CallToolResult {
    if let (Some(schema), Outcome::Done) = (schema, &output.outcome)
        && let Some(lack) = schema.lack(&mut output.structured).await
    {
        tracing::warn!("a successful call is answered as an error: {lack}");
        return unstructured(messages, output, &lack);
    }
    let mut structured = structured(&mut output);
    if let (Some(schema), Outcome::Failed(_), Some(given)) =
        (schema, &output.outcome, &mut structured)
        && schema.agrees(given).await.is_err()
    {
        structured = None;
    }
    assembled(messages, output, structured)
}

/// The result of a call that succeeded without the structured part that its tool promises.
fn unstructured(messages: Vec<String>, mut output: ToolOutput, lack: &str) -> CallToolResult {
    let said = format!(
        "The call was made and succeeded; it counts as an error only because {lack}. What it gave follows as text."
    );
    let n_messages = messages.len();
    // Where there is no text, what was given stands in its place.
    let given = output.structured.take();
    let mut result = assembled(messages, output, given);
    result.content.insert(n_messages, ContentBlock::text(said));
    result.structured_content = None;
    result.is_error = Some(true);
    result
}

/// The result of a call that was not made.
pub fn of_failure(failure: ToolFailure, schema: Option<&OutputSchema>) -> CallToolResult {
    let mut output = ToolOutput::failed(failure);
    let agrees =
        |structured: &Value| schema.is_none_or(|schema| schema.agrees_now(structured).is_ok());
    let structured = structured(&mut output).filter(agrees);
    assembled(Vec::new(), output, structured)
}

/// What the structured part would be, if it agrees: an object, with the failure if there is one.
fn structured(output: &mut ToolOutput) -> Option<Value> {
    let given = output.structured.take();
    let failure = match &output.outcome {
        Outcome::Done => None,
        Outcome::Failed(failure) => Some(failure),
    };
    let mut structured = match (given, failure) {
        (Some(Value::Object(structured)), _) => structured,
        (_, Some(_)) => Map::new(),
        (_, None) => return None,
    };
    if let Some(failure) = failure {
        structured.insert("error".to_owned(), error(failure));
    }
    Some(Value::Object(structured))
}

fn assembled(
    messages: Vec<String>,
    mut output: ToolOutput,
    structured: Option<Value>,
) -> CallToolResult {
    let mut content: Vec<ContentBlock> = messages.into_iter().map(ContentBlock::text).collect();
    // Moved, not copied: it may have megabytes.
    let text = std::mem::take(&mut output.text);
    match (text.is_empty(), &structured) {
        // A client that shows text only has to see something.
        (true, Some(structured)) if output.attachments.is_empty() => {
            content.push(ContentBlock::text(structured.to_string()));
        }
        (true, _) => {}
        (false, _) => content.push(ContentBlock::text(text)),
    }
    content.extend(output.attachments.iter().map(block));
    content.extend(output.overflow.map(overflow_link));
    let mut result = match &output.outcome {
        Outcome::Done => CallToolResult::success(content),
        Outcome::Failed(_) => CallToolResult::error(content),
    };
    result.structured_content = structured;
    result
}

/// A failure as data.
fn error(failure: &ToolFailure) -> Value {
    let mut error = json!({
        "category": failure.category,
        "phase": failure.phase,
        "message": failure.message,
        "suggestion": failure.suggestion(),
        "retryable": failure.category.is_retryable(),
    });
    let details = [
        (
            "exit_code",
            failure.exit.map(|exit| json!(CommandExit::code(exit))),
        ),
        ("http_status", failure.http_status.map(Value::from)),
        ("retry_after_ms", failure.retry_after_ms.map(Value::from)),
    ];
    for (key, value) in details {
        if let Some(value) = value {
            error[key] = value;
        }
    }
    error
}

fn block(content: &Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image(blob) => ContentBlock::image(STANDARD.encode(&blob.data), &blob.media_type),
        Content::Audio(blob) => ContentBlock::audio(STANDARD.encode(&blob.data), &blob.media_type),
        Content::Resource {
            uri,
            media_type,
            body,
        } => ContentBlock::resource(contents(&valid_uri(uri), media_type.as_deref(), body)),
        Content::Link {
            uri,
            name,
            media_type,
            description,
        } => {
            let mut link = Resource::new(valid_uri(uri), name);
            link.mime_type = media_type.clone().filter(|name| !name.is_empty());
            link.description.clone_from(description);
            ContentBlock::resource_link(link)
        }
    }
}

fn contents(uri: &str, media_type: Option<&str>, body: &ResourceBody) -> ResourceContents {
    let contents = match body {
        ResourceBody::Text(text) => ResourceContents::text(text, uri),
        ResourceBody::Bytes(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
    };
    match media_type {
        Some(media_type) if !media_type.is_empty() => contents.with_mime_type(media_type),
        _ => contents,
    }
}

/// What a tool calls the address of something, as a URI: clients throw a whole result away for one that is none.
fn valid_uri(given: &str) -> Cow<'_, str> {
    if Url::parse(given).is_ok() {
        return given.into();
    }
    match Url::from_file_path(given) {
        Ok(of_file) => of_file.to_string().into(),
        Err(()) if given.is_empty() => "resource:unnamed".into(),
        Err(()) => {
            let encoded: String = byte_serialize(given.as_bytes()).collect();
            format!("resource:{encoded}").into()
        }
    }
}

/// The URI of a stored output.
pub fn overflow_uri(id: OverflowId) -> String {
    format!("{OVERFLOW_SCHEME}{id}")
}

fn overflow_link(id: OverflowId) -> ContentBlock {
    let link = Resource::new(overflow_uri(id), "full output")
        .with_description("The whole output of this call, which was too long to show")
        .with_mime_type("text/plain");
    ContentBlock::resource_link(link)
}

#[cfg(test)]
mod tests;
