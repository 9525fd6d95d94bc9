//! When a checkpoint was last handed out, in SQL.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::audit::chain::ChainHead;
use crate::audit::checkpoint::CheckpointDue;

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
    if !due.is_due(&head, last.optional()?.unwrap_or((0, 0))) {
        return Ok(None);
    }
    connection
        .prepare_cached(TAKE)?
        .execute(params![head.count, due.at_ms])?;
    Ok(Some(head))
}

/// Makes a checkpoint due again that was taken of event `n` and not handed over, unless another was taken since.
pub(in crate::sqlite) fn give_back(connection: &Connection, n: i64) -> rusqlite::Result<()> {
    const SQL: &str = "DELETE FROM audit_checkpoint WHERE id = 1 AND n = ?1";
    connection.prepare_cached(SQL)?.execute([n]).map(drop)
}
