//! What is new in the audit table since the last look: calls that have ended.
//!
//! Rows come from several processes, and a call may end long after later ones: so it looks back a little, and keeps
//! the running calls in mind.

use std::collections::{HashMap, HashSet};

use zeph_core::id::CallId;
use zeph_store::{AuditFilter, AuditRecord, Store};

use crate::cli::error::CliError;

/// How far it looks back, in milliseconds: rows of other processes are committed a little after their begin.
const OVERLAP_MS: i64 = 5_000;

/// Running calls whose end it waits for. More than any host runs; beyond it a call is reported unfinished.
const PENDING_MAX: usize = 1_000;

/// Rows of one query.
const ROWS_MAX: u32 = 1_000;

/// How far the table has been read.
#[derive(Debug)]
pub(super) struct FollowState {
    since_ms: i64,
    /// Calls that are known, with their begin; those older than the overlap are forgotten.
    seen: HashMap<CallId, i64>,
    pending: HashSet<CallId>,
}

impl FollowState {
    /// Begins after `shown`, the newest of which began at `since_ms`.
    pub(super) async fn after(
        store: &Store,
        shown: &[AuditRecord],
        since_ms: i64,
    ) -> Result<Self, CliError> {
        let mut this = Self {
            since_ms,
            seen: HashMap::new(),
            pending: HashSet::new(),
        };
        // What the look back finds was there before: it is no news, but its end will be.
        for record in recent(store, since_ms).await?.iter().chain(shown) {
            this.seen.insert(record.begin.call_id, record.begin.at_ms);
            if record.ending.is_none() {
                this.pending.insert(record.begin.call_id);
            }
        }
        Ok(this)
    }

    /// The calls that have ended since the last look.
    pub(super) async fn news(&mut self, store: &Store) -> Result<Vec<AuditRecord>, CliError> {
        let mut news = Vec::new();
        for call in self.pending.clone() {
            match store.audit_record(call).await? {
                Some(record) if record.ending.is_none() => {}
                record => {
                    self.pending.remove(&call);
                    news.extend(record);
                }
            }
        }
        for record in recent(store, self.since_ms).await? {
            let (call, at_ms) = (record.begin.call_id, record.begin.at_ms);
            self.since_ms = self.since_ms.max(at_ms);
            if self.seen.insert(call, at_ms).is_some() {
                continue;
            }
            if record.ending.is_none() && self.pending.len() < PENDING_MAX {
                self.pending.insert(call);
            } else {
                news.push(record);
            }
        }
        let oldest_ms = self.since_ms.saturating_sub(OVERLAP_MS);
        self.seen.retain(|_, at_ms| *at_ms >= oldest_ms);
        Ok(news)
    }
}

/// The calls begun since `since_ms`, and a little before. Where two queries meet a row may come twice.
async fn recent(store: &Store, since_ms: i64) -> Result<Vec<AuditRecord>, CliError> {
    let mut records = Vec::new();
    let mut from_ms = since_ms.saturating_sub(OVERLAP_MS);
    loop {
        let filter = AuditFilter {
            since_ms: Some(from_ms),
            newest_first: false,
            ..AuditFilter::newest(ROWS_MAX)
        };
        let page = store.audit_query(filter).await?;
        let newest_ms = page.last().map(|record| record.begin.at_ms);
        let is_full = page.len() >= ROWS_MAX as usize;
        records.extend(page);
        match newest_ms {
            // A page of one and the same millisecond would never end.
            Some(newest_ms) if is_full && newest_ms > from_ms => from_ms = newest_ms,
            _ => return Ok(records),
        }
    }
}

#[cfg(test)]
mod tests;
