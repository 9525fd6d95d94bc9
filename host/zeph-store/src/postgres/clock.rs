//! The clock of the server, by which hosts agree who holds what.

use super::transaction::Transaction;
use super::value::get;
use crate::operations::Outcome;

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
