//! Reading the audit: which rows, and in which order.

use zeph_core::category::ErrorCategory;
use zeph_core::id::{CallId, CallPrefix, ConversationId};

use crate::audit::record::AuditRecord;
use crate::error::StoreError;
use crate::store::{Access, Store};

/// Which rows to read. Every condition that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditFilter {
    /// Whose IDs begin so.
    pub call: Option<CallPrefix>,
    /// Of this tool.
    pub tool: Option<String>,
    /// Of this plugin.
    pub plugin: Option<String>,
    /// Failed with this category.
    pub category: Option<ErrorCategory>,
    /// Of this conversation.
    pub conversation: Option<ConversationId>,
    /// Begun at this moment or later, in Unix milliseconds.
    pub since_ms: Option<i64>,
    /// Begun before this moment, in Unix milliseconds.
    pub until_ms: Option<i64>,
    /// Only calls without an end.
    pub unfinished_only: bool,
    /// From the newest to the oldest, else the other way round.
    pub newest_first: bool,
    /// At most so many rows.
    pub limit: u32,
}

impl AuditFilter {
    /// The newest `limit` rows of everything.
    pub fn newest(limit: u32) -> Self {
        Self {
            call: None,
            tool: None,
            plugin: None,
            category: None,
            conversation: None,
            since_ms: None,
            until_ms: None,
            unfinished_only: false,
            newest_first: true,
            limit,
        }
    }
}

impl Store {
    /// The rows that pass `filter`, in the order of their begin.
    ///
    /// Limits: the times use an index; the other conditions are checked row by row until `limit` rows are found.
    /// Errors: what the database says.
    pub async fn audit_query(&self, filter: AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        self.run("query the audit table", Access::Read, move |operations| {
            operations.audit(&filter)
        })
        .await
    }

    /// The row of one call.
    ///
    /// Errors: what the database says.
    pub async fn audit_record(&self, call: CallId) -> Result<Option<AuditRecord>, StoreError> {
        self.run("read an audit row", Access::Read, move |operations| {
            operations.audit_record(call)
        })
        .await
    }
}
