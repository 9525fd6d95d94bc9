//! Indexes of plugins that were seen: what a mirror that is rolled back, or a key that was revoked, is noticed by.

use zeph_core::id::Digest;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// The last index of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenIndex {
    /// Where it comes from, as the configuration names it.
    pub source: String,
    /// Its number; the next one has at least this.
    pub number: i64,
    /// Its digest.
    pub document: Digest,
    /// The keys that may sign the next one; empty when it named none.
    pub keys: Vec<String>,
    /// The keys in the configuration when those were named, after the one that vouches for them; empty when none were.
    pub configured: Vec<String>,
}

impl Store {
    /// The last index of this source that was kept.
    ///
    /// Errors: [`StoreError`] when the database cannot be read.
    pub async fn seen_index(&self, source: String) -> Result<Option<SeenIndex>, StoreError> {
        self.run(
            "read the number of an index",
            Access::Read,
            move |operations| operations.seen_index(&source),
        )
        .await
    }

    /// Keeps an index in the place of an earlier one; `false` when a later one, or another one of the same number, is kept already.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded.
    pub async fn keep_seen_index(&self, index: SeenIndex, at_ms: i64) -> Result<bool, StoreError> {
        self.run(
            "keep the number of an index",
            Access::Write,
            move |operations| operations.keep_seen_index(&index, at_ms),
        )
        .await
    }
}
