//! Handles: what clients name their conversations by, where another replica may be asked next.
//!
//! Such a handle is `REPLICA.CONVERSATION.MARK`: the replica where it began, which has its files and commands, by which a load balancer can
//! route; and the mark of its keys, so that every replica knows whose it is without having seen it. On a server without shared keys the
//! handle is the conversation's ID, which this process alone knows.

use std::sync::Arc;

use zeph_core::id::ConversationId;

use crate::seals::{Seals, Subject};

/// What parts a handle, and a session ID, from the name of its replica.
pub(super) const SEPARATOR: char = '.';

/// A conversation that another replica may have begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SharedHandle {
    pub(super) conversation: ConversationId,
    /// The replica where it began.
    pub(super) home: Arc<str>,
}

impl SharedHandle {
    /// As its caller is given it.
    pub(super) fn text(&self, seals: &Seals, caller: Option<&str>) -> String {
        let id = self.conversation.to_string();
        let mark = self.with_subject(caller, |subject| seals.mark(subject));
        format!("{}{SEPARATOR}{id}{SEPARATOR}{mark}", self.home)
    }

    /// Reads a handle that `caller` names; `None` when it was given to no caller, or to another.
    pub(super) fn read(text: &str, seals: &Seals, caller: Option<&str>) -> Option<Self> {
        let mut parts = text.splitn(3, SEPARATOR);
        let (home, id, mark) = (parts.next()?, parts.next()?, parts.next()?);
        let handle = Self {
            conversation: id.parse().ok()?,
            home: Arc::from(home),
        };
        let is_own = seals.are_shared()
            && handle.with_subject(caller, |subject| seals.is_mark(subject, mark));
        is_own.then_some(handle)
    }

    fn with_subject<T>(&self, caller: Option<&str>, make: impl FnOnce(Subject<'_>) -> T) -> T {
        let id = self.conversation.to_string();
        make(Subject {
            purpose: "conversation",
            owner: caller,
            parts: &[self.home.as_bytes(), id.as_bytes()],
        })
    }
}
