//! Revoked default grants in SQL.

use rusqlite::{Connection, params};
use zeph_core::id::PluginId;

/// Whether the default grants of a plugin count.
pub(super) fn counts(connection: &Connection, plugin: &PluginId) -> rusqlite::Result<bool> {
    const SQL: &str = "SELECT NOT EXISTS (SELECT 1 FROM revoked_defaults WHERE plugin = ?1)";
    connection
        .prepare_cached(SQL)?
        .query_row([&plugin.0], |row| row.get(0))
}

/// Revokes the default grants of a plugin; says whether they counted.
pub(super) fn revoke(
    connection: &Connection,
    plugin: &PluginId,
    at_ms: i64,
) -> rusqlite::Result<bool> {
    const SQL: &str = "
        INSERT INTO revoked_defaults (plugin, at_ms) VALUES (?1, ?2) ON CONFLICT (plugin) DO NOTHING";
    let row = params![plugin.0, at_ms];
    Ok(connection.prepare_cached(SQL)?.execute(row)? > 0)
}

/// Lets the default grants of a plugin count again; says whether they did not.
pub(super) fn restore(connection: &Connection, plugin: &PluginId) -> rusqlite::Result<bool> {
    const SQL: &str = "DELETE FROM revoked_defaults WHERE plugin = ?1";
    Ok(connection.prepare_cached(SQL)?.execute([&plugin.0])? > 0)
}
