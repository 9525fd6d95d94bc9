//! The clock of the server, by which hosts agree who holds what.

use super::transaction::Transaction;
use super::value::get;
use crate::operations::Outcome;
use crate::sweep::{SweepClock, SweepTime};

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
    const SQL: &str = "
        SELECT greatest((SELECT max(last_used_ms) FROM conversations WHERE last_used_ms <= $1),
            (SELECT max(created_at_ms) FROM tool_overflow WHERE created_at_ms <= $1),
            (SELECT max(begun_at_ms) FROM audit WHERE begun_at_ms <= $1))";
    let clock = SweepClock {
        now_ms: now_ms(transaction)?,
        ..clock
    };
    let used = transaction.query_one(SQL, &[&clock.known_upto_ms()])?;
    Ok(SweepTime::after(get(&used, 0)?, clock))
}
