//! Adding a grant beside those that are there: the longer lifetime of one capability stays.

use rusqlite::{Connection, params};
use zeph_core::id::Pin;
use zeph_core::lifetime::GrantLifetime;

use super::row;
use crate::grants::columns::{columns, mode_label};
use crate::grants::room::{NewGrant, Room};
use crate::grants::{GrantRecord, OldGrants};
use crate::sqlite::conversation::touch;

/// Adds `grant` unless one that is there covers it, and removes those it replaces.
pub(super) fn add(
    connection: &Connection,
    grant: &NewGrant<'_>,
    at_ms: i64,
) -> rusqlite::Result<GrantRecord> {
    const SQL: &str = "
        INSERT INTO grants (plugin, wasm, tools, capability, lifetime, conversation_id, until_ms, granted_at_ms, mode)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    if let Some(covering) = make_room(connection, grant, Some(at_ms))? {
        return Ok(covering);
    }
    if let GrantLifetime::Session { conversation } = grant.lifetime {
        touch(connection, conversation, at_ms, 0)?;
    }
    let lifetime = columns(grant.lifetime);
    connection.prepare_cached(SQL)?.execute(params![
        grant.plugin.0,
        grant.pin.wasm.to_string(),
        grant.pin.tools.to_string(),
        row::capability_text(grant.capability)?,
        lifetime.label,
        lifetime.conversation,
        lifetime.until_ms,
        at_ms,
        grant.mode.map(mode_label),
    ])?;
    Ok(GrantRecord {
        id: connection.last_insert_rowid(),
        plugin: grant.plugin.clone(),
        pin: grant.pin,
        capability: grant.capability.clone(),
        lifetime: grant.lifetime,
        granted_at_ms: at_ms,
        mode: grant.mode,
    })
}

/// Binds `grant` to another pin, beside what is there already: it, or a copy of it.
pub(super) fn bind_to(
    connection: &Connection,
    grant: &GrantRecord,
    to: Pin,
    old: OldGrants,
) -> rusqlite::Result<()> {
    const COPY: &str = "
        INSERT INTO grants (plugin, wasm, tools, capability, lifetime, conversation_id, until_ms, granted_at_ms, mode)
        SELECT plugin, ?2, ?3, capability, lifetime, conversation_id, until_ms, granted_at_ms, mode
        FROM grants WHERE id = ?1";
    const MOVE: &str = "UPDATE grants SET wasm = ?2, tools = ?3 WHERE id = ?1";
    let bound = NewGrant {
        plugin: &grant.plugin,
        pin: to,
        capability: &grant.capability,
        lifetime: grant.lifetime,
        mode: grant.mode,
    };
    let stays = old.stays(grant);
    match (make_room(connection, &bound, None)?.is_some(), stays) {
        (true, true) => return Ok(()),
        (true, false) => return delete(connection, grant.id),
        (false, _) => {}
    }
    let sql = if stays { COPY } else { MOVE };
    connection
        .prepare_cached(sql)?
        .execute(params![grant.id, to.wasm.to_string(), to.tools.to_string()])
        .map(drop)
}

/// Removes the grants that `grant` replaces, unless one of them covers it: then gives that one back.
fn make_room(
    connection: &Connection,
    grant: &NewGrant<'_>,
    now_ms: Option<i64>,
) -> rusqlite::Result<Option<GrantRecord>> {
    let there = row::of_pin(connection, grant.plugin, grant.pin)?;
    match Room::among(there, grant, now_ms) {
        Room::Covered(other) => Ok(Some(*other)),
        Room::Made(replaced) => {
            for id in replaced {
                delete(connection, id)?;
            }
            Ok(None)
        }
    }
}

fn delete(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM grants WHERE id = ?1")?
        .execute([id])
        .map(drop)
}
