//! The clock of the database, by which hosts agree who holds what.

use rusqlite::Connection;

/// Now, in Unix milliseconds.
macro_rules! now {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}
pub(super) use now;

/// Now, in Unix milliseconds.
pub(super) fn now_ms(connection: &Connection) -> rusqlite::Result<i64> {
    const SQL: &str = concat!("SELECT ", now!());
    connection
        .prepare_cached(SQL)?
        .query_row([], |row| row.get(0))
}
