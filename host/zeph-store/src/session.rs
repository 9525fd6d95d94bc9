//! Sessions of the agent: what was said and done in a conversation, item by item, so that it can go on after the process has ended.
//!
//! What an item is, is the agent's to say: here it is a line of JSON. Items are appended as they come and never change; one that is
//! marked as a base (a compacted conversation) makes those before it history. A session lives as long as its conversation.

use serde::Serialize;
use zeph_core::id::ConversationId;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// A session to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Whose items they are.
    pub conversation: ConversationId,
    /// The beginning of the first prompt; empty when there is none yet.
    pub title: String,
    /// The working directory.
    pub directory: String,
    /// The provider in use.
    pub provider: String,
    /// Its model.
    pub model: String,
}

/// An item to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSessionItem {
    /// The item.
    pub json: String,
    /// Whether a session begins with it when it is loaded.
    pub is_base: bool,
}

/// The items of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionItems {
    /// In order; none when there is no such session.
    pub items: Vec<String>,
    /// The number of the last one, which the next ones are appended after; 0 when there is none.
    pub last: i64,
}

/// What came of appending items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendEnd {
    /// They are there. The number is that of the last one.
    Appended(i64),
    /// There is no such session.
    NoSession,
    /// Somebody else has appended something meanwhile, so they are not there.
    Moved,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionRecord {
    /// Its conversation.
    pub conversation: ConversationId,
    /// The beginning of the first prompt.
    pub title: String,
    /// The working directory it began in.
    pub directory: String,
    /// The provider used last.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// When it began, in Unix milliseconds.
    pub started_at_ms: i64,
    /// When it was used last, in Unix milliseconds.
    pub last_used_at_ms: i64,
    /// Items, history included.
    pub n_items: u64,
}

impl Store {
    /// Begins a session, and its conversation where there is none; one that is there goes on, with the model in use.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn begin_session(&self, session: NewSession, at_ms: i64) -> Result<(), StoreError> {
        self.run("begin a session", Access::Write, move |operations| {
            operations.begin_session(&session, at_ms)
        })
        .await
    }

    /// Appends items in order, where the last one has the number `after`.
    ///
    /// Errors: [`StoreError`] when they cannot be recorded; then none is.
    pub async fn append_items(
        &self,
        conversation: ConversationId,
        items: Vec<NewSessionItem>,
        after: i64,
        at_ms: i64,
    ) -> Result<AppendEnd, StoreError> {
        self.run("append to a session", Access::Write, move |operations| {
            operations.append_items(conversation, &items, after, at_ms)
        })
        .await
    }

    /// The items of a session, from the last base on.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn session_items(
        &self,
        conversation: ConversationId,
    ) -> Result<SessionItems, StoreError> {
        self.run("read a session", Access::Read, move |operations| {
            operations.session_items(conversation)
        })
        .await
    }

    /// The items of a session that were appended after the one with the number `after`.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn session_items_after(
        &self,
        conversation: ConversationId,
        after: i64,
    ) -> Result<SessionItems, StoreError> {
        self.run("read a session", Access::Read, move |operations| {
            operations.session_items_after(conversation, after)
        })
        .await
    }

    /// The number of the last item of a session, which the next ones are appended after; 0 when there is none.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn last_item(&self, conversation: ConversationId) -> Result<i64, StoreError> {
        self.run("read a session", Access::Read, move |operations| {
            operations.last_item(conversation)
        })
        .await
    }

    /// The session of a conversation.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn session(
        &self,
        conversation: ConversationId,
    ) -> Result<Option<SessionRecord>, StoreError> {
        self.run("find a session", Access::Read, move |operations| {
            operations.session(conversation)
        })
        .await
    }

    /// The sessions of `directory`, or of all, that were used last; newest first, at most `limit`.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn list_sessions(
        &self,
        directory: Option<String>,
        limit: u32,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        self.run("list the sessions", Access::Read, move |operations| {
            operations.sessions(directory.as_deref(), limit)
        })
        .await
    }
}
