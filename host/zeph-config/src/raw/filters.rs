//! `[tools.filters]`, exactly as written.

use schemars::JsonSchema;
use serde::Deserialize;

/// Less text for the model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFilters {
    /// Shorten outputs at all.
    pub(crate) enabled: bool,
    /// The file of your rules; empty means filters.toml beside the configuration file.
    pub(crate) filters_path: String,
    /// The SHA-256 of a file of rules that does not lie beside the configuration file.
    pub(crate) trusted_sha256: String,
    /// Names of tools besides `bash` whose outputs are shortened.
    #[schemars(length(max = 1000))]
    pub(crate) tools: Vec<String>,
    /// Secrets in outputs.
    pub(crate) security: RawFilterSecurity,
}

/// Secrets in outputs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFilterSecurity {
    /// Warn of what looks like a secret.
    pub(crate) enabled: bool,
    /// Regular expressions of more that is a secret.
    #[schemars(length(max = 256))]
    pub(crate) extra_patterns: Vec<String>,
}
