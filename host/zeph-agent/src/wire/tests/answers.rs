//! Answers in the words of each provider's documentation, so that client and scripted server do not agree on an error.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::draft::Draft;
use crate::frames::Frames;
use crate::message::{AssistantTurn, ItemView, Origin, StopReason};
use crate::scripted::tests::settings;
use crate::settings::ProviderKind;
use crate::usage::Usage;
use crate::wire::codec;

pub(super) fn origin(provider: &str, kind: ProviderKind) -> Origin {
    Origin {
        provider: provider.to_owned(),
        kind,
        model: "scripted-1".to_owned(),
    }
}

fn read(kind: ProviderKind, answer: &'static str) -> (AssistantTurn, Usage) {
    let codec = codec(&settings(kind, "http://x".to_owned()));
    let (mut reader, mut draft) = (codec.reader(), Draft::default());
    let mut frames = Frames::new(codec.framing());
    frames.push(&Bytes::from_static(answer.as_bytes()));
    while let Some(frame) = frames.next().unwrap() {
        reader.read(&frame, &mut draft).unwrap();
    }
    reader.finish(&mut draft).unwrap();
    let usage = draft.usage;
    (draft.finish(origin("test", kind)).unwrap(), usage)
}

/// The answers, and the last thing that has to be there for them to be complete.
const ANSWERS: [(ProviderKind, &str, &str); 5] = [
    (
        ProviderKind::Anthropic,
        include_str!("../../../golden/anthropic.sse"),
        "{\"type\":\"message_stop\"}\n\n",
    ),
    (
        ProviderKind::OpenAi,
        include_str!("../../../golden/openai_chat.sse"),
        "\"finish_reason\":\"tool_calls\"}],\"usage\":null}\n\n",
    ),
    (
        ProviderKind::OpenAiResponses,
        include_str!("../../../golden/openai_responses.sse"),
        "\"total_tokens\":380}}}\n\n",
    ),
    (
        ProviderKind::Ollama,
        include_str!("../../../golden/ollama.ndjson"),
        "\"eval_duration\":115959084}",
    ),
    (
        ProviderKind::Gemini,
        include_str!("../../../golden/gemini.sse"),
        "\"totalTokenCount\": 180},\"modelVersion\": \"gemini-2.5-flash\"}\n\n\n",
    ),
];

/// Reads what may be damaged; a turn where it is complete.
fn try_read(kind: ProviderKind, answer: &[u8]) -> Option<AssistantTurn> {
    let codec = codec(&settings(kind, "http://x".to_owned()));
    let (mut reader, mut draft) = (codec.reader(), Draft::default());
    let mut frames = Frames::new(codec.framing());
    frames.push(&Bytes::copy_from_slice(answer));
    while let Some(frame) = frames.next().ok()? {
        reader.read(&frame, &mut draft).ok()?;
    }
    if let Some(frame) = frames.last().ok()? {
        reader.read(&frame, &mut draft).ok()?;
    }
    reader.finish(&mut draft).ok()?;
    draft.finish(origin("test", kind))
}

#[test]
fn an_answer_that_ends_before_its_end_is_none_wherever_it_is_cut() {
    for (kind, answer, end) in ANSWERS {
        let end = end.trim_end();
        let complete = answer.rfind(end).unwrap() + end.len();
        for at in 0..complete {
            let turn = try_read(kind, &answer.as_bytes()[..at]);
            assert!(turn.is_none(), "{kind}: {}", &answer[..at]);
        }
        assert!(try_read(kind, answer.as_bytes()).unwrap().calls_may_run());
    }
}

proptest! {
    /// Whatever a server sends, it is an answer or an error.
    #[test]
    fn damaged_answers_are_read_or_refused(
        which in 0..5_usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (kind, answer, _) = ANSWERS[which];
        let mut answer = answer.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(answer.len());
            answer[at] = byte;
        }
        let _turn = try_read(kind, &answer);
    }
}

fn wires(turn: &AssistantTurn) -> Vec<&str> {
    let wires = turn.items.iter().map(|item| item.wire.as_deref());
    wires
        .map(|wire| wire.map_or("", |wire| wire.get()))
        .collect()
}

/// Names and arguments of the calls.
fn calls(turn: &AssistantTurn) -> Vec<(&str, String)> {
    let calls = turn.calls();
    calls
        .map(|call| (call.name.as_str(), call.arguments.to_json()))
        .collect()
}

#[test]
fn a_name_that_a_model_invents_is_not_sent_back() {
    for (kind, answer, _) in ANSWERS {
        let answer = answer.replace("\"get_", "\"get the ");
        let turn = try_read(kind, answer.as_bytes()).unwrap();
        let wires = wires(&turn).concat();
        assert!(!wires.contains("get the "), "{wires}");
        assert_ne!(turn.calls().count(), 0, "{kind}");
        for call in turn.calls() {
            assert!(call.name.starts_with("get_the_"), "{}", call.name);
            assert!(wires.contains(&call.name), "{wires}");
        }
    }
}

#[test]
fn anthropic_keeps_signed_and_redacted_thoughts_in_their_place() {
    let (turn, usage) = read(
        ProviderKind::Anthropic,
        include_str!("../../../golden/anthropic.sse"),
    );
    assert_eq!(turn.stop, StopReason::ToolCalls);
    assert_eq!(
        wires(&turn),
        [
            r#"{"signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds","thinking":"The weather is asked.","type":"thinking"}"#,
            r#"{"data":"EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP","type":"redacted_thinking"}"#,
            r#"{"text":"Okay, let's check the weather for San Francisco, CA:","type":"text"}"#,
            r#"{"id":"toolu_01T1x1fJ34qAmk2tNTrN7Up6","input":{"location": "San Francisco, CA", "unit": 1.50},"name":"get_weather","type":"tool_use"}"#,
        ]
    );
    let expected = Usage {
        input: 472,
        cache_read: 3000,
        cache_write: 12,
        output: 89,
        reasoning: 0,
        ..Usage::default()
    };
    assert_eq!(usage, expected);
}

#[test]
fn openai_chat_puts_calls_together() {
    let (turn, usage) = read(
        ProviderKind::OpenAi,
        include_str!("../../../golden/openai_chat.sse"),
    );
    assert_eq!(turn.stop, StopReason::ToolCalls);
    assert_eq!(
        calls(&turn),
        [
            ("get_weather", r#"{"location":"Paris, France"}"#.to_owned()),
            ("get_time", "{}".to_owned()),
        ]
    );
    let wire: Value = serde_json::from_str(wires(&turn)[0]).unwrap();
    let function =
        json!({ "name": "get_weather", "arguments": "{\"location\":\"Paris, France\"}" });
    let expected =
        json!({ "id": "call_DdmO9pD3xa9XTPNJ32zg2hcA", "type": "function", "function": function });
    assert_eq!(wire, expected);
    let expected = Usage {
        input: 86,
        cache_read: 1920,
        cache_write: 0,
        output: 300,
        reasoning: 128,
        ..Usage::default()
    };
    assert_eq!(usage, expected);
}

#[test]
fn openai_responses_seals_reasoning_and_forgets_ids() {
    let (turn, usage) = read(
        ProviderKind::OpenAiResponses,
        include_str!("../../../golden/openai_responses.sse"),
    );
    assert_eq!(turn.stop, StopReason::ToolCalls);
    assert_eq!(
        wires(&turn),
        [
            r#"{"encrypted_content":"gAAAAABoISQ24OyVRYbkYfukdJoqdzWT","summary":[{"type":"summary_text","text":"Weather."}],"type":"reasoning"}"#,
            r#"{"arguments":"{\"location\":\"Paris, France\"}","call_id":"call_unLAR8MvFNptuiZK6K6HCy5k","name":"get_weather","status":"completed","type":"function_call"}"#,
        ]
    );
    let expected = Usage {
        input: 200,
        cache_read: 128,
        cache_write: 0,
        output: 52,
        reasoning: 32,
        ..Usage::default()
    };
    assert_eq!(usage, expected);
}

#[test]
fn ollama_sends_calls_whole() {
    let (turn, usage) = read(
        ProviderKind::Ollama,
        include_str!("../../../golden/ollama.ndjson"),
    );
    assert_eq!(turn.stop, StopReason::ToolCalls);
    assert_eq!(
        wires(&turn),
        [
            r#"{"thinking":"The user asks for the weather."}"#,
            r#"{"function":{"name":"get_weather","arguments":{"city":"Tokyo"}}}"#,
        ]
    );
    assert_eq!(
        usage,
        Usage {
            input: 169,
            output: 15,
            ..Usage::default()
        }
    );
}

#[test]
fn gemini_keeps_signatures_on_their_own_parts() {
    let (turn, usage) = read(
        ProviderKind::Gemini,
        include_str!("../../../golden/gemini.sse"),
    );
    assert_eq!(turn.stop, StopReason::ToolCalls);
    assert_eq!(
        wires(&turn),
        [
            r#"{"text":"Checking it.","thought":true}"#,
            r#"{"text":"One moment."}"#,
            r#"{"functionCall":{"name": "get_current_temperature","args": {"location": "London","scale": 1.50}},"thoughtSignature":"CiIBVKhc7vB+vaaq6rA="}"#,
            r#"{"functionCall":{"name": "get_current_temperature","args": {"location": "Paris"}}}"#,
            r#"{"text":"","thoughtSignature":"AAAB"}"#,
        ]
    );
    let expected = Usage {
        input: 55,
        cache_read: 40,
        cache_write: 0,
        output: 85,
        reasoning: 67,
        ..Usage::default()
    };
    assert_eq!(usage, expected);
}

#[test]
fn thoughts_that_were_cut_short_are_shown_but_not_sent_again() {
    let anthropic = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"Hm\",\"signature\":\"\"}}\n\n\
        data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let responses = "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"encrypted_content\":\"x\",\"summary\":[{\"text\":\"Hm\"}]}}\n\n\
        data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n";
    for (kind, answer) in [
        (ProviderKind::Anthropic, anthropic),
        (ProviderKind::OpenAiResponses, responses),
    ] {
        let (turn, _) = read(kind, answer);
        assert_eq!(turn.stop, StopReason::Length);
        assert!(turn.items[0].wire.is_none(), "{turn:?}");
        assert!(matches!(&turn.items[0].view, ItemView::Thinking(text) if text == "Hm"));
    }
}

#[test]
fn an_error_in_the_stream_of_ollama_is_one() {
    let codec = codec(&settings(ProviderKind::Ollama, "http://x".to_owned()));
    let failure = codec.reader().read(
        r#"{"error":"an error was encountered while running the model"}"#,
        &mut Draft::default(),
    );
    assert_eq!(
        failure.unwrap_err().message,
        "an error was encountered while running the model"
    );
}

#[test]
fn content_of_many_kinds_is_sent_back_whole() {
    let thought = |text: &str| json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": text }] }]);
    let deltas = [
        json!({ "content": "" }),
        json!({ "content": thought("I ") }),
        json!({ "content": thought("add.") }),
        json!({ "content": "It " }),
        json!({ "content": "is 4." }),
    ];
    let answer = streamed(&deltas.map(|delta| json!({ "delta": delta })));
    let turn = try_read(ProviderKind::OpenAi, answer.as_bytes()).unwrap();
    assert_eq!(turn.text(), "It is 4.");
    let parts = r#"{"content":[{"thinking":[{"text":"I add.","type":"text"}],"type":"thinking"},{"text":"It is 4.","type":"text"}]}"#;
    assert_eq!(wires(&turn), [parts]);
}

#[test]
fn an_answer_that_is_repeated_at_its_end_is_read_once() {
    let answer = streamed(&[
        json!({ "delta": { "content": "Hello " }, "message": null }),
        json!({ "delta": { "content": "world" } }),
        json!({ "message": { "role": "assistant", "content": "Hello world" } }),
    ]);
    let turn = try_read(ProviderKind::OpenAi, answer.as_bytes()).unwrap();
    assert_eq!(turn.text(), "Hello world");
    let whole = streamed(&[json!({ "message": { "content": "at once" } })]);
    let turn = try_read(ProviderKind::OpenAi, whole.as_bytes()).unwrap();
    assert_eq!(turn.text(), "at once");
}

/// A stream of Chat Completions with these choices.
fn streamed(choices: &[Value]) -> String {
    let end = json!({ "delta": {}, "finish_reason": "stop" });
    let frames = choices.iter().chain([&end]);
    let frames = frames.map(|choice| format!("data: {}\n\n", json!({ "choices": [choice] })));
    frames.collect()
}
