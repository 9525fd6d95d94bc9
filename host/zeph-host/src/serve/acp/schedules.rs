//! What runs the scheduled tasks of the directories in which sessions work, as `run` and `serve` do for theirs.
//!
//! They run in a host of the directory alone: what a session gave its own host besides, such as directories and servers, is no authority of
//! a task.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

use crate::host::Host;
use crate::scheduler::clockwork::Clockwork;

/// The clockworks of one process.
#[derive(Debug, Default)]
pub(super) struct ScheduledRuns(Mutex<RunState>);

#[derive(Debug, Default)]
struct RunState {
    by_directory: HashMap<PathBuf, Clockwork>,
    /// Those that wait for the end of their runs.
    ending: JoinSet<()>,
    is_over: bool,
}

impl ScheduledRuns {
    /// Whether the tasks of `directory` are run.
    pub(super) fn has(&self, directory: &Path) -> bool {
        let state = self.state();
        state.is_over || state.by_directory.contains_key(directory)
    }

    /// Has `host` run the tasks of `directory`, unless another does.
    pub(super) fn begin(&self, directory: &Path, host: &Host) {
        let mut state = self.state();
        if !state.is_over && !state.by_directory.contains_key(directory) {
            let clockwork = Clockwork::start(host);
            state.by_directory.insert(directory.to_owned(), clockwork);
        }
    }

    /// Begins no more runs in directories that are not used any more; those that go on end by themselves.
    pub(super) fn keep(&self, is_used: impl Fn(&Path) -> bool) {
        let mut state = self.state();
        let unused = state.by_directory.keys().filter(|path| !is_used(path));
        let unused: Vec<PathBuf> = unused.cloned().collect();
        for directory in unused {
            if let Some(clockwork) = state.by_directory.remove(&directory) {
                state.ending.spawn(clockwork.end());
            }
        }
        while state.ending.try_join_next().is_some() {}
    }

    /// Begins no more runs, and waits for the ends of those that go on.
    pub(super) async fn end(&self) {
        let mut ending = {
            let mut state = self.state();
            state.is_over = true;
            let clockworks = std::mem::take(&mut state.by_directory);
            for clockwork in clockworks.into_values() {
                state.ending.spawn(clockwork.end());
            }
            std::mem::take(&mut state.ending)
        };
        while ending.join_next().await.is_some() {}
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
