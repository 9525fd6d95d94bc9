//! What replicas share.

use uuid::Uuid;
use zeph_core::id::{ConversationId, OverflowId};

use super::transaction::Transaction;
use super::value::{get, parsed};
use crate::caller::Owner;
use crate::operations::Outcome;
use crate::sharing::{CallBucket, USED_SEALS_KEPT_MS};

/// Uses up a seal; says whether it was there. Forgets those that cannot be opened any more.
pub(super) fn use_seal(transaction: &Transaction, ticket: Uuid, at_ms: i64) -> Outcome<bool> {
    // Several hosts that forget at once must not wait for each other.
    const FORGET: &str = "
        DELETE FROM used_seals WHERE ticket IN
            (SELECT ticket FROM used_seals WHERE used_at_ms < $1 LIMIT 100 FOR UPDATE SKIP LOCKED)";
    const SQL: &str = "
        INSERT INTO used_seals (ticket, used_at_ms) VALUES ($1, $2) ON CONFLICT (ticket) DO NOTHING";
    let oldest_ms = at_ms.saturating_sub(USED_SEALS_KEPT_MS);
    transaction.execute(FORGET, &[&oldest_ms])?;
    Ok(transaction.execute(SQL, &[&ticket.to_string(), &at_ms])? > 0)
}

/// Whether a seal was used.
pub(super) fn is_seal_used(transaction: &Transaction, ticket: Uuid) -> Outcome<bool> {
    const SQL: &str = "SELECT 1 FROM used_seals WHERE ticket = $1";
    let row = transaction.query_opt(SQL, &[&ticket.to_string()])?;
    Ok(row.is_some())
}

/// Takes a call out of a bucket; else how long to wait.
pub(super) fn take_call(
    transaction: &Transaction,
    bucket: &CallBucket,
    at_ms: i64,
) -> Outcome<Option<u64>> {
    const TAKE: &str = "
        INSERT INTO call_buckets (token, full_us) VALUES ($1, $2::bigint + $3::bigint)
        ON CONFLICT (token) DO UPDATE
        SET full_us = $3::bigint + CASE
            WHEN call_buckets.full_us > $2::bigint + $5::bigint THEN $2::bigint
            ELSE greatest(call_buckets.full_us, $2::bigint)
        END
        WHERE call_buckets.full_us <= $2::bigint + $4::bigint
            OR call_buckets.full_us > $2::bigint + $5::bigint";
    const FULL: &str = "SELECT full_us FROM call_buckets WHERE token = $1";
    let (token, now_us) = (bucket.token.to_string(), at_ms.saturating_mul(1_000));
    let (interval_us, latest_us) = (bucket.interval_us(), bucket.latest_us());
    let impossible_us = CallBucket::impossible_us();
    let taken = transaction.execute(
        TAKE,
        &[&token, &now_us, &interval_us, &latest_us, &impossible_us],
    )?;
    if taken > 0 {
        return Ok(None);
    }
    let row = transaction.query_one(FULL, &[&token])?;
    let full_us: i64 = get(&row, 0)?;
    Ok(Some(bucket.wait_ms(full_us.saturating_sub(now_us))))
}

/// Keeps whose an output is that is there.
pub(super) fn own_output(transaction: &Transaction, id: OverflowId, caller: &Owner) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO output_callers (overflow_id, caller)
        SELECT id, $2::text FROM tool_overflow WHERE id = $1 FOR KEY SHARE
        ON CONFLICT (overflow_id) DO NOTHING";
    transaction
        .execute(SQL, &[&id.to_string(), &caller.text()])
        .map(drop)
}

/// The conversation of an output of this caller.
pub(super) fn conversation_of_output(
    transaction: &Transaction,
    id: OverflowId,
    caller: &Owner,
) -> Outcome<Option<ConversationId>> {
    const SQL: &str = "
        SELECT conversation_id FROM tool_overflow JOIN output_callers ON overflow_id = id
        WHERE id = $1 AND caller IS NOT DISTINCT FROM $2::text";
    let row = transaction.query_opt(SQL, &[&id.to_string(), &caller.text()])?;
    row.map(|row| parsed(&row, 0)).transpose()
}

/// When a conversation was used last.
pub(super) fn conversation_used(
    transaction: &Transaction,
    id: ConversationId,
) -> Outcome<Option<i64>> {
    const SQL: &str = "SELECT last_used_ms FROM conversations WHERE id = $1";
    let row = transaction.query_opt(SQL, &[&id.to_string()])?;
    row.map(|row| get(&row, 0)).transpose()
}

/// Counts a change of what plugins offer.
pub(super) fn note_offer_change(transaction: &Transaction) -> Outcome<()> {
    const SQL: &str = "UPDATE offer_version SET version = version + 1";
    transaction.execute(SQL, &[]).map(drop)
}

/// The number of these changes.
pub(super) fn offer_version(transaction: &Transaction) -> Outcome<i64> {
    const SQL: &str = "SELECT version FROM offer_version";
    get(&transaction.query_one(SQL, &[])?, 0)
}
