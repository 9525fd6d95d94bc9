//! The chain over the audit table in SQL: a connection that adds an event for each begin and end of a call, in the transaction of the row.
//!
//! The order of events is that of transactions, so hosts that share a file share one chain. A transaction reads the newest event once.

pub(super) mod check;
pub(super) mod checkpoint;
pub(super) mod sweep;
pub(crate) mod verify;

use std::cell::RefCell;
use std::ops::Deref;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use uuid::Uuid;
use zeph_core::id::CallId;

use super::audit::unreadable;
use super::writer::execute;
use crate::audit::chain::{ChainHead, ChainMark, EventContent, EventHead, EventKind};
use crate::audit::code::{Code, NO_CODE, hex};
use crate::error::StoreError;
use crate::operations::{OperationFault, Outcome};
use crate::secrets::audit_keys::{AuditKey, AuditKeys};

/// The number of the first column of an end in what a tag is made over; those of a begin count from 0.
///
/// A number is for ever: a new column gets the next one, and a column that is null adds nothing, so that older tags stay good.
pub(super) const FIRST_OF_END: u8 = 128;

/// A connection whose calls are chained once it has the keys.
#[derive(Debug)]
pub(crate) struct ChainedConnection {
    connection: Connection,
    chain: RefCell<Option<Chain>>,
}

#[derive(Debug)]
struct Chain {
    keys: AuditKeys,
    /// The newest event that is known: that of the transaction, once it was read.
    head: Option<NewestEvent>,
    /// The newest event at the end of an earlier transaction. Only when another host has gone on from it, the key is looked at anew.
    seen: Option<NewestEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NewestEvent {
    n: i64,
    code: Code,
}

/// An event to add.
pub(super) struct NewEvent<'a> {
    pub(super) kind: EventKind,
    pub(super) call: CallId,
    pub(super) seq: i64,
    pub(super) begun: Option<i64>,
    /// What was recorded, from [`record_bytes`].
    pub(super) record: &'a [u8],
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
            chain: RefCell::default(),
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
        if let Some(chain) = self.chain.borrow_mut().as_mut() {
            chain.seen = chain.head.take().or(chain.seen);
        }
    }

    /// Whether calls are chained.
    pub(super) fn is_chained(&self) -> bool {
        self.chain.borrow().is_some()
    }

    /// Chains calls from now on; the chain begins when there is none.
    pub(super) fn begin_chain(&self, keys: &AuditKeys, at_ms: i64) -> Outcome<()> {
        *self.chain.borrow_mut() = Some(Chain {
            keys: keys.clone(),
            head: None,
            seen: None,
        });
        if newest_mark(self)?.is_some() {
            return Ok(());
        }
        let key = newest(keys)?;
        let before = self.query_row(
            "SELECT coalesce(max(seq), 0), count(*) FROM audit",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let mark = ChainMark::start(key, at_ms, before);
        self.append_mark(EventKind::Start, &mark)
    }

    /// Lets the newest of `keys` vouch for what comes.
    pub(super) fn rekey(&self, keys: &AuditKeys, at_ms: i64) -> Outcome<()> {
        let Some((_, mark)) = newest_mark(self)? else {
            return self.begin_chain(keys, at_ms);
        };
        let head = newest_event(self)?;
        let is_lost = keys.named(&mark.key).is_none() && !keys.is_out_of_reach(&mark.key);
        let mark = ChainMark {
            key: newest(keys)?.id.clone(),
            at_ms,
            lost_upto: if is_lost { head.n } else { mark.lost_upto },
            ..mark
        };
        *self.chain.borrow_mut() = Some(Chain {
            keys: keys.clone(),
            head: Some(head),
            seen: None,
        });
        self.append_mark(EventKind::Key, &mark)
    }

    /// The number that the next event gets; `None` when calls are not chained.
    pub(super) fn next_event(&self) -> Outcome<Option<i64>> {
        Ok(self.head()?.map(|head| head.n + 1))
    }

    /// Adds an event of a call; its number.
    pub(super) fn append(&self, event: &NewEvent<'_>) -> Outcome<Option<i64>> {
        let Some(head) = self.head()? else {
            return Ok(None);
        };
        let new = EventHead {
            n: head.n + 1,
            kind: event.kind.number(),
            seq: Some(event.seq),
            call: Some(event.call),
            begun: event.begun,
        };
        let mut chain = self.chain.borrow_mut();
        let Some(chain) = chain.as_mut() else {
            return Ok(None);
        };
        let key = newest(&chain.keys)?;
        let tag = key.record.code(&[event.record]);
        let code = new.code(key, &head.code, EventContent::Tag(&tag));
        insert(self, &new, (None, Some(&tag)), &code)?;
        chain.head = Some(NewestEvent { n: new.n, code });
        Ok(Some(new.n))
    }

    /// Adds an event of the chain itself.
    pub(super) fn append_mark(&self, kind: EventKind, mark: &ChainMark) -> Outcome<()> {
        let body = serde_json::to_string(mark).unwrap_or_default();
        let head = match kind {
            EventKind::Start => NewestEvent {
                n: 0,
                code: NO_CODE,
            },
            _ => self.head()?.unwrap_or(newest_event(self)?),
        };
        let new = EventHead {
            n: head.n + 1,
            kind: kind.number(),
            seq: None,
            call: None,
            begun: None,
        };
        let mut chain = self.chain.borrow_mut();
        let Some(chain) = chain.as_mut() else {
            return Ok(());
        };
        let key = newest(&chain.keys)?;
        let code = new.code(key, &head.code, EventContent::Body(&body));
        insert(self, &new, (Some(&body), None), &code)?;
        chain.head = Some(NewestEvent { n: new.n, code });
        Ok(())
    }

    /// The newest event, read once in a transaction; `None` when calls are not chained.
    fn head(&self) -> Outcome<Option<NewestEvent>> {
        let mut chain = self.chain.borrow_mut();
        let Some(chain) = chain.as_mut() else {
            return Ok(None);
        };
        if let Some(head) = chain.head {
            return Ok(Some(head));
        }
        let head = newest_event(self)?;
        if chain.seen != Some(head) {
            self.renew_keys(&mut chain.keys)?;
        }
        chain.head = Some(head);
        Ok(Some(head))
    }

    /// Goes on with the key that vouches for what comes: another may have taken over while this host ran.
    fn renew_keys(&self, keys: &mut AuditKeys) -> Outcome<()> {
        let mark = newest_mark(self)?.map(|(_, mark)| mark.key);
        let Some(id) = mark.filter(|id| newest(keys).is_ok_and(|key| key.id != *id)) else {
            return Ok(());
        };
        let renewed = keys.read_again(&id);
        *keys = renewed.ok_or(OperationFault::Told(StoreError::AuditKeyChanged))?;
        Ok(())
    }

    /// The keys calls are chained with.
    pub(super) fn keys(&self) -> Option<AuditKeys> {
        self.chain.borrow().as_ref().map(|chain| chain.keys.clone())
    }
}

fn newest(keys: &AuditKeys) -> Outcome<&AuditKey> {
    let none = || OperationFault::Told(StoreError::AuditKeyChanged);
    keys.newest().ok_or_else(none)
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
    Ok(found.optional()?.unwrap_or(NewestEvent {
        n: 0,
        code: NO_CODE,
    }))
}

/// The newest event of the chain itself, with its number.
pub(super) fn newest_mark(connection: &Connection) -> rusqlite::Result<Option<(i64, ChainMark)>> {
    mark_before(connection, i64::MAX)
}

/// The newest event of the chain itself before event `n`.
pub(super) fn mark_before(
    connection: &Connection,
    n: i64,
) -> rusqlite::Result<Option<(i64, ChainMark)>> {
    const SQL: &str =
        "SELECT n, body FROM audit_chain WHERE body IS NOT NULL AND n < ?1 ORDER BY n DESC LIMIT 1";
    let mut statement = connection.prepare_cached(SQL)?;
    let found = statement.query_row([n], |row| {
        let mark = serde_json::from_str(row.get_ref(1)?.as_str()?);
        Ok((row.get(0)?, mark.map_err(|error| unreadable(1, error))?))
    });
    found.optional()
}

/// The newest event, for checkpoints.
pub(super) fn head(connection: &Connection) -> rusqlite::Result<Option<ChainHead>> {
    let Some((_, mark)) = newest_mark(connection)? else {
        return Ok(None);
    };
    let newest = newest_event(connection)?;
    Ok(Some(ChainHead {
        origin: mark.origin.to_string(),
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
    let uuid = bytes.map(Uuid::from_slice).transpose();
    let uuid = uuid.map_err(|error| unreadable(column, error))?;
    Ok(uuid.map(CallId::from))
}

/// What a tag is made over, for values as they are stored: the first has the number `first`.
pub(super) fn record_bytes(first: u8, values: &[&dyn ToSql]) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1024);
    for (number, value) in (first..).zip(values) {
        match value.to_sql()? {
            ToSqlOutput::Borrowed(value) => put(&mut bytes, number, value),
            ToSqlOutput::Owned(value) => put(&mut bytes, number, ValueRef::from(&value)),
            _ => return Err(unreadable(usize::from(number), "not a plain value")),
        }
    }
    Ok(bytes)
}

/// What a tag is made over, for columns of a row: `n` from the column `from` on. The first has the number `first`.
pub(super) fn put_row(
    bytes: &mut Vec<u8>,
    first: u8,
    row: &Row<'_>,
    (from, n): (usize, usize),
) -> rusqlite::Result<()> {
    for (number, column) in (first..).zip(from..from + n) {
        put(bytes, number, row.get_ref(column)?);
    }
    Ok(())
}

/// One value: its number, its type, its length where that can differ, its bytes. Null adds nothing.
fn put(bytes: &mut Vec<u8>, number: u8, value: ValueRef<'_>) {
    let mut long = |kind: u8, content: &[u8]| {
        bytes.extend_from_slice(&[number, kind]);
        bytes.extend_from_slice(&(content.len() as u64).to_be_bytes());
        bytes.extend_from_slice(content);
    };
    match value {
        ValueRef::Null => {}
        ValueRef::Integer(value) => {
            bytes.extend_from_slice(&[number, b'i']);
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        ValueRef::Real(value) => {
            bytes.extend_from_slice(&[number, b'r']);
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        ValueRef::Text(text) => long(b't', text),
        ValueRef::Blob(blob) => long(b'b', blob),
    }
}
