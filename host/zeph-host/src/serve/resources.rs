//! Stored outputs as resources: those of the conversation of the request, and no others.

use rmcp::model::{
    ErrorData, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use zeph_core::failure::one_line;
use zeph_core::id::OverflowId;
use zeph_mcp::result::{OVERFLOW_SCHEME, overflow_uri};
use zeph_store::{Store, StoreError};

use super::conversation::Conversation;
use crate::host::Host;

/// Most outputs in a list; the newest come first.
const LISTED_MAX: u32 = 100;

/// The outputs of a conversation that are stored, newest first.
pub(super) async fn list(
    store: &Store,
    conversation: &Conversation,
) -> Result<Vec<Resource>, ErrorData> {
    let stored = store.outputs(conversation.handle(), LISTED_MAX).await;
    let stored = stored.map_err(|error| store_failed(&error))?;
    let resources = stored.into_iter().map(|output| {
        Resource::new(overflow_uri(output.id), format!("output {}", output.id))
            .with_description("The whole output of a call, which was too long to show")
            .with_mime_type("text/plain")
            .with_size(output.n_bytes)
    });
    Ok(resources.collect())
}

/// How the URI of a stored output looks.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{OVERFLOW_SCHEME}{{id}}"), "stored output")
        .with_description(
            "The whole output of a call that was too long to show, by the ID at its end",
        )
        .with_mime_type("text/plain")
}

/// The output that a URI names.
pub(super) fn output_of(uri: &str) -> Option<OverflowId> {
    uri.strip_prefix(OVERFLOW_SCHEME)?.parse().ok()
}

/// The whole of a stored output.
///
/// Errors: there is none of this URI in this conversation.
/// It was stored without the secrets that were known then; those that are known now are removed as well.
pub(super) async fn read(
    host: &Host,
    conversation: &Conversation,
    uri: &str,
) -> Result<ReadResourceResponse, ErrorData> {
    let store = host.store();
    let id = output_of(uri).ok_or_else(|| not_found(uri))?;
    let stored = store.overflow(conversation.handle(), id).await;
    let stored = stored.map_err(|error| store_failed(&error))?;
    let stored = stored.ok_or_else(|| not_found(uri))?;
    store.count_read_back(conversation.handle(), id);
    let text = String::from_utf8_lossy(&stored);
    let contents = vec![ResourceContents::text(host.redactor().text(&text), uri)];
    Ok(ReadResourceResult::new(contents).into())
}

/// What a request for a resource is told that there is not; one of another conversation is not there either.
pub(super) fn not_found(uri: &str) -> ErrorData {
    let uri = one_line(uri, 200);
    let message = format!("there is no resource `{uri}` in this conversation, or it has expired");
    ErrorData::resource_not_found(message, Some(serde_json::json!({ "uri": uri })))
}

fn store_failed(error: &StoreError) -> ErrorData {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "stored outputs cannot be read"
    );
    ErrorData::internal_error("the store cannot be read", None)
}
