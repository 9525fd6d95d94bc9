//! `tools.max_tool_calls_per_session`: what a session knows of the calls that count for its conversation.
//!
//! The store counts, with the begin of each call, so that hosts which share it and hosts that are started again never exceed the quota
//! together. What a session knows is only how many there were: a call beyond is refused before anybody is asked about it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::ConversationId;
use zeph_store::{QuotaUse, Store, StoreError};

/// The calls of a conversation, as one session knows them.
#[derive(Debug, Default)]
pub(crate) struct SessionQuota {
    /// Protects what is known for the moment of reading or changing it.
    known: Mutex<KnownCalls>,
}

#[derive(Debug, Clone, Copy, Default)]
struct KnownCalls {
    n_calls: u32,
    /// What counted last.
    last: Option<Uuid>,
    source: CountSource,
}

/// Where the number comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CountSource {
    /// Nobody has looked.
    #[default]
    Nowhere,
    Store,
    /// It is 0 from now on, which the store does not know yet.
    Clear,
}

impl SessionQuota {
    /// Lets the conversation begin to count anew with its next call.
    pub(crate) fn clear(&self) {
        *self.known() = KnownCalls {
            source: CountSource::Clear,
            ..KnownCalls::default()
        };
    }

    /// The calls that have counted, as far as that is known.
    pub(crate) fn n_calls(&self) -> u32 {
        self.known().n_calls
    }

    fn known(&self) -> MutexGuard<'_, KnownCalls> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into the store, where what is known does not do.
    async fn look(
        &self,
        store: &Store,
        conversation: ConversationId,
        calls_max: u32,
    ) -> Result<(), StoreError> {
        let known = *self.known();
        match known.source {
            CountSource::Store if known.n_calls < calls_max => {}
            CountSource::Clear => {
                store.forget_counted(conversation).await?;
                self.known().source = CountSource::Store;
            }
            CountSource::Nowhere | CountSource::Store => {
                let n_calls = store.n_counted(conversation).await?;
                let mut known = self.known();
                known.n_calls = n_calls;
                known.source = CountSource::Store;
            }
        }
        Ok(())
    }
}

/// How one call counts.
#[derive(Debug)]
pub(crate) struct CallQuota<'a> {
    pub(crate) known: &'a SessionQuota,
    pub(crate) conversation: ConversationId,
    /// What it counts as.
    pub(crate) batch: Uuid,
    /// None for no limit: then nothing is counted.
    pub(crate) calls_max: Option<u32>,
}

impl CallQuota<'_> {
    /// The calls that counted before this one.
    ///
    /// Errors: `server_error` when that cannot be known; the call must not be made then.
    pub(crate) async fn before(&self, store: &Store) -> Result<u32, ToolFailure> {
        let Some(calls_max) = self.calls_max else {
            return Ok(0);
        };
        if !self.has_counted() {
            let looked = self.known.look(store, self.conversation, calls_max).await;
            looked.map_err(|error| unknown(&error))?;
        }
        let known = self.known.known();
        let own = u32::from(known.last == Some(self.batch));
        Ok(known.n_calls.saturating_sub(own))
    }

    /// What the store is told with the begin of the call, before which `n_calls` counted: one too many does not count, it is refused.
    pub(crate) fn to_count(&self, n_calls: u32) -> Option<QuotaUse> {
        let calls_max = self.calls_max.filter(|max| n_calls < *max)?;
        Some(QuotaUse {
            conversation: self.conversation,
            batch: self.batch,
            calls_max,
        })
    }

    /// Notes that the store counts no more: what is known is older.
    pub(crate) fn used_up(&self) {
        let mut known = self.known.known();
        known.n_calls = u32::MAX;
        known.last = None;
    }

    /// Notes that it has counted.
    pub(crate) fn counted(&self) {
        let mut known = self.known.known();
        let is_counted = self.calls_max.is_some_and(|max| known.n_calls < max);
        if is_counted && known.last != Some(self.batch) {
            known.n_calls = known.n_calls.saturating_add(1);
            known.last = Some(self.batch);
        }
    }

    fn has_counted(&self) -> bool {
        self.known.known().last == Some(self.batch)
    }
}

fn unknown(error: &StoreError) -> ToolFailure {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "a call was not made: the calls of its conversation cannot be counted"
    );
    let message = "the call was not made: the host cannot count the calls of its conversation";
    ToolFailure::new(ErrorCategory::ServerError, ErrorPhase::Setup, message)
}
