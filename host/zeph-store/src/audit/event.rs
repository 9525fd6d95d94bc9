//! Events as they are stored, and what became of the rows they vouch for. Pure: databases read both.

use zeph_core::id::CallId;

use super::chain::{EventContent, EventHead, EventKind};
use super::code::Code;
use crate::secrets::audit_keys::AuditKey;

/// An event as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredEvent {
    pub(crate) head: EventHead,
    pub(crate) body: Option<String>,
    pub(crate) tag: Option<Code>,
    pub(crate) code: Code,
}

/// What became of the row of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowState {
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
pub(crate) struct RowFacts {
    pub(crate) begun_at_ms: i64,
    pub(crate) has_ended: bool,
}

/// A row, before its content is compared.
pub(crate) struct FoundRow<'a> {
    pub(crate) facts: RowFacts,
    pub(crate) call: &'a str,
    /// The event of its beginning.
    pub(crate) chain_n: Option<i64>,
}

/// The rows that events vouch for, compared with their tags.
pub(crate) trait EventRows {
    /// What a database says that fails.
    type Fault;

    /// The row that the event says began.
    fn begin(&mut self, event: &StoredEvent, key: &AuditKey) -> Result<RowState, Self::Fault>;
    /// The row that the event says ended.
    fn end(&mut self, event: &StoredEvent, key: &AuditKey) -> Result<RowState, Self::Fault>;
}

impl StoredEvent {
    pub(crate) fn kind(&self) -> Option<EventKind> {
        EventKind::of(self.head.kind)
    }

    /// The code it would have with this number, after this event; `None` when it has no content.
    pub(crate) fn code_as(&self, n: i64, key: &AuditKey, previous: &Code) -> Option<Code> {
        let content = match (&self.tag, &self.body) {
            (Some(tag), None) => EventContent::Tag(tag),
            (None, Some(body)) => EventContent::Body(body),
            _ => return None,
        };
        let head = EventHead { n, ..self.head };
        Some(head.code(key, previous, content))
    }
}

impl FoundRow<'_> {
    /// Its state but for its content.
    pub(crate) fn placed(&self, event: &StoredEvent) -> RowState {
        if self.call.parse().ok() != event.head.call {
            return RowState::Other(self.call.to_owned());
        }
        let expected = match event.kind() {
            Some(EventKind::Finish) => event.head.begun,
            _ => Some(event.head.n),
        };
        match self.chain_n == expected {
            true => RowState::Sound(self.facts),
            false => RowState::Elsewhere(self.facts),
        }
    }
}

impl RowState {
    /// With its content, as the bytes of a tag.
    pub(crate) fn tagged(self, event: &StoredEvent, key: &AuditKey, bytes: &[u8]) -> Self {
        match self {
            Self::Sound(facts) if event.tag != Some(key.record.code(&[bytes])) => {
                Self::Changed(facts)
            }
            other => other,
        }
    }
}

/// The call of an event, for messages.
pub(crate) fn call_text(call: Option<CallId>) -> Option<String> {
    call.map(|call| call.to_string())
}
