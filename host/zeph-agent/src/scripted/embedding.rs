//! Vectors of texts, in every wire format that has them.

use std::sync::Mutex;

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::body::ScriptedBody;
use super::scenario::{EmbeddingFault, ScriptedEmbedding};
use super::{Play, RecordedRequest, error, lock, plain};
use crate::settings::ProviderKind;

/// What a request at this path speaks, when it asks for vectors.
pub(super) fn wanted(path: &str) -> Option<ProviderKind> {
    let path = path.split('?').next().unwrap_or_default();
    match path {
        "/v1/embeddings" => Some(ProviderKind::OpenAi),
        "/api/embed" => Some(ProviderKind::Ollama),
        path => {
            let call = path.strip_prefix("/v1beta/models/")?;
            call.ends_with(":batchEmbedContents")
                .then_some(ProviderKind::Gemini)
        }
    }
}

pub(super) async fn play(request: RecordedRequest, play: &Mutex<Play>) -> Response<ScriptedBody> {
    let (kind, texts) = (request.kind, texts(request.kind, &request.body));
    let (script, number) = {
        let mut play = lock(play);
        play.embeddings.push(request);
        (play.scenario.embedding.clone(), play.embeddings.len() - 1)
    };
    let fault = script.faults.get(number).copied();
    let Some(texts) = texts else {
        let error = error(kind, "request", "there are no texts");
        return plain(StatusCode::BAD_REQUEST, &error);
    };
    let mut vectors: Vec<Vec<f64>> = texts.iter().map(|text| vector(&script, text)).collect();
    match fault.unwrap_or(EmbeddingFault::None) {
        EmbeddingFault::None => {}
        EmbeddingFault::Status(status) => {
            let says = match status {
                401 => "key",
                429 => "rate",
                _ => "",
            };
            let error = error(kind, says, "as the script says");
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return plain(status, &error);
        }
        EmbeddingFault::Hang => std::future::pending().await,
        EmbeddingFault::Short => drop(vectors.pop()),
        EmbeddingFault::Uneven => vectors.iter_mut().skip(1).for_each(|last| last.push(0.5)),
        EmbeddingFault::Garbage => return plain(StatusCode::OK, &Value::from("vectors")),
    }
    plain(StatusCode::OK, &answer(kind, &vectors))
}

/// The texts of a request, as far as they are what the format demands.
fn texts(kind: ProviderKind, body: &str) -> Option<Vec<String>> {
    let body: Value = serde_json::from_str(body).ok()?;
    let (field, place) = match kind {
        ProviderKind::Gemini => ("requests", "/content/parts/0/text"),
        _ => ("input", ""),
    };
    let texts = body.get(field)?.as_array()?.iter();
    let texts: Option<Vec<String>> = texts
        .map(|text| Some(text.pointer(place)?.as_str()?.to_owned()))
        .collect();
    texts.filter(|texts| texts.iter().all(|text| !text.is_empty()))
}

/// The later texts come first where the format has an index.
fn answer(kind: ProviderKind, vectors: &[Vec<f64>]) -> Value {
    match kind {
        ProviderKind::Ollama => {
            json!({ "model": "scripted-1", "embeddings": vectors, "prompt_eval_count": 8 })
        }
        ProviderKind::Gemini => {
            let vectors = vectors.iter().map(|vector| json!({ "values": vector }));
            json!({ "embeddings": vectors.collect::<Vec<_>>() })
        }
        _ => {
            let vectors = vectors.iter().enumerate().rev();
            let data = vectors.map(|(index, vector)| json!({ "object": "embedding", "index": index, "embedding": vector }));
            json!({
                "object": "list",
                "data": data.collect::<Vec<_>>(),
                "model": "scripted-1",
                "usage": { "prompt_tokens": 8, "total_tokens": 8 },
            })
        }
    }
}

/// How often each word is in a text; words of one meaning are one word.
fn vector(script: &ScriptedEmbedding, text: &str) -> Vec<f64> {
    let mut vector = vec![0.0; script.dimensions];
    let lower = text.to_lowercase();
    let words = lower
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty());
    for word in words {
        let meant = |group: &Vec<String>| group.iter().any(|one| one == word);
        let meaning = script.meanings.iter().position(meant);
        let place = match meaning {
            Some(meaning) => meaning,
            None => script.meanings.len() + hash(word),
        };
        let dimensions = vector.len().max(1);
        if let Some(number) = vector.get_mut(place % dimensions) {
            *number += 1.0;
        }
    }
    vector
}

/// FNV-1a: the same in every process.
fn hash(word: &str) -> usize {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = word.bytes().fold(0x811c_9dc5, step);
    usize::try_from(hash).unwrap_or_default()
}
