//! Answers as Anthropic's Messages API gives them.

use serde_json::{Value, json};

use super::MODEL;
use super::piece::{Piece, PieceKind, split};
use super::scenario::{ScriptedAnswer, ScriptedStop, ScriptedUsage};

pub(super) fn whole(answer: &ScriptedAnswer) -> Value {
    let mut content = Vec::new();
    if let Some(thinking) = &answer.thinking {
        let seal = answer.seal.as_deref().unwrap_or("c2lnbmF0dXJl");
        content.push(json!({ "type": "thinking", "thinking": thinking, "signature": seal }));
    }
    if let Some(text) = &answer.text {
        content.push(json!({ "type": "text", "text": text }));
    }
    for (place, call) in answer.calls.iter().enumerate() {
        let (id, input) = (call.id(place), call.value());
        content.push(json!({ "type": "tool_use", "id": id, "name": call.name, "input": input }));
    }
    json!({
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "model": MODEL,
        "content": content, "stop_reason": stop(answer.stop()), "stop_sequence": null,
        "usage": usage(&answer.usage, answer.usage.output),
    })
}

pub(super) fn stream(answer: &ScriptedAnswer) -> Vec<Piece> {
    let mut message = whole(answer);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"] = usage(&answer.usage, 1);
    let mut pieces = vec![
        event(json!({ "type": "message_start", "message": message })),
        event(json!({ "type": "ping" })),
    ];
    let blocks = blocks(answer);
    for (index, block) in blocks.iter().enumerate() {
        let start =
            json!({ "type": "content_block_start", "index": index, "content_block": block.start });
        pieces.push(event(start));
        for (kind, delta) in &block.deltas {
            let delta = json!({ "type": "content_block_delta", "index": index, "delta": delta });
            pieces.push(event(delta).of(*kind));
        }
        pieces.push(event(
            json!({ "type": "content_block_stop", "index": index }),
        ));
    }
    let delta = json!({
        "type": "message_delta", "delta": { "stop_reason": stop(answer.stop()), "stop_sequence": null },
        "usage": usage_at_end(&answer.usage),
    });
    pieces.push(event(delta).of(PieceKind::End));
    pieces.push(event(json!({ "type": "message_stop" })).of(PieceKind::End));
    pieces
}

pub(super) fn error(says: &str, message: &str) -> Value {
    let (kind, message) = match says {
        "billing" => (
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
        ),
        "rate" => ("rate_limit_error", message),
        "overloaded" => ("overloaded_error", "Overloaded"),
        "length" => (
            "invalid_request_error",
            "prompt is too long: 200001 tokens > 200000 maximum",
        ),
        "key" => ("authentication_error", "invalid x-api-key"),
        _ => ("api_error", message),
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}

struct ScriptedBlock {
    start: Value,
    deltas: Vec<(PieceKind, Value)>,
}

fn blocks(answer: &ScriptedAnswer) -> Vec<ScriptedBlock> {
    let mut blocks = Vec::new();
    if let Some(thinking) = &answer.thinking {
        let seal = answer.seal.as_deref().unwrap_or("c2lnbmF0dXJl");
        let signed = (
            PieceKind::Frame,
            json!({ "type": "signature_delta", "signature": seal }),
        );
        let deltas = split(thinking).map(|half| {
            (
                PieceKind::Frame,
                json!({ "type": "thinking_delta", "thinking": half }),
            )
        });
        blocks.push(ScriptedBlock {
            start: json!({ "type": "thinking", "thinking": "", "signature": "" }),
            deltas: deltas.into_iter().chain([signed]).collect(),
        });
    }
    if let Some(text) = &answer.text {
        let deltas = split(text).map(|half| {
            (
                PieceKind::Text,
                json!({ "type": "text_delta", "text": half }),
            )
        });
        blocks.push(ScriptedBlock {
            start: json!({ "type": "text", "text": "" }),
            deltas: deltas.into(),
        });
    }
    for (place, call) in answer.calls.iter().enumerate() {
        let text = call.text();
        let mut deltas = vec![(
            PieceKind::Frame,
            json!({ "type": "input_json_delta", "partial_json": "" }),
        )];
        deltas.extend(split(&text).map(|half| {
            (
                PieceKind::Arguments,
                json!({ "type": "input_json_delta", "partial_json": half }),
            )
        }));
        blocks.push(ScriptedBlock {
            start: json!({ "type": "tool_use", "id": call.id(place), "name": call.name, "input": {} }),
            deltas,
        });
    }
    blocks
}

fn event(data: Value) -> Piece {
    let name = data["type"].as_str().unwrap_or_default().to_owned();
    Piece::event(&name, &data)
}

fn stop(stop: ScriptedStop) -> &'static str {
    match stop {
        ScriptedStop::End => "end_turn",
        ScriptedStop::Calls => "tool_use",
        ScriptedStop::Length => "max_tokens",
        ScriptedStop::Refusal => "refusal",
        ScriptedStop::Unknown => "new_reason",
    }
}

fn usage(usage: &ScriptedUsage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write, "output_tokens": output, "service_tier": "standard",
    })
}

/// The last snapshot counts everything again.
fn usage_at_end(said: &ScriptedUsage) -> Value {
    match said.is_wrong {
        true => json!({ "output_tokens": -1, "input_tokens": "many" }),
        false => json!({ "output_tokens": said.output, "input_tokens": said.input }),
    }
}
