//! Services that were asked to end and have not yet: the process waits for them before it ends, because protected places are looked at only
//! when a service is gone.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All services of this process.
static LIVING: Living = Living {
    services: Mutex::new(Numbered {
        next: 0,
        is_asked: BTreeMap::new(),
    }),
    gone: Condvar::new(),
};

struct Living {
    services: Mutex<Numbered>,
    gone: Condvar,
}

struct Numbered {
    next: u64,
    /// Whether the service of this number was asked to end.
    is_asked: BTreeMap<u64, bool>,
}

/// One service, from its start until nothing of it is left; that is when this is dropped.
#[derive(Debug)]
pub(super) struct Life(u64);

/// A hold on a service by which it is asked to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct LifeNumber(u64);

impl Life {
    pub(super) fn begin() -> Self {
        let mut services = LIVING.services();
        let number = services.next;
        services.next += 1;
        services.is_asked.insert(number, false);
        Self(number)
    }

    pub(super) fn number(&self) -> LifeNumber {
        LifeNumber(self.0)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        LIVING.services().is_asked.remove(&self.0);
        LIVING.gone.notify_all();
    }
}

impl LifeNumber {
    /// Notes that the service was asked to end. One that has ended stays so.
    pub(super) fn ask(self) {
        if let Some(is_asked) = LIVING.services().is_asked.get_mut(&self.0) {
            *is_asked = true;
        }
    }
}

impl Living {
    fn services(&self) -> MutexGuard<'_, Numbered> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until nothing is left of the services that were dropped or asked to end, and of what they were not to leave behind: for the end
/// of the process. Blocks, for `patience` at most. Returns whether all are gone.
pub fn all_ended(patience: Duration) -> bool {
    let is_ending = |services: &mut Numbered| services.is_asked.values().any(|is_asked| *is_asked);
    let waited = LIVING
        .gone
        .wait_timeout_while(LIVING.services(), patience, is_ending);
    !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
}
