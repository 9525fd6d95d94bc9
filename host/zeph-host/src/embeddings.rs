//! Texts compared by their meaning (`agent.embedding`): the vectors of a model, kept for texts that come again.
//!
//! The model is reached when the first vector is needed, and a failure is never one of what asked for it: what compares texts has a way
//! to do without.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use zeph_agent::budget::CallMeter;
use zeph_agent::embedding::{Embedder, connect_embedder};
use zeph_agent::{Pending, SideSpending};
use zeph_config::{Config, EmbeddingSettings};
use zeph_core::failure::one_line;
use zeph_core::id::Digest;
use zeph_egress::Egress;
use zeph_store::Store;

use crate::agent::models::{self, NoModel};
use crate::clock::now_ms;
use crate::governance::{TextVectors, VectorSource};
use crate::known_secrets::KnownSecrets;

/// Characters of why a model failed.
const PROBLEM_CHARS_MAX: usize = 300;

/// The model for vectors, and the vectors that are kept. Clones share the connection.
#[derive(Debug, Clone)]
pub(crate) struct Embeddings(Arc<EmbeddingRoom>);

#[derive(Debug)]
struct EmbeddingRoom {
    config: Config,
    settings: EmbeddingSettings,
    secrets: Arc<KnownSecrets>,
    egress: Egress,
    store: Store,
    /// None when the model cannot be reached at all.
    embedder: OnceLock<Option<Arc<dyn Embedder>>>,
}

impl VectorSource for Embeddings {
    fn vectors<'a>(
        &'a self,
        texts: Vec<String>,
        kept: Vec<String>,
        meter: Option<&'a CallMeter>,
    ) -> Pending<'a, Option<TextVectors>> {
        Box::pin(Embeddings::vectors(self, texts, kept, meter))
    }
}

impl Embeddings {
    /// None where no model is configured. Nothing is sent or read.
    pub(crate) fn new(
        config: &Config,
        secrets: &Arc<KnownSecrets>,
        egress: &Egress,
        store: &Store,
    ) -> Option<Self> {
        let settings = config.agent.embedding.clone()?;
        Some(Self(Arc::new(EmbeddingRoom {
            config: config.clone(),
            settings,
            secrets: Arc::clone(secrets),
            egress: egress.clone(),
            store: store.clone(),
            embedder: OnceLock::new(),
        })))
    }

    /// For what compares texts with one another.
    pub(crate) fn into_source(self) -> Arc<dyn VectorSource> {
        Arc::new(self)
    }

    /// The model itself, for what keeps vectors of its own; none when it cannot be reached, such as without a key.
    pub(crate) fn embedder(&self) -> Option<Arc<dyn Embedder>> {
        let room = &*self.0;
        let embedder = room.embedder.get_or_init(|| {
            let EmbeddingSettings {
                provider,
                model,
                price_input,
                ..
            } = &room.settings;
            let known = (&room.config, &*room.secrets);
            let settings = models::settings_of(known, provider, (model, *price_input));
            let connected = settings.and_then(|settings| {
                connect_embedder(settings, &room.egress).map_err(|error| NoModel::of(&error))
            });
            connected
                .inspect_err(|missing| {
                    tracing::warn!(
                        problem = missing.problem,
                        "texts are compared by their words: there is no model for embeddings"
                    );
                })
                .ok()
        });
        embedder.clone()
    }

    /// The provider of the configuration, by its name.
    pub(crate) fn provider(&self) -> &str {
        &self.0.settings.provider
    }

    /// Provider and model, as the embedder is told apart from others.
    pub(crate) fn model_name(&self) -> String {
        let settings = &self.0.settings;
        format!("{}/{}", settings.provider, settings.model)
    }

    /// How long a comparison waits for its vectors.
    pub(crate) fn patience(&self) -> Duration {
        self.0.settings.timeout
    }

    /// The vectors of texts, which are sent without known secrets, in their order. None are looked up or remembered. Without `patience`
    /// it takes what the provider may take. `spent` counts what it took.
    ///
    /// Errors: why there are none, in a sentence.
    pub(crate) async fn embed(
        &self,
        texts: Vec<String>,
        patience: Option<Duration>,
        spent: &mut SideSpending,
    ) -> Result<Vec<Vec<f32>>, String> {
        let provider = self.provider();
        let missing =
            || format!("the embedder `{provider}` cannot be used: the host's log says why");
        let embedder = self.embedder().ok_or_else(missing)?;
        let redactor = self.0.secrets.redactor();
        let texts: Vec<String> = texts
            .iter()
            .map(|text| redactor.text(text).into_owned())
            .collect();
        let asked = embedder.embed(&texts, spent);
        let answer = match patience {
            None => asked.await,
            Some(patience) => tokio::time::timeout(patience, asked).await.map_err(|_| {
                format!(
                    "the embedder `{provider}` gave no answer within {} ms",
                    patience.as_millis()
                )
            })?,
        };
        answer.map_err(|error| {
            let problem = one_line(&redactor.text(&error.to_string()), PROBLEM_CHARS_MAX);
            format!("the embedder `{provider}` failed: {problem}")
        })
    }

    /// The vectors of texts, without known secrets, in their order; those of `kept` are looked up first, and remembered. None when the
    /// model fails or takes longer than the operator allows, and when the budget of `meter` is used up; that is logged. What it took is
    /// counted by `meter`.
    pub(crate) async fn vectors(
        &self,
        texts: Vec<String>,
        kept: Vec<String>,
        meter: Option<&CallMeter>,
    ) -> Option<TextVectors> {
        if let Some(exhausted) = meter.and_then(CallMeter::exhausted) {
            tracing::warn!(%exhausted, "texts are compared by their words");
            return None;
        }
        let timeout = self.0.settings.timeout;
        let mut spent = SideSpending::default();
        let answer = tokio::time::timeout(timeout, self.ask(texts, kept, &mut spent)).await;
        if let Some(meter) = meter {
            meter.add(&spent);
        }
        answer.unwrap_or_else(|_| {
            tracing::warn!(
                ?timeout,
                "texts are compared by their words: the model for embeddings gave no answer in time"
            );
            None
        })
    }

    async fn ask(
        &self,
        texts: Vec<String>,
        kept: Vec<String>,
        spent: &mut SideSpending,
    ) -> Option<TextVectors> {
        let embedder = self.embedder()?;
        let redactor = self.0.secrets.redactor();
        let clean = |texts: Vec<String>| -> Vec<String> {
            let clean = texts.iter().map(|text| redactor.text(text).into_owned());
            clean.collect()
        };
        let (mut texts, kept) = (clean(texts), clean(kept));
        let digests: Vec<Digest> = kept
            .iter()
            .map(|text| digest(embedder.model(), text))
            .collect();
        let known = self.0.store.vectors(digests.clone(), now_ms()).await;
        // Without the store they are asked for again.
        let mut known = known.unwrap_or_else(|_| vec![None; kept.len()]);
        let missing: Vec<usize> = (0..kept.len())
            .filter(|idx| known[*idx].is_none())
            .collect();
        let n_texts = texts.len();
        texts.extend(missing.iter().map(|idx| kept[*idx].clone()));
        let mut vectors = match embedder.embed(&texts, spent).await {
            Ok(vectors) => vectors,
            Err(error) => {
                let error = redactor.text(&error.to_string()).into_owned();
                tracing::warn!(
                    error,
                    "texts are compared by their words: the model for embeddings failed"
                );
                return None;
            }
        };
        let new = vectors.split_off(n_texts.min(vectors.len()));
        let mut fresh = Vec::with_capacity(new.len());
        for (idx, vector) in missing.into_iter().zip(new) {
            fresh.push((digests[idx], vector.clone()));
            known[idx] = Some(vector);
        }
        if !fresh.is_empty()
            && let Err(error) = self.0.store.keep_vectors(fresh, now_ms()).await
        {
            tracing::warn!(%error, "vectors of texts are not kept");
        }
        let known = known.into_iter().map(Option::unwrap_or_default);
        Some((vectors, known.collect()))
    }
}

/// What a vector is kept under.
fn digest(model: &str, text: &str) -> Digest {
    let mut hash = Sha256::new();
    hash.update((model.len() as u64).to_le_bytes());
    hash.update(model);
    hash.update(text);
    Digest::new(hash.finalize().into())
}
