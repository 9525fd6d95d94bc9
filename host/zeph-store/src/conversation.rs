//! Conversations: the owners of stored outputs.

use zeph_core::id::ConversationId;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// A conversation and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Its identity.
    pub id: ConversationId,
    /// When it began, in Unix milliseconds.
    pub started_at_ms: i64,
    /// When it last began, made a call or stored an output, in Unix milliseconds; up to a second too early.
    pub last_used_at_ms: i64,
    /// Calls recorded for it.
    pub n_calls: u64,
    /// Bytes of its stored outputs.
    pub overflow_bytes: u64,
}

impl Store {
    /// Begins a conversation, or marks an existing one as used.
    ///
    /// Recording a call or storing an output does the same, so a conversation that was deleted or swept while it is
    /// still in use comes back with its next use.
    ///
    /// Errors: what the database says.
    pub async fn begin_conversation(
        &self,
        id: ConversationId,
        at_ms: i64,
    ) -> Result<(), StoreError> {
        self.run("begin a conversation", Access::Write, move |operations| {
            operations.begin_conversation(id, at_ms)
        })
        .await
    }

    /// The conversations used last, newest first, at most `limit`.
    ///
    /// Errors: what the database says.
    pub async fn list_conversations(&self, limit: u32) -> Result<Vec<Conversation>, StoreError> {
        self.run("list the conversations", Access::Read, move |operations| {
            operations.conversations(limit)
        })
        .await
    }

    /// Deletes a conversation and its stored outputs; says whether there was one. Its audit rows stay.
    ///
    /// Errors: what the database says.
    pub async fn delete_conversation(&self, id: ConversationId) -> Result<bool, StoreError> {
        self.run("delete a conversation", Access::Write, move |operations| {
            operations.delete_conversation(id)
        })
        .await
    }
}
