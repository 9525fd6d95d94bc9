//! Answers as OpenAI's Responses API gives them.

use serde_json::{Value, json};

use super::MODEL;
use super::piece::{Piece, PieceKind, split};
use super::scenario::{ScriptedAnswer, ScriptedStop, ScriptedUsage};

pub(super) fn whole(answer: &ScriptedAnswer) -> Value {
    let output: Vec<Value> = items(answer).into_iter().map(|item| item.whole).collect();
    let (status, reason) = status(answer.stop());
    let mut response = response(status);
    response["output"] = json!(output);
    response["usage"] = usage(&answer.usage);
    response["incomplete_details"] = json!(reason.map(|reason| json!({ "reason": reason })));
    response
}

pub(super) fn stream(answer: &ScriptedAnswer) -> Vec<Piece> {
    let mut pieces = vec![
        event(json!({ "type": "response.created", "response": response("in_progress") })),
        event(json!({ "type": "response.in_progress", "response": response("in_progress") })),
    ];
    for (place, item) in items(answer).into_iter().enumerate() {
        let added = json!({ "type": "response.output_item.added", "output_index": place, "item": item.begun });
        pieces.push(event(added));
        for (kind, mut delta) in item.deltas {
            delta["output_index"] = json!(place);
            pieces.push(event(delta).of(kind));
        }
        let done = json!({ "type": "response.output_item.done", "output_index": place, "item": item.whole });
        pieces.push(event(done));
    }
    let whole = whole(answer);
    let name = match whole["status"].as_str() {
        Some("completed") => "response.completed",
        _ => "response.incomplete",
    };
    pieces.push(event(json!({ "type": name, "response": whole })).of(PieceKind::End));
    pieces
}

pub(super) fn in_stream(says: &str) -> Piece {
    let error = super::chat::error(says, "as the script says");
    let (code, message) = (&error["error"]["code"], &error["error"]["message"]);
    event(
        json!({ "type": "error", "code": code, "message": message, "param": null, "sequence_number": 3 }),
    )
}

struct ScriptedItem {
    begun: Value,
    deltas: Vec<(PieceKind, Value)>,
    whole: Value,
}

fn items(answer: &ScriptedAnswer) -> Vec<ScriptedItem> {
    let mut items = Vec::new();
    if let Some(thinking) = &answer.thinking {
        items.push(reasoning(
            thinking,
            answer.seal.as_deref().unwrap_or("Z0FBQUFB"),
        ));
    }
    if let Some(text) = &answer.text {
        let is_refusal = answer.stop() == ScriptedStop::Refusal;
        items.push(message(text, is_refusal));
    }
    for (place, call) in answer.calls.iter().enumerate() {
        items.push(function_call(
            place,
            &call.id(place),
            &call.name,
            &call.text(),
        ));
    }
    items
}

fn reasoning(thinking: &str, seal: &str) -> ScriptedItem {
    let id = "rs_6820f383d7c08191846711c5df8233bc";
    let name = "response.reasoning_summary_text.delta";
    let deltas = split(thinking).map(|half| {
        let delta = json!({ "type": name, "item_id": id, "summary_index": 0, "delta": half });
        (PieceKind::Frame, delta)
    });
    ScriptedItem {
        begun: json!({ "id": id, "type": "reasoning", "summary": [], "encrypted_content": "" }),
        deltas: deltas.into(),
        whole: json!({
            "id": id, "type": "reasoning", "summary": [{ "type": "summary_text", "text": thinking }],
            "encrypted_content": seal,
        }),
    }
}

fn message(text: &str, is_refusal: bool) -> ScriptedItem {
    let id = "msg_67ccd2bf17f0819081ff3bb2cf6508e6";
    let (name, part) = match is_refusal {
        true => (
            "response.refusal.delta",
            json!({ "type": "refusal", "refusal": text }),
        ),
        false => {
            let part = json!({ "type": "output_text", "text": text, "annotations": [] });
            ("response.output_text.delta", part)
        }
    };
    let deltas = split(text).map(|half| {
        let delta = json!({ "type": name, "item_id": id, "content_index": 0, "delta": half });
        (PieceKind::Text, delta)
    });
    ScriptedItem {
        begun: json!({ "id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": [] }),
        deltas: deltas.into(),
        whole: json!({ "id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part] }),
    }
}

fn function_call(place: usize, call_id: &str, name: &str, arguments: &str) -> ScriptedItem {
    let id = format!("fc_{place}");
    let deltas = split(arguments).map(|half| {
        let delta = json!({ "type": "response.function_call_arguments.delta", "item_id": id, "delta": half });
        (PieceKind::Arguments, delta)
    });
    let item = |status: &str, arguments: &str| {
        json!({
            "id": id, "type": "function_call", "status": status, "call_id": call_id, "name": name,
            "arguments": arguments,
        })
    };
    ScriptedItem {
        begun: item("in_progress", ""),
        whole: item("completed", arguments),
        deltas: deltas.into(),
    }
}

fn response(status: &str) -> Value {
    json!({
        "id": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b", "object": "response", "created_at": 1_741_476_542,
        "status": status, "error": null, "incomplete_details": null, "model": MODEL, "output": [], "store": false,
        "usage": null,
    })
}

fn event(data: Value) -> Piece {
    let name = data["type"].as_str().unwrap_or_default().to_owned();
    Piece::event(&name, &data)
}

fn status(stop: ScriptedStop) -> (&'static str, Option<&'static str>) {
    match stop {
        ScriptedStop::End | ScriptedStop::Calls | ScriptedStop::Refusal => ("completed", None),
        ScriptedStop::Length => ("incomplete", Some("max_output_tokens")),
        ScriptedStop::Unknown => ("incomplete", Some("new_reason")),
    }
}

fn usage(said: &ScriptedUsage) -> Value {
    if said.is_wrong {
        return json!({ "input_tokens": -1, "output_tokens": "many", "total_tokens": null });
    }
    let input = said.input + said.cache_read + said.cache_write;
    json!({
        "input_tokens": input, "input_tokens_details": { "cached_tokens": said.cache_read },
        "output_tokens": said.output, "output_tokens_details": { "reasoning_tokens": said.reasoning },
        "total_tokens": input + said.output,
    })
}
