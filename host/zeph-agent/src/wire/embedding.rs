//! Vectors of texts: the embeddings of OpenAI (and of what is compatible with it), of Ollama and of Gemini. Anthropic has none.

use serde::{Deserialize, Serialize};
use url::Url;

use super::gemini::model_url;
use super::openai_chat::versioned;
use super::{Failure, join};
use crate::settings::ProviderKind;

/// Most numbers of a vector.
const DIMENSIONS_MAX: usize = 16_384;

/// Whether providers of this kind have embeddings.
pub(crate) fn is_known(kind: ProviderKind) -> bool {
    kind != ProviderKind::Anthropic
}

/// Where a request goes to; none where there are no embeddings.
pub(crate) fn url(kind: ProviderKind, base: &Url, model: &str) -> Option<Url> {
    match kind {
        ProviderKind::Anthropic => None,
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => {
            let ends = ["/chat/completions", "/responses", "/embeddings"];
            Some(join(&versioned(base), &ends, "/embeddings"))
        }
        ProviderKind::Ollama => Some(join(
            base,
            &["/chat", "/embed", "/api", "/v1"],
            "/api/embed",
        )),
        ProviderKind::Gemini => Some(model_url(base, model, "batchEmbedContents", "")),
    }
}

/// The body of a request.
pub(crate) fn body(kind: ProviderKind, model: &str, texts: &[&str]) -> serde_json::Result<String> {
    if kind != ProviderKind::Gemini {
        return serde_json::to_string(&Texts {
            model,
            input: texts,
        });
    }
    let model = format!("models/{}", model.trim_start_matches("models/"));
    let requests = texts.iter().map(|text| GeminiText {
        model: &model,
        content: GeminiContent {
            parts: [GeminiPart { text }],
        },
    });
    serde_json::to_string(&GeminiTexts {
        requests: requests.collect(),
    })
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Vectors {
    /// In the order of the texts: all of one length, of finite numbers.
    pub(crate) vectors: Vec<Vec<f32>>,
    /// Tokens of the texts, where the provider counts them.
    pub(crate) tokens: Option<u64>,
}

/// The vectors of an answer to a request with `n_texts` texts.
///
/// Errors: what is wrong with the answer.
pub(crate) fn vectors(
    kind: ProviderKind,
    answer: &[u8],
    n_texts: usize,
) -> Result<Vectors, Failure> {
    let (vectors, tokens) = match kind {
        ProviderKind::Ollama => {
            let answer = read::<OllamaAnswer>(answer)?;
            (answer.embeddings, answer.prompt_eval_count)
        }
        ProviderKind::Gemini => {
            let answer = read::<GeminiAnswer>(answer)?;
            let all = answer.embeddings.into_iter().map(|one| one.values);
            (all.collect(), answer.usage_metadata.prompt_token_count)
        }
        _ => {
            let answer = read::<OpenAiAnswer>(answer)?;
            let usage = answer.usage.unwrap_or_default();
            (in_order(answer.data)?, usage.prompt_tokens)
        }
    };
    check(&vectors, n_texts)?;
    Ok(Vectors { vectors, tokens })
}

/// Errors: they are not those of `n_texts` texts.
fn check(vectors: &[Vec<f32>], n_texts: usize) -> Result<(), Failure> {
    if vectors.len() != n_texts {
        return Err(Failure::protocol(format_args!(
            "{} vectors for {n_texts} texts",
            vectors.len()
        )));
    }
    let length = vectors.first().map_or(0, Vec::len);
    let is_even = vectors.iter().all(|vector| vector.len() == length);
    if !is_even || length > DIMENSIONS_MAX || (length == 0 && n_texts > 0) {
        return Err(Failure::protocol(format_args!(
            "vectors have to be of one length, from 1 to {DIMENSIONS_MAX}"
        )));
    }
    match vectors.iter().flatten().all(|number| number.is_finite()) {
        true => Ok(()),
        false => Err(Failure::protocol(
            "a vector has a number that is not finite",
        )),
    }
}

fn read<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer).map_err(Failure::protocol)
}

/// Vectors by the index of their text, where the provider gives it: each once.
fn in_order(mut data: Vec<OpenAiVector>) -> Result<Vec<Vec<f32>>, Failure> {
    if data.iter().all(|one| one.index.is_some()) {
        data.sort_by_key(|one| one.index);
        let mut places = data.iter().enumerate();
        if places.any(|(place, one)| one.index != Some(place)) {
            return Err(Failure::protocol("a text has two vectors or none"));
        }
    }
    Ok(data.into_iter().map(|one| one.embedding).collect())
}

#[derive(Serialize)]
struct Texts<'a> {
    model: &'a str,
    input: &'a [&'a str],
}

#[derive(Serialize)]
struct GeminiTexts<'a> {
    requests: Vec<GeminiText<'a>>,
}

#[derive(Serialize)]
struct GeminiText<'a> {
    model: &'a str,
    content: GeminiContent<'a>,
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    parts: [GeminiPart<'a>; 1],
}

#[derive(Serialize)]
struct GeminiPart<'a> {
    text: &'a str,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
    #[serde(default)]
    usage: Option<OpenAiUsage>,
}

#[derive(Default, Deserialize)]
struct OpenAiUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Vec<Vec<f32>>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiAnswer {
    embeddings: Vec<GeminiVector>,
    #[serde(default)]
    usage_metadata: GeminiUsage,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
}

#[derive(Deserialize)]
struct GeminiVector {
    values: Vec<f32>,
}
