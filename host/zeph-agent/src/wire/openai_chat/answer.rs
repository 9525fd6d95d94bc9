//! Answers of the Chat Completions API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::{CallDelta, OpenCall};
use crate::draft::{Draft, raw};
use crate::message::{ItemView, StopReason};
use crate::usage::Usage;
use crate::wire::{Failure, Reader};

/// Fields of a message that hold readable reasoning, by the names that are in use.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// Reasoning as a list of pieces that only their provider reads.
const DETAILS: &str = "reasoning_details";

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct ChatReader {
    /// Texts by the name of their field, in the order in which they began.
    texts: Vec<(&'static str, String)>,
    /// Content that is no plain text, as it came.
    content: Option<Box<RawValue>>,
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
    /// Of a stream, or whole.
    #[serde(alias = "message")]
    delta: Option<BTreeMap<String, Box<RawValue>>>,
    finish_reason: Option<String>,
}

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
        if let Some(delta) = choice.delta {
            self.grow(delta, draft)?;
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
        for (field, text) in std::mem::take(&mut self.texts) {
            let wire = match (field, self.content.take()) {
                ("content", Some(content)) => fragment(field, &content),
                (_, content) => {
                    self.content = content;
                    fragment(field, &text)
                }
            };
            let view = match field {
                "content" => ItemView::Text(text),
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
    fn grow(
        &mut self,
        delta: BTreeMap<String, Box<RawValue>>,
        draft: &mut Draft,
    ) -> Result<(), Failure> {
        let is_thinking =
            |texts: &[(&str, String)]| texts.iter().any(|(field, _)| *field == REASONING[0]);
        for field in ["reasoning_content", "reasoning", "content", "refusal"] {
            let text = delta.get(field).map(|value| self.text(field, value));
            let Some(text) = text.filter(|text| !text.is_empty()) else {
                continue;
            };
            match field {
                "content" | "refusal" => draft.text(&text),
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
            Ok(Value::String(text)) => text,
            Ok(Value::Array(parts)) => {
                if field == "content" {
                    self.content = Some(value.to_owned());
                }
                let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
                texts.collect()
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
