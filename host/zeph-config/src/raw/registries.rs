//! What may be said about registries of plugins.

use schemars::JsonSchema;
use serde::Deserialize;

/// A registry of plugins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawRegistry {
    /// `HOST` or `HOST:PORT`.
    pub(crate) host: String,
    /// Speak plain HTTP with it.
    #[serde(default)]
    pub(crate) plain_http: bool,
    /// Whether its addresses may be private ones.
    #[serde(default)]
    pub(crate) private: bool,
}
