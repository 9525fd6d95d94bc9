//! Answers as OpenAI's Chat Completions API gives them.

use serde_json::{Value, json};

use super::MODEL;
use super::piece::{Piece, PieceKind, split};
use super::scenario::{ScriptedAnswer, ScriptedStop, ScriptedUsage};

pub(super) fn whole(answer: &ScriptedAnswer) -> Value {
    let mut message = json!({ "role": "assistant", "content": answer.text, "refusal": null });
    if let Some(thinking) = &answer.thinking {
        message["reasoning_content"] = json!(thinking);
    }
    let calls: Vec<Value> = answer
        .calls
        .iter()
        .enumerate()
        .map(|(place, call)| {
            let function = json!({ "name": call.name, "arguments": call.text() });
            json!({ "id": call.id(place), "type": "function", "function": function })
        })
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion", "created": 1_741_569_952, "model": MODEL,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": stop(answer.stop()) }],
        "usage": usage(&answer.usage),
    })
}

pub(super) fn stream(answer: &ScriptedAnswer) -> Vec<Piece> {
    let mut pieces = vec![delta(
        json!({ "role": "assistant", "content": "", "refusal": null }),
    )];
    if let Some(thinking) = &answer.thinking {
        let halves = split(thinking);
        pieces.extend(
            halves.map(|half| delta(json!({ "reasoning_content": half, "content": null }))),
        );
    }
    if let Some(text) = &answer.text {
        let halves = split(text);
        pieces.extend(halves.map(|half| delta(json!({ "content": half })).of(PieceKind::Text)));
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let function = json!({ "name": call.name, "arguments": "" });
        let begin = json!({ "index": index, "id": call.id(index), "type": "function", "function": function });
        pieces.push(delta(json!({ "tool_calls": [begin] })));
        for half in split(&call.text()) {
            let more = json!({ "index": index, "function": { "arguments": half } });
            pieces.push(delta(json!({ "tool_calls": [more] })).of(PieceKind::Arguments));
        }
    }
    let mut end = chunk(
        json!([{ "index": 0, "delta": {}, "logprobs": null, "finish_reason": stop(answer.stop()) }]),
    );
    end["usage"] = Value::Null;
    pieces.push(Piece::data(&end).of(PieceKind::End));
    let mut counted = chunk(json!([]));
    counted["usage"] = usage(&answer.usage);
    pieces.push(Piece::data(&counted).of(PieceKind::End));
    pieces.push(Piece {
        kind: PieceKind::End,
        bytes: "data: [DONE]\n\n".to_owned(),
    });
    pieces
}

pub(super) fn error(says: &str, message: &str) -> Value {
    let (kind, code, message) = match says {
        "billing" => (
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        "rate" => ("requests", "rate_limit_exceeded", message),
        "overloaded" => ("server_error", "overloaded", message),
        "length" => (
            "invalid_request_error",
            "context_length_exceeded",
            "This model's maximum context length is 128000 tokens.",
        ),
        "key" => (
            "invalid_request_error",
            "invalid_api_key",
            "Incorrect API key provided.",
        ),
        _ => ("server_error", "server_error", message),
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

fn chunk(choices: Value) -> Value {
    json!({
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion.chunk", "created": 1_741_569_952,
        "model": MODEL, "choices": choices,
    })
}

fn delta(delta: Value) -> Piece {
    let choice = json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null }]);
    Piece::data(&chunk(choice))
}

fn stop(stop: ScriptedStop) -> &'static str {
    match stop {
        ScriptedStop::End => "stop",
        ScriptedStop::Calls => "tool_calls",
        ScriptedStop::Length => "length",
        ScriptedStop::Refusal => "content_filter",
        ScriptedStop::Unknown => "new_reason",
    }
}

/// The input includes what came from the cache.
fn usage(said: &ScriptedUsage) -> Value {
    if said.is_wrong {
        return json!({ "prompt_tokens": -1, "completion_tokens": "many", "total_tokens": null });
    }
    let prompt = said.input + said.cache_read + said.cache_write;
    json!({
        "prompt_tokens": prompt, "completion_tokens": said.output, "total_tokens": prompt + said.output,
        "prompt_tokens_details": { "cached_tokens": said.cache_read, "audio_tokens": 0 },
        "completion_tokens_details": { "reasoning_tokens": said.reasoning },
    })
}
