//! The chain over the audit table in SQL: a connection that adds an event for each begin and end of a call, in the transaction of the row.
//!
//! The order of events is that of transactions, so hosts that share a file share one chain.

pub(super) mod check;
pub(super) mod checkpoint;
pub(super) mod sweep;
pub(crate) mod verify;

use std::ops::Deref;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;
use zeph_core::id::CallId;

use self::check::EVENT_COLUMNS;
use super::audit::unreadable;
use super::writer::execute;
use crate::audit::chain::{ChainHead, EventHead, ForgottenChain};
use crate::audit::code::{Code, hex};
use crate::audit::earlier::ChainRemoval;
use crate::audit::mark::StoredMark;
use crate::audit::seal::{self, NewestEvent, Seal, SealedAudit};
use crate::audit::value::{TaggedValue, put};
use crate::operations::Outcome;
use crate::secrets::audit_keys::AuditKeys;

/// A connection whose calls are chained once it has the keys.
#[derive(Debug)]
pub(crate) struct ChainedConnection {
    connection: Connection,
    seal: Seal,
}

impl Deref for ChainedConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl ChainedConnection {
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            seal: Seal::default(),
        }
    }

    /// The connection alone.
    pub(super) fn into_inner(self) -> Connection {
        self.connection
    }

    /// Begins a transaction that may write.
    pub(super) fn begin(&self) -> rusqlite::Result<()> {
        self.forget_head();
        execute(self, "BEGIN IMMEDIATE")
    }

    /// The newest event may not be what it was: something was undone.
    pub(super) fn forget_head(&self) {
        self.seal.forget_head();
    }
}

impl SealedAudit for ChainedConnection {
    fn seal(&self) -> &Seal {
        &self.seal
    }

    /// A transaction that writes is the only one.
    fn hold_chain(&self) -> Outcome<()> {
        Ok(())
    }

    fn newest_event(&self) -> Outcome<NewestEvent> {
        Ok(newest_event(self)?)
    }

    fn mark_before(&self, n: i64) -> Outcome<Option<StoredMark>> {
        Ok(mark_before(self, n)?)
    }

    fn first_event(&self) -> Outcome<i64> {
        Ok(first_event(self)?)
    }

    fn insert_event(
        &self,
        head: &EventHead,
        (body, tag): (Option<&str>, Option<&Code>),
        code: &Code,
    ) -> Outcome<()> {
        Ok(insert(self, head, (body, tag), code)?)
    }

    fn rows_before(&self) -> Outcome<(i64, i64)> {
        const SQL: &str =
            "SELECT coalesce(max(seq), 0), count(*) FILTER (WHERE chain_n IS NULL) FROM audit";
        Ok(self.query_row(SQL, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    fn has_before(&self, seq: i64) -> Outcome<bool> {
        const SQL: &str = "SELECT EXISTS (SELECT 1 FROM audit WHERE seq <= ?1 AND chain_n IS NULL)";
        Ok(self
            .prepare_cached(SQL)?
            .query_row([seq], |row| row.get(0))?)
    }

    /// The chain of a file is that of all its hosts.
    fn removal_of(&self, _: &AuditKeys, _: Uuid) -> Outcome<Option<ChainRemoval>> {
        Ok(None)
    }

    fn removed_of(
        &self,
        _: &AuditKeys,
        _: Uuid,
        _: bool,
    ) -> Outcome<Option<(ForgottenChain, i64)>> {
        Ok(None)
    }
}

fn insert(
    connection: &Connection,
    head: &EventHead,
    (body, tag): (Option<&str>, Option<&Code>),
    code: &Code,
) -> rusqlite::Result<()> {
    const SQL: &str = "
        INSERT INTO audit_chain (n, kind, seq, call, begun, body, tag, code)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let call = head.call.map(|call| *call.as_uuid().as_bytes());
    let row = params![
        head.n,
        head.kind,
        head.seq,
        call.as_ref().map(|call| &call[..]),
        head.begun,
        body,
        tag.map(|tag| &tag[..]),
        &code[..],
    ];
    connection.prepare_cached(SQL)?.execute(row).map(drop)
}

/// The newest event; number 0 when there is none.
fn newest_event(connection: &Connection) -> rusqlite::Result<NewestEvent> {
    const SQL: &str = "SELECT n, code FROM audit_chain ORDER BY n DESC LIMIT 1";
    let found = connection.prepare_cached(SQL)?.query_row([], |row| {
        Ok(NewestEvent {
            n: row.get(0)?,
            code: code_of(row, 1)?,
        })
    });
    Ok(found.optional()?.unwrap_or(NewestEvent::NONE))
}

/// The number of the oldest event; 1 when there is none.
fn first_event(connection: &Connection) -> rusqlite::Result<i64> {
    const SQL: &str = "SELECT coalesce(min(n), 1) FROM audit_chain";
    connection
        .prepare_cached(SQL)?
        .query_row([], |row| row.get(0))
}

/// The newest event of the chain itself.
pub(super) fn newest_mark(connection: &Connection) -> rusqlite::Result<Option<StoredMark>> {
    mark_before(connection, i64::MAX)
}

/// The newest event of the chain itself before event `n`.
pub(super) fn mark_before(connection: &Connection, n: i64) -> rusqlite::Result<Option<StoredMark>> {
    let sql = format!(
        "SELECT {EVENT_COLUMNS}, (SELECT code FROM audit_chain AS earlier WHERE earlier.n = audit_chain.n - 1)
         FROM audit_chain WHERE body IS NOT NULL AND n < ?1 ORDER BY n DESC LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_row([n], |row| {
        let event = check::event(row)?;
        let has_previous = row.get_ref(8)?.as_blob_or_null()?.is_some();
        let previous = has_previous.then(|| code_of(row, 8)).transpose()?;
        StoredMark::of(event, previous).map_err(|error| unreadable(5, error))
    });
    found.optional()
}

/// The newest event, for checkpoints.
pub(super) fn head(connection: &Connection) -> rusqlite::Result<Option<ChainHead>> {
    let Some(stored) = newest_mark(connection)? else {
        return Ok(None);
    };
    let newest = newest_event(connection)?;
    Ok(Some(ChainHead {
        origin: stored.mark.origin.to_string(),
        count: newest.n,
        head: hex(&newest.code),
    }))
}

/// A code that is stored.
pub(super) fn code_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Code> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Code::try_from(bytes).map_err(|error| unreadable(column, error))
}

/// The call of an event.
pub(super) fn call_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<CallId>> {
    let bytes = row.get_ref(column)?.as_blob_or_null()?;
    seal::call_of(bytes).map_err(|error| unreadable(column, error))
}

/// What a tag is made over, for columns of a row: `n` from the column `from` on. The first has the number `first`.
pub(super) fn put_row(
    bytes: &mut Vec<u8>,
    first: u8,
    row: &Row<'_>,
    (from, n): (usize, usize),
) -> rusqlite::Result<()> {
    for (number, column) in (first..).zip(from..from + n) {
        put(bytes, number, tagged(row.get_ref(column)?));
    }
    Ok(())
}

fn tagged(value: ValueRef<'_>) -> TaggedValue<'_> {
    match value {
        ValueRef::Null => TaggedValue::Null,
        ValueRef::Integer(number) => TaggedValue::Integer(number),
        ValueRef::Real(number) => TaggedValue::Real(number),
        ValueRef::Text(text) => TaggedValue::Text(text),
        ValueRef::Blob(blob) => TaggedValue::Blob(blob),
    }
}
