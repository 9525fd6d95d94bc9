//! The clock of the server, by which hosts agree who holds what.

use super::transaction::Transaction;
use super::value::get;
use crate::approvals::{ONCE_MS_MAX, REQUEST_MS_MAX};
use crate::grants::TAKEN_MS_MAX;
use crate::operations::Outcome;
use crate::sweep::{Past, SweepClock, SweepTime, UNKNOWN_MS};

/// When the statement began, in Unix milliseconds.
macro_rules! now {
    () => {
        "(extract(epoch FROM statement_timestamp()) * 1000)::bigint"
    };
}
pub(super) use now;

/// Now, in Unix milliseconds.
pub(super) fn now_ms(transaction: &Transaction) -> Outcome<i64> {
    const SQL: &str = concat!("SELECT ", now!());
    get(&transaction.query_one(SQL, &[])?, 0)
}

/// What the time is for a sweep, whatever the clock of this machine says: the others' things are swept, too.
pub(super) fn sweep_time(transaction: &Transaction, clock: SweepClock) -> Outcome<SweepTime> {
    const SQL: &str = concat!(
        "SELECT ",
        now!(),
        ", greatest((SELECT max(last_used_ms) FROM conversations WHERE last_used_ms <= ",
        now!(),
        " - $1), (SELECT max(created_at_ms) FROM tool_overflow WHERE created_at_ms <= ",
        now!(),
        " - $1), (SELECT max(begun_at_ms) FROM audit WHERE begun_at_ms <= ",
        now!(),
        " - $1))"
    );
    let row = transaction.query_one(SQL, &[&UNKNOWN_MS])?;
    let clock = SweepClock {
        now_ms: get(&row, 0)?,
        ..clock
    };
    Ok(SweepTime::after(get(&row, 1)?, clock))
}

/// Whether anything but rows of the audit may be past its time. One journey, where trying to delete it takes one for each kind.
pub(super) fn is_any_past(transaction: &Transaction, past: &Past) -> Outcome<bool> {
    const SQL: &str = "
        SELECT EXISTS (SELECT 1 FROM conversations WHERE last_used_ms < $6)
            OR EXISTS (SELECT 1 FROM conversations WHERE last_used_ms < $1 AND NOT EXISTS
                (SELECT 1 FROM agent_sessions WHERE conversation_id = conversations.id))
            OR EXISTS (SELECT 1 FROM tool_overflow WHERE created_at_ms < $1)
            OR EXISTS (SELECT 1 FROM observed_decisions WHERE hour_ms < $2)
            OR EXISTS (SELECT 1 FROM grants WHERE until_ms <= $3 OR taken_at_ms < $4)
            OR EXISTS (SELECT 1 FROM approval_requests WHERE at_ms < $5)
            OR EXISTS (SELECT 1 FROM approvals WHERE lifetime = 'once' AND approved_at_ms < $7)";
    let before = |ms_max: i64| past.at_ms.saturating_sub(ms_max);
    let row = transaction.query_one(
        SQL,
        &[
            &past.outputs_ms.unwrap_or(i64::MIN),
            &past.audit_ms.unwrap_or(i64::MIN),
            &past.at_ms,
            &before(TAKEN_MS_MAX),
            &before(REQUEST_MS_MAX),
            &past.conversations_ms.unwrap_or(i64::MIN),
            &before(ONCE_MS_MAX),
        ],
    )?;
    get(&row, 0)
}
