//! Every scenario, in every format, streamed and at once.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use zeph_core::network::{EgressLimits, EgressSettings};
use zeph_egress::Egress;

use super::{Scenario, ScriptedServer, ScriptedUsage};
use crate::message::{Arguments, AssistantTurn, Block, CallResult, StopReason, Turn, UserTurn};
use crate::provider::{ModelEvent, ModelRequest, Provider, Reply, RequestOptions, ToolDefinition};
use crate::settings::{ApiKey, ProviderKind, ProviderSettings, Timeouts};
use crate::usage::{Prices, Usage};
use crate::{ProviderError, ProviderErrorKind, connect};

const LONG: Duration = Duration::from_secs(60);

const PATIENT: Timeouts = Timeouts {
    headers: LONG,
    idle: LONG,
    total: LONG,
};

/// What a client makes of an answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// The step whose numbers count.
    step: Option<usize>,
    text: Option<String>,
    thinking: Option<String>,
    calls: Option<Vec<ExpectedCall>>,
    stop: Option<StopReason>,
    may_run: Option<bool>,
    is_empty: Option<bool>,
    attempts: Option<u32>,
    attempts_min: Option<u32>,
    fails: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedCall {
    name: String,
    arguments: Option<Map<String, Value>>,
    #[serde(default)]
    malformed: bool,
}

pub(crate) fn egress() -> Egress {
    Egress::new(&EgressSettings {
        private: Arc::default(),
        proxy: None,
        ca_file: None,
        limits: EgressLimits {
            connect: LONG,
            header: LONG,
            idle: LONG,
            total: LONG,
            header_bytes: 65_536,
            body_bytes: 65_536,
            redirects: 0,
            requests: 1,
            connections: 1,
        },
    })
}

pub(crate) fn settings(kind: ProviderKind, base_url: String) -> ProviderSettings {
    ProviderSettings {
        name: "test".to_owned(),
        kind,
        base_url: Some(base_url),
        model: "scripted-1".to_owned(),
        key: Some(ApiKey::new("sk-secret-1")),
        max_tokens: Some(1_000),
        temperature: None,
        prices: Prices::default(),
        timeouts: PATIENT,
        retries: 2,
        native_tools: true,
        stream: true,
        num_ctx: Some(8_192),
    }
}

pub(crate) fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: format!("{name} something"),
        schema: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
    };
    vec![tool("read"), tool("list")]
}

pub(crate) async fn ask(
    provider: &dyn Provider,
    turns: &[Turn<'_>],
) -> (Result<Reply, ProviderError>, Vec<ModelEvent>) {
    let (system, tools, mut events) = (["Be brief.".to_owned()], tools(), Vec::new());
    let request = ModelRequest {
        system: &system,
        tools: &tools,
        turns,
        options: RequestOptions::default(),
    };
    let mut on_event = |event| events.push(event);
    let reply = provider.respond(request, &mut on_event).await;
    (reply, events)
}

/// The answer of the user's side to a turn: a result for every call, or a word.
pub(crate) fn answer_to(turn: &AssistantTurn) -> Turn<'static> {
    let results = turn.calls().map(|call| {
        let (text, is_error) = match &call.arguments {
            Arguments::Object(_) => (format!("result of {}", call.name), false),
            Arguments::Malformed { why, .. } => (why.clone(), true),
        };
        CallResult {
            call_id: call.id.clone().into(),
            name: call.name.clone().into(),
            content: vec![Block::Text(text.into())],
            is_error,
        }
    });
    let results: Vec<CallResult<'_>> = results.collect();
    Turn::User(match results.is_empty() {
        true => UserTurn::text("go on"),
        false => UserTurn {
            results,
            content: Vec::new(),
        },
    })
}

async fn play(json: &str, kind: ProviderKind, streams: bool, timeouts: Timeouts) {
    let label = format!("{kind}, streams: {streams}");
    let scenario = Scenario::parse(json).unwrap();
    let expected: Vec<Expected> = serde_json::from_value(scenario.expected.clone()).unwrap();
    let steps = scenario.steps.clone();
    let server = ScriptedServer::start(scenario).await.unwrap();
    let settings = ProviderSettings {
        stream: streams,
        timeouts,
        retries: if timeouts == PATIENT { 2 } else { 6 },
        ..settings(kind, server.base_url(kind))
    };
    let provider = connect(settings, &egress()).unwrap();
    let mut turns = vec![Turn::User(UserTurn::text("go"))];
    for expected in &expected {
        let (reply, events) = ask(provider.as_ref(), &turns).await;
        let reply = match (reply, &expected.fails) {
            (Err(error), Some(fails)) => {
                assert!(is_failure(&error, fails, streams), "{label}: {error:?}");
                continue;
            }
            (reply, _) => reply.unwrap_or_else(|error| panic!("{label}: {error}")),
        };
        check(&label, expected, &reply, &events);
        if let Some(step) = expected.step {
            let usage = usage(kind, steps[step].answer.usage);
            let is_counted = reply.attempts == 1;
            assert!(
                !is_counted || reply.usage == usage,
                "{label}: {:?}",
                reply.usage
            );
        }
        let answer = answer_to(&reply.turn);
        turns.extend([Turn::Assistant(Cow::Owned(reply.turn)), answer]);
    }
    for request in server.requests() {
        assert_eq!(request.kind, kind);
        assert!(!request.body.contains("sk-secret"), "{label}");
        assert!(
            request
                .headers
                .iter()
                .any(|(_, value)| value.contains("sk-secret-1"))
        );
    }
}

/// A document that was cut is no document.
fn is_failure(error: &ProviderError, fails: &str, streams: bool) -> bool {
    match (fails, error.kind) {
        ("billing", ProviderErrorKind::Billing) => true,
        ("context_length", ProviderErrorKind::ContextLength) => true,
        ("cut", ProviderErrorKind::Cut) => true,
        ("cut", ProviderErrorKind::Protocol) => !streams,
        _ => false,
    }
}

fn check(label: &str, expected: &Expected, reply: &Reply, events: &[ModelEvent]) {
    let turn = &reply.turn;
    let is = |ok: bool| assert!(ok, "{label}: {expected:?}\n{reply:?}");
    is(expected
        .text
        .as_ref()
        .is_none_or(|text| *text == turn.text()));
    is(expected.stop.as_ref().is_none_or(|stop| *stop == turn.stop));
    is(expected
        .may_run
        .is_none_or(|may| may == turn.calls_may_run()));
    is(expected
        .is_empty
        .is_none_or(|is_empty| is_empty == turn.is_empty()));
    is(expected
        .attempts
        .is_none_or(|attempts| attempts == reply.attempts));
    is(expected
        .attempts_min
        .is_none_or(|attempts| attempts <= reply.attempts));
    if let Some(calls) = &expected.calls {
        let found: Vec<_> = turn.calls().collect();
        is(calls.len() == found.len());
        for (call, found) in calls.iter().zip(&found) {
            is(call.name == found.name);
            match &found.arguments {
                Arguments::Object(object) => is(Some(object) == call.arguments.as_ref()),
                Arguments::Malformed { .. } => is(call.malformed),
            }
        }
        let ids: std::collections::BTreeSet<_> = found.iter().map(|call| &call.id).collect();
        is(ids.len() == found.len());
    }
    // What was shown since the last attempt began is what is kept.
    let last = events
        .iter()
        .rposition(|event| matches!(event, ModelEvent::Retry { .. }));
    let shown = &events[last.map_or(0, |last| last + 1)..];
    let text = shown.iter().filter_map(|event| match event {
        ModelEvent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    is(text.collect::<String>() == turn.text());
    let thinking = shown.iter().filter_map(|event| match event {
        ModelEvent::Thinking(text) => Some(text.as_str()),
        _ => None,
    });
    let thinking: String = thinking.collect();
    is(expected
        .thinking
        .as_ref()
        .is_none_or(|expected| *expected == thinking));
}

/// As far as the format tells tokens apart.
fn usage(kind: ProviderKind, said: ScriptedUsage) -> Usage {
    let all = Usage {
        input: said.input,
        cache_read: said.cache_read,
        cache_write: said.cache_write,
        output: said.output,
        reasoning: said.reasoning,
        estimated: 0,
    };
    match kind {
        ProviderKind::Anthropic => Usage {
            reasoning: 0,
            ..all
        },
        ProviderKind::Ollama => Usage {
            input: all.prompt(),
            output: all.output,
            ..Usage::default()
        },
        _ => Usage {
            input: all.input + all.cache_write,
            cache_write: 0,
            ..all
        },
    }
}

async fn everywhere(json: &'static str, timeouts: Timeouts, ways: &[bool]) {
    let mut plays = JoinSet::new();
    for kind in ProviderKind::ALL {
        for streams in ways {
            plays.spawn(play(json, kind, *streams, timeouts));
        }
    }
    while let Some(played) = plays.join_next().await {
        played.unwrap();
    }
}

macro_rules! scenarios {
    ($($name:ident, $timeouts:expr, $ways:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let json = include_str!(concat!("../../scenarios/", stringify!($name), ".json"));
                everywhere(json, $timeouts, $ways).await;
            }
        )*

        #[test]
        fn every_scenario_is_played() {
            let played = [$(stringify!($name)),*];
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
            for file in std::fs::read_dir(folder).unwrap() {
                let name = file.unwrap().path();
                let name = name.file_stem().unwrap().to_str().unwrap().to_owned();
                assert!(played.contains(&name.as_str()), "{name}");
            }
        }
    };
}

const BOTH: &[bool] = &[true, false];

const SHORT: Timeouts = Timeouts {
    headers: Duration::from_millis(400),
    idle: Duration::from_millis(400),
    total: Duration::from_secs(1),
};

/// Pings last longer than a pause may.
const WATCHFUL: Timeouts = Timeouts {
    idle: Duration::from_secs(2),
    ..PATIENT
};

scenarios! {
    conversation, PATIENT, BOTH;
    parallel, PATIENT, BOTH;
    malformed, PATIENT, BOTH;
    duplicate, PATIENT, BOTH;
    cut_arguments, PATIENT, BOTH;
    cut_end, PATIENT, BOTH;
    status, PATIENT, BOTH;
    refused, PATIENT, BOTH;
    streamed_error, PATIENT, &[true];
    ends, PATIENT, BOTH;
    hang, SHORT, BOTH;
    pings, WATCHFUL, BOTH;
    endless, PATIENT, BOTH;
    wrong_usage, PATIENT, BOTH;
}
