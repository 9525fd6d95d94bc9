//! Sums over the audit table.

use zeph_core::id::PluginId;

use super::transaction::Transaction;
use super::value::{count, get};
use crate::operations::Outcome;
use crate::reputation::Reputation;

/// The sums over the calls of a plugin.
pub(super) fn of_plugin(transaction: &Transaction, plugin: &PluginId) -> Outcome<Reputation> {
    // Of limits that are no category of their own, the message names the key.
    const SQL: &str = "
        WITH calls AS (
            SELECT result, finished_at_ms,
                coalesce(error_category IN ('timeout', 'rate_limited') OR result_detail ILIKE '%(`limits.%', FALSE) AS is_limited,
                coalesce(error_category = 'permanent_failure'
                         AND error_phase IN ('execution', 'result_interpretation'), FALSE) AS is_own
            FROM audit WHERE plugin = $1 AND finished_at_ms IS NOT NULL)
        SELECT count(*),
            count(*) FILTER (WHERE is_own AND NOT is_limited),
            count(*) FILTER (WHERE result = 'blocked'),
            count(*) FILTER (WHERE is_limited),
            max(finished_at_ms) FILTER (WHERE is_own AND NOT is_limited)
        FROM calls";
    let row = transaction.query_one(SQL, &[&plugin.0])?;
    Ok(Reputation {
        n_calls: count(&row, 0)?,
        n_failed: count(&row, 1)?,
        n_refused: count(&row, 2)?,
        n_limited: count(&row, 3)?,
        failed_at_ms: get(&row, 4)?,
    })
}
