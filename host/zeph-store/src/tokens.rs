//! Access tokens of the MCP endpoint: who may use it, which tools, how often and until when.
//!
//! What is kept of a token is its digest. Its text is shown once, by the program that makes it, and never reaches the store.

use serde::Serialize;
use zeph_core::id::Digest;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// What is kept of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenRecord {
    /// Its name, which is the caller id of who uses it.
    pub name: String,
    /// The SHA-256 of its text.
    #[serde(skip)]
    pub digest: Digest,
    /// Patterns of the tools it may call; all tools when there are none.
    pub tools: Option<Vec<String>>,
    /// Calls a minute it may make; any number when there is no limit.
    pub rate: Option<u32>,
    /// When it was made, in Unix milliseconds.
    pub created_at_ms: i64,
    /// From when on it is refused, in Unix milliseconds.
    pub expires_at_ms: Option<i64>,
}

impl Store {
    /// Adds a token; false when there is one of this name already, which stays as it is.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn add_token(&self, token: TokenRecord) -> Result<bool, StoreError> {
        self.run("add a token", Access::Write, move |operations| {
            operations.add_token(&token)
        })
        .await
    }

    /// All tokens by name, expired ones included.
    ///
    /// Errors: [`StoreError`] when the database cannot be read, or a row of it.
    pub async fn list_tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        self.run("list the tokens", Access::ReadRights, |operations| {
            operations.tokens()
        })
        .await
    }

    /// Deletes the token of this name; says whether there was one.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn revoke_token(&self, name: String) -> Result<bool, StoreError> {
        self.run("revoke a token", Access::Write, move |operations| {
            operations.revoke_token(&name)
        })
        .await
    }
}

impl TokenRecord {
    /// Whether it is refused at `now_ms` because of its age.
    pub fn has_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms)
    }
}
