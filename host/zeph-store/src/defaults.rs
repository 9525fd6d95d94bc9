//! Default grants of the plugins that come with the program: whether they still count.
//!
//! What they are stands in the configuration. A plugin has them until its operator revokes them; nothing but the operator's word
//! brings them back.

use rusqlite::{Connection, params};
use zeph_core::id::{ConversationId, Pin, PluginId};

use crate::error::StoreError;
use crate::grants::{GrantRecord, in_force};
use crate::store::Store;
use crate::writer::Access;

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
        let work = move |connection: &Connection| {
            Ok(OwnGrants {
                has_defaults: has_defaults(connection, &plugin)?,
                granted: in_force(connection, &plugin, pin, conversation, now_ms)?,
            })
        };
        self.run("read the grants of a call", Access::Read, work)
            .await
    }

    /// Whether the default grants of `plugin` count.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn has_defaults(&self, plugin: PluginId) -> Result<bool, StoreError> {
        let work = move |connection: &Connection| has_defaults(connection, &plugin);
        self.run("read the default grants", Access::Read, work)
            .await
    }

    /// Revokes the default grants of `plugin`; says whether they counted until now.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn revoke_defaults(&self, plugin: PluginId, at_ms: i64) -> Result<bool, StoreError> {
        const SQL: &str = "
            INSERT INTO revoked_defaults (plugin, at_ms) VALUES (?1, ?2) ON CONFLICT (plugin) DO NOTHING";
        let work = move |connection: &Connection| {
            let row = params![plugin.0, at_ms];
            Ok(connection.prepare_cached(SQL)?.execute(row)? > 0)
        };
        self.run("revoke default grants", Access::Write, work).await
    }

    /// Lets the default grants of `plugin` count again; says whether they did not until now.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn restore_defaults(&self, plugin: PluginId) -> Result<bool, StoreError> {
        const SQL: &str = "DELETE FROM revoked_defaults WHERE plugin = ?1";
        let work = move |connection: &Connection| {
            Ok(connection.prepare_cached(SQL)?.execute([&plugin.0])? > 0)
        };
        self.run("restore default grants", Access::Write, work)
            .await
    }
}

fn has_defaults(connection: &Connection, plugin: &PluginId) -> rusqlite::Result<bool> {
    const SQL: &str = "SELECT NOT EXISTS (SELECT 1 FROM revoked_defaults WHERE plugin = ?1)";
    connection
        .prepare_cached(SQL)?
        .query_row([&plugin.0], |row| row.get(0))
}
