//! Conversations.

use tokio_postgres::Row;
use zeph_core::id::ConversationId;

use super::savings;
use super::transaction::Transaction;
use super::value::{count, get, parsed};
use crate::conversation::Conversation;
use crate::operations::Outcome;
use crate::sweep::Past;

/// The conversations used last.
pub(super) fn listed(transaction: &Transaction, limit: u32) -> Outcome<Vec<Conversation>> {
    const SQL: &str = "
        SELECT id, started_at_ms, last_used_ms, n_calls,
               (SELECT coalesce(sum(n_bytes), 0)::bigint FROM tool_overflow WHERE conversation_id = conversations.id)
        FROM conversations ORDER BY last_used_ms DESC, id DESC LIMIT $1";
    let rows = transaction.query(SQL, &[&i64::from(limit)])?;
    rows.iter().map(conversation).collect()
}

/// Deletes a conversation; its sums go on under none.
pub(super) fn delete(transaction: &Transaction, id: &str) -> Outcome<bool> {
    // First, so that nobody counts for it meanwhile: whoever does has it begun again.
    let n_rows = transaction.execute("DELETE FROM conversations WHERE id = $1", &[&id])?;
    savings::fold(transaction, id)?;
    Ok(n_rows > 0)
}

/// Deletes conversations that own no output and are past their time, which is another for those with an agent; says how many.
pub(super) fn sweep(transaction: &Transaction, past: &Past, n_max: u32) -> Outcome<usize> {
    // One that is in use this moment is not waited for, and not taken for unused.
    const SQL: &str = "
        DELETE FROM conversations WHERE id IN
            (SELECT id FROM conversations WHERE last_used_ms < greatest($1::bigint, $2::bigint)
                AND last_used_ms < CASE WHEN EXISTS
                    (SELECT 1 FROM agent_sessions WHERE conversation_id = conversations.id)
                    THEN $1::bigint ELSE $2::bigint END
                AND NOT EXISTS (SELECT 1 FROM tool_overflow WHERE conversation_id = conversations.id)
             ORDER BY last_used_ms LIMIT $3 FOR UPDATE SKIP LOCKED)
        RETURNING id";
    let (with_agent_ms, others_ms) = past.of_conversations();
    let rows = transaction.query(SQL, &[&with_agent_ms, &others_ms, &i64::from(n_max)])?;
    for row in &rows {
        savings::fold(transaction, get(row, 0)?)?;
    }
    Ok(rows.len())
}

/// When a conversation `c` was used last, up to a second too early: by far the most uses change the row alone then, and not its place in the
/// index by time.
macro_rules! last_used {
    () => {
        "CASE WHEN c.last_used_ms > excluded.last_used_ms - 1000 THEN c.last_used_ms ELSE excluded.last_used_ms END"
    };
}

pub(super) use last_used;

/// Marks a conversation as used, beginning it when there is none, and counts more calls.
///
/// Limits: as [`last_used`].
pub(super) const TOUCH: &str = concat!(
    "INSERT INTO conversations AS c (id, started_at_ms, last_used_ms, n_calls) VALUES ($1, $2, $2, $3)
     ON CONFLICT (id) DO UPDATE SET n_calls = c.n_calls + excluded.n_calls, last_used_ms = ",
    last_used!()
);

/// Marks a conversation as used, beginning it when there is none, and counts `n_calls` more calls.
pub(super) fn touch(
    transaction: &Transaction,
    id: ConversationId,
    at_ms: i64,
    n_calls: u32,
) -> Outcome<()> {
    let row = transaction.execute(TOUCH, &[&id.to_string(), &at_ms, &i64::from(n_calls)]);
    row.map(drop)
}

fn conversation(row: &Row) -> Outcome<Conversation> {
    Ok(Conversation {
        id: parsed(row, 0)?,
        started_at_ms: get(row, 1)?,
        last_used_at_ms: get(row, 2)?,
        n_calls: count(row, 3)?,
        overflow_bytes: count(row, 4)?,
    })
}
