//! `[tools.tafc]`, `[tools.schema_filter]`, `[tools.dependencies]` and `[tools.adversarial_policy]`, exactly as written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// Room to think in the schemas of complex tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTafc {
    #[schemars(extend("x-project" = "never: models"))]
    pub(crate) enabled: bool,
    #[schemars(extend("x-project" = "never: models"))]
    pub(crate) complexity_threshold: f64,
}

/// Which tools a model is shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSchemaFilter {
    #[schemars(extend("x-project" = "never: models"))]
    pub(crate) enabled: bool,
    #[schemars(range(min = 0, max = 10_000), extend("x-project" = "never: models"))]
    pub(crate) top_k: u32,
    #[schemars(length(max = 1000), extend("x-project" = "never: models"))]
    pub(crate) always_on: Vec<String>,
    #[schemars(range(min = 0, max = 1), extend("x-project" = "never: models"))]
    pub(crate) min_similarity: f64,
}

/// Which tools come before which.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDependencies {
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) enabled: bool,
    #[schemars(range(min = 0, max = 1), extend("x-project" = "never: rules"))]
    pub(crate) boost_per_dep: f64,
    #[schemars(range(min = 0, max = 1), extend("x-project" = "never: rules"))]
    pub(crate) max_total_boost: f64,
    /// What a tool needs before it, by its name.
    #[serde(default)]
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) rules: BTreeMap<String, RawDependencyRule>,
}

/// What one tool needs before it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawDependencyRule {
    /// Tools that must have succeeded in the conversation before this one is shown or runs.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) requires: Vec<String>,
    /// Tools after which this one is more likely to be chosen by tools.schema_filter.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub(crate) prefers: Vec<String>,
}

/// A second model that judges calls before they run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAdversarialPolicy {
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) enabled: bool,
    #[schemars(length(max = 64), extend("x-project" = "never: rules"))]
    pub(crate) provider: String,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) policy_file: String,
    #[schemars(range(min = 1, max = 600_000), extend("x-project" = "never: rules"))]
    pub(crate) timeout_ms: u32,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) fail_open: bool,
    #[schemars(length(max = 1000), extend("x-project" = "never: rules"))]
    pub(crate) exempt_tools: Vec<String>,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) block_on_reject: bool,
}
