//! Answers of the Responses API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::{Failure, Reader};
use crate::draft::{Draft, id_or_made, raw};
use crate::message::{Arguments, Item, ItemView, StopReason, ToolCall};
use crate::usage::Usage;

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct ResponsesReader {
    /// Complete items, by their place.
    items: BTreeMap<u64, Item>,
    /// Ids of calls by the place of their item.
    calls: BTreeMap<u64, String>,
    is_refusal: bool,
    is_broken: bool,
    stop: Option<StopReason>,
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    output_index: Option<u64>,
    item: Option<Box<RawValue>>,
    delta: Option<String>,
    response: Option<Response>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Response {
    status: Option<String>,
    #[serde(default)]
    output: Vec<Box<RawValue>>,
    usage: Option<Value>,
    error: Option<Value>,
    incomplete_details: Option<Value>,
}

/// What is looked at in an item; everything else stays as it is.
#[derive(Deserialize)]
struct Seen {
    r#type: String,
    status: Option<String>,
    call_id: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    arguments: String,
    #[serde(default)]
    content: Option<Vec<Value>>,
    #[serde(default)]
    summary: Option<Vec<Value>>,
    encrypted_content: Option<String>,
}

impl Reader for ResponsesReader {
    fn read(&mut self, frame: &str, draft: &mut Draft) -> Result<(), Failure> {
        if frame.trim() == "[DONE]" {
            return Ok(());
        }
        let event: Event = serde_json::from_str(frame).map_err(Failure::protocol)?;
        let place = event.output_index.unwrap_or_default();
        let delta = event.delta.as_deref().unwrap_or_default();
        match event.r#type.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => draft.text(delta),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                draft.thinking(delta);
            }
            "response.output_item.added" => self.begin(place, event.item.as_deref(), draft)?,
            "response.function_call_arguments.delta" => {
                if let Some(id) = self.calls.get(&place) {
                    draft.call_arguments(id, delta);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    let item = self.complete(place, &item)?;
                    self.items.insert(place, item);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                if let Some(response) = event.response {
                    self.end(response, draft)?;
                }
            }
            "error" => {
                let error = match event.error {
                    Some(error) if !error.is_null() => error,
                    _ => serde_json::from_str(frame).unwrap_or_default(),
                };
                return Err(Failure::in_stream(&without_type(error)));
            }
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, answer: &str, draft: &mut Draft) -> Result<(), Failure> {
        let response: Response = serde_json::from_str(answer).map_err(Failure::protocol)?;
        self.end(response, draft)?;
        for item in self.items.values() {
            match &item.view {
                ItemView::Text(text) => draft.text(text),
                ItemView::Thinking(text) => draft.thinking(text),
                ItemView::Call(call) => draft.whole_call(call),
                ItemView::Opaque => {}
            }
        }
        Ok(())
    }

    fn finish(&mut self, draft: &mut Draft) -> Result<(), Failure> {
        let stop = self.stop.take().ok_or_else(Failure::cut)?;
        let mut items: Vec<Item> = std::mem::take(&mut self.items).into_values().collect();
        // Reasoning that nothing follows is refused when it comes back.
        let thoughts = items.iter_mut().rev();
        for item in thoughts.take_while(|item| matches!(item.view, ItemView::Thinking(_))) {
            item.wire = None;
        }
        draft.items.extend(items);
        draft.stop = Some(match stop {
            StopReason::EndTurn if self.is_refusal => StopReason::Refusal,
            StopReason::EndTurn if self.is_broken => StopReason::MalformedCall,
            stop => stop,
        });
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.stop.is_some()
    }
}

impl ResponsesReader {
    fn begin(
        &mut self,
        place: u64,
        item: Option<&RawValue>,
        draft: &mut Draft,
    ) -> Result<(), Failure> {
        let Some(item) = item else { return Ok(()) };
        let seen: Seen = serde_json::from_str(item.get()).map_err(Failure::protocol)?;
        if seen.r#type == "function_call" {
            let id = id_or_made(seen.call_id.as_deref());
            draft.call_started(&id, &seen.name);
            draft.call_arguments(&id, &seen.arguments);
            self.calls.insert(place, id);
        }
        Ok(())
    }

    fn complete(&mut self, place: u64, item: &RawValue) -> Result<Item, Failure> {
        let seen: Seen = serde_json::from_str(item.get()).map_err(Failure::protocol)?;
        let mut fields: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(item.get()).map_err(Failure::protocol)?;
        // They name what would be stored there, and is not.
        fields.remove("id");
        let view = match seen.r#type.as_str() {
            "message" => ItemView::Text(self.message(seen.content.unwrap_or_default())),
            "reasoning" => {
                let is_sealed = seen.encrypted_content.is_some();
                let summary = texts(&seen.summary.unwrap_or_default(), "text");
                let content = texts(&seen.content.unwrap_or_default(), "text");
                let view = ItemView::Thinking(if summary.is_empty() { content } else { summary });
                if !is_sealed {
                    return Ok(Item::neutral(view));
                }
                view
            }
            "function_call" => {
                self.is_broken |= seen.status.as_deref() == Some("incomplete");
                let begun = self.calls.get(&place).map(String::as_str);
                let id = id_or_made(seen.call_id.as_deref().or(begun));
                let arguments = Arguments::read(&seen.arguments);
                let text = match &arguments {
                    Arguments::Malformed { .. } => "{}",
                    Arguments::Object(_) if seen.arguments.trim().is_empty() => "{}",
                    Arguments::Object(_) => seen.arguments.as_str(),
                };
                fields.extend(raw(text).map(|text| ("arguments".to_owned(), text)));
                fields.extend(raw(&id).map(|id| ("call_id".to_owned(), id)));
                ItemView::Call(ToolCall {
                    id,
                    name: seen.name,
                    arguments,
                })
            }
            _ => ItemView::Opaque,
        };
        let wire = raw(&fields);
        Ok(Item { view, wire })
    }

    /// The text of a message. A refusal in it makes the answer one.
    fn message(&mut self, parts: Vec<Value>) -> String {
        let refused = texts(&parts, "refusal");
        self.is_refusal |= !refused.is_empty();
        texts(&parts, "text") + &refused
    }

    fn end(&mut self, response: Response, draft: &mut Draft) -> Result<(), Failure> {
        measure(response.usage.as_ref(), draft);
        if let Some(error) = response.error.filter(|error| !error.is_null()) {
            return Err(Failure::in_stream(&error));
        }
        if self.items.is_empty() {
            for (place, item) in (0..).zip(&response.output) {
                let item = self.complete(place, item)?;
                self.items.insert(place, item);
            }
        }
        let detail = response.incomplete_details.as_ref();
        let reason = detail.and_then(|detail| detail.get("reason")?.as_str());
        self.stop = match (response.status.as_deref(), reason) {
            (Some("completed"), _) => Some(StopReason::EndTurn),
            (Some("incomplete"), Some("max_output_tokens")) => Some(StopReason::Length),
            (Some("incomplete"), Some("content_filter")) => Some(StopReason::Refusal),
            (Some(status), reason) => Some(StopReason::Other(reason.unwrap_or(status).to_owned())),
            (None, _) => None,
        };
        Ok(())
    }
}

/// Error events carry `"type": "error"` beside the code of the error.
fn without_type(mut error: Value) -> Value {
    if let Some(fields) = error.as_object_mut()
        && fields.get("type").and_then(Value::as_str) == Some("error")
    {
        fields.remove("type");
    }
    error
}

fn texts(parts: &[Value], field: &str) -> String {
    let texts = parts.iter().filter_map(|part| part.get(field)?.as_str());
    texts.collect()
}

/// The input includes the cache, the output the reasoning.
fn measure(said: Option<&Value>, draft: &mut Draft) {
    let Some(said) = said.filter(|said| said.is_object()) else {
        return;
    };
    let count = |path: &str| {
        let count = said.pointer(path).and_then(Value::as_u64);
        count.unwrap_or_default()
    };
    let (input, output) = (count("/input_tokens"), count("/output_tokens"));
    let cached = count("/input_tokens_details/cached_tokens").min(input);
    draft.measured(Usage {
        input: input - cached,
        cache_read: cached,
        cache_write: 0,
        output,
        reasoning: count("/output_tokens_details/reasoning_tokens").min(output),
        ..Usage::default()
    });
}
