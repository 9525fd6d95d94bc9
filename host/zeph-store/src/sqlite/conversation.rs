//! Conversations in SQL.

use rusqlite::{Connection, Row, params};
use zeph_core::id::ConversationId;

use super::audit::parsed;
use super::savings;
use crate::conversation::Conversation;
use crate::sweep::Past;

/// The conversations used last.
pub(super) fn listed(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<Conversation>> {
    const SQL: &str = "
        SELECT id, started_at_ms, last_used_ms, n_calls,
               (SELECT coalesce(sum(max(n_bytes, 0)), 0) FROM tool_overflow WHERE conversation_id = conversations.id)
        FROM conversations ORDER BY last_used_ms DESC, id DESC LIMIT ?1";
    connection
        .prepare_cached(SQL)?
        .query_map([limit], conversation)?
        .collect()
}

/// Deletes a conversation; its sums go on under none.
pub(super) fn delete(connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    savings::fold(connection, id)?;
    let n_rows = connection
        .prepare_cached("DELETE FROM conversations WHERE id = ?1")?
        .execute([id])?;
    Ok(n_rows > 0)
}

/// Deletes conversations that own no output and are past their time, which is another for those with an agent; says how many.
pub(super) fn sweep(connection: &Connection, past: &Past, n_max: u32) -> rusqlite::Result<usize> {
    const SQL: &str = "
        SELECT id FROM conversations WHERE last_used_ms < max(?1, ?2)
            AND last_used_ms < iif(EXISTS
                (SELECT 1 FROM agent_sessions WHERE conversation_id = conversations.id), ?1, ?2)
            AND NOT EXISTS (SELECT 1 FROM tool_overflow WHERE conversation_id = conversations.id) LIMIT ?3";
    let (with_agent_ms, others_ms) = past.of_conversations();
    let limits = params![with_agent_ms, others_ms, n_max];
    let ids: Vec<String> = connection
        .prepare_cached(SQL)?
        .query_map(limits, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for id in &ids {
        delete(connection, id)?;
    }
    Ok(ids.len())
}

/// Marks a conversation as used, beginning it when there is none, and counts `n_calls` more calls.
///
/// Limits: the time of the last use may be up to a second too early.
pub(crate) fn touch(
    connection: &Connection,
    id: ConversationId,
    at_ms: i64,
    n_calls: u32,
) -> rusqlite::Result<()> {
    // By far the most calls: the row alone changes, and not its place in the index by time, which is a page of its own.
    const AGAIN: &str = "UPDATE conversations SET n_calls = n_calls + ?3 WHERE id = ?1 AND last_used_ms > ?2 - 1000";
    const SQL: &str = "
        INSERT INTO conversations (id, started_at_ms, last_used_ms, n_calls) VALUES (?1, ?2, ?2, ?3)
        ON CONFLICT (id) DO UPDATE
        SET last_used_ms = max(last_used_ms, excluded.last_used_ms), n_calls = n_calls + excluded.n_calls";
    let id = id.to_string();
    let row = params![id, at_ms, n_calls];
    let n_rows = connection.prepare_cached(AGAIN)?.execute(row)?;
    if n_rows == 0 {
        connection.prepare_cached(SQL)?.execute(row)?;
    }
    Ok(())
}

fn conversation(row: &Row<'_>) -> rusqlite::Result<Conversation> {
    Ok(Conversation {
        id: parsed(row, 0)?,
        started_at_ms: row.get(1)?,
        last_used_at_ms: row.get(2)?,
        n_calls: row.get(3)?,
        overflow_bytes: row.get(4)?,
    })
}
