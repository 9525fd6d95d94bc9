//! Answers as Gemini's `generateContent` gives them.

use serde_json::{Value, json};

use super::MODEL;
use super::piece::{Piece, PieceKind, split};
use super::scenario::{ScriptedAnswer, ScriptedCall, ScriptedStop, ScriptedUsage};

pub(super) fn whole(answer: &ScriptedAnswer) -> Value {
    let mut parts = Vec::new();
    if let Some(thinking) = &answer.thinking {
        parts.push(json!({ "text": thinking, "thought": true }));
    }
    if let Some(text) = &answer.text {
        parts.push(json!({ "text": text }));
    }
    parts.extend(calls(answer));
    chunk(json!(parts), Some(answer))
}

pub(super) fn stream(answer: &ScriptedAnswer) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut push = |part: Value, kind: PieceKind| {
        pieces.push(Piece::data(&chunk(json!([part]), None)).of(kind));
    };
    for half in answer.thinking.iter().flat_map(|thinking| split(thinking)) {
        push(json!({ "text": half, "thought": true }), PieceKind::Frame);
    }
    for half in answer.text.iter().flat_map(|text| split(text)) {
        push(json!({ "text": half }), PieceKind::Text);
    }
    for call in calls(answer) {
        push(call, PieceKind::Arguments);
    }
    let end = chunk(json!([{ "text": "" }]), Some(answer));
    pieces.push(Piece::data(&end).of(PieceKind::End));
    pieces
}

pub(super) fn error(says: &str, message: &str) -> Value {
    let (code, status, message) = match says {
        "billing" => (402, "FAILED_PRECONDITION", "insufficient credits"),
        "rate" => (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota.",
        ),
        "overloaded" => (
            503,
            "UNAVAILABLE",
            "The model is overloaded. Please try again later.",
        ),
        "length" => (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        ),
        "key" => (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
        ),
        _ => (500, "INTERNAL", message),
    };
    json!({ "error": { "code": code, "message": message, "status": status } })
}

/// The first call carries the signature of the thoughts before it.
fn calls(answer: &ScriptedAnswer) -> Vec<Value> {
    let calls = answer.calls.iter().enumerate().map(|(place, call)| {
        let mut part = json!({ "functionCall": function(call) });
        if let Some(seal) = answer.seal.as_ref().filter(|_| place == 0) {
            part["thoughtSignature"] = json!(seal);
        }
        part
    });
    calls.collect()
}

fn function(call: &ScriptedCall) -> Value {
    match &call.id {
        Some(id) => json!({ "id": id, "name": call.name, "args": call.value() }),
        None => json!({ "name": call.name, "args": call.value() }),
    }
}

fn chunk(parts: Value, end: Option<&ScriptedAnswer>) -> Value {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    if let Some(answer) = end {
        candidate["finishReason"] = json!(stop(answer.stop()));
    }
    let usage = match end {
        Some(answer) => usage(&answer.usage),
        None => json!({ "promptTokenCount": 1 }),
    };
    json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "r1" })
}

/// Calls end an answer like everything else.
fn stop(stop: ScriptedStop) -> &'static str {
    match stop {
        ScriptedStop::End | ScriptedStop::Calls => "STOP",
        ScriptedStop::Length => "MAX_TOKENS",
        ScriptedStop::Refusal => "SAFETY",
        ScriptedStop::Unknown => "NEW_REASON",
    }
}

fn usage(said: &ScriptedUsage) -> Value {
    if said.is_wrong {
        return json!({ "promptTokenCount": -1, "candidatesTokenCount": "many" });
    }
    json!({
        "promptTokenCount": said.input + said.cache_read + said.cache_write,
        "cachedContentTokenCount": said.cache_read,
        "candidatesTokenCount": said.output - said.reasoning, "thoughtsTokenCount": said.reasoning,
        "totalTokenCount": said.input + said.cache_read + said.cache_write + said.output,
    })
}
