//! When calls last used what plugins were granted.
//!
//! A use is kept by plugin and capability, not by the number of the grant: default grants have none, and a capability that is granted anew
//! keeps its history. Callers report a use now and then, not with every call.

use zeph_core::id::PluginId;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// A capability that calls of a plugin have used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantUse {
    /// The plugin.
    pub plugin: PluginId,
    /// The capability as text.
    pub capability: String,
    /// When it was last reported, in Unix milliseconds.
    pub used_at_ms: i64,
}

/// Every use that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantUses {
    /// Since when uses are kept, in Unix milliseconds.
    pub since_ms: i64,
    /// The uses, by plugin and capability.
    pub uses: Vec<GrantUse>,
}

impl Store {
    /// Reports that a call of `plugin` used `capabilities` at `at_ms`, and goes on. When the queue is full the report is dropped.
    ///
    /// An earlier moment does not replace a later one.
    pub fn note_grant_uses(&self, plugin: PluginId, capabilities: Vec<String>, at_ms: i64) {
        self.queue_and_go("report the use of grants", move |operations| {
            operations.note_grant_uses(&plugin, &capabilities, at_ms)
        });
    }

    /// Every use of a grant that is known.
    ///
    /// Errors: what the database says.
    pub async fn grant_uses(&self) -> Result<GrantUses, StoreError> {
        self.run("read the uses of grants", Access::Read, |operations| {
            operations.grant_uses()
        })
        .await
    }
}
