//! What the time is for a sweep, and whether there may be anything for it, in one statement: to prepare those that delete, with all that
//! follows from them, takes a process for one call longer than its call takes in the store.

use rusqlite::{Connection, params};

use crate::approvals::{ONCE_MS_MAX, REQUEST_MS_MAX};
use crate::grants::TAKEN_MS_MAX;
use crate::sweep::{Past, SweepClock, SweepTime};

/// Whether a sweep may find anything. Says so rather once too often: what a sweep leaves for other reasons may be past its time too.
///
/// Limits: reads the oldest of each kind, whatever the size of the tables; of conversations also those with an agent that are older than
/// others may be.
pub(super) fn is_any(connection: &Connection, past: &Past) -> rusqlite::Result<bool> {
    const SQL: &str = "
        SELECT EXISTS (SELECT 1 FROM conversations WHERE last_used_ms < ?8)
            OR EXISTS (SELECT 1 FROM conversations WHERE last_used_ms < ?1 AND NOT EXISTS
                (SELECT 1 FROM agent_sessions WHERE conversation_id = conversations.id))
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
        past.conversations_ms.unwrap_or(i64::MIN),
    ];
    connection
        .prepare_cached(SQL)?
        .query_row(limits, |row| row.get(0))
}

/// What the time is, by the clock of this machine: all that use a file share that one.
pub(super) fn time(connection: &Connection, clock: SweepClock) -> rusqlite::Result<SweepTime> {
    const SQL: &str = "
        SELECT nullif(max(
            coalesce((SELECT max(last_used_ms) FROM conversations WHERE last_used_ms <= ?1), 0),
            coalesce((SELECT max(created_at_ms) FROM tool_overflow WHERE created_at_ms <= ?1), 0),
            coalesce((SELECT max(begun_at_ms) FROM audit WHERE begun_at_ms <= ?1), 0)), 0)";
    let used_ms = connection
        .prepare_cached(SQL)?
        .query_row([clock.known_upto_ms()], |row| row.get(0))?;
    Ok(SweepTime::after(used_ms, clock))
}
