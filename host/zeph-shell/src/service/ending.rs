//! The services of this process: it ends them all before it ends itself, because protected places are looked at only when a service is gone.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::run::{Life, LivingRuns, RunStop};

/// All services of this process.
static LIVING: LazyLock<Arc<LivingRuns>> = LazyLock::new(Arc::default);

/// A service begins.
pub(super) fn begin(stop: &Arc<RunStop>) -> Life {
    LIVING.begin(stop)
}

/// Ends every service of this process, held or not, and waits until nothing is left of them and of what they were not to leave behind: for
/// the end of the process. Blocks, for `patience` at most. Returns whether all are gone.
pub fn end_all(patience: Duration) -> bool {
    LIVING.end(patience)
}
