//! The counts of rules on trial.

use tokio_postgres::Row;

use super::digest::digest;
use super::order;
use super::transaction::Transaction;
use super::value::{count as counted, get};
use crate::observed::{HOUR_MS, ObservedCount, ObservedDecision};
use crate::operations::Outcome;

/// Counts decisions.
pub(super) fn count(
    transaction: &Transaction,
    observed: &[ObservedDecision],
    at_ms: i64,
) -> Outcome<()> {
    const SQL: &str = concat!(
        "INSERT INTO observed_decisions AS o (hour_ms, rule, would, decided, tool, n_calls, last_at_ms)
        VALUES ($1, $2, $3, $4, $5, 1, $6)
        ON CONFLICT (hour_ms, ",
        digest!("rule"),
        ", would, decided, tool)
        DO UPDATE SET n_calls = o.n_calls + 1, last_at_ms = greatest(o.last_at_ms, excluded.last_at_ms)"
    );
    order::learned(transaction)?;
    let hour_ms = at_ms - at_ms.rem_euclid(HOUR_MS);
    for one in observed {
        transaction.execute(
            SQL,
            &[
                &hour_ms,
                &one.rule,
                &one.would,
                &one.decided,
                &one.tool,
                &at_ms,
            ],
        )?;
    }
    Ok(())
}

/// The sums since a moment, to the hour.
pub(super) fn counts(transaction: &Transaction, since_ms: i64) -> Outcome<Vec<ObservedCount>> {
    // By bytes, as SQLite sorts.
    const SQL: &str = "
        SELECT rule, would, decided, tool, sum(n_calls)::bigint AS n, max(last_at_ms) FROM observed_decisions
        WHERE hour_ms >= $1 GROUP BY rule, would, decided, tool
        ORDER BY n DESC, rule COLLATE \"C\", tool COLLATE \"C\", decided COLLATE \"C\"";
    let first_ms = since_ms - since_ms.rem_euclid(HOUR_MS);
    let rows = transaction.query(SQL, &[&first_ms])?;
    rows.iter().map(one).collect()
}

fn one(row: &Row) -> Outcome<ObservedCount> {
    Ok(ObservedCount {
        rule: get(row, 0)?,
        would: get(row, 1)?,
        decided: get(row, 2)?,
        tool: get(row, 3)?,
        n_calls: counted(row, 4)?,
        last_at_ms: get(row, 5)?,
    })
}

/// Deletes counts of hours before a moment, at most `n_max`.
pub(super) fn sweep(transaction: &Transaction, before_ms: i64, n_max: u32) -> Outcome<usize> {
    const SQL: &str = "
        DELETE FROM observed_decisions WHERE (hour_ms, rule, would, decided, tool) IN
        (SELECT hour_ms, rule, would, decided, tool FROM observed_decisions WHERE hour_ms < $1
         LIMIT $2 FOR UPDATE SKIP LOCKED)";
    let n_rows = transaction.execute(SQL, &[&before_ms, &i64::from(n_max)])?;
    Ok(usize::try_from(n_rows).unwrap_or(usize::MAX))
}
