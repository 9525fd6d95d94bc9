//! Grants in SQL.

use rusqlite::{Connection, ToSql, params};
use zeph_core::id::{ConversationId, Pin, PluginId};

use crate::grants::room::{NewGrant, counting};
use crate::grants::{GrantRecord, ListedGrants, OldGrants, Revoke, TAKEN_MS_MAX};
use crate::operations::NewGrants;

mod add;
mod row;

/// Adds grants beside those that are there.
pub(super) fn add_all(
    connection: &Connection,
    grants: &NewGrants,
    at_ms: i64,
) -> rusqlite::Result<Vec<GrantRecord>> {
    let add = |capability| {
        let grant = NewGrant {
            plugin: &grants.plugin,
            pin: grants.pin,
            capability,
            lifetime: grants.lifetime,
            mode: grants.mode,
        };
        add::add(connection, &grant, at_ms)
    };
    grants.capabilities.iter().map(add).collect()
}

/// Revokes grants of a plugin.
pub(super) fn revoke(
    connection: &Connection,
    plugin: &PluginId,
    which: &Revoke,
) -> rusqlite::Result<usize> {
    match which {
        Revoke::All => connection
            .prepare_cached("DELETE FROM grants WHERE plugin = ?1")?
            .execute([&plugin.0]),
        Revoke::Ids(ids) => {
            let mut statement =
                connection.prepare_cached("DELETE FROM grants WHERE plugin = ?1 AND id = ?2")?;
            ids.iter()
                .map(|id| statement.execute(params![plugin.0, id]))
                .sum()
        }
        Revoke::Pin(Pin { wasm, tools }) => connection
            .prepare_cached("DELETE FROM grants WHERE plugin = ?1 AND wasm = ?2 AND tools = ?3")?
            .execute(params![plugin.0, wasm.to_string(), tools.to_string()]),
    }
}

/// Deletes grants that have ended, and `Once` grants of calls that never came back; says how many.
pub(super) fn sweep(connection: &Connection, at_ms: i64, n_max: u32) -> rusqlite::Result<usize> {
    const SQL: &str = "
        DELETE FROM grants WHERE id IN
        (SELECT id FROM grants WHERE until_ms <= ?1 OR taken_at_ms < ?2 LIMIT ?3)";
    let lost_ms = at_ms.saturating_sub(TAKEN_MS_MAX);
    connection
        .prepare_cached(SQL)?
        .execute(params![at_ms, lost_ms, n_max])
}

/// The grants that no call holds, of one plugin or of all.
pub(super) fn listed(
    connection: &Connection,
    plugin: Option<&PluginId>,
) -> rusqlite::Result<ListedGrants> {
    let named: Option<&dyn ToSql> = plugin.map(|plugin| &plugin.0 as &dyn ToSql);
    let condition = match named {
        Some(_) => "taken_at_ms IS NULL AND plugin = ?1",
        None => "taken_at_ms IS NULL",
    };
    row::read(connection, condition, named.as_slice())
}

/// The grants for a call of `conversation` that begins at `now_ms`. What cannot be read is not among them.
pub(super) fn in_force(
    connection: &Connection,
    plugin: &PluginId,
    pin: Pin,
    conversation: ConversationId,
    now_ms: i64,
) -> rusqlite::Result<Vec<GrantRecord>> {
    let grants = row::of_pin(connection, plugin, pin)?;
    Ok(counting(grants, conversation, now_ms))
}

/// Whether a `Once` grant is there, for this pin, and no call holds it.
pub(super) fn is_free(connection: &Connection, grant: &GrantRecord) -> rusqlite::Result<bool> {
    const SQL: &str = "
        SELECT EXISTS (SELECT 1 FROM grants WHERE id = ?1 AND wasm = ?2 AND tools = ?3
                       AND lifetime = 'once' AND taken_at_ms IS NULL)";
    let Pin { wasm, tools } = grant.pin;
    let row = params![grant.id, wasm.to_string(), tools.to_string()];
    connection
        .prepare_cached(SQL)?
        .query_row(row, |row| row.get(0))
}

/// Marks a grant as held by a call: it counts for no other.
pub(super) fn hold(connection: &Connection, id: i64, at_ms: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE grants SET taken_at_ms = ?2 WHERE id = ?1")?
        .execute([id, at_ms])
        .map(drop)
}

/// Makes a held grant count again, unless a grant that replaces it was added later: every later one of the same capability
/// does. One that was revoked stays revoked.
pub(super) fn release(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    const REPLACED: &str = "
        DELETE FROM grants WHERE id = ?1 AND taken_at_ms IS NOT NULL AND EXISTS
            (SELECT 1 FROM grants AS other
             WHERE other.id > grants.id AND other.taken_at_ms IS NULL AND other.plugin = grants.plugin
               AND other.wasm = grants.wasm AND other.tools = grants.tools AND other.capability = grants.capability)";
    connection.prepare_cached(REPLACED)?.execute([id])?;
    connection
        .prepare_cached("UPDATE grants SET taken_at_ms = NULL WHERE id = ?1")?
        .execute([id])
        .map(drop)
}

/// Lets grants of one pin, or of all, count for another.
pub(super) fn rebind(
    connection: &Connection,
    plugin: &PluginId,
    (from, to): (Option<Pin>, Pin),
    old: OldGrants,
) -> rusqlite::Result<usize> {
    let counts = |grant: &GrantRecord| grant.pin != to && from.is_none_or(|pin| pin == grant.pin);
    let held = row::read(connection, "plugin = ?1", &[&plugin.0])?;
    let mut n_bound = 0;
    for grant in held.grants.iter().filter(|grant| counts(grant)) {
        add::bind_to(connection, grant, to, old)?;
        n_bound += 1;
    }
    Ok(n_bound)
}
