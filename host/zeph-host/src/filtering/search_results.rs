//! Results that no rule is for are shown as they are; what looks like a credential in them is warned of as in a command's output.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use zeph_core::output::{Content, RawOutput, ResourceBody};
use zeph_filter::secret::{self, Secret};

use super::wasm::Components;
use super::{BLOCKING_BYTES_MIN, FilteredResult, Filtering};

/// The warnings of a result that is shown more than once as it is; they are looked for once. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownWarnings(Arc<OnceLock<Vec<String>>>);

/// A result as the tool gave it, with a warning of what looks like a credential in any part of it. `known`: those of the same result.
pub(super) async fn whole(
    filtering: Filtering,
    components: &Components,
    raw: RawOutput,
    known: KnownWarnings,
) -> FilteredResult {
    if n_bytes(&raw) < BLOCKING_BYTES_MIN || known.0.get().is_some() {
        let notes = known.0.get_or_init(|| warnings(&filtering, &raw)).clone();
        return FilteredResult {
            notes,
            ..FilteredResult::whole(raw)
        };
    }
    let raw = Arc::new(raw);
    let searched = Arc::clone(&raw);
    let work = move || {
        known
            .0
            .get_or_init(|| warnings(&filtering, &searched))
            .clone()
    };
    let notes = components.on_thread(work).await.unwrap_or_default();
    FilteredResult {
        notes,
        // The thread has let go of it.
        ..FilteredResult::whole(Arc::unwrap_or_clone(raw))
    }
}

/// One warning for the text, one for what the structured part holds besides.
pub(super) fn warnings(filtering: &Filtering, raw: &RawOutput) -> Vec<String> {
    let in_text = filtering.found(&text(raw));
    let beside = beside(filtering, &in_text, raw);
    let found = [secret::warning(&in_text), beside];
    found.into_iter().flatten().collect()
}

/// A warning of kinds in the structured part that the text does not hold.
pub(super) fn beside(filtering: &Filtering, in_text: &[Secret], raw: &RawOutput) -> Option<String> {
    let structured = serde_json::to_string_pretty(raw.structured.as_ref()?).ok()?;
    let mut found = filtering.found(&structured);
    found.retain(|secret| in_text.iter().all(|told| told.kind != secret.kind));
    secret::warning(&found)
}

/// The text as it is shown: lines are counted in it.
fn text(raw: &RawOutput) -> Cow<'_, str> {
    match raw.content.as_slice() {
        [Content::Text(text)] => Cow::Borrowed(text),
        _ => Cow::Owned(raw.to_text()),
    }
}

/// Bytes that each part of a structured value takes besides its text, about: quotes, commas, indentation.
const PART_BYTES: usize = 16;

/// The text that is searched, in bytes, with the structured part of it; a long one is counted until it is long enough for a thread.
pub(crate) fn n_bytes(raw: &RawOutput) -> usize {
    let of_content = |content: &Content| match content {
        Content::Text(text) => text.len(),
        Content::Resource {
            body: ResourceBody::Text(text),
            ..
        } => text.len(),
        _ => 0,
    };
    raw.content.iter().map(of_content).sum::<usize>() + n_structured_bytes(raw.structured.as_ref())
}

fn n_structured_bytes(value: Option<&Value>) -> usize {
    let mut n_bytes = 0;
    let mut next: Vec<&Value> = value.into_iter().collect();
    while n_bytes < BLOCKING_BYTES_MIN
        && let Some(value) = next.pop()
    {
        n_bytes += PART_BYTES;
        match value {
            Value::String(text) => n_bytes += text.len(),
            Value::Array(items) if items.len() < BLOCKING_BYTES_MIN => next.extend(items),
            Value::Object(values) if values.len() < BLOCKING_BYTES_MIN => {
                n_bytes += values.keys().map(String::len).sum::<usize>();
                next.extend(values.values());
            }
            Value::Array(_) | Value::Object(_) => n_bytes = BLOCKING_BYTES_MIN,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    n_bytes
}

#[cfg(test)]
mod tests;
