//! What is held for callers beyond their requests: conversations, and calls that go on when their request has its answer.
//!
//! Who holds something asks for the right it depends on, and counts what works. The endpoint takes rights back when it finds that their
//! tokens are gone, and waits at its end for what works as it does for requests.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use zeph_core::id::Digest;

/// The rights that things are held by, and how many of these work.
#[derive(Debug)]
pub struct Holdings {
    /// Protects the moment of reading or changing it. One for each token that was used since the start and is valid.
    rights: Mutex<HashMap<Option<Digest>, CancellationToken>>,
    /// Some right was taken back.
    revoked: Notify,
    n_working: watch::Sender<usize>,
    is_ending: AtomicBool,
}

/// Something that works for a caller without a request, until it is dropped.
pub struct Working(Arc<Holdings>);

impl Default for Holdings {
    fn default() -> Self {
        Self {
            rights: Mutex::default(),
            revoked: Notify::new(),
            n_working: watch::Sender::new(0),
            is_ending: AtomicBool::new(false),
        }
    }
}

impl Holdings {
    /// What is cancelled when this token is revoked; without one, when an endpoint that was open to anybody no longer is.
    pub fn right(&self, token: Option<Digest>) -> CancellationToken {
        self.rights().entry(token).or_default().clone()
    }

    /// Waits until some right is taken back, or was since the last time. For one who waits.
    pub async fn revoked(&self) {
        self.revoked.notified().await;
    }

    /// Notes that something works for a caller: the endpoint waits for it at its end, as long as for calls.
    pub fn working(self: &Arc<Self>) -> Working {
        self.n_working.send_modify(|n| *n += 1);
        Working(Arc::clone(self))
    }

    /// Whether the endpoint ends: what works may finish, nothing begins.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_to_end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Takes back the rights for which `is_over` holds.
    pub(crate) fn revoke(&self, is_over: impl Fn(Option<Digest>) -> bool) {
        let mut rights = self.rights();
        let n_before = rights.len();
        rights.retain(|token, right| {
            let is_over = is_over(*token);
            if is_over {
                right.cancel();
            }
            !is_over
        });
        if rights.len() < n_before {
            self.revoked.notify_one();
        }
    }

    /// Resolves when nothing works.
    pub(crate) async fn idle(&self) {
        let mut n_working = self.n_working.subscribe();
        // It ends with the sender alone, which is here.
        drop(n_working.wait_for(|n| *n == 0).await);
    }

    fn rights(&self) -> MutexGuard<'_, HashMap<Option<Digest>, CancellationToken>> {
        self.rights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.n_working.send_modify(|n| *n -= 1);
    }
}

impl fmt::Debug for Working {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Working").finish_non_exhaustive()
    }
}
