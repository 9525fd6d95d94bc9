//! `[tools.governance]`, exactly as written.

use schemars::JsonSchema;
use serde::Deserialize;

/// What calls come to by what the conversation did before.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawGovernance {
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) trajectory_enabled: bool,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) block_risky_patterns: bool,
    #[schemars(with = "Vec<RawSequence>", length(max = 1000), extend("x-project" = "never: rules"))]
    pub(crate) blocked_sequences: Vec<toml::Value>,
    #[schemars(length(max = 1000), extend("x-project" = "never: rules"))]
    pub(crate) always_available: Vec<String>,
    #[schemars(range(min = 1, max = 1000), extend("x-project" = "never: rules"))]
    pub(crate) window_calls: u32,
    #[schemars(range(min = 0, max = 1), extend("x-project" = "never: rules"))]
    pub(crate) similarity_threshold: f64,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) flow: RawFlow,
    #[schemars(length(max = 1000), extend("x-project" = "hide"))]
    pub(crate) private_paths: Vec<String>,
}

/// What happens to a call that would carry off the machine what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawFlow {
    Off,
    Observe,
    Ask,
    Deny,
}

/// What a sequence does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawSequenceMode {
    Observe,
    Ask,
    Deny,
}

/// Words that calls must not have in order.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum RawSequence {
    /// The words; such a call is refused.
    Words(Vec<String>),
    /// The words, and what happens to such a call.
    InMode(RawSequenceInMode),
}

/// A sequence with a mode.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawSequenceInMode {
    /// The words.
    pub(crate) sequence: Vec<String>,
    /// What happens to a call that completes it.
    pub(crate) mode: RawSequenceMode,
}
