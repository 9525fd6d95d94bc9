//! Answers of Gemini. A signature stays on the part it came with: texts are put together only where neither has anything else.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::draft::{Draft, id_or_made, raw};
use crate::message::{Arguments, ItemView, StopReason, ToolCall};
use crate::usage::Usage;
use crate::wire::{Failure, Reader};

/// A part with every field as it came.
type Fields = BTreeMap<String, Box<RawValue>>;

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct GeminiReader {
    parts: Vec<OpenPart>,
    stop: Option<StopReason>,
}

#[derive(Debug)]
enum OpenPart {
    /// Text with nothing else; more may follow.
    Plain { text: String, is_thought: bool },
    /// A part that is complete.
    Whole { view: ItemView, fields: Fields },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    usage_metadata: Option<Value>,
    prompt_feedback: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Fields>>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    #[serde(default)]
    name: String,
    args: Option<Value>,
}

impl Reader for GeminiReader {
    fn read(&mut self, frame: &str, draft: &mut Draft) -> Result<(), Failure> {
        let chunk: Chunk = serde_json::from_str(frame).map_err(Failure::protocol)?;
        if let Some(error) = chunk.error {
            return Err(Failure::in_stream(&error));
        }
        measure(chunk.usage_metadata.as_ref(), draft);
        let feedback = chunk.prompt_feedback.as_ref();
        if feedback.is_some_and(|feedback| feedback.get("blockReason").is_some()) {
            self.stop = Some(StopReason::Refusal);
        }
        let Some(candidate) = chunk.candidates.into_iter().flatten().next() else {
            return Ok(());
        };
        let parts = candidate.content.and_then(|content| content.parts);
        for fields in parts.into_iter().flatten() {
            self.take(fields, draft)?;
        }
        if let Some(reason) = candidate.finish_reason {
            self.stop = Some(stop(&reason));
        }
        Ok(())
    }

    fn whole(&mut self, answer: &str, draft: &mut Draft) -> Result<(), Failure> {
        self.read(answer, draft)
    }

    fn finish(&mut self, draft: &mut Draft) -> Result<(), Failure> {
        let stop = self.stop.take().ok_or_else(Failure::cut)?;
        for part in std::mem::take(&mut self.parts) {
            let (view, wire) = match part {
                OpenPart::Plain { text, is_thought } => plain(text, is_thought),
                OpenPart::Whole { view, fields } => (view, raw(&fields)),
            };
            draft.push(view, wire);
        }
        draft.stop = Some(stop);
        Ok(())
    }

    fn is_over(&self) -> bool {
        false
    }
}

impl GeminiReader {
    fn take(&mut self, mut fields: Fields, draft: &mut Draft) -> Result<(), Failure> {
        if let Some(call) = fields.get("functionCall") {
            let call: Call = serde_json::from_str(call.get()).map_err(Failure::protocol)?;
            let view = self.call(call, &mut fields, draft);
            self.parts.push(OpenPart::Whole { view, fields });
            return Ok(());
        }
        let text = fields
            .get("text")
            .map(|text| serde_json::from_str(text.get()));
        let Some(text) = text else {
            let view = ItemView::Opaque;
            self.parts.push(OpenPart::Whole { view, fields });
            return Ok(());
        };
        let text: String = text.map_err(Failure::protocol)?;
        let thought = fields.get("thought");
        let is_thought = thought.is_some_and(|thought| thought.get() == "true");
        match is_thought {
            true => draft.thinking(&text),
            false => draft.text(&text),
        }
        let is_plain = fields
            .keys()
            .all(|name| name == "text" || name == "thought");
        self.push(text, is_thought, (!is_plain).then_some(fields));
        Ok(())
    }

    fn push(&mut self, text: String, is_thought: bool, fields: Option<Fields>) {
        let last = self.parts.last_mut();
        match (fields, last) {
            (Some(fields), _) => {
                let view = match is_thought {
                    true => ItemView::Thinking(text),
                    false => ItemView::Text(text),
                };
                self.parts.push(OpenPart::Whole { view, fields });
            }
            (
                None,
                Some(OpenPart::Plain {
                    text: before,
                    is_thought: was,
                }),
            ) if *was == is_thought => {
                before.push_str(&text);
            }
            (None, _) if text.is_empty() => {}
            (None, _) => self.parts.push(OpenPart::Plain { text, is_thought }),
        }
    }

    /// Calls come whole, and mostly without ids.
    fn call(&mut self, call: Call, fields: &mut Fields, draft: &mut Draft) -> ItemView {
        let call = ToolCall {
            id: id_or_made(call.id.as_deref()),
            name: call.name,
            arguments: match call.args {
                None | Some(Value::Null) => Arguments::read(""),
                Some(args) => Arguments::of(args),
            },
        };
        if let Arguments::Malformed { .. } = call.arguments {
            let empty = serde_json::json!({ "name": call.name, "args": {} });
            fields.extend(raw(&empty).map(|empty| ("functionCall".to_owned(), empty)));
        }
        draft.whole_call(&call);
        ItemView::Call(call)
    }
}

fn plain(text: String, is_thought: bool) -> (ItemView, Option<Box<RawValue>>) {
    match is_thought {
        true => {
            let wire = raw(&serde_json::json!({ "text": text, "thought": true }));
            (ItemView::Thinking(text), wire)
        }
        false => {
            let wire = raw(&serde_json::json!({ "text": text }));
            (ItemView::Text(text), wire)
        }
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE"
        | "IMAGE_SAFETY" => StopReason::Refusal,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE" => StopReason::MalformedCall,
        other => StopReason::Other(other.to_owned()),
    }
}

/// Each chunk counts from the beginning. The input includes the cache; the output does not include the thoughts.
fn measure(said: Option<&Value>, draft: &mut Draft) {
    let Some(said) = said else { return };
    let count = |name: &str| said.get(name).and_then(Value::as_u64).unwrap_or_default();
    let input = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
    let cached = count("cachedContentTokenCount").min(input);
    let thoughts = count("thoughtsTokenCount");
    draft.measured(Usage {
        input: input - cached,
        cache_read: cached,
        cache_write: 0,
        output: count("candidatesTokenCount").saturating_add(thoughts),
        reasoning: thoughts,
        ..Usage::default()
    });
}
