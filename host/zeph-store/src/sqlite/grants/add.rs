//! Adding a grant beside those that are there: the longer lifetime of one capability stays.

use rusqlite::{Connection, params};
use zeph_core::capability::Capability;
use zeph_core::id::{Pin, PluginId};
use zeph_core::lifetime::GrantLifetime;
use zeph_core::policy::Mode;

use super::row;
use crate::grants::GrantRecord;
use crate::sqlite::conversation::touch;

/// A grant that has no number yet.
#[derive(Debug)]
pub(super) struct Grant<'a> {
    pub(super) plugin: &'a PluginId,
    pub(super) pin: Pin,
    pub(super) capability: &'a Capability,
    pub(super) lifetime: GrantLifetime,
    pub(super) mode: Option<Mode>,
}

/// Adds `grant` unless one that is there covers it, and removes those it replaces.
pub(super) fn add(
    connection: &Connection,
    grant: &Grant<'_>,
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
    let lifetime = row::columns(grant.lifetime);
    connection.prepare_cached(SQL)?.execute(params![
        grant.plugin.0,
        grant.pin.wasm.to_string(),
        grant.pin.tools.to_string(),
        row::capability_text(grant.capability)?,
        lifetime.label,
        lifetime.conversation,
        lifetime.until_ms,
        at_ms,
        grant.mode.map(row::mode_label),
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

/// Binds `grant` to another pin, beside what is there already.
pub(super) fn move_to(
    connection: &Connection,
    grant: &GrantRecord,
    to: Pin,
) -> rusqlite::Result<()> {
    let moved = Grant {
        plugin: &grant.plugin,
        pin: to,
        capability: &grant.capability,
        lifetime: grant.lifetime,
        mode: grant.mode,
    };
    if make_room(connection, &moved, None)?.is_some() {
        return delete(connection, grant.id);
    }
    connection
        .prepare_cached("UPDATE grants SET wasm = ?2, tools = ?3 WHERE id = ?1")?
        .execute(params![grant.id, to.wasm.to_string(), to.tools.to_string()])
        .map(drop)
}

/// Removes the grants that `grant` replaces, unless one of them covers it: then gives that one back.
///
/// `now_ms` is `None` when it does not matter what has expired: a moved grant keeps its own end.
fn make_room(
    connection: &Connection,
    grant: &Grant<'_>,
    now_ms: Option<i64>,
) -> rusqlite::Result<Option<GrantRecord>> {
    let mut there = row::of_pin(connection, grant.plugin, grant.pin)?;
    there.retain(|other| {
        let is_over = match (other.lifetime, now_ms) {
            (GrantLifetime::Until { at_ms }, Some(now_ms)) => at_ms <= now_ms,
            _ => false,
        };
        other.capability == *grant.capability && !is_over
    });
    let covering =
        |other: &&GrantRecord| other.mode == grant.mode && covers(other.lifetime, grant.lifetime);
    if let Some(other) = there.iter().find(covering) {
        return Ok(Some(other.clone()));
    }
    for other in there {
        // Of two modes for one capability the newer counts.
        if other.mode != grant.mode || replaces(grant.lifetime, other.lifetime) {
            delete(connection, other.id)?;
        }
    }
    Ok(None)
}

/// Whether a grant for `held` makes one for `asked` pointless.
fn covers(held: GrantLifetime, asked: GrantLifetime) -> bool {
    use GrantLifetime::{Always, Once, Session, Until};
    match (held, asked) {
        (Always, _) | (Once, Once) | (Until { .. }, Once) => true,
        (Until { at_ms: held }, Until { at_ms: asked }) => held >= asked,
        (
            Session { conversation: held },
            Session {
                conversation: asked,
            },
        ) => held == asked,
        // A session counts for its conversation only: the call that is to be allowed once may belong to another.
        (Session { .. }, Once | Until { .. })
        | (Once, Session { .. } | Until { .. })
        | (Until { .. }, Session { .. })
        | (Once | Session { .. } | Until { .. }, Always) => false,
    }
}

/// Whether a new grant for `new` ends one for `held`.
fn replaces(new: GrantLifetime, held: GrantLifetime) -> bool {
    // "Once" and then something longer: nobody expects a further call after the longer one has ended.
    covers(new, held) || held == GrantLifetime::Once
}

fn delete(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM grants WHERE id = ?1")?
        .execute([id])
        .map(drop)
}
