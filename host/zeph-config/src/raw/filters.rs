//! `[tools.filters]`, exactly as written.

use schemars::JsonSchema;
use serde::Deserialize;

/// Less text for the model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFilters {
    #[schemars(extend("x-project" = "never: filters"))]
    pub(crate) enabled: bool,
    #[schemars(extend("x-project" = "never: filters"))]
    pub(crate) filters_path: String,
    #[schemars(extend("x-project" = "never: filters"))]
    pub(crate) trusted_sha256: String,
    #[schemars(length(max = 1000), extend("x-project" = "never: filters"))]
    pub(crate) tools: Vec<String>,
    /// Secrets in outputs.
    pub(crate) security: RawFilterSecurity,
}

/// Secrets in outputs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFilterSecurity {
    #[schemars(extend("x-project" = "never: filters"))]
    pub(crate) enabled: bool,
    #[schemars(length(max = 256), extend("x-project" = "add"))]
    pub(crate) extra_patterns: Vec<String>,
}
