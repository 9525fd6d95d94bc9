//! The counts of conversations.

use zeph_core::id::ConversationId;

use super::transaction::Transaction;
use super::value::get;
use crate::operations::Outcome;
use crate::quota::QuotaUse;

/// Counts a call, in one statement; false when there may be no more. Its row stays locked until the end of the transaction, so that hosts
/// count one after the other.
pub(super) fn count(transaction: &Transaction, quota: &QuotaUse, at_ms: i64) -> Outcome<bool> {
    const SQL: &str = "
        INSERT INTO conversations AS c (id, started_at_ms, last_used_ms, n_counted, counted_batch)
        VALUES ($1, $2, $2, 1, $3)
        ON CONFLICT (id) DO UPDATE
        SET n_counted = c.n_counted + (c.counted_batch <> excluded.counted_batch)::int::bigint,
            counted_batch = excluded.counted_batch
        WHERE c.n_counted < $4 OR c.counted_batch = excluded.counted_batch";
    let n_rows = transaction.execute(
        SQL,
        &[
            &quota.conversation.to_string(),
            &at_ms,
            &quota.batch.to_string(),
            &i64::from(quota.calls_max),
        ],
    )?;
    Ok(n_rows > 0)
}

/// The calls that have counted.
pub(super) fn counted(transaction: &Transaction, conversation: ConversationId) -> Outcome<u32> {
    let row = transaction.query_opt(
        "SELECT n_counted FROM conversations WHERE id = $1",
        &[&conversation.to_string()],
    )?;
    let n: i64 = row.map(|row| get(&row, 0)).transpose()?.unwrap_or(0);
    Ok(u32::try_from(n).unwrap_or(u32::MAX))
}

/// Counts from 0 again.
pub(super) fn forget(transaction: &Transaction, conversation: ConversationId) -> Outcome<()> {
    const SQL: &str = "UPDATE conversations SET n_counted = 0, counted_batch = '' WHERE id = $1";
    transaction
        .execute(SQL, &[&conversation.to_string()])
        .map(drop)
}
