//! Over ten turns: what was sent before is sent again byte for byte, and the cache is marked where it can be.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::connect;
use crate::message::{Turn, UserTurn};
use crate::scripted::tests::{answer_to, ask, egress, settings};
use crate::scripted::{Scenario, ScriptedServer};
use crate::settings::ProviderKind;

const MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;

async fn bodies(kind: ProviderKind, scenario: &str) -> Vec<String> {
    let scenario = Scenario::parse(scenario).unwrap();
    let server = ScriptedServer::start(scenario).await.unwrap();
    let provider = connect(settings(kind, server.base_url(kind)), &egress()).unwrap();
    let mut turns = vec![Turn::User(UserTurn::text("go"))];
    for _ in 0..10 {
        let (reply, _) = ask(provider.as_ref(), &turns).await;
        let turn = reply.unwrap().turn;
        let answer = answer_to(&turn);
        turns.extend([Turn::Assistant(Cow::Owned(turn)), answer]);
    }
    let requests = server.requests().into_iter();
    requests.map(|request| request.body).collect()
}

fn messages(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::OpenAiResponses => "input",
        ProviderKind::Gemini => "contents",
        _ => "messages",
    }
}

fn list(body: &str, field: &str) -> Vec<String> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(body).unwrap();
    let list: Vec<Box<RawValue>> = serde_json::from_str(fields[field].get()).unwrap();
    let list = list.iter().map(|item| {
        let item = item.get().replace(&format!(",{MARK}"), "");
        item.replace(MARK, "")
    });
    list.collect()
}

#[tokio::test]
async fn the_prefix_stays_byte_for_byte_over_ten_turns() {
    let scenario = include_str!("../../../scenarios/endless.json");
    for kind in ProviderKind::ALL {
        let bodies = bodies(kind, scenario).await;
        assert_eq!(bodies.len(), 10);
        let field = format!("\"{}\":[", messages(kind));
        let head = |body: &str| body[..body.find(&field).unwrap()].to_owned();
        for pair in bodies.windows(2) {
            assert_eq!(head(&pair[0]), head(&pair[1]), "{kind}");
            let (before, after) = (
                list(&pair[0], messages(kind)),
                list(&pair[1], messages(kind)),
            );
            assert!(
                after.len() > before.len() && after.starts_with(&before),
                "{kind}: {after:#?}"
            );
        }
    }
}

#[tokio::test]
async fn what_a_provider_sealed_comes_back_to_it_where_it_was() {
    let scenario = include_str!("../../../scenarios/endless.json");
    for (kind, expected, unexpected) in [
        (
            ProviderKind::Anthropic,
            r#"{"signature":"c2VhbA==","thinking":"Again.","type":"thinking"}"#,
            "citations",
        ),
        (
            ProviderKind::OpenAi,
            r#""reasoning_content":"Again.""#,
            "\"index\"",
        ),
        (
            ProviderKind::OpenAiResponses,
            r#"{"encrypted_content":"c2VhbA==","summary":[{"text":"Again.","type":"summary_text"}],"type":"reasoning"}"#,
            "rs_",
        ),
        (ProviderKind::Ollama, r#""thinking":"Again.""#, "zeph_"),
        (
            ProviderKind::Gemini,
            r#"{"functionCall":{"args":{"path":"a"},"name":"read"},"thoughtSignature":"c2VhbA=="}"#,
            "zeph_",
        ),
    ] {
        let bodies = bodies(kind, scenario).await;
        assert!(bodies[1].contains(expected), "{kind}: {}", bodies[1]);
        assert!(!bodies[9].contains(unexpected), "{kind}: {}", bodies[9]);
    }
}

#[tokio::test]
async fn the_cache_of_anthropic_is_marked_at_most_four_times() {
    let few = include_str!("../../../scenarios/endless.json");
    let many = include_str!("../../../scenarios/parallel.json");
    let many = many.replace("\"steps\"", "\"repeats\": true, \"steps\"");
    // Twenty-one blocks from one turn of the user to the next.
    let more = many.replace("\"answer\": {", "\"answer\": {\"thinking\": \"So.\",");
    for (scenario, n_marks) in [(few, 3), (many.as_str(), 3), (more.as_str(), 4)] {
        let bodies = bodies(ProviderKind::Anthropic, scenario).await;
        for (turn, body) in bodies.iter().enumerate() {
            let found = body.matches(MARK).count();
            assert_eq!(found, if turn == 0 { 2 } else { n_marks }, "{turn}: {body}");
            // The end of the newest message.
            assert!(body.contains(&format!("{MARK}}}]}}],\"stream\"")), "{body}");
        }
    }
}
