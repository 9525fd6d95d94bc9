//! Answers of Ollama.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::draft::{Draft, id_or_made, raw};
use crate::message::{Arguments, ItemView, StopReason, ToolCall};
use crate::usage::Usage;
use crate::wire::{Failure, Reader};

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct OllamaReader {
    thinking: String,
    content: String,
    calls: Vec<(ToolCall, Option<Box<RawValue>>)>,
    stop: Option<StopReason>,
}

#[derive(Deserialize)]
struct Chunk {
    message: Option<Message>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<BTreeMap<String, Box<RawValue>>>>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: String,
    arguments: Option<Value>,
}

impl Reader for OllamaReader {
    fn read(&mut self, frame: &str, draft: &mut Draft) -> Result<(), Failure> {
        let chunk: Chunk = serde_json::from_str(frame).map_err(Failure::protocol)?;
        // Errors come with the status 200 once an answer has begun.
        if let Some(error) = chunk.error {
            return Err(Failure::in_stream(&error));
        }
        if let Some(message) = chunk.message {
            let thinking = message.thinking.unwrap_or_default();
            draft.thinking(&thinking);
            self.thinking.push_str(&thinking);
            let content = message.content.unwrap_or_default();
            draft.text(&content);
            self.content.push_str(&content);
            for fields in message.tool_calls.into_iter().flatten() {
                self.call(fields, draft)?;
            }
        }
        if chunk.done {
            draft.measured(Usage {
                input: chunk.prompt_eval_count.unwrap_or_default(),
                output: chunk.eval_count.unwrap_or_default(),
                ..Usage::default()
            });
            self.stop = Some(stop(chunk.done_reason.as_deref().unwrap_or_default()));
        }
        Ok(())
    }

    fn whole(&mut self, answer: &str, draft: &mut Draft) -> Result<(), Failure> {
        self.read(answer, draft)
    }

    fn finish(&mut self, draft: &mut Draft) -> Result<(), Failure> {
        let stop = self.stop.take().ok_or_else(Failure::cut)?;
        let thinking = std::mem::take(&mut self.thinking);
        if !thinking.is_empty() {
            let wire = raw(&BTreeMap::from([("thinking", &thinking)]));
            draft.push(ItemView::Thinking(thinking), wire);
        }
        let content = std::mem::take(&mut self.content);
        if !content.is_empty() {
            let wire = raw(&BTreeMap::from([("content", &content)]));
            draft.push(ItemView::Text(content), wire);
        }
        for (call, wire) in std::mem::take(&mut self.calls) {
            draft.push(ItemView::Call(call), wire);
        }
        draft.stop = Some(stop);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.stop.is_some()
    }
}

impl OllamaReader {
    /// Calls come whole, and their results are told apart by order and name.
    fn call(
        &mut self,
        mut fields: BTreeMap<String, Box<RawValue>>,
        draft: &mut Draft,
    ) -> Result<(), Failure> {
        let function = fields.get("function").map_or("{}", |value| value.get());
        let function: Function = serde_json::from_str(function).map_err(Failure::protocol)?;
        let id: Option<String> = fields
            .get("id")
            .and_then(|id| serde_json::from_str(id.get()).ok());
        let call = ToolCall {
            id: id_or_made(id.as_deref()),
            name: function.name,
            arguments: match function.arguments {
                None | Some(Value::Null) => Arguments::read(""),
                Some(arguments) => Arguments::of(arguments),
            },
        };
        if let Arguments::Malformed { .. } = call.arguments {
            let empty = serde_json::json!({ "name": call.name, "arguments": {} });
            fields.extend(raw(&empty).map(|empty| ("function".to_owned(), empty)));
        }
        draft.whole_call(&call);
        self.calls.push((call, raw(&fields)));
        Ok(())
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        // Older servers give no reason.
        "stop" | "" => StopReason::EndTurn,
        "length" => StopReason::Length,
        other => StopReason::Other(other.to_owned()),
    }
}
