//! Events as they are stored, and the rows they vouch for.

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row};
use zeph_core::id::CallId;

use super::{FIRST_OF_END, call_of, code_of, put_row};
use crate::audit::chain::{EventContent, EventHead, EventKind};
use crate::audit::code::Code;
use crate::secrets::audit_keys::AuditKey;
use crate::sqlite::audit::{BEGIN_COLUMNS, END_COLUMNS, N_BEGIN, N_END};

/// The columns that [`StoredEvent::read`] reads, for a query.
pub(super) const EVENT_COLUMNS: &str = "n, kind, seq, call, begun, body, tag, code";

/// An event as it is stored.
#[derive(Debug, Clone)]
pub(super) struct StoredEvent {
    pub(super) head: EventHead,
    pub(super) body: Option<String>,
    pub(super) tag: Option<Code>,
    pub(super) code: Code,
}

/// What became of the row of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowState {
    /// It is as recorded.
    Sound(RowFacts),
    /// It says something else.
    Changed(RowFacts),
    /// Another event vouches for it, or none.
    Elsewhere(RowFacts),
    /// It holds another call.
    Other(String),
    /// It is not there.
    Gone,
}

/// What a sweep decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowFacts {
    pub(super) begun_at_ms: i64,
    pub(super) has_ended: bool,
}

/// Compares rows with the tags of events.
pub(super) struct RowChecker<'c> {
    begin: CachedStatement<'c>,
    end: CachedStatement<'c>,
    bytes: Vec<u8>,
}

impl StoredEvent {
    /// From a row with [`EVENT_COLUMNS`].
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let has_tag = row.get_ref(6)?.as_blob_or_null()?.is_some();
        Ok(Self {
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

    pub(super) fn kind(&self) -> Option<EventKind> {
        EventKind::of(self.head.kind)
    }

    /// The code it would have with this number, after this event; `None` when it has no content.
    pub(super) fn code_as(&self, n: i64, key: &AuditKey, previous: &Code) -> Option<Code> {
        let content = match (&self.tag, &self.body) {
            (Some(tag), None) => EventContent::Tag(tag),
            (None, Some(body)) => EventContent::Body(body),
            _ => return None,
        };
        let head = EventHead { n, ..self.head };
        Some(head.code(key, previous, content))
    }
}

impl<'c> RowChecker<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        let sql = |columns: &str| {
            format!(
                "SELECT begun_at_ms, finished_at_ms IS NOT NULL, chain_n, {columns} FROM audit WHERE seq = ?1"
            )
        };
        Ok(Self {
            begin: connection.prepare_cached(&sql(BEGIN_COLUMNS))?,
            end: connection.prepare_cached(&sql(&format!("call_id, {END_COLUMNS}")))?,
            bytes: Vec::with_capacity(4096),
        })
    }

    /// The row that the event says began.
    pub(super) fn begin(
        &mut self,
        event: &StoredEvent,
        key: &AuditKey,
    ) -> rusqlite::Result<RowState> {
        let bytes = &mut self.bytes;
        bytes.clear();
        let found = self.begin.query_row([event.head.seq], |row| {
            put_row(bytes, 0, row, (3, N_BEGIN))?;
            compared(row, event)
        });
        let state = found.optional()?.unwrap_or(RowState::Gone);
        Ok(self.tagged(state, event, key))
    }

    /// The row that the event says ended.
    pub(super) fn end(
        &mut self,
        event: &StoredEvent,
        key: &AuditKey,
    ) -> rusqlite::Result<RowState> {
        let bytes = &mut self.bytes;
        bytes.clear();
        let found = self.end.query_row([event.head.seq], |row| {
            put_row(bytes, FIRST_OF_END, row, (4, N_END))?;
            compared(row, event)
        });
        let state = found.optional()?.unwrap_or(RowState::Gone);
        Ok(self.tagged(state, event, key))
    }

    fn tagged(&self, state: RowState, event: &StoredEvent, key: &AuditKey) -> RowState {
        match state {
            RowState::Sound(facts) if event.tag != Some(key.record.code(&[&self.bytes])) => {
                RowState::Changed(facts)
            }
            other => other,
        }
    }
}

/// The row, before its content is compared.
fn compared(row: &Row<'_>, event: &StoredEvent) -> rusqlite::Result<RowState> {
    let facts = RowFacts {
        begun_at_ms: row.get(0)?,
        has_ended: row.get(1)?,
    };
    let call = row.get_ref(3)?.as_str()?;
    if call.parse().ok() != event.head.call {
        return Ok(RowState::Other(call.to_owned()));
    }
    let vouched: Option<i64> = row.get(2)?;
    let expected = match event.kind() {
        Some(EventKind::Finish) => event.head.begun,
        _ => Some(event.head.n),
    };
    Ok(match vouched == expected {
        true => RowState::Sound(facts),
        false => RowState::Elsewhere(facts),
    })
}

/// The call of an event, for messages.
pub(super) fn call_text(call: Option<CallId>) -> Option<String> {
    call.map(|call| call.to_string())
}
