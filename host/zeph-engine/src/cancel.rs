//! The caller's way to end a call at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A flag that the guest's thread sees within one tick, wherever the guest is: in a loop or waiting in a host function.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    is_set: AtomicBool,
    changed: Notify,
}

impl Cancel {
    /// Makes a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the call.
    pub fn cancel(&self) {
        self.0.is_set.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Returns once it is cancelled.
    pub async fn cancelled(&self) {
        loop {
            // Registered before the flag is read: a cancel in between is not missed.
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            changed.await;
        }
    }
}

/// Cancels when dropped: a caller that goes away ends its call.
#[derive(Debug)]
pub struct CancelOnDrop(pub Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
