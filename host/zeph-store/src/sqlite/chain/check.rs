//! Events as SQLite stores them, and the rows they vouch for.

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row};

use super::{call_of, code_of, put_row};
use crate::audit::chain::EventHead;
use crate::audit::columns::{FIRST_OF_END, N_BEGIN, N_END, begin_columns, end_columns};
use crate::audit::event::{EventRows, FoundRow, RowFacts, RowState, StoredEvent};
use crate::secrets::audit_keys::AuditKey;

/// The columns that [`event`] reads, for a query.
pub(super) const EVENT_COLUMNS: &str = "n, kind, seq, call, begun, body, tag, code";

/// Compares rows with the tags of events.
pub(super) struct RowChecker<'c> {
    begin: CachedStatement<'c>,
    end: CachedStatement<'c>,
    bytes: Vec<u8>,
}

/// The event in a row with [`EVENT_COLUMNS`].
pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let has_tag = row.get_ref(6)?.as_blob_or_null()?.is_some();
    Ok(StoredEvent {
        head: EventHead {
            n: row.get(0)?,
            kind: row.get(1)?,
            seq: row.get(2)?,
            call: call_of(row, 3)?,
            begun: row.get(4)?,
        },
        body: row.get(5)?,
        tag: has_tag.then(|| code_of(row, 6)).transpose()?,
        code: code_of(row, 7)?,
    })
}

impl<'c> RowChecker<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        const BEGIN: &str = concat!(
            "SELECT begun_at_ms, finished_at_ms IS NOT NULL, chain_n, ",
            begin_columns!(),
            " FROM audit WHERE seq = ?1"
        );
        const END: &str = concat!(
            "SELECT begun_at_ms, finished_at_ms IS NOT NULL, chain_n, call_id, ",
            end_columns!(),
            " FROM audit WHERE seq = ?1"
        );
        Ok(Self {
            begin: connection.prepare_cached(BEGIN)?,
            end: connection.prepare_cached(END)?,
            bytes: Vec::with_capacity(4096),
        })
    }
}

impl EventRows for RowChecker<'_> {
    type Fault = rusqlite::Error;

    fn begin(&mut self, event: &StoredEvent, key: &AuditKey) -> rusqlite::Result<RowState> {
        let bytes = &mut self.bytes;
        bytes.clear();
        let found = self.begin.query_row([event.head.seq], |row| {
            put_row(bytes, 0, row, (3, N_BEGIN))?;
            placed(row, event)
        });
        let state = found.optional()?.unwrap_or(RowState::Gone);
        Ok(state.tagged(event, key, bytes))
    }

    fn end(&mut self, event: &StoredEvent, key: &AuditKey) -> rusqlite::Result<RowState> {
        let bytes = &mut self.bytes;
        bytes.clear();
        let found = self.end.query_row([event.head.seq], |row| {
            put_row(bytes, FIRST_OF_END, row, (4, N_END))?;
            placed(row, event)
        });
        let state = found.optional()?.unwrap_or(RowState::Gone);
        Ok(state.tagged(event, key, bytes))
    }
}

/// The row, before its content is compared.
fn placed(row: &Row<'_>, event: &StoredEvent) -> rusqlite::Result<RowState> {
    let found = FoundRow {
        facts: RowFacts {
            begun_at_ms: row.get(0)?,
            has_ended: row.get(1)?,
        },
        call: row.get_ref(3)?.as_str()?,
        chain_n: row.get(2)?,
    };
    Ok(found.placed(event))
}
