//! What the operator set for the tools: `[tools.scrape]`.

use std::time::Duration;

use serde::Deserialize;
use zeph_plugin::ToolError;

use crate::media::Kind;

/// The settings as the host hands them over. It fills in the defaults of its configuration; these here count in native builds only.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Seconds a request may take, from the first byte sent to the last one read.
    timeout: u32,
    /// The longest body that is read, in bytes after decompression.
    max_body_bytes: u32,
    /// The longest page of HTML, likewise.
    max_html_bytes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: 15,
            max_body_bytes: 8 * 1024 * 1024,
            max_html_bytes: 2 * 1024 * 1024,
        }
    }
}

impl Settings {
    /// Those of the running host.
    ///
    /// Errors: `permanent_failure` when the host's are of another version.
    pub fn of_host() -> Result<Self, ToolError> {
        zeph_plugin::settings()
    }

    /// How long a request may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout.into())
    }

    /// The longest body of a kind that is read.
    pub fn limit(&self, kind: Kind) -> Limit {
        let (bytes, key) = match kind {
            Kind::Html if self.max_html_bytes < self.max_body_bytes => {
                (self.max_html_bytes, "tools.scrape.max_html_bytes")
            }
            _ => (self.max_body_bytes, "tools.scrape.max_body_bytes"),
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Limit { bytes, key }
    }
}

/// How long a body may be, and where the operator says so.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// After decompression.
    pub bytes: usize,
    /// The key of the configuration.
    pub key: &'static str,
}
