//! `agent` and `llm.providers`: the agent and its models.

use std::time::Duration;

use super::{Compiling, DAY};
use crate::agent::{
    AgentSettings, ApiKey, EmbeddingSettings, Prices, ProviderKind, ProviderSettings,
};
use crate::raw::{RawAgent, RawEmbedding, RawLlm, RawProvider, RawProviderKind};

const PROVIDERS: &str = "llm.providers";
const PROVIDER: &str = "agent.provider";
const EMBEDDING_PROVIDER: &str = "agent.embedding.provider";
const EMBEDDING_MODEL: &str = "agent.embedding.model";

/// Seconds of a request: models that think before they answer take minutes.
const TIMEOUT_SECS: u32 = 600;

/// Seconds without any byte: providers send signs of life far more often.
const IDLE_TIMEOUT_SECS: u32 = 120;

/// Requests that fail for a moment: with growing waits four bridge about half a minute.
const RETRIES: u32 = 4;

/// Characters of a provider's name.
const NAME_CHARS_MAX: usize = 64;

impl Compiling<'_> {
    /// The agent; `providers` are those that can be named.
    pub(super) fn agent(
        &mut self,
        raw: &RawAgent,
        providers: &[ProviderSettings],
    ) -> AgentSettings {
        AgentSettings {
            provider: self.provider_in_use(&raw.provider, providers),
            max_tool_iterations: raw.max_tool_iterations,
            context_budget_tokens: raw.context_budget_tokens,
            compaction: raw.compaction,
            max_cost_usd: (raw.max_cost_usd > 0.0).then_some(raw.max_cost_usd),
            max_total_tokens: (raw.max_total_tokens > 0).then_some(raw.max_total_tokens),
            max_wall: (raw.max_wall_s > 0).then(|| Duration::from_secs(raw.max_wall_s.into())),
            summarizes_output: false,
            goal_text: (!raw.goal_text.trim().is_empty()).then(|| raw.goal_text.trim().to_owned()),
            retention: DAY * raw.retention_days,
            embedding: self.embedding(&raw.embedding, providers),
        }
    }

    /// The model for vectors; none when no provider is named.
    fn embedding(
        &mut self,
        raw: &RawEmbedding,
        providers: &[ProviderSettings],
    ) -> Option<EmbeddingSettings> {
        let model = raw.model.trim();
        if raw.provider.is_empty() {
            if !model.is_empty() {
                let message = format!(
                    "no provider is named; set `{EMBEDDING_PROVIDER}` to the name of one of `{PROVIDERS}`"
                );
                self.merged.problem(EMBEDDING_MODEL, &message);
            }
            return None;
        }
        match self.named_provider(EMBEDDING_PROVIDER, &raw.provider, providers) {
            Some(ProviderKind::Anthropic) => {
                let message = format!(
                    "the provider `{}` has no embeddings; name one of type openai, openai-responses, ollama or gemini",
                    raw.provider
                );
                self.merged.problem(EMBEDDING_PROVIDER, &message);
            }
            Some(_) if model.is_empty() => {
                let message = "it is empty; name the model for embeddings as the provider calls it";
                self.merged.problem(EMBEDDING_MODEL, message);
            }
            _ => {}
        }
        Some(EmbeddingSettings {
            provider: raw.provider.clone(),
            model: model.to_owned(),
            timeout: Duration::from_millis(raw.timeout_ms.into()),
            price_input: Some(raw.price_input).filter(|price| *price > 0.0),
        })
    }

    /// The kind of the provider that `key` names.
    fn named_provider(
        &mut self,
        key: &str,
        name: &str,
        providers: &[ProviderSettings],
    ) -> Option<ProviderKind> {
        let found = providers.iter().find(|provider| provider.name == name);
        if found.is_none() {
            let names: Vec<&str> = providers.iter().map(|one| one.name.as_str()).collect();
            let known = match names.as_slice() {
                [] => "there are none".to_owned(),
                names => format!("they are: {}", names.join(", ")),
            };
            let message = format!("it is not the name of one of `{PROVIDERS}`; {known}");
            self.merged.problem(key, &message);
        }
        found.map(|provider| provider.kind)
    }

    /// The model of `agent.provider`; without one the first that is configured.
    fn provider_in_use(&mut self, name: &str, providers: &[ProviderSettings]) -> Option<String> {
        if name.is_empty() {
            return providers.first().map(|first| first.name.clone());
        }
        self.named_provider(PROVIDER, name, providers);
        Some(name.to_owned())
    }

    pub(super) fn providers(&mut self, raw: &RawLlm) -> Vec<ProviderSettings> {
        let mut providers: Vec<ProviderSettings> = Vec::new();
        for (idx, raw) in raw.providers.iter().enumerate() {
            if !is_name(&raw.name) {
                let message = "a name has 1 to 64 letters, digits, `-`, `_` and `.`";
                self.merged.problem_in(PROVIDERS, idx, "name", message);
            }
            if providers.iter().any(|other| other.name == raw.name) {
                let message = format!("two providers are called `{}`", raw.name);
                self.merged.problem_in(PROVIDERS, idx, "name", &message);
            }
            if raw.model.trim().is_empty() {
                let message = "it is empty; name the model as the provider calls it";
                self.merged.problem_in(PROVIDERS, idx, "model", message);
            }
            let provider = self.provider(idx, raw);
            providers.push(provider);
        }
        providers
    }

    fn provider(&mut self, idx: usize, raw: &RawProvider) -> ProviderSettings {
        let kind = kind(raw.kind);
        let secs =
            |secs: Option<u32>, default: u32| Duration::from_secs(secs.unwrap_or(default).into());
        ProviderSettings {
            name: raw.name.clone(),
            kind,
            base_url: self.base_url(idx, raw, kind),
            model: raw.model.clone(),
            api_key: self.api_key(idx, raw, kind),
            max_tokens: raw.max_tokens,
            temperature: raw.temperature,
            timeout: secs(raw.timeout_secs, TIMEOUT_SECS),
            idle_timeout: secs(raw.idle_timeout_secs, IDLE_TIMEOUT_SECS),
            retries: raw.retries.unwrap_or(RETRIES),
            native_tools: raw.native_tools.unwrap_or(true),
            stream: raw.stream.unwrap_or(true),
            prices: Prices {
                input: raw.price_input,
                output: raw.price_output,
                cache_read: raw.price_cache_read,
                cache_write: raw.price_cache_write,
            },
            num_ctx: raw.num_ctx,
        }
    }

    fn base_url(&mut self, idx: usize, raw: &RawProvider, kind: ProviderKind) -> String {
        let url = raw.base_url.trim();
        if url.is_empty() {
            return kind.own_address().to_owned();
        }
        if let Some(problem) = problem_of_url(url) {
            self.merged.problem_in(PROVIDERS, idx, "base_url", problem);
        }
        url.trim_end_matches('/').to_owned()
    }

    /// The usual variable counts for the provider's own address alone: no other server gets a key it was not meant for.
    fn api_key(&mut self, idx: usize, raw: &RawProvider, kind: ProviderKind) -> ApiKey {
        let is_elsewhere = !raw.base_url.trim().is_empty()
            && raw.base_url.trim().trim_end_matches('/') != kind.own_address();
        match (raw.api_key_env.as_str(), raw.api_key_secret.as_str()) {
            ("", "") if is_elsewhere => ApiKey::None,
            ("", "") => kind
                .usual_variable()
                .map_or(ApiKey::None, |name| ApiKey::Variable(name.to_owned())),
            (variable, "") => ApiKey::Variable(variable.to_owned()),
            ("", secret) => ApiKey::Secret(secret.to_owned()),
            _ => {
                let message = "set `api_key_env` or `api_key_secret`, not both";
                self.merged
                    .problem_in(PROVIDERS, idx, "api_key_secret", message);
                ApiKey::None
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_part)
}

/// What is wrong with a base URL.
fn problem_of_url(url: &str) -> Option<&'static str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Some("it has to begin with `https://` or `http://`");
    };
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() {
        return Some("it names no host");
    }
    if authority.contains('@') {
        return Some("it must not hold a user or a password; use `api_key_secret`");
    }
    let is_odd = |character: char| character.is_whitespace() || "?#".contains(character);
    url.contains(is_odd)
        .then_some("it must not hold a query, a fragment or a space")
}

fn kind(raw: RawProviderKind) -> ProviderKind {
    match raw {
        RawProviderKind::Anthropic => ProviderKind::Anthropic,
        RawProviderKind::OpenAi => ProviderKind::OpenAi,
        RawProviderKind::OpenAiResponses => ProviderKind::OpenAiResponses,
        RawProviderKind::Ollama => ProviderKind::Ollama,
        RawProviderKind::Gemini => ProviderKind::Gemini,
    }
}
