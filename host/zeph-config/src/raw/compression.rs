//! `[tools.compression]`, exactly as written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// Outputs beside the goal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCompression {
    #[schemars(extend("x-project" = "never: filters"))]
    pub(crate) enabled: bool,
    #[schemars(extend("x-project" = "never: filters"))]
    pub(crate) goal_aware: bool,
    #[schemars(extend("x-project" = "never: models"))]
    pub(crate) embeddings: bool,
    #[schemars(range(min = 1, max = 100_000_000), extend("x-project" = "never: filters"))]
    pub(crate) compression_threshold_tokens: u32,
    #[schemars(range(min = 0, max = 1), extend("x-project" = "never: filters"))]
    pub(crate) goal_relevance_threshold: f64,
    #[schemars(extend("x-project" = "never: filters"))]
    pub(crate) preserve_errors: bool,
    #[schemars(extend("x-project" = "never: filters"))]
    pub(crate) preserve_shell_errors: bool,
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-project" = "never: filters"))]
    pub(crate) max_preserved_chars: u32,
    /// How outputs of a tool are compressed, by its name.
    #[serde(default)]
    #[schemars(extend("x-project" = "never: filters"))]
    pub(crate) strategies: BTreeMap<String, RawCompressionStrategy>,
}

/// How much is left of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawCompressionStrategy {
    Aggressive,
    Moderate,
    None,
}
