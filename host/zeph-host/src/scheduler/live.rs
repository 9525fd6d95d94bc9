//! The runs that go on in this process, whichever clockwork makes them: one that leaves a directory waits for its own while the next begins.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// Protects the moment of reading or changing it.
static GOING_ON: Mutex<BTreeSet<Uuid>> = Mutex::new(BTreeSet::new());

/// A run that goes on in this process, until this is dropped.
#[derive(Debug)]
pub(crate) struct LiveRun(Uuid);

impl LiveRun {
    /// Notes a run before it begins, so that it is known wherever its begin can be read.
    pub(super) fn new(run: Uuid) -> Self {
        going_on().insert(run);
        Self(run)
    }

    /// Whether a run goes on here.
    pub(super) fn is_there(run: Uuid) -> bool {
        going_on().contains(&run)
    }
}

impl Drop for LiveRun {
    fn drop(&mut self) {
        going_on().remove(&self.0);
    }
}

fn going_on() -> MutexGuard<'static, BTreeSet<Uuid>> {
    GOING_ON.lock().unwrap_or_else(PoisonError::into_inner)
}
