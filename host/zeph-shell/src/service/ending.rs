//! The services of this process: it ends them all before it ends itself, because protected places are looked at only when a service is gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::run::{Reason, RunStop};

/// All services of this process.
static LIVING: Living = Living {
    services: Mutex::new(Numbered {
        next: 0,
        stops: BTreeMap::new(),
    }),
    gone: Condvar::new(),
};

struct Living {
    services: Mutex<Numbered>,
    gone: Condvar,
}

struct Numbered {
    next: u64,
    /// What ends the service of this number.
    stops: BTreeMap<u64, Arc<RunStop>>,
}

/// One service, from its start until nothing of it is left; that is when this is dropped.
#[derive(Debug)]
pub(super) struct Life(u64);

impl Life {
    pub(super) fn begin(stop: Arc<RunStop>) -> Self {
        let mut services = LIVING.services();
        let number = services.next;
        services.next += 1;
        services.stops.insert(number, stop);
        Self(number)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        LIVING.services().stops.remove(&self.0);
        LIVING.gone.notify_all();
    }
}

impl Living {
    fn services(&self) -> MutexGuard<'_, Numbered> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends every service of this process, whoever holds it, and waits until nothing is left of them and of what they were not to leave behind: for
/// the end of the process. Blocks, for `patience` at most. Returns whether all are gone.
pub fn end_all(patience: Duration) -> bool {
    let services = LIVING.services();
    for stop in services.stops.values() {
        stop.stop(Reason::Shutdown);
    }
    let is_living = |services: &mut Numbered| !services.stops.is_empty();
    let waited = LIVING
        .gone
        .wait_timeout_while(services, patience, is_living);
    !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
}
