//! Sums over the audit table in SQL.

use rusqlite::Connection;
use zeph_core::id::PluginId;

use crate::reputation::Reputation;

/// The sums over the calls of a plugin.
pub(super) fn of_plugin(
    connection: &Connection,
    plugin: &PluginId,
) -> rusqlite::Result<Reputation> {
    // Of limits that are no category of their own, the message names the key.
    const SQL: &str = "
        WITH calls AS (
            SELECT result, finished_at_ms,
                coalesce(error_category IN ('timeout', 'rate_limited') OR result_detail LIKE '%(`limits.%', 0) AS is_limited,
                coalesce(error_category = 'permanent_failure'
                         AND error_phase IN ('execution', 'result_interpretation'), 0) AS is_own
            FROM audit WHERE plugin = ?1 AND finished_at_ms IS NOT NULL)
        SELECT count(*),
            coalesce(sum(is_own AND NOT is_limited), 0),
            coalesce(sum(result = 'blocked'), 0),
            coalesce(sum(is_limited), 0),
            max(CASE WHEN is_own AND NOT is_limited THEN finished_at_ms END)
        FROM calls";
    connection
        .prepare_cached(SQL)?
        .query_row([&plugin.0], |row| {
            Ok(Reputation {
                n_calls: row.get(0)?,
                n_failed: row.get(1)?,
                n_refused: row.get(2)?,
                n_limited: row.get(3)?,
                failed_at_ms: row.get(4)?,
            })
        })
}
