//! Uses of grants in SQL.

use rusqlite::{Connection, params};
use zeph_core::id::PluginId;

use crate::grant_uses::{GrantUse, GrantUses};

/// Keeps the latest use of each capability.
pub(super) fn note(
    connection: &Connection,
    plugin: &PluginId,
    capabilities: &[String],
    at_ms: i64,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO grant_uses (plugin, capability, used_at_ms) VALUES (?1, ?2, ?3)
        ON CONFLICT (plugin, capability) DO UPDATE SET used_at_ms = max(used_at_ms, excluded.used_at_ms)";
    let mut statement = connection.prepare_cached(SQL)?;
    for capability in capabilities {
        statement.execute(params![plugin.0, capability, at_ms])?;
    }
    Ok(())
}

/// All of them, and since when they are kept.
pub(super) fn listed(connection: &Connection) -> rusqlite::Result<GrantUses> {
    const SQL: &str =
        "SELECT plugin, capability, used_at_ms FROM grant_uses ORDER BY plugin, capability";
    let since_ms = connection
        .prepare_cached("SELECT at_ms FROM grant_uses_since")?
        .query_row([], |row| row.get(0))?;
    let mut statement = connection.prepare_cached(SQL)?;
    let uses = statement.query_map([], |row| {
        Ok(GrantUse {
            plugin: PluginId(row.get(0)?),
            capability: row.get(1)?,
            used_at_ms: row.get(2)?,
        })
    })?;
    Ok(GrantUses {
        since_ms,
        uses: uses.collect::<rusqlite::Result<_>>()?,
    })
}
