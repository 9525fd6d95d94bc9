//! What may be said about the way out to the network.

use schemars::JsonSchema;
use serde::Deserialize;

/// The way out to the network.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEgress {
    #[schemars(length(max = 2_000), extend("x-project" = "never: egress"))]
    pub(crate) proxy: String,
    #[schemars(extend("x-project" = "never: egress"))]
    pub(crate) ca_file: String,
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "lower"))]
    pub(crate) connect_timeout_secs: u32,
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "lower"))]
    pub(crate) header_timeout_secs: u32,
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "lower"))]
    pub(crate) idle_timeout_secs: u32,
    #[schemars(range(min = 1, max = 86_400), extend("x-project" = "lower"))]
    pub(crate) timeout_secs: u32,
    #[schemars(range(min = 8192, max = 1_048_576), extend("x-project" = "lower"))]
    pub(crate) max_header_bytes: u32,
    #[schemars(range(min = 1024, max = 1_073_741_824), extend("x-project" = "lower"))]
    pub(crate) max_body_bytes: u64,
    #[schemars(range(min = 0, max = 3), extend("x-project" = "lower"))]
    pub(crate) max_redirects: u32,
    #[schemars(range(min = 1, max = 1_000_000), extend("x-project" = "lower"))]
    pub(crate) max_requests: u32,
    #[schemars(range(min = 1, max = 256), extend("x-project" = "lower"))]
    pub(crate) max_connections: u32,
    #[schemars(length(max = 256), extend("x-project" = "never: egress"))]
    pub(crate) private: Vec<RawPrivateHost>,
}

/// A single private host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct RawPrivateHost {
    /// A name or an address.
    pub(crate) host: String,
    /// The ports that are opened.
    #[schemars(length(max = 64), inner(range(min = 1, max = 65_535)))]
    pub(crate) ports: Vec<u16>,
    /// Whether plain HTTP may be spoken there.
    #[serde(default)]
    pub(crate) plain_http: bool,
}
