//! Vectors over real connections to the scripted server, in every format that has them.

use std::time::Duration;

use serde_json::Value;

use super::{Embedder, TEXT_BYTES_MAX, connect_embedder, cosine};
use crate::error::ProviderErrorKind;
use crate::scripted::tests::{egress, settings};
use crate::scripted::{Scenario, ScriptedServer};
use crate::settings::{ProviderKind, ProviderSettings, Timeouts};
use crate::usage::{Cost, SideSpending};

const KINDS: [ProviderKind; 4] = [
    ProviderKind::OpenAi,
    ProviderKind::OpenAiResponses,
    ProviderKind::Ollama,
    ProviderKind::Gemini,
];

async fn server(embedding: &str) -> ScriptedServer {
    let scenario = format!(r#"{{ "about": "", "steps": [], "embedding": {embedding} }}"#);
    ScriptedServer::start(Scenario::parse(&scenario).unwrap())
        .await
        .unwrap()
}

fn embedder(kind: ProviderKind, server: &ScriptedServer) -> std::sync::Arc<dyn Embedder> {
    connect_embedder(settings(kind, server.base_url(kind)), &egress()).unwrap()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn texts_that_mean_the_same_are_near_in_every_format() {
    for kind in KINDS {
        let server =
            server(r#"{ "meanings": [["forecast", "weather", "rain"], ["mail", "letter"]] }"#);
        let server = server.await;
        let embedder = embedder(kind, &server);
        assert_eq!(embedder.model(), "test/scripted-1");
        let texts = texts(&["weather", " \n", "rain", "letter", ""]);
        let mut spent = SideSpending::default();
        let vectors = embedder.embed(&texts, &mut spent).await.unwrap();
        assert_eq!(vectors.len(), 5, "{kind}");
        assert!(vectors[1].is_empty() && vectors[4].is_empty(), "{kind}");
        assert!(cosine(&vectors[0], &vectors[2]) > 0.99, "{kind}");
        assert!(cosine(&vectors[0], &vectors[3]) < 0.01, "{kind}");
        let requests = server.embedding_requests();
        assert_eq!(requests.len(), 1, "{kind}");
        let key = requests[0].headers.iter().find(|(name, value)| {
            ["authorization", "x-goog-api-key"].contains(&name.as_str())
                && value.ends_with("sk-secret-1")
        });
        assert!(key.is_some(), "{kind}: {:?}", requests[0].headers);
        assert!(server.requests().is_empty());
        assert!(!format!("{embedder:?}").contains("sk-secret"));
        // Counted by the provider, or estimated: 17 bytes are 5 tokens.
        let counted = match kind {
            ProviderKind::Gemini => 5,
            _ => 8,
        };
        assert_eq!((spent.usage.input, spent.requests), (counted, 1), "{kind}");
        let is_estimated = kind == ProviderKind::Gemini;
        assert_eq!(spent.usage.estimated > 0, is_estimated, "{kind}");
        let nothing = embedder.embed(&[], &mut spent).await;
        assert!(nothing.unwrap().is_empty() && spent.requests == 1);
    }
}

#[tokio::test]
async fn many_and_long_texts_go_in_requests_of_bounded_size() {
    let server = server(r#"{ "dimensions": 8 }"#).await;
    let embedder = embedder(ProviderKind::OpenAi, &server);
    let mut all = vec!["a".to_owned(); 250];
    all.push("ü".repeat(TEXT_BYTES_MAX));
    all.extend(vec!["b".repeat(TEXT_BYTES_MAX); 60]);
    let mut spent = SideSpending::default();
    let vectors = embedder.embed(&all, &mut spent).await.unwrap();
    assert_eq!(vectors.len(), all.len());
    assert!(vectors.iter().all(|vector| vector.len() == 8));
    assert_eq!(vectors[0], vectors[249]);
    assert_eq!(vectors[251], vectors[310]);
    let mut n_texts = 0;
    for request in server.embedding_requests() {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let input = body["input"].as_array().unwrap();
        let lengths = input.iter().map(|text| text.as_str().unwrap().len());
        assert!(input.len() <= 96 && lengths.clone().sum::<usize>() <= 256_000);
        assert!(lengths.max().unwrap() <= TEXT_BYTES_MAX);
        n_texts += input.len();
    }
    assert_eq!(n_texts, all.len());
    let n_requests = server.embedding_requests().len() as u64;
    assert_eq!(
        (spent.requests, spent.usage.input),
        (n_requests, 8 * n_requests)
    );
}

#[tokio::test]
async fn what_was_answered_counts_though_a_later_request_fails() {
    let server = server(r#"{ "faults": ["none", { "status": 401 }] }"#).await;
    let kind = ProviderKind::OpenAi;
    let mut settings = settings(kind, server.base_url(kind));
    settings.prices.input = Some(2.0);
    let embedder = connect_embedder(settings, &egress()).unwrap();
    let mut spent = SideSpending::default();
    let failed = embedder.embed(&vec!["a".to_owned(); 100], &mut spent).await;
    assert_eq!(failed.unwrap_err().kind, ProviderErrorKind::Authentication);
    assert_eq!((spent.requests, spent.usage.total()), (1, 8));
    assert_eq!(spent.cost, Cost::from_usd(0.000_016));
}

#[tokio::test]
async fn failures_that_pass_are_tried_again_and_wrong_answers_are_no_vectors() {
    for kind in KINDS {
        let server = server(r#"{ "faults": [{ "status": 429 }, "none", { "status": 401 }] }"#);
        let server = server.await;
        let embedder = embedder(kind, &server);
        let texts = texts(&["one", "two"]);
        let mut spent = SideSpending::default();
        let vectors = embedder.embed(&texts, &mut spent).await.unwrap();
        assert_eq!(vectors.len(), 2, "{kind}");
        let error = embedder.embed(&texts, &mut spent).await.unwrap_err();
        assert_eq!(spent.requests, 1, "{kind}");
        assert_eq!(error.kind, ProviderErrorKind::Authentication, "{kind}");
        assert!(!error.to_string().contains("sk-secret"), "{error}");
        let connections = server.embedding_requests();
        assert_eq!(connections.len(), 3, "{kind}");
    }
    for fault in ["short", "uneven", "garbage"] {
        let server = server(&format!(r#"{{ "faults": ["{fault}"] }}"#)).await;
        let kind = ProviderKind::OpenAi;
        let settings = ProviderSettings {
            retries: 0,
            ..settings(kind, server.base_url(kind))
        };
        let embedder = connect_embedder(settings, &egress()).unwrap();
        let texts = texts(&["one", "two"]);
        let error = embedder.embed(&texts, &mut SideSpending::default()).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Protocol, "{fault}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_not_waited_for() {
    let server = server(r#"{ "faults": ["hang"] }"#).await;
    let kind = ProviderKind::Ollama;
    let settings = ProviderSettings {
        retries: 0,
        timeouts: Timeouts {
            headers: Duration::from_millis(50),
            idle: Duration::from_millis(50),
            total: Duration::from_millis(50),
        },
        ..settings(kind, server.base_url(kind))
    };
    let embedder = connect_embedder(settings, &egress()).unwrap();
    let texts = texts(&["one"]);
    let error = embedder.embed(&texts, &mut SideSpending::default()).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Timeout, "{error}");
}

#[test]
fn a_provider_without_embeddings_says_so() {
    let kind = ProviderKind::Anthropic;
    let settings = settings(kind, "http://127.0.0.1:1".to_owned());
    let error = connect_embedder(settings, &egress()).unwrap_err();
    assert!(error.to_string().contains("`anthropic`"), "{error}");
}

#[test]
fn the_cosine_is_a_number_whatever_the_vectors() {
    assert!((cosine(&[3.0, 4.0], &[6.0, 8.0]) - 1.0).abs() < 1e-9);
    assert!((cosine(&[1.0, 0.0], &[-1.0, 0.0]) + 1.0).abs() < 1e-9);
    for (one, other) in [
        (&[][..], &[][..]),
        (&[0.0], &[1.0]),
        (&[1.0], &[1.0, 0.0]),
        (&[f32::MAX, f32::MAX], &[f32::NAN, 1.0]),
        (&[f32::MIN_POSITIVE], &[f32::INFINITY]),
    ] {
        assert!(
            (-1.0..=1.0).contains(&cosine(one, other)),
            "{one:?} {other:?}"
        );
    }
}
