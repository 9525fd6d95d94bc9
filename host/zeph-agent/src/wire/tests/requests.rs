//! Requests in the words of each provider's documentation: a conversation that another provider began, with a failed call and a picture.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answers::origin;
use crate::message::{
    Arguments, AssistantTurn, Block, CallResult, Image, Item, ItemView, StopReason, ToolCall, Turn,
    UserTurn,
};
use crate::provider::{ModelRequest, RequestOptions};
use crate::scripted::tests::{settings, tools};
use crate::settings::{ProviderKind, ProviderSettings};
use crate::wire::{Ask, codec, replay};

/// A conversation that another provider began.
fn foreign() -> Vec<Turn<'static>> {
    let call = ToolCall {
        id: "functions.read:0".to_owned(),
        name: "read".to_owned(),
        arguments: Arguments::read(r#"{"path":"a.png"}"#),
    };
    let image = Block::Image(Cow::Owned(Image {
        media_type: "image/png".to_owned(),
        base64: "iVBORw0=".to_owned(),
    }));
    let result = CallResult {
        call_id: call.id.clone().into(),
        name: call.name.clone().into(),
        content: vec![Block::Text("too dark".into()), image],
        is_error: true,
    };
    let views = [
        ItemView::Thinking("secret".to_owned()),
        ItemView::Opaque,
        ItemView::Text("Looking.".to_owned()),
        ItemView::Call(call),
    ];
    vec![
        Turn::User(UserTurn::text("what is it?")),
        Turn::Assistant(Cow::Owned(AssistantTurn {
            origin: origin("other", ProviderKind::Anthropic),
            items: views.map(Item::neutral).into(),
            stop: StopReason::ToolCalls,
        })),
        Turn::User(UserTurn {
            results: vec![result],
            content: vec![Block::Text("go on".into())],
        }),
    ]
}

fn body(kind: ProviderKind, forbids_calls: bool) -> Value {
    body_of(kind, &foreign(), forbids_calls)
}

fn body_of(kind: ProviderKind, turns: &[Turn<'_>], forbids_calls: bool) -> Value {
    let settings = ProviderSettings {
        temperature: Some(0.5),
        ..settings(kind, "http://x".to_owned())
    };
    let (tools, origin) = (tools(), origin("test", kind));
    let options = RequestOptions {
        forbids_calls,
        ..RequestOptions::default()
    };
    let ask = Ask {
        settings: &settings,
        origin: &origin,
        request: ModelRequest {
            system: &["Be brief.".to_owned(), "Be kind.".to_owned()],
            tools: &tools[..1],
            turns,
            options,
        },
    };
    let body = codec(&settings).body(&ask).unwrap();
    let id = replay::short(1, "functions.read:0");
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    serde_json::from_str(&body.replace(&id, "ID")).unwrap()
}

#[test]
fn a_request_to_anthropic() {
    let schema = &tools()[0].schema;
    let mark = json!({ "type": "ephemeral" });
    let image = json!({ "type": "base64", "media_type": "image/png", "data": "iVBORw0=" });
    let result =
        json!([{ "type": "text", "text": "too dark" }, { "type": "image", "source": image }]);
    let expected = json!({
        "model": "scripted-1", "max_tokens": 1000, "temperature": 0.5, "stream": true, "tool_choice": { "type": "none" },
        "tools": [{ "name": "read", "description": "read something", "input_schema": schema }],
        "system": [{ "type": "text", "text": "Be brief.\n\nBe kind.", "cache_control": mark }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "what is it?", "cache_control": mark }] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Looking." },
                { "type": "tool_use", "id": "ID", "name": "read", "input": { "path": "a.png" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "ID", "content": result, "is_error": true },
                { "type": "text", "text": "go on", "cache_control": mark },
            ] },
        ],
    });
    assert_eq!(body(ProviderKind::Anthropic, true), expected);
}

#[test]
fn a_message_to_anthropic_does_not_end_with_a_thought() {
    let kind = ProviderKind::Anthropic;
    let own = |view: ItemView, wire: &str| Item {
        view,
        wire: RawValue::from_string(wire.to_owned()).ok(),
    };
    let thought = || {
        let wire = r#"{"signature":"s","thinking":"hm","type":"thinking"}"#;
        own(ItemView::Thinking("hm".to_owned()), wire)
    };
    let sealed = r#"{"data":"x","type":"redacted_thinking"}"#;
    let said = r#"{"text":"so","type":"text"}"#;
    let items = vec![
        thought(),
        own(ItemView::Text("so".to_owned()), said),
        own(ItemView::Opaque, sealed),
        thought(),
    ];
    let turns = [
        Turn::User(UserTurn::text("go")),
        Turn::Assistant(Cow::Owned(AssistantTurn {
            origin: origin("test", kind),
            items,
            stop: StopReason::Length,
        })),
        Turn::User(UserTurn::text("go on")),
    ];
    let sent = &body_of(kind, &turns, false)["messages"][1]["content"];
    let types: Vec<_> = sent
        .as_array()
        .unwrap()
        .iter()
        .map(|part| &part["type"])
        .collect();
    assert_eq!(types, ["thinking", "text"]);
}

#[test]
fn a_request_to_openai_chat() {
    let function =
        json!({ "name": "read", "description": "read something", "parameters": tools()[0].schema });
    let call = json!({ "name": "read", "arguments": "{\"path\":\"a.png\"}" });
    let expected = json!({
        "model": "scripted-1", "max_tokens": 1000, "temperature": 0.5, "stream": true, "tool_choice": "none",
        "stream_options": { "include_usage": true }, "tools": [{ "type": "function", "function": function }],
        "messages": [
            { "role": "system", "content": "Be brief.\n\nBe kind." },
            { "role": "user", "content": "what is it?" },
            { "role": "assistant", "content": "Looking.", "tool_calls": [{ "id": "ID", "type": "function", "function": call }] },
            { "role": "tool", "tool_call_id": "ID", "content": "[error] too dark" },
            { "role": "user", "content": [
                { "type": "text", "text": "Picture from the result of `read`:" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw0=" } },
                { "type": "text", "text": "go on" },
            ] },
        ],
    });
    assert_eq!(body(ProviderKind::OpenAi, true), expected);
}

#[test]
fn a_request_to_openai_responses() {
    let said = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    let output = json!([
        { "type": "input_text", "text": "[error] too dark" },
        { "type": "input_image", "image_url": "data:image/png;base64,iVBORw0=" },
    ]);
    let expected = json!({
        "model": "scripted-1", "max_output_tokens": 1000, "temperature": 0.5, "stream": true, "tool_choice": "none",
        "store": false, "include": ["reasoning.encrypted_content"], "instructions": "Be brief.\n\nBe kind.",
        "tools": [{
            "type": "function", "name": "read", "description": "read something", "parameters": tools()[0].schema, "strict": false,
        }],
        "input": [
            said("user", "input_text", "what is it?"),
            said("assistant", "output_text", "Looking."),
            { "type": "function_call", "call_id": "ID", "name": "read", "arguments": "{\"path\":\"a.png\"}" },
            { "type": "function_call_output", "call_id": "ID", "output": output },
            said("user", "input_text", "go on"),
        ],
    });
    assert_eq!(body(ProviderKind::OpenAiResponses, true), expected);
}

#[test]
fn a_request_to_ollama() {
    let function =
        json!({ "name": "read", "description": "read something", "parameters": tools()[0].schema });
    let call = json!({ "name": "read", "arguments": { "path": "a.png" } });
    let expected = json!({
        "model": "scripted-1", "stream": true, "options": { "num_ctx": 8192, "num_predict": 1000, "temperature": 0.5 },
        "tools": [{ "type": "function", "function": function }],
        "messages": [
            { "role": "system", "content": "Be brief.\n\nBe kind." },
            { "role": "user", "content": "what is it?" },
            { "role": "assistant", "content": "Looking.", "tool_calls": [{ "function": call }] },
            { "role": "tool", "tool_name": "read", "content": "[error] too dark" },
            { "role": "user", "content": "Picture from the result of `read`:\n\ngo on", "images": ["iVBORw0="] },
        ],
    });
    assert_eq!(body(ProviderKind::Ollama, false), expected);
    assert!(body(ProviderKind::Ollama, true).get("tools").is_none());
}

#[test]
fn a_request_to_gemini() {
    let declaration = json!({ "name": "read", "description": "read something", "parametersJsonSchema": tools()[0].schema });
    let response = json!({ "name": "read", "response": { "error": "too dark" } });
    let expected = json!({
        "systemInstruction": { "parts": [{ "text": "Be brief.\n\nBe kind." }] },
        "tools": [{ "functionDeclarations": [declaration] }],
        "toolConfig": { "functionCallingConfig": { "mode": "NONE" } },
        "generationConfig": { "maxOutputTokens": 1000, "temperature": 0.5 },
        "contents": [
            { "role": "user", "parts": [{ "text": "what is it?" }] },
            { "role": "model", "parts": [
                { "text": "Looking." },
                { "functionCall": { "name": "read", "args": { "path": "a.png" } } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": response },
                { "text": "Picture from the result of `read`:" },
                { "inlineData": { "mimeType": "image/png", "data": "iVBORw0=" } },
                { "text": "go on" },
            ] },
        ],
    });
    assert_eq!(body(ProviderKind::Gemini, true), expected);
}
