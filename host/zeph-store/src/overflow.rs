//! The full text of outputs that were shortened for a model, kept byte for byte.
//!
//! An entry belongs to one conversation and is read only with both identifiers; it goes with its conversation.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use zeph_core::id::{ConversationId, OverflowId};

use crate::conversation::touch;
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Access;

/// Entries deleted in one transaction of a sweep. Freeing a large entry touches each of its pages, and calls wait
/// meanwhile.
const SWEEP_ENTRIES: u32 = 16;

/// Conversations deleted in one transaction of a sweep.
const SWEEP_CONVERSATIONS: u32 = 256;

/// Most bytes of an output in one row. SQLite copies a row several times to write it; what goes beyond is in rows of its own.
const PART_BYTES: usize = 1 << 20;

/// What a sweep deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Stored outputs.
    pub n_overflow: usize,
    /// Conversations that owned nothing any more.
    pub n_conversations: usize,
    /// Grants of plugins that had ended.
    pub n_grants: usize,
    /// Requests nobody answered in time, and approvals for once that no call used.
    pub n_approvals: usize,
}

impl Store {
    /// Stores a full output and gives back the key to it.
    ///
    /// Limits: takes a few MiB beside the output, whatever its length.
    pub async fn put_overflow(
        &self,
        conversation: ConversationId,
        content: impl AsRef<[u8]> + Send + 'static,
        at_ms: i64,
    ) -> Result<OverflowId, StoreError> {
        self.put(conversation, content, None, at_ms).await
    }

    /// Stores a full output, with the rules that shortened what is shown of it, as a JSON array.
    pub(crate) async fn put(
        &self,
        conversation: ConversationId,
        content: impl AsRef<[u8]> + Send + 'static,
        rules: Option<String>,
        at_ms: i64,
    ) -> Result<OverflowId, StoreError> {
        const SQL: &str = "
            INSERT INTO tool_overflow (id, conversation_id, created_at_ms, n_bytes, content, filter_rules)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let id = OverflowId::new();
        let work = move |connection: &Connection| {
            let content = content.as_ref();
            let (first, rest) = content.split_at(content.len().min(PART_BYTES));
            touch(connection, conversation, at_ms, 0)?;
            let n_bytes = i64::try_from(content.len()).unwrap_or(i64::MAX);
            let row = params![
                id.to_string(),
                conversation.to_string(),
                at_ms,
                n_bytes,
                first,
                rules
            ];
            connection.prepare_cached(SQL)?.execute(row)?;
            insert_parts(connection, id, rest)?;
            Ok(id)
        };
        self.run("store an output", Access::Write, work).await
    }

    /// A stored output, byte for byte; `None` when it is unknown, swept, or of another conversation.
    pub async fn overflow(
        &self,
        conversation: ConversationId,
        id: OverflowId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        const SQL: &str =
            "SELECT content FROM tool_overflow WHERE id = ?1 AND conversation_id = ?2";
        let work = move |connection: &Connection| {
            let key = [id.to_string(), conversation.to_string()];
            let first: Option<Vec<u8>> = connection
                .prepare_cached(SQL)?
                .query_row(key, |row| row.get(0))
                .optional()?;
            let Some(mut content) = first else {
                return Ok(None);
            };
            append_parts(connection, id, &mut content)?;
            Ok(Some(content))
        };
        self.run("read a stored output", Access::Read, work).await
    }

    /// Deletes the outputs stored more than `retention` before `at_ms`, then the conversations that own nothing and
    /// were last used before that moment, with the grants and approvals for them, and what has ended of
    /// those. Audit rows stay.
    ///
    /// A `retention` of zero keeps outputs and conversations for ever (`tools.overflow.retention_days = 0`), as zero means
    /// "no limit" for the other keys of that section too.
    ///
    /// It works in short transactions, so calls go on meanwhile. The file does not shrink: later entries reuse the
    /// space.
    pub async fn sweep(&self, retention: Duration, at_ms: i64) -> Result<Swept, StoreError> {
        const OVERFLOW: &str = "
            DELETE FROM tool_overflow WHERE rowid IN
            (SELECT rowid FROM tool_overflow WHERE created_at_ms < ?1 LIMIT ?2)";
        const CONVERSATIONS: &str = "
            DELETE FROM conversations WHERE id IN
            (SELECT id FROM conversations WHERE last_used_ms < ?1 AND NOT EXISTS
                (SELECT 1 FROM tool_overflow WHERE conversation_id = conversations.id) LIMIT ?2)";
        let n_grants = self.sweep_grants(at_ms).await?;
        let n_approvals = self.sweep_approvals(at_ms).await?;
        if retention.is_zero() {
            return Ok(Swept {
                n_grants,
                n_approvals,
                ..Swept::default()
            });
        }
        let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
        let before_ms = at_ms.saturating_sub(retention_ms);
        Ok(Swept {
            n_overflow: self.delete_old(OVERFLOW, before_ms, SWEEP_ENTRIES).await?,
            n_conversations: {
                let n_conversations = self
                    .delete_old(CONVERSATIONS, before_ms, SWEEP_CONVERSATIONS)
                    .await?;
                self.fold_savings().await?;
                n_conversations
            },
            n_grants,
            n_approvals,
        })
    }

    /// Runs a deletion again and again until it finds nothing, each time in its own transaction.
    async fn delete_old(
        &self,
        sql: &'static str,
        before_ms: i64,
        n_each: u32,
    ) -> Result<usize, StoreError> {
        let mut n_deleted = 0;
        loop {
            let work = move |connection: &Connection| {
                connection
                    .prepare_cached(sql)?
                    .execute(params![before_ms, n_each])
            };
            let n_rows = self.run("sweep old outputs", Access::Write, work).await?;
            n_deleted += n_rows;
            if n_rows == 0 {
                return Ok(n_deleted);
            }
        }
    }
}

/// Stores what follows the first part of an output.
fn insert_parts(connection: &Connection, id: OverflowId, rest: &[u8]) -> rusqlite::Result<()> {
    const SQL: &str =
        "INSERT INTO tool_overflow_parts (overflow_id, part, content) VALUES (?1, ?2, ?3)";
    let id = id.to_string();
    for (part, number) in rest.chunks(PART_BYTES).zip(1_i64..) {
        let mut statement = connection.prepare_cached(SQL)?;
        statement.execute(params![id, number, part])?;
    }
    Ok(())
}

/// Reads what follows the first part of an output.
fn append_parts(
    connection: &Connection,
    id: OverflowId,
    content: &mut Vec<u8>,
) -> rusqlite::Result<()> {
    const SQL: &str =
        "SELECT content FROM tool_overflow_parts WHERE overflow_id = ?1 ORDER BY part";
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query([id.to_string()])?;
    while let Some(row) = rows.next()? {
        content.extend_from_slice(row.get_ref(0)?.as_blob()?);
    }
    Ok(())
}
