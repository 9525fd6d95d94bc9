//! The full text of outputs that were shortened for a model, kept byte for byte.
//!
//! An entry belongs to one conversation and is read only with both identifiers; it goes with its conversation.

use zeph_core::id::{ConversationId, OverflowId};

use crate::error::StoreError;
use crate::operations::NewOutput;
use crate::store::{Access, Store};

/// A stored output, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutput {
    /// The key to it.
    pub id: OverflowId,
    /// How long it is.
    pub n_bytes: u64,
    /// When it was stored, in Unix milliseconds.
    pub at_ms: i64,
}

impl Store {
    /// Stores a full output and gives back the key to it.
    ///
    /// Limits: takes a few MiB beside the output, whatever its length.
    /// Errors: what the database says.
    pub async fn put_overflow(
        &self,
        conversation: ConversationId,
        content: impl AsRef<[u8]> + Send + 'static,
        at_ms: i64,
    ) -> Result<OverflowId, StoreError> {
        self.put(conversation, content, None, at_ms).await
    }

    /// Stores a full output under a key of the caller's making, which a text may name before the output is stored. `rules` are those that
    /// shortened what is shown of it.
    ///
    /// Errors: what the database says; also when there is an output of this key.
    pub async fn put_overflow_as(
        &self,
        id: OverflowId,
        conversation: ConversationId,
        content: impl AsRef<[u8]> + Send + 'static,
        rules: Vec<String>,
        at_ms: i64,
    ) -> Result<OverflowId, StoreError> {
        let rules = (!rules.is_empty()).then(|| serde_json::Value::from(rules).to_string());
        self.put_as(id, conversation, content, rules, at_ms).await
    }

    /// Stores a full output, with the rules that shortened what is shown of it, as a JSON array.
    pub(crate) async fn put(
        &self,
        conversation: ConversationId,
        content: impl AsRef<[u8]> + Send + 'static,
        rules: Option<String>,
        at_ms: i64,
    ) -> Result<OverflowId, StoreError> {
        let id = OverflowId::new();
        self.put_as(id, conversation, content, rules, at_ms).await
    }

    async fn put_as(
        &self,
        id: OverflowId,
        conversation: ConversationId,
        content: impl AsRef<[u8]> + Send + 'static,
        rules: Option<String>,
        at_ms: i64,
    ) -> Result<OverflowId, StoreError> {
        self.run("store an output", Access::Write, move |operations| {
            let output = NewOutput {
                id,
                conversation,
                content: content.as_ref(),
                rules: rules.as_deref(),
                at_ms,
            };
            operations.put_output(&output).map(|()| id)
        })
        .await
    }

    /// A stored output, byte for byte; `None` when it is unknown, swept, or of another conversation.
    ///
    /// Errors: what the database says.
    pub async fn overflow(
        &self,
        conversation: ConversationId,
        id: OverflowId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.run("read a stored output", Access::Read, move |operations| {
            operations.output(conversation, id)
        })
        .await
    }

    /// The stored outputs of a conversation, newest first, at most `limit`.
    ///
    /// Errors: what the database says.
    pub async fn outputs(
        &self,
        conversation: ConversationId,
        limit: u32,
    ) -> Result<Vec<StoredOutput>, StoreError> {
        self.run("list stored outputs", Access::Read, move |operations| {
            operations.outputs(conversation, limit)
        })
        .await
    }
}
