//! Answers of the Chat Completions API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::call::{CallDelta, OpenCall};
use crate::draft::{Draft, raw};
use crate::message::{ItemView, StopReason};
use crate::usage::Usage;
use crate::wire::{Failure, Reader};

/// Fields of a message that hold readable reasoning, by the names that are in use.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// The field of what the model says.
const CONTENT: &str = "content";

/// Reasoning as a list of pieces that only their provider reads.
const DETAILS: &str = "reasoning_details";

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct ChatReader {
    /// Texts by the name of their field, in the order in which they began.
    texts: Vec<(&'static str, String)>,
    /// The parts of content that is no plain text.
    parts: Vec<Value>,
    details: Vec<Box<RawValue>>,
    calls: Vec<OpenCall>,
    stop: Option<StopReason>,
    is_over: bool,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    /// Of a stream.
    delta: Option<Fields>,
    /// The whole answer; some repeat it at the end of a stream.
    message: Option<Fields>,
    finish_reason: Option<String>,
}

type Fields = BTreeMap<String, Box<RawValue>>;

impl Reader for ChatReader {
    fn read(&mut self, frame: &str, draft: &mut Draft) -> Result<(), Failure> {
        if frame.trim() == "[DONE]" {
            self.is_over = true;
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_str(frame).map_err(Failure::protocol)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Failure::in_stream(&error));
        }
        measure(chunk.usage.as_ref(), draft);
        let Some(choice) = chunk.choices.into_iter().flatten().next() else {
            return Ok(());
        };
        let delta = choice.delta.filter(|delta| !delta.is_empty());
        let message = choice.message.filter(|_| !self.has_begun());
        if let Some(said) = delta.or(message) {
            self.grow(said, draft)?;
        }
        let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            self.stop = Some(stop(&reason));
        }
        Ok(())
    }

    fn whole(&mut self, answer: &str, draft: &mut Draft) -> Result<(), Failure> {
        self.read(answer, draft)
    }

    fn finish(&mut self, draft: &mut Draft) -> Result<(), Failure> {
        let mut stop = self.stop.take().ok_or_else(Failure::cut)?;
        if !self.details.is_empty() {
            draft.push(ItemView::Opaque, fragment(DETAILS, &self.details));
        }
        let mut has_reasoning = false;
        let parts = std::mem::take(&mut self.parts);
        if !parts.is_empty() && self.texts.iter().all(|(field, _)| *field != CONTENT) {
            draft.push(ItemView::Opaque, fragment(CONTENT, &parts));
        }
        for (field, text) in std::mem::take(&mut self.texts) {
            let wire = match field {
                CONTENT if !parts.is_empty() => fragment(field, &parts),
                _ => fragment(field, &text),
            };
            let view = match field {
                CONTENT => ItemView::Text(text),
                "refusal" => {
                    stop = StopReason::Refusal;
                    ItemView::Text(text)
                }
                // Some say the same under both names.
                _ if has_reasoning => ItemView::Opaque,
                _ => {
                    has_reasoning = true;
                    ItemView::Thinking(text)
                }
            };
            draft.push(view, wire);
        }
        for call in std::mem::take(&mut self.calls) {
            let (call, wire) = call.close();
            draft.push(ItemView::Call(call), wire);
        }
        draft.stop = Some(stop);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

impl ChatReader {
    fn has_begun(&self) -> bool {
        !(self.texts.is_empty() && self.parts.is_empty() && self.calls.is_empty())
    }

    fn grow(&mut self, delta: Fields, draft: &mut Draft) -> Result<(), Failure> {
        let is_thinking =
            |texts: &[(&str, String)]| texts.iter().any(|(field, _)| *field == REASONING[0]);
        for field in ["reasoning_content", "reasoning", CONTENT, "refusal"] {
            let text = delta.get(field).map(|value| self.text(field, value));
            let Some(text) = text.filter(|text| !text.is_empty()) else {
                continue;
            };
            match field {
                CONTENT | "refusal" => draft.text(&text),
                "reasoning" if is_thinking(&self.texts) => {}
                _ => draft.thinking(&text),
            }
            self.append(field, &text);
        }
        if let Some(details) = delta.get(DETAILS) {
            let details: Option<Vec<Box<RawValue>>> = serde_json::from_str(details.get()).ok();
            self.details.extend(details.into_iter().flatten());
        }
        let Some(calls) = delta.get("tool_calls") else {
            return Ok(());
        };
        let calls: Option<Vec<CallDelta>> =
            serde_json::from_str(calls.get()).map_err(Failure::protocol)?;
        for delta in calls.into_iter().flatten() {
            OpenCall::take(&mut self.calls, delta, draft);
        }
        Ok(())
    }

    /// A text, or the texts of a list of parts.
    fn text(&mut self, field: &str, value: &RawValue) -> String {
        match serde_json::from_str(value.get()) {
            Ok(Value::String(text)) => {
                // What follows a list belongs to it.
                if field == CONTENT && !self.parts.is_empty() && !text.is_empty() {
                    let part = json!({ "type": "text", "text": text });
                    extend(&mut self.parts, vec![part]);
                }
                text
            }
            Ok(Value::Array(parts)) => {
                let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
                let text = texts.collect();
                if field == CONTENT {
                    let before = self.texts.iter().find(|(name, _)| *name == CONTENT);
                    if let (true, Some((_, before))) = (self.parts.is_empty(), before) {
                        self.parts.push(json!({ "type": "text", "text": before }));
                    }
                    extend(&mut self.parts, parts);
                }
                text
            }
            _ => String::new(),
        }
    }

    fn append(&mut self, field: &'static str, text: &str) {
        match self.texts.iter_mut().find(|(name, _)| *name == field) {
            Some((_, whole)) => whole.push_str(text),
            None => self.texts.push((field, text.to_owned())),
        }
    }
}

/// Adds parts of content. One that goes on with the part before it is put together with that.
fn extend(parts: &mut Vec<Value>, more: Vec<Value>) {
    for part in more {
        let is_joined = parts.last_mut().is_some_and(|last| joins(last, &part));
        if !is_joined {
            parts.push(part);
        }
    }
}

/// Whether a part was added to the one before it: both are texts, or thoughts, and nothing else.
fn joins(last: &mut Value, next: &Value) -> bool {
    let (Value::Object(last), Value::Object(next)) = (last, next) else {
        return false;
    };
    let is_alike = last.get("type") == next.get("type") && last.keys().eq(next.keys());
    if !is_alike || last.len() != 2 {
        return false;
    }
    if let (Some(Value::String(text)), Some(Value::String(more))) =
        (last.get_mut("text"), next.get("text"))
    {
        text.push_str(more);
        return true;
    }
    if let (Some(Value::Array(thoughts)), Some(Value::Array(more))) =
        (last.get_mut("thinking"), next.get("thinking"))
    {
        extend(thoughts, more.clone());
        return true;
    }
    false
}

/// An object with one field of a message.
fn fragment(field: &str, value: &impl serde::Serialize) -> Option<Box<RawValue>> {
    raw(&BTreeMap::from([(field, value)]))
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "stop" | "eos" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolCalls,
        "length" | "model_length" => StopReason::Length,
        "content_filter" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

/// The input includes the cache, the output the reasoning. DeepSeek names the cache in a field of its own.
fn measure(said: Option<&Value>, draft: &mut Draft) {
    let Some(said) = said.filter(|said| said.is_object()) else {
        return;
    };
    let count = |path: &str| said.pointer(path).and_then(Value::as_u64);
    let input = count("/prompt_tokens").unwrap_or_default();
    let cached = count("/prompt_tokens_details/cached_tokens");
    let cached = cached.or_else(|| count("/prompt_cache_hit_tokens"));
    let cached = cached.unwrap_or_default().min(input);
    let output = count("/completion_tokens").unwrap_or_default();
    let reasoning = count("/completion_tokens_details/reasoning_tokens");
    draft.measured(Usage {
        input: input - cached,
        cache_read: cached,
        cache_write: 0,
        output,
        reasoning: reasoning.unwrap_or_default().min(output),
        ..Usage::default()
    });
}
