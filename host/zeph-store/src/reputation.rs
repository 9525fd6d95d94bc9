//! What the audit table tells of a plugin: how many of its calls went well, failed, were refused or met a limit.

use serde::Serialize;
use zeph_core::id::PluginId;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// The sums over the recorded calls of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Reputation {
    /// Calls that have ended.
    pub n_calls: u64,
    /// Of these, failures that are the plugin's own or that it reports: `permanent_failure` while it ran.
    pub n_failed: u64,
    /// Of these, calls that a rule or a missing grant refused, or that wait for an approval.
    pub n_refused: u64,
    /// Of these, calls that met a limit: of time, of memory, of what the host or a server takes at once.
    pub n_limited: u64,
    /// When it failed last, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_at_ms: Option<i64>,
}

impl Store {
    /// What the recorded calls of `plugin` come to. Old ones are swept with the audit.
    ///
    /// Limits: reads every row of the audit table.
    /// Errors: what the database says.
    pub async fn reputation(&self, plugin: PluginId) -> Result<Reputation, StoreError> {
        self.run(
            "sum up the calls of a plugin",
            Access::Read,
            move |operations| operations.reputation(&plugin),
        )
        .await
    }
}
