//! The agent and the models it may use.

use std::time::Duration;

/// How the agent works (`agent`).
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSettings {
    /// The name of the model in use (`agent.provider`); one of [`Config::providers`](crate::Config::providers). `None`: there is none.
    pub provider: Option<String>,
    /// Rounds of tool calls in one turn (`agent.max_tool_iterations`); at least 1.
    pub max_tool_iterations: u32,
    /// Tokens a request may come to (`agent.context_budget_tokens`).
    pub context_budget_tokens: u64,
    /// Whether a context that grows is compacted (`agent.compaction`).
    pub compaction: bool,
    /// USD a session may cost; none without limit (`agent.max_cost_usd`).
    pub max_cost_usd: Option<f64>,
    /// Tokens of all requests and answers of a session; none without limit (`agent.max_total_tokens`).
    pub max_total_tokens: Option<u64>,
    /// How long a turn may take; none without limit (`agent.max_wall_s`).
    pub max_wall: Option<Duration>,
    /// Whether the model shortens results that are too long (`tools.summarize_output`).
    pub summarizes_output: bool,
    /// What the model works towards in every session (`agent.goal_text`).
    pub goal_text: Option<String>,
    /// How long a conversation is kept that is not used; zero means without limit (`agent.retention_days`).
    pub retention: Duration,
    /// What compares texts by their meaning (`agent.embedding`); `None`: they are compared by their words.
    pub embedding: Option<EmbeddingSettings>,
}

/// The model that compares texts by their meaning (`agent.embedding`).
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingSettings {
    /// The name of one of [`Config::providers`](crate::Config::providers), which is not Anthropic's.
    pub provider: String,
    /// The model, as the provider calls it; never empty.
    pub model: String,
    /// How long a comparison waits for its vectors.
    pub timeout: Duration,
    /// USD for a million tokens; `None`: as many as input of the provider costs.
    pub price_input: Option<f64>,
}

/// One model and where it is reached (`[[llm.providers]]`).
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderSettings {
    /// Unique: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The wire format.
    pub kind: ProviderKind,
    /// An `http://` or `https://` URL without a slash at its end; the operator wrote it, or it is the provider's own.
    pub base_url: String,
    /// As the provider calls it.
    pub model: String,
    /// Where its key is.
    pub api_key: ApiKey,
    /// The most tokens of one answer; none for the provider's default.
    pub max_tokens: Option<u32>,
    /// None for the provider's default.
    pub temperature: Option<f64>,
    /// The most time of one request.
    pub timeout: Duration,
    /// The most time in which no byte arrives.
    pub idle_timeout: Duration,
    /// How often a request that failed for a moment is sent again.
    pub retries: u32,
    /// Whether tools are called by the provider's own means; else the model writes fenced blocks.
    pub native_tools: bool,
    /// Whether answers arrive piece by piece.
    pub stream: bool,
    /// What tokens cost.
    pub prices: Prices,
    /// The context window Ollama is asked for, in tokens.
    pub num_ctx: Option<u32>,
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, and whatever is compatible with them.
    OpenAi,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Ollama's chat.
    Ollama,
    /// Gemini's `generateContent`.
    Gemini,
}

/// Where the key of a provider is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiKey {
    /// In a variable of the environment.
    Variable(String),
    /// Among the secrets of `zeph-host secret`.
    Secret(String),
    /// It needs none.
    None,
}

/// USD for a million tokens; none where it is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prices {
    /// Input that was read anew.
    pub input: Option<f64>,
    /// Output.
    pub output: Option<f64>,
    /// Input that was read from the provider's cache.
    pub cache_read: Option<f64>,
    /// Input that was written to the provider's cache.
    pub cache_write: Option<f64>,
}

impl ProviderKind {
    /// The address of the provider's own service; of Ollama, this machine.
    pub fn own_address(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Ollama => "http://127.0.0.1:11434",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    /// The variable in which this provider's key usually is; `None` when it needs none.
    pub fn usual_variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi | Self::OpenAiResponses => Some("OPENAI_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }
}
