//! Default grants of the plugins that come with the program: whether they still count.
//!
//! What they are stands in the configuration. A plugin has them until its operator revokes them; nothing but the operator's word
//! brings them back.

use zeph_core::id::{ConversationId, Pin, PluginId};

use crate::error::StoreError;
use crate::grants::GrantRecord;
use crate::store::{Access, Store};

/// What a plugin of the program may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnGrants {
    /// Whether its default grants count.
    pub has_defaults: bool,
    /// What it was granted besides.
    pub granted: Vec<GrantRecord>,
}

impl Store {
    /// What `plugin` may use in one call of `conversation` that begins at `now_ms`. Changes nothing.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn own_grants_of_call(
        &self,
        plugin: PluginId,
        pin: Pin,
        conversation: ConversationId,
        now_ms: i64,
    ) -> Result<OwnGrants, StoreError> {
        const OPERATION: &str = "read the grants of a call";
        self.run(OPERATION, Access::ReadRights, move |operations| {
            operations.own_grants_of_call(&plugin, pin, conversation, now_ms)
        })
        .await
    }

    /// Whether the default grants of `plugin` count.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn has_defaults(&self, plugin: PluginId) -> Result<bool, StoreError> {
        self.run("read the default grants", Access::Read, move |operations| {
            operations.has_defaults(&plugin)
        })
        .await
    }

    /// Revokes the default grants of `plugin`; says whether they counted until now.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn revoke_defaults(&self, plugin: PluginId, at_ms: i64) -> Result<bool, StoreError> {
        self.run("revoke default grants", Access::Write, move |operations| {
            operations.revoke_defaults(&plugin, at_ms)
        })
        .await
    }

    /// Lets the default grants of `plugin` count again; says whether they did not until now.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn restore_defaults(&self, plugin: PluginId) -> Result<bool, StoreError> {
        self.run("restore default grants", Access::Write, move |operations| {
            operations.restore_defaults(&plugin)
        })
        .await
    }
}
