//! What the operator says about a provider (`[[llm.providers]]`), as values.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::usage::Prices;

/// What a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// The Messages API of Anthropic.
    Anthropic,
    /// The Chat Completions API of OpenAI, and of whatever is compatible with it.
    #[serde(rename = "openai")]
    OpenAi,
    /// The Responses API of OpenAI.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// The chat API of Ollama.
    Ollama,
    /// `generateContent` of Gemini.
    Gemini,
}

impl ProviderKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Anthropic,
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Ollama,
        Self::Gemini,
    ];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Ollama => "ollama",
            Self::Gemini => "gemini",
        }
    }

    /// Where the provider is when the operator names no `base_url`.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Ollama => "http://127.0.0.1:11434",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    /// The variables that usually hold the key, the first that is set counts. None for Ollama, which needs no key.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::OpenAi | Self::OpenAiResponses => &["OPENAI_API_KEY"],
            Self::Ollama => &[],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One provider, with everything that a request needs.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// Its name in the configuration.
    pub name: String,
    /// What it speaks.
    pub kind: ProviderKind,
    /// Where it is; [`ProviderKind::base_url`] when the operator names nothing. With or without a slash at the end, and with or without
    /// the version at the end of the path (`/v1`, `/v1beta`).
    pub base_url: Option<String>,
    /// The model.
    pub model: String,
    /// The key. `None` for a provider that needs none.
    pub key: Option<ApiKey>,
    /// Most tokens of an answer; what the provider says when there is none.
    pub max_tokens: Option<u32>,
    /// How much chance there is in an answer; what the provider says when there is none.
    pub temperature: Option<f64>,
    /// What tokens cost.
    pub prices: Prices,
    /// Limits of time of each attempt.
    pub timeouts: Timeouts,
    /// How often a request is sent again after a failure that passes.
    pub retries: u32,
    /// Whether the model calls tools by the provider's own means. Otherwise calls are read from fenced blocks of its text.
    pub native_tools: bool,
    /// Whether answers come piece by piece.
    pub stream: bool,
    /// The length of the context that Ollama shall use, in tokens.
    pub num_ctx: Option<u32>,
}

/// Limits of time of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the header of the answer, where it is streamed.
    pub headers: Duration,
    /// Between two pieces of the answer, pings included.
    pub idle: Duration,
    /// The whole of it (`timeout_secs`).
    pub total: Duration,
}

/// The key of a provider. Its value is in no text that this type makes.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key with this value, without the blanks around it.
    pub fn new(value: &str) -> Self {
        Self(value.trim().to_owned())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}
