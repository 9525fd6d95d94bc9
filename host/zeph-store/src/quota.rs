//! How many calls a conversation may ask for: counted with their begin, where all hosts count.

use uuid::Uuid;
use zeph_core::id::ConversationId;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// A call that counts for its conversation. Of calls at one time, on whatever host, no more begin than there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUse {
    /// The conversation.
    pub conversation: ConversationId,
    /// What it counts as: the calls that a model asks for at once count as one.
    pub batch: Uuid,
    /// How many there may be; at least one.
    pub calls_max: u32,
}

impl Store {
    /// The calls of a conversation that have counted so far.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn n_counted(&self, conversation: ConversationId) -> Result<u32, StoreError> {
        self.run("read a quota", Access::Read, move |operations| {
            operations.n_counted(conversation)
        })
        .await
    }

    /// Counts the calls of a conversation from 0 again.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn forget_counted(&self, conversation: ConversationId) -> Result<(), StoreError> {
        self.run("reset a quota", Access::Write, move |operations| {
            operations.forget_counted(conversation)
        })
        .await
    }
}
