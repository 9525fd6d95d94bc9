//! Conversations: the owners of stored outputs.

use rusqlite::{Connection, Row, params};
use zeph_core::id::ConversationId;

use crate::audit::table::parsed;
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Access;

/// A conversation and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Its identity.
    pub id: ConversationId,
    /// When it began, in Unix milliseconds.
    pub started_at_ms: i64,
    /// When it last began, made a call or stored an output, in Unix milliseconds.
    pub last_used_at_ms: i64,
    /// Calls recorded for it.
    pub n_calls: u64,
    /// Bytes of its stored outputs.
    pub overflow_bytes: u64,
}

impl Store {
    /// Begins a conversation, or marks an existing one as used.
    ///
    /// Recording a call or storing an output does the same, so a conversation that was deleted or swept while it is
    /// still in use comes back with its next use.
    pub async fn begin_conversation(
        &self,
        id: ConversationId,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        let work = move |connection: &Connection| touch(connection, id, at_ms, 0);
        self.run("begin a conversation", Access::Write, work).await
    }

    /// The conversations used last, newest first, at most `limit`.
    pub async fn list_conversations(&self, limit: u32) -> Result<Vec<Conversation>, StoreError> {
        const SQL: &str = "
            SELECT id, started_at_ms, last_used_ms, n_calls,
                   (SELECT coalesce(sum(n_bytes), 0) FROM tool_overflow WHERE conversation_id = conversations.id)
            FROM conversations ORDER BY last_used_ms DESC, id DESC LIMIT ?1";
        let work = move |connection: &Connection| {
            connection
                .prepare_cached(SQL)?
                .query_map([limit], conversation)?
                .collect()
        };
        self.run("list the conversations", Access::Read, work).await
    }

    /// Deletes a conversation and its stored outputs; says whether there was one. Its audit rows stay.
    pub async fn delete_conversation(&self, id: ConversationId) -> Result<bool, StoreError> {
        const SQL: &str = "DELETE FROM conversations WHERE id = ?1";
        let work = move |connection: &Connection| {
            let n_rows = connection.prepare_cached(SQL)?.execute([id.to_string()])?;
            Ok(n_rows > 0)
        };
        self.run("delete a conversation", Access::Write, work).await
    }
}

/// Marks a conversation as used, beginning it when there is none, and counts `n_calls` more calls.
pub(crate) fn touch(
    connection: &Connection,
    id: ConversationId,
    at_ms: i64,
    n_calls: u32,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO conversations (id, started_at_ms, last_used_ms, n_calls) VALUES (?1, ?2, ?2, ?3)
        ON CONFLICT (id) DO UPDATE
        SET last_used_ms = max(last_used_ms, excluded.last_used_ms), n_calls = n_calls + excluded.n_calls";
    let mut statement = connection.prepare_cached(SQL)?;
    statement
        .execute(params![id.to_string(), at_ms, n_calls])
        .map(drop)
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
