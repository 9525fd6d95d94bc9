//! Whether there may be anything to sweep, in one statement: to prepare those that delete, with all that follows from them, takes a process
//! for one call longer than its call takes in the store.

use rusqlite::{Connection, params};

use crate::approvals::{ONCE_MS_MAX, REQUEST_MS_MAX};
use crate::grants::TAKEN_MS_MAX;
use crate::sweep::Past;

/// Whether a sweep may find anything. Says so rather once too often: what a sweep leaves for other reasons may be past its time too.
///
/// Limits: reads the oldest of each kind, whatever the size of the tables.
pub(super) fn is_any(connection: &Connection, past: &Past) -> rusqlite::Result<bool> {
    const SQL: &str = "
        SELECT EXISTS (SELECT 1 FROM conversations WHERE last_used_ms < ?1)
            OR EXISTS (SELECT 1 FROM tool_overflow WHERE created_at_ms < ?1)
            OR EXISTS (SELECT 1 FROM audit WHERE begun_at_ms < ?2)
            OR EXISTS (SELECT 1 FROM observed_decisions WHERE hour_ms < ?2)
            OR coalesce((SELECT min(seq) FROM audit) <= (SELECT max(seq) FROM audit) - ?3, 0)
            OR EXISTS (SELECT 1 FROM grants WHERE until_ms <= ?4 OR taken_at_ms < ?5)
            OR EXISTS (SELECT 1 FROM approval_requests WHERE at_ms < ?6)
            OR EXISTS (SELECT 1 FROM approvals WHERE lifetime = 'once' AND approved_at_ms < ?7)";
    let before = |ms_max: i64| past.at_ms.saturating_sub(ms_max);
    let limits = params![
        past.outputs_ms.unwrap_or(i64::MIN),
        past.audit_ms.unwrap_or(i64::MIN),
        past.audit_rows_max.unwrap_or(i64::MAX),
        past.at_ms,
        before(TAKEN_MS_MAX),
        before(REQUEST_MS_MAX),
        before(ONCE_MS_MAX),
    ];
    connection
        .prepare_cached(SQL)?
        .query_row(limits, |row| row.get(0))
}
