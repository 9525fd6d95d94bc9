//! Vectors of texts: what providers call embeddings. Two texts that mean something alike have vectors of a cosine near 1.
//!
//! What has no [`Embedder`], or whose embedder fails, falls back to a comparison of words: a missing vector never fails a call.

use std::fmt::Debug;
use std::sync::Arc;

use zeph_egress::{Egress, OwnPatience};

use crate::compaction::TOKEN_BYTES;
use crate::endpoint::Endpoint;
use crate::error::{ProviderError, ProviderErrorKind};
use crate::model::{of_network, pause, refusal};
use crate::provider::Pending;
use crate::settings::ProviderSettings;
use crate::usage::{Prices, SideSpending, Usage};
use crate::wire::{Codec, Failure, codec, embedding as wire};

/// Most bytes of a text that are sent; of a longer one its beginning. Models take some 8,000 tokens, and no token is shorter than a byte.
pub const TEXT_BYTES_MAX: usize = 8_000;

/// Most texts of one request.
const TEXTS_MAX: usize = 96;

/// Most bytes of the texts of one request.
const REQUEST_BYTES_MAX: usize = 256_000;

/// Most bytes of one answer: as many texts with vectors of the greatest length, in digits.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A model that gives texts vectors.
pub trait Embedder: Debug + Send + Sync {
    /// Provider and model, such as `local/nomic-embed-text`: vectors of two models cannot be compared, and what keeps some keeps this.
    fn model(&self) -> &str;

    /// A vector for each of the texts, in their order and all of one length; empty for a text of nothing but white space.
    ///
    /// Any number of texts is sent in requests of bounded size, one after the other; of a text longer than [`TEXT_BYTES_MAX`] its
    /// beginning counts. Failures that pass are tried again as the operator allows. What each answered request took is added to `spent`
    /// at once, so that it is known whatever becomes of the others.
    ///
    /// Errors: [`ProviderError`], for all texts as soon as one request fails. Dropping the future cancels the request.
    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        spent: &'a mut SideSpending,
    ) -> Pending<'a, Result<Vec<Vec<f32>>, ProviderError>>;
}

/// The embedder of a provider; `model` of the settings is the model for vectors, and `prices.input` its price. Nothing is sent.
///
/// Errors: `Settings`, when the provider has no embeddings, the address is not a URL or the key is missing.
pub fn connect_embedder(
    settings: ProviderSettings,
    egress: &Egress,
) -> Result<Arc<dyn Embedder>, ProviderError> {
    if !wire::is_known(settings.kind) {
        return Err(ProviderError {
            message: format!(
                "providers of the type `{}` have no embeddings",
                settings.kind
            ),
            provider: settings.name,
            kind: ProviderErrorKind::Settings,
            status: None,
            retry_after: None,
        });
    }
    Ok(Arc::new(HttpEmbedder {
        model: format!("{}/{}", settings.name, settings.model),
        codec: codec(&settings),
        endpoint: Endpoint::new(settings, egress)?,
    }))
}

/// How alike two texts are by their vectors, from -1 to 1; 0 when one of them has none, or they are of two models.
pub fn cosine(one: &[f32], other: &[f32]) -> f64 {
    if one.len() != other.len() {
        return 0.0;
    }
    let (mut product, mut square, mut other_square) = (0.0, 0.0, 0.0);
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (f64::from(*one), f64::from(*other));
        product += one * other;
        square += one * one;
        other_square += other * other;
    }
    let lengths = (square * other_square).sqrt();
    match lengths > 0.0 && lengths.is_finite() {
        true => (product / lengths).clamp(-1.0, 1.0),
        false => 0.0,
    }
}

/// Embeddings behind HTTP.
#[derive(Debug)]
struct HttpEmbedder {
    model: String,
    endpoint: Endpoint,
    codec: Box<dyn Codec>,
}

impl HttpEmbedder {
    async fn all(
        &self,
        texts: &[String],
        spent: &mut SideSpending,
    ) -> Result<Vec<Vec<f32>>, Failure> {
        let mut vectors = vec![Vec::new(); texts.len()];
        for (places, batch) in batches(texts) {
            let answer = self.batch(&batch).await?;
            *spent += self.spending(&batch, answer.tokens);
            for (place, vector) in places.into_iter().zip(answer.vectors) {
                vectors[place] = vector;
            }
        }
        even(&vectors).map(|()| vectors)
    }

    /// What a request took; estimated from its bytes where the provider does not count. There is no output to pay for.
    fn spending(&self, texts: &[&str], tokens: Option<u64>) -> SideSpending {
        let n_bytes = texts.iter().map(|text| text.len() as u64).sum::<u64>();
        let about = n_bytes.div_ceil(TOKEN_BYTES);
        let usage = Usage {
            input: tokens.unwrap_or(about),
            estimated: tokens.map_or(about, |_reported| 0),
            ..Usage::default()
        };
        let prices = Prices {
            output: Some(0.0),
            ..self.endpoint.settings.prices
        };
        SideSpending::of_request(usage, prices.cost(&usage))
    }

    /// The vectors of one request, after as many attempts as the operator allows.
    async fn batch(&self, texts: &[&str]) -> Result<wire::Vectors, Failure> {
        let mut number = 1;
        loop {
            let failure = match self.attempt(texts, number > 1).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let Some(after) = pause(&failure, number, self.endpoint.settings.retries) else {
                return Err(failure);
            };
            number += 1;
            tokio::time::sleep(after).await;
        }
    }

    async fn attempt(&self, texts: &[&str], is_fresh: bool) -> Result<wire::Vectors, Failure> {
        let settings = &self.endpoint.settings;
        let (kind, model) = (settings.kind, settings.model.as_str());
        let url = wire::url(kind, &self.endpoint.base, model);
        let url = url
            .ok_or_else(|| Failure::new(ProviderErrorKind::Settings, "there are no embeddings"))?;
        let body = wire::body(kind, model, texts)
            .map_err(|error| Failure::new(ProviderErrorKind::Request, error.to_string()))?;
        let request = self.endpoint.request(&url, &*self.codec, body)?;
        let patience = OwnPatience {
            headers: settings.timeouts.total,
            idle: settings.timeouts.idle,
            total: settings.timeouts.total,
        };
        let answer = match is_fresh {
            true => self.endpoint.client.send_fresh(request, patience).await,
            false => self.endpoint.client.send(request, patience).await,
        };
        let answer = answer.map_err(|error| of_network(&error))?;
        if !answer.status.is_success() {
            return Err(refusal(answer).await);
        }
        let answer = answer.bytes(ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(|error| of_network(&error))?;
        wire::vectors(kind, &answer, texts.len())
    }
}

impl Embedder for HttpEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        spent: &'a mut SideSpending,
    ) -> Pending<'a, Result<Vec<Vec<f32>>, ProviderError>> {
        Box::pin(async move {
            let vectors = self.all(texts, spent).await;
            vectors.map_err(|failure| self.endpoint.error(&failure))
        })
    }
}

/// The texts that are sent, in requests of bounded size, each with its places among all.
fn batches(texts: &[String]) -> Vec<(Vec<usize>, Vec<&str>)> {
    let mut batches: Vec<(Vec<usize>, Vec<&str>)> = Vec::new();
    let mut n_bytes = 0;
    for (place, text) in texts.iter().map(|text| beginning(text)).enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        n_bytes += text.len();
        match batches.last_mut() {
            Some((places, batch)) if batch.len() < TEXTS_MAX && n_bytes <= REQUEST_BYTES_MAX => {
                places.push(place);
                batch.push(text);
            }
            _ => {
                n_bytes = text.len();
                batches.push((vec![place], vec![text]));
            }
        }
    }
    batches
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX.min(text.len()))]
}

/// Errors: requests were answered with vectors of several lengths.
fn even(vectors: &[Vec<f32>]) -> Result<(), Failure> {
    let mut lengths = vectors.iter().map(Vec::len).filter(|length| *length > 0);
    let first = lengths.next();
    match lengths.all(|length| Some(length) == first) {
        true => Ok(()),
        false => Err(Failure::protocol("the vectors are of several lengths")),
    }
}

#[cfg(test)]
mod tests;
