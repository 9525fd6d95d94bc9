//! Which seals can be opened: each can be used once, by one of all hosts with its key.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeph_store::Store;

use super::{BadSeal, Ticket};
use crate::clock::now_ms;

/// Seals of one owner that can be opened at one time; a new one takes the place of the owner's oldest.
pub(super) const OPEN_MAX: usize = 1_024;

/// Seals of all owners that can be opened at one time; a new one takes the place of the oldest.
pub(super) const ALL_MAX: usize = 16 * OPEN_MAX;

/// Where it is known.
pub(super) enum SealUses {
    /// Of seals of this process: those that were not used yet, oldest first. Protects the list for the moment of reading or changing it.
    Process(Mutex<VecDeque<OpenSeal>>),
    /// Of seals of several hosts: the store that they share keeps those that were used.
    Store(Store),
}

/// A seal that was not used yet.
pub(super) struct OpenSeal {
    pub(super) ticket: Ticket,
    pub(super) owner: Option<String>,
    pub(super) expires_ms: i64,
}

impl SealUses {
    /// Notes a seal that is given out.
    pub(super) fn remember(&self, new: OpenSeal, now_ms: i64) {
        let Self::Process(list) = self else { return };
        let mut open = locked(list);
        open.retain(|open| open.expires_ms > now_ms);
        let n_own = open.iter().filter(|open| open.owner == new.owner).count();
        let oldest = match n_own >= OPEN_MAX {
            true => open.iter().position(|open| open.owner == new.owner),
            false => (open.len() >= ALL_MAX).then_some(0),
        };
        if let Some(oldest) = oldest {
            open.remove(oldest);
        }
        open.push_back(new);
    }

    /// Whether a seal was not used yet.
    ///
    /// Errors: [`BadSeal::Used`], and [`BadSeal::Unknown`] when the store cannot say.
    pub(super) async fn check(&self, ticket: Ticket) -> Result<(), BadSeal> {
        let is_open = match self {
            Self::Process(list) => locked(list).iter().any(|open| open.ticket == ticket),
            Self::Store(store) => {
                let used = store.is_seal_used(ticket.0).await;
                !used.map_err(|error| unknown(&error))?
            }
        };
        is_open.then_some(()).ok_or(BadSeal::Used)
    }

    /// Uses up a seal. Of several that try at once, one succeeds.
    ///
    /// Errors: as for [`check`](Self::check).
    pub(super) async fn redeem(&self, ticket: Ticket) -> Result<(), BadSeal> {
        let was_open = match self {
            Self::Process(list) => {
                let mut open = locked(list);
                let place = open.iter().position(|open| open.ticket == ticket);
                place.and_then(|place| open.remove(place)).is_some()
            }
            Self::Store(store) => {
                let used = store.use_seal(ticket.0, now_ms()).await;
                used.map_err(|error| unknown(&error))?
            }
        };
        was_open.then_some(()).ok_or(BadSeal::Used)
    }

    /// How many can be opened, of those of this process.
    #[cfg(test)]
    pub(super) fn n_open(&self) -> usize {
        match self {
            Self::Process(list) => locked(list).len(),
            Self::Store(_) => 0,
        }
    }
}

fn unknown(error: &zeph_store::StoreError) -> BadSeal {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "the store does not say whether a seal was used"
    );
    BadSeal::Unknown
}

fn locked(list: &Mutex<VecDeque<OpenSeal>>) -> MutexGuard<'_, VecDeque<OpenSeal>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
