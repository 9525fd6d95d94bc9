//! Answers as Ollama's chat API gives them.

use serde_json::{Value, json};

use super::MODEL;
use super::piece::{Piece, PieceKind, split};
use super::scenario::{ScriptedAnswer, ScriptedCall, ScriptedStop, ScriptedUsage};

pub(super) fn whole(answer: &ScriptedAnswer) -> Value {
    let mut message =
        json!({ "role": "assistant", "content": answer.text.as_deref().unwrap_or_default() });
    if let Some(thinking) = &answer.thinking {
        message["thinking"] = json!(thinking);
    }
    if !answer.calls.is_empty() {
        let calls: Vec<Value> = answer.calls.iter().map(call).collect();
        message["tool_calls"] = json!(calls);
    }
    end(answer, message)
}

pub(super) fn stream(answer: &ScriptedAnswer) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut push = |message: Value, kind: PieceKind| {
        let line = json!({ "model": MODEL, "created_at": "2026-01-12T17:06:05.7Z", "message": message, "done": false });
        pieces.push(Piece::line(&line).of(kind));
    };
    for half in answer.thinking.iter().flat_map(|thinking| split(thinking)) {
        let message = json!({ "role": "assistant", "content": "", "thinking": half });
        push(message, PieceKind::Frame);
    }
    for half in answer.text.iter().flat_map(|text| split(text)) {
        let message = json!({ "role": "assistant", "content": half });
        push(message, PieceKind::Text);
    }
    for each in &answer.calls {
        let message = json!({ "role": "assistant", "content": "", "tool_calls": [call(each)] });
        push(message, PieceKind::Arguments);
    }
    let end = end(answer, json!({ "role": "assistant", "content": "" }));
    pieces.push(Piece::line(&end).of(PieceKind::End));
    pieces
}

pub(super) fn error(says: &str, message: &str) -> Value {
    json!({ "error": match says {
        "billing" => "insufficient credits",
        "length" => "the input length exceeds the context window",
        _ => message,
    }})
}

fn call(call: &ScriptedCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.value() });
    match &call.id {
        Some(id) => json!({ "id": id, "function": function }),
        None => json!({ "function": function }),
    }
}

fn end(answer: &ScriptedAnswer, message: Value) -> Value {
    let mut end = json!({
        "model": MODEL, "created_at": "2026-01-12T17:06:05.9Z", "message": message, "done": true,
        "done_reason": stop(answer.stop()), "total_duration": 4_883_583_458_u64, "load_duration": 1_334_875,
    });
    let ScriptedUsage {
        input,
        cache_read,
        cache_write,
        output,
        is_wrong,
        ..
    } = answer.usage;
    if !is_wrong {
        end["prompt_eval_count"] = json!(input + cache_read + cache_write);
        end["eval_count"] = json!(output);
    }
    end
}

/// There is one reason for success, and no refusal.
fn stop(stop: ScriptedStop) -> &'static str {
    match stop {
        ScriptedStop::End | ScriptedStop::Calls => "stop",
        ScriptedStop::Length => "length",
        ScriptedStop::Refusal | ScriptedStop::Unknown => "new_reason",
    }
}
