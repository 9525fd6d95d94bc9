//! The counts of conversations in SQL.

use rusqlite::{Connection, OptionalExtension as _, params};
use zeph_core::id::ConversationId;

use crate::quota::QuotaUse;

/// Counts a call, in one statement; false when there may be no more.
pub(super) fn count(
    connection: &Connection,
    quota: &QuotaUse,
    at_ms: i64,
) -> rusqlite::Result<bool> {
    const SQL: &str = "
        INSERT INTO conversations (id, started_at_ms, last_used_ms, n_counted, counted_batch) VALUES (?1, ?2, ?2, 1, ?3)
        ON CONFLICT (id) DO UPDATE
        SET n_counted = n_counted + (counted_batch <> excluded.counted_batch), counted_batch = excluded.counted_batch
        WHERE n_counted < ?4 OR counted_batch = excluded.counted_batch";
    let row = params![
        quota.conversation.to_string(),
        at_ms,
        quota.batch.to_string(),
        quota.calls_max
    ];
    Ok(connection.prepare_cached(SQL)?.execute(row)? > 0)
}

/// The calls that have counted.
pub(super) fn counted(
    connection: &Connection,
    conversation: ConversationId,
) -> rusqlite::Result<u32> {
    let found: Option<u32> = connection
        .prepare_cached("SELECT n_counted FROM conversations WHERE id = ?1")?
        .query_row([conversation.to_string()], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or(0))
}

/// Counts from 0 again.
pub(super) fn forget(
    connection: &Connection,
    conversation: ConversationId,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE conversations SET n_counted = 0, counted_batch = '' WHERE id = ?1")?
        .execute([conversation.to_string()])
        .map(drop)
}
