//! Answers of the Messages API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::block::{Fields, OpenBlock};
use crate::draft::Draft;
use crate::message::StopReason;
use crate::usage::Usage;
use crate::wire::{Failure, Reader};

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct AnthropicReader {
    /// Blocks by the number they came with.
    open: BTreeMap<u64, OpenBlock>,
    stop: Option<StopReason>,
    is_over: bool,
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    index: Option<u64>,
    content_block: Option<Fields>,
    delta: Option<Value>,
    message: Option<Value>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Whole {
    content: Option<Vec<Fields>>,
    stop_reason: Option<String>,
    usage: Option<Value>,
    error: Option<Value>,
}

impl Reader for AnthropicReader {
    fn read(&mut self, frame: &str, draft: &mut Draft) -> Result<(), Failure> {
        let event: Event = serde_json::from_str(frame).map_err(Failure::protocol)?;
        match event.r#type.as_str() {
            "message_start" => {
                let usage = event.message.as_ref().and_then(|said| said.get("usage"));
                measure(usage, draft);
            }
            "content_block_start" => {
                let block = OpenBlock::new(event.content_block.unwrap_or_default());
                block.announce(draft);
                self.open.insert(event.index.unwrap_or_default(), block);
            }
            "content_block_delta" => {
                let block = self.open.get_mut(&event.index.unwrap_or_default());
                let (Some(block), Some(delta)) = (block, event.delta) else {
                    return Err(Failure::protocol("a piece of a block that never began"));
                };
                block.grow(&delta, draft);
            }
            "content_block_stop" => {
                if let Some(block) = self.open.get_mut(&event.index.unwrap_or_default()) {
                    block.is_complete = true;
                }
            }
            "message_delta" => {
                measure(event.usage.as_ref(), draft);
                let delta = event.delta.as_ref();
                let reason = delta.and_then(|delta| delta.get("stop_reason"));
                if let Some(reason) = reason.and_then(Value::as_str) {
                    self.stop = Some(stop(reason));
                }
            }
            "message_stop" => self.is_over = true,
            "error" => return Err(Failure::in_stream(&event.error.unwrap_or_default())),
            // Pings, and whatever comes to be.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, answer: &str, draft: &mut Draft) -> Result<(), Failure> {
        let whole: Whole = serde_json::from_str(answer).map_err(Failure::protocol)?;
        if let Some(error) = whole.error {
            return Err(Failure::in_stream(&error));
        }
        measure(whole.usage.as_ref(), draft);
        let blocks = whole.content.unwrap_or_default();
        for (index, fields) in (0..).zip(blocks) {
            let mut block = OpenBlock::new(fields);
            block.is_complete = true;
            block.announce(draft);
            self.open.insert(index, block);
        }
        self.stop = whole.stop_reason.as_deref().map(stop);
        self.is_over = true;
        Ok(())
    }

    fn finish(&mut self, draft: &mut Draft) -> Result<(), Failure> {
        let is_complete = self.open.values().all(|block| block.is_complete);
        let (true, true, Some(stop)) = (self.is_over, is_complete, self.stop.take()) else {
            return Err(Failure::cut());
        };
        for block in std::mem::take(&mut self.open).into_values() {
            block.close(stop == StopReason::Length, draft);
        }
        draft.stop = Some(stop);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

/// Snapshots count from the beginning of the answer, and leave out what did not change. Their input does not include the cache.
fn measure(said: Option<&Value>, draft: &mut Draft) {
    let Some(said) = said else { return };
    let count = |name: &str, before: u64| {
        let now = said.get(name).and_then(Value::as_u64);
        now.unwrap_or_default().max(before)
    };
    let before = draft.usage;
    draft.measured(Usage {
        input: count("input_tokens", before.input),
        cache_read: count("cache_read_input_tokens", before.cache_read),
        cache_write: count("cache_creation_input_tokens", before.cache_write),
        output: count("output_tokens", before.output),
        reasoning: before.reasoning,
        ..Usage::default()
    });
}
