//! The runs that are not over: of one spawner, or of a whole process. What ends before them ends them first, and waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Reason, RunStop};

/// Runs that are not over.
#[derive(Debug, Default)]
pub(crate) struct LivingRuns {
    runs: Mutex<NumberedRuns>,
    gone: Condvar,
}

#[derive(Debug, Default)]
struct NumberedRuns {
    next: u64,
    /// Whether a run that begins is ended at once.
    is_closed: bool,
    /// What ends the run of this number.
    stops: BTreeMap<u64, Arc<RunStop>>,
}

/// One run, from its start until nothing of it is left; that is when this is dropped.
#[derive(Debug)]
pub(crate) struct Life {
    number: u64,
    runs: Arc<LivingRuns>,
}

/// All runs of this process.
static LIVING: LazyLock<Arc<LivingRuns>> = LazyLock::new(Arc::default);

/// A run of this process begins.
pub(super) fn begin(stop: &Arc<RunStop>) -> Life {
    LIVING.begin(stop)
}

/// Ends every command of this process, in the background too, and waits until nothing is left of them; what is started later ends at once.
/// For the end of the process: the kernel would end them some moments later, and what they did to protected places would not be looked at.
/// Blocks, for `patience` at most. Returns whether all are gone.
pub fn end_all(patience: Duration) -> bool {
    LIVING.close();
    LIVING.end(patience)
}

impl LivingRuns {
    pub(crate) fn begin(self: &Arc<Self>, stop: &Arc<RunStop>) -> Life {
        let mut runs = self.runs();
        let number = runs.next;
        runs.next += 1;
        runs.stops.insert(number, Arc::clone(stop));
        if runs.is_closed {
            stop.stop(Reason::Shutdown);
        }
        Life {
            number,
            runs: Arc::clone(self),
        }
    }

    /// Ends what begins from now on at once.
    pub(crate) fn close(&self) {
        self.runs().is_closed = true;
    }

    /// Ends all of them, and waits until nothing is left of them. Blocks, for `patience` at most. Returns whether all are gone.
    pub(crate) fn end(&self, patience: Duration) -> bool {
        let runs = self.runs();
        for stop in runs.stops.values() {
            stop.stop(Reason::Shutdown);
        }
        let is_living = |runs: &mut NumberedRuns| !runs.stops.is_empty();
        let waited = self.gone.wait_timeout_while(runs, patience, is_living);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn runs(&self) -> MutexGuard<'_, NumberedRuns> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.runs.runs().stops.remove(&self.number);
        self.runs.gone.notify_all();
    }
}
