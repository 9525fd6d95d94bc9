//! The counts of rules on trial in SQL.

use rusqlite::{Connection, Row, params};

use crate::observed::{HOUR_MS, ObservedCount, ObservedDecision};

/// Counts decisions.
pub(super) fn count(
    connection: &Connection,
    observed: &[ObservedDecision],
    at_ms: i64,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO observed_decisions (hour_ms, rule, would, decided, tool, n_calls, last_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6)
        ON CONFLICT (hour_ms, rule, would, decided, tool)
        DO UPDATE SET n_calls = n_calls + 1, last_at_ms = max(last_at_ms, ?6)";
    let mut statement = connection.prepare_cached(SQL)?;
    for one in observed {
        let hour_ms = at_ms - at_ms.rem_euclid(HOUR_MS);
        statement.execute(params![
            hour_ms,
            one.rule,
            one.would,
            one.decided,
            one.tool,
            at_ms
        ])?;
    }
    Ok(())
}

/// The sums since a moment, to the hour.
pub(super) fn counts(
    connection: &Connection,
    since_ms: i64,
) -> rusqlite::Result<Vec<ObservedCount>> {
    const SQL: &str = "
        SELECT rule, would, decided, tool, sum(n_calls) AS n, max(last_at_ms) FROM observed_decisions
        WHERE hour_ms >= ?1 GROUP BY rule, would, decided, tool ORDER BY n DESC, rule, tool, decided";
    let first_ms = since_ms - since_ms.rem_euclid(HOUR_MS);
    connection
        .prepare_cached(SQL)?
        .query_map([first_ms], one)?
        .collect()
}

fn one(row: &Row<'_>) -> rusqlite::Result<ObservedCount> {
    Ok(ObservedCount {
        rule: row.get(0)?,
        would: row.get(1)?,
        decided: row.get(2)?,
        tool: row.get(3)?,
        n_calls: row.get(4)?,
        last_at_ms: row.get(5)?,
    })
}

/// Deletes counts of hours before a moment, at most `n_max`.
pub(super) fn sweep(
    connection: &Connection,
    before_ms: i64,
    n_max: u32,
) -> rusqlite::Result<usize> {
    const SQL: &str = "
        DELETE FROM observed_decisions WHERE (hour_ms, rule, would, decided, tool) IN
        (SELECT hour_ms, rule, would, decided, tool FROM observed_decisions WHERE hour_ms < ?1 LIMIT ?2)";
    connection
        .prepare_cached(SQL)?
        .execute(params![before_ms, n_max])
}
