//! When a checkpoint was last handed out, in SQL.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::audit::chain::ChainHead;
use crate::audit::checkpoint::{CheckpointDue, CheckpointEvery};

/// The newest event, if a checkpoint of it is due.
pub(in crate::sqlite) fn take(
    connection: &Connection,
    due: &CheckpointDue,
) -> rusqlite::Result<Option<ChainHead>> {
    const LAST: &str = "SELECT n, at_ms FROM audit_checkpoint WHERE id = 1";
    const TAKE: &str = "
        INSERT INTO audit_checkpoint (id, n, at_ms) VALUES (1, ?1, ?2)
        ON CONFLICT (id) DO UPDATE SET n = ?1, at_ms = ?2";
    let Some(head) = super::head(connection)? else {
        return Ok(None);
    };
    let last = connection
        .prepare_cached(LAST)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    let (n, at_ms): (i64, i64) = last.optional()?.unwrap_or((0, 0));
    let n_new = u64::try_from(head.count.saturating_sub(n)).unwrap_or(0);
    let passed_ms = u128::try_from(due.at_ms.saturating_sub(at_ms)).unwrap_or(0);
    let is_due = match due.every {
        None => true,
        Some(CheckpointEvery::Records(every)) => n_new >= every.max(1),
        Some(CheckpointEvery::Time(every)) => n_new > 0 && passed_ms >= every.as_millis(),
    };
    if !is_due {
        return Ok(None);
    }
    connection
        .prepare_cached(TAKE)?
        .execute(params![head.count, due.at_ms])?;
    Ok(Some(head))
}
