//! Adding a grant beside those that are there: the longer lifetime of one capability stays.

use zeph_core::id::Pin;
use zeph_core::lifetime::GrantLifetime;

use super::row;
use crate::grants::columns::{columns, mode_label};
use crate::grants::room::{NewGrant, Room};
use crate::grants::{GrantRecord, OldGrants};
use crate::operations::Outcome;
use crate::postgres::conversation::touch;
use crate::postgres::transaction::Transaction;
use crate::postgres::value::get;

/// Adds `grant` unless one that is there covers it, and removes those it replaces.
pub(super) fn add(
    transaction: &Transaction,
    grant: &NewGrant<'_>,
    at_ms: i64,
) -> Outcome<GrantRecord> {
    const SQL: &str = "
        INSERT INTO grants (plugin, wasm, tools, capability, lifetime, conversation_id, until_ms, granted_at_ms, mode)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id";
    if let Some(covering) = make_room(transaction, grant, Some(at_ms))? {
        return Ok(covering);
    }
    if let GrantLifetime::Session { conversation } = grant.lifetime {
        touch(transaction, conversation, at_ms, 0)?;
    }
    let lifetime = columns(grant.lifetime);
    let row = transaction.query_one(
        SQL,
        &[
            &grant.plugin.0,
            &grant.pin.wasm.to_string(),
            &grant.pin.tools.to_string(),
            &row::capability_text(grant.capability)?,
            &lifetime.label,
            &lifetime.conversation,
            &lifetime.until_ms,
            &at_ms,
            &grant.mode.map(mode_label),
        ],
    )?;
    Ok(GrantRecord {
        id: get(&row, 0)?,
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
    transaction: &Transaction,
    grant: &GrantRecord,
    to: Pin,
    old: OldGrants,
) -> Outcome<()> {
    const COPY: &str = "
        INSERT INTO grants (plugin, wasm, tools, capability, lifetime, conversation_id, until_ms, granted_at_ms, mode)
        SELECT plugin, $2, $3, capability, lifetime, conversation_id, until_ms, granted_at_ms, mode
        FROM grants WHERE id = $1";
    const MOVE: &str = "UPDATE grants SET wasm = $2, tools = $3 WHERE id = $1";
    const DELETE: &str = "DELETE FROM grants WHERE id = $1";
    let bound = NewGrant {
        plugin: &grant.plugin,
        pin: to,
        capability: &grant.capability,
        lifetime: grant.lifetime,
        mode: grant.mode,
    };
    let stays = old.stays(grant);
    match (make_room(transaction, &bound, None)?.is_some(), stays) {
        (true, true) => return Ok(()),
        (true, false) => return transaction.execute(DELETE, &[&grant.id]).map(drop),
        (false, _) => {}
    }
    let sql = if stays { COPY } else { MOVE };
    let (wasm, tools) = (to.wasm.to_string(), to.tools.to_string());
    transaction
        .execute(sql, &[&grant.id, &wasm, &tools])
        .map(drop)
}

/// Removes the grants that `grant` replaces, unless one of them covers it: then gives that one back.
fn make_room(
    transaction: &Transaction,
    grant: &NewGrant<'_>,
    now_ms: Option<i64>,
) -> Outcome<Option<GrantRecord>> {
    // A call may have taken one meanwhile: that is replaced when it is released.
    const SQL: &str = "DELETE FROM grants WHERE id = ANY($1::bigint[]) AND taken_at_ms IS NULL";
    let there = row::of_pin(transaction, grant.plugin, grant.pin)?.1;
    match Room::among(there, grant, now_ms) {
        Room::Covered(other) => Ok(Some(*other)),
        Room::Made(replaced) => {
            if !replaced.is_empty() {
                transaction.execute(SQL, &[&replaced])?;
            }
            Ok(None)
        }
    }
}
