//! What the replicas of one server share besides what is kept anyway: seals that were used, how often callers call, whose outputs are
//! whose, and that other tools are offered than before.

use uuid::Uuid;
use zeph_core::id::{ConversationId, Digest, OverflowId};

use crate::caller::Owner;
use crate::error::StoreError;
use crate::store::{Access, Store};

/// How long a used seal is remembered, in milliseconds: longer than any seal can be opened.
pub(crate) const USED_SEALS_KEPT_MS: i64 = 25 * 3_600 * 1_000;

/// What a bucket gains in this time fills it, in microseconds: a minute.
const MINUTE_US: i64 = 60_000_000;

/// A bucket of calls that fills evenly and holds at most a minute's worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallBucket {
    /// Whose calls it holds: the digest of a token, so that one that is made anew has a full bucket.
    pub token: Digest,
    /// Calls it gains a minute, and holds at most; 1 at least.
    pub per_minute: u32,
}

impl CallBucket {
    /// The time in which it gains one call, in microseconds.
    pub(crate) fn interval_us(&self) -> i64 {
        (MINUTE_US / i64::from(self.per_minute.max(1))).max(1)
    }

    /// How far off the moment at which it is full may be, for it to hold a call.
    pub(crate) fn latest_us(&self) -> i64 {
        MINUTE_US - self.interval_us()
    }

    /// A moment at which it is full that is farther off than this was written before the clock was set back.
    pub(crate) fn impossible_us() -> i64 {
        2 * MINUTE_US
    }

    /// How long to wait for a call of a bucket that is full in `full_us` from now, in milliseconds.
    pub(crate) fn wait_ms(&self, full_us: i64) -> u64 {
        let wait_us = (full_us - self.latest_us()).max(1);
        u64::try_from(wait_us).unwrap_or_default().div_ceil(1_000)
    }
}

impl Store {
    /// Uses up a seal, for every host on this database; false when it was used before.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; then it must not count.
    pub async fn use_seal(&self, ticket: Uuid, at_ms: i64) -> Result<bool, StoreError> {
        self.run("use a seal", Access::Write, move |operations| {
            operations.use_seal(ticket, at_ms)
        })
        .await
    }

    /// Whether a host on this database has used a seal.
    ///
    /// Errors: what the database says.
    pub async fn is_seal_used(&self, ticket: Uuid) -> Result<bool, StoreError> {
        self.run("look for a seal", Access::Read, move |operations| {
            operations.is_seal_used(ticket)
        })
        .await
    }

    /// Takes a call out of a bucket that all hosts on this database share; else how long to wait for one, in milliseconds.
    ///
    /// Errors: [`StoreError`] when it cannot be recorded; then the call must not be made.
    pub async fn take_call(
        &self,
        bucket: CallBucket,
        at_ms: i64,
    ) -> Result<Option<u64>, StoreError> {
        self.run("count a call", Access::Write, move |operations| {
            operations.take_call(&bucket, at_ms)
        })
        .await
    }

    /// Keeps which caller a stored output belongs to. An output that is gone belongs to nobody.
    ///
    /// Errors: what the database says.
    pub async fn own_output(&self, id: OverflowId, caller: Owner) -> Result<(), StoreError> {
        self.run(
            "keep whose an output is",
            Access::Write,
            move |operations| operations.own_output(id, &caller),
        )
        .await
    }

    /// The conversation of a stored output of this caller.
    ///
    /// Errors: what the database says.
    pub async fn conversation_of_output(
        &self,
        id: OverflowId,
        caller: Owner,
    ) -> Result<Option<ConversationId>, StoreError> {
        self.run("look for an output", Access::Read, move |operations| {
            operations.conversation_of_output(id, &caller)
        })
        .await
    }

    /// When a conversation last began, made a call or stored an output, in Unix milliseconds; `None` when there is none.
    ///
    /// Errors: what the database says.
    pub async fn conversation_used(&self, id: ConversationId) -> Result<Option<i64>, StoreError> {
        self.run("look for a conversation", Access::Read, move |operations| {
            operations.conversation_used(id)
        })
        .await
    }

    /// Tells every host on this database that plugins offer other tools than before.
    ///
    /// Errors: what the database says.
    pub async fn note_offer_change(&self) -> Result<(), StoreError> {
        self.run("note a change of plugins", Access::Write, |operations| {
            operations.note_offer_change()
        })
        .await
    }

    /// A number that changes with each [`note_offer_change`](Self::note_offer_change).
    ///
    /// Errors: what the database says.
    pub async fn offer_version(&self) -> Result<i64, StoreError> {
        self.run("look for changes of plugins", Access::Read, |operations| {
            operations.offer_version()
        })
        .await
    }
}
