//! `[agent]` and `[[llm.providers]]`, exactly as written.

use schemars::JsonSchema;
use serde::Deserialize;

/// The agent: what `zeph-host run` does with a model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAgent {
    #[schemars(length(max = 64), extend("x-project" = "never: models"))]
    pub(crate) provider: String,
    #[schemars(range(min = 1, max = 100_000), extend("x-project" = "lower"))]
    pub(crate) max_tool_iterations: u32,
    #[schemars(range(min = 1_000, max = 100_000_000), extend("x-project" = "lower"))]
    pub(crate) context_budget_tokens: u64,
    #[schemars(extend("x-project" = "never: models"))]
    pub(crate) compaction: bool,
    #[schemars(range(min = 0, max = 1_000_000), extend("x-project" = "lower-from-unlimited"))]
    pub(crate) max_cost_usd: f64,
    #[schemars(range(min = 0, max = 1_000_000_000_000_u64), extend("x-project" = "lower-from-unlimited"))]
    pub(crate) max_total_tokens: u64,
    #[schemars(range(min = 0, max = 31_536_000), extend("x-project" = "lower-from-unlimited"))]
    pub(crate) max_wall_s: u32,
    #[schemars(length(max = 10_000), extend("x-project" = "never: models"))]
    pub(crate) goal_text: String,
    #[schemars(range(min = 0, max = 36_500), extend("x-project" = "never: record"))]
    pub(crate) retention_days: u32,
    /// The model that compares texts by their meaning.
    pub(crate) embedding: RawEmbedding,
}

/// The model that compares texts by their meaning.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEmbedding {
    #[schemars(length(max = 64), extend("x-project" = "never: models"))]
    pub(crate) provider: String,
    #[schemars(length(max = 256), extend("x-project" = "never: models"))]
    pub(crate) model: String,
    #[schemars(range(min = 1, max = 600_000), extend("x-project" = "never: models"))]
    pub(crate) timeout_ms: u32,
    #[schemars(range(min = 0, max = 1_000_000), extend("x-project" = "never: models"))]
    pub(crate) price_input: f64,
}

/// The models.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLlm {
    #[schemars(length(max = 64), extend("x-project" = "never: models"))]
    pub(crate) providers: Vec<RawProvider>,
}

/// One model and where it is reached.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawProvider {
    /// What other keys and `/model` call it.
    pub(crate) name: String,
    /// The wire format.
    #[serde(rename = "type")]
    pub(crate) kind: RawProviderKind,
    /// Where the requests go; empty means the provider's own address.
    #[serde(default)]
    pub(crate) base_url: String,
    /// The model, as the provider calls it.
    pub(crate) model: String,
    /// The variable that holds the API key.
    #[serde(default)]
    pub(crate) api_key_env: String,
    /// The secret of `zeph-host secret` that is the API key.
    #[serde(default)]
    pub(crate) api_key_secret: String,
    /// The most tokens of one answer.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 10_000_000))]
    pub(crate) max_tokens: Option<u32>,
    /// How much chance there is in an answer.
    #[serde(default)]
    #[schemars(with = "f64", range(min = 0, max = 2))]
    pub(crate) temperature: Option<f64>,
    /// The most seconds of one request.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 86_400))]
    pub(crate) timeout_secs: Option<u32>,
    /// The most seconds in which no byte of an answer arrives.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 86_400))]
    pub(crate) idle_timeout_secs: Option<u32>,
    /// How often a request that failed for a moment is sent again.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 0, max = 20))]
    pub(crate) retries: Option<u32>,
    /// Whether the model calls tools by the provider's own means.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub(crate) native_tools: Option<bool>,
    /// Whether answers arrive piece by piece.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub(crate) stream: Option<bool>,
    /// USD for a million tokens of input.
    #[serde(default)]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub(crate) price_input: Option<f64>,
    /// USD for a million tokens of output.
    #[serde(default)]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub(crate) price_output: Option<f64>,
    /// USD for a million tokens read from the provider's cache.
    #[serde(default)]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub(crate) price_cache_read: Option<f64>,
    /// USD for a million tokens written to the provider's cache.
    #[serde(default)]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub(crate) price_cache_write: Option<f64>,
    /// The context window that Ollama is asked for, in tokens.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 256, max = 100_000_000))]
    pub(crate) num_ctx: Option<u32>,
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum RawProviderKind {
    #[serde(rename = "anthropic")]
    Anthropic,
    #[serde(rename = "openai")]
    OpenAi,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    #[serde(rename = "ollama")]
    Ollama,
    #[serde(rename = "gemini")]
    Gemini,
}
