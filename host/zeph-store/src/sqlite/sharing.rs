//! What replicas share in SQL.

use rusqlite::{Connection, OptionalExtension as _, params};
use uuid::Uuid;
use zeph_core::id::{ConversationId, OverflowId};

use super::audit::parsed;
use crate::caller::Owner;
use crate::sharing::{CallBucket, USED_SEALS_KEPT_MS};

/// Uses up a seal; says whether it was there. Forgets those that cannot be opened any more.
pub(super) fn use_seal(
    connection: &Connection,
    ticket: Uuid,
    at_ms: i64,
) -> rusqlite::Result<bool> {
    const FORGET: &str = "DELETE FROM used_seals WHERE used_at_ms < ?1";
    const SQL: &str = "
        INSERT INTO used_seals (ticket, used_at_ms) VALUES (?1, ?2) ON CONFLICT (ticket) DO NOTHING";
    let oldest_ms = at_ms.saturating_sub(USED_SEALS_KEPT_MS);
    connection.prepare_cached(FORGET)?.execute([oldest_ms])?;
    let row = params![ticket.to_string(), at_ms];
    Ok(connection.prepare_cached(SQL)?.execute(row)? > 0)
}

/// Whether a seal was used.
pub(super) fn is_seal_used(connection: &Connection, ticket: Uuid) -> rusqlite::Result<bool> {
    const SQL: &str = "SELECT 1 FROM used_seals WHERE ticket = ?1";
    connection.prepare_cached(SQL)?.exists([ticket.to_string()])
}

/// Takes a call out of a bucket; else how long to wait.
pub(super) fn take_call(
    connection: &Connection,
    bucket: &CallBucket,
    at_ms: i64,
) -> rusqlite::Result<Option<u64>> {
    const TAKE: &str = "
        INSERT INTO call_buckets (token, full_us) VALUES (?1, ?2 + ?3)
        ON CONFLICT (token) DO UPDATE
        SET full_us = iif(full_us > ?2 + ?5, ?2, max(full_us, ?2)) + ?3
        WHERE full_us <= ?2 + ?4 OR full_us > ?2 + ?5";
    const FULL: &str = "SELECT full_us FROM call_buckets WHERE token = ?1";
    let (token, now_us) = (bucket.token.to_string(), at_ms.saturating_mul(1_000));
    let row = params![
        token,
        now_us,
        bucket.interval_us(),
        bucket.latest_us(),
        CallBucket::impossible_us()
    ];
    if connection.prepare_cached(TAKE)?.execute(row)? > 0 {
        return Ok(None);
    }
    let mut full = connection.prepare_cached(FULL)?;
    let full_us: i64 = full.query_row([token], |row| row.get(0))?;
    Ok(Some(bucket.wait_ms(full_us.saturating_sub(now_us))))
}

/// Keeps whose an output is that is there.
pub(super) fn own_output(
    connection: &Connection,
    id: OverflowId,
    caller: &Owner,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO output_callers (overflow_id, caller) SELECT id, ?2 FROM tool_overflow WHERE id = ?1
        ON CONFLICT (overflow_id) DO NOTHING";
    let row = params![id.to_string(), caller.text()];
    connection.prepare_cached(SQL)?.execute(row).map(drop)
}

/// The conversation of an output of this caller.
pub(super) fn conversation_of_output(
    connection: &Connection,
    id: OverflowId,
    caller: &Owner,
) -> rusqlite::Result<Option<ConversationId>> {
    const SQL: &str = "
        SELECT conversation_id FROM tool_overflow JOIN output_callers ON overflow_id = id
        WHERE id = ?1 AND caller IS ?2";
    connection
        .prepare_cached(SQL)?
        .query_row(params![id.to_string(), caller.text()], |row| parsed(row, 0))
        .optional()
}

/// When a conversation was used last.
pub(super) fn conversation_used(
    connection: &Connection,
    id: ConversationId,
) -> rusqlite::Result<Option<i64>> {
    const SQL: &str = "SELECT last_used_ms FROM conversations WHERE id = ?1";
    connection
        .prepare_cached(SQL)?
        .query_row([id.to_string()], |row| row.get(0))
        .optional()
}

/// Counts a change of what plugins offer.
pub(super) fn note_offer_change(connection: &Connection) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE offer_version SET version = version + 1";
    connection.prepare_cached(SQL)?.execute([]).map(drop)
}

/// The number of these changes.
pub(super) fn offer_version(connection: &Connection) -> rusqlite::Result<i64> {
    const SQL: &str = "SELECT version FROM offer_version";
    connection
        .prepare_cached(SQL)?
        .query_row([], |row| row.get(0))
}
