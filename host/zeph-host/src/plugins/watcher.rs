//! Says that something may have changed in the folders, not what: looking again is cheap.
//!
//! The system is asked to tell (inotify, FSEvents); where it cannot, because a folder does not exist yet or lies on a network,
//! a clock takes its place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// How often folders are looked at that cannot be watched.
const POLL: Duration = Duration::from_secs(2);

/// Watches the folders of plugins and the locks beside them.
pub(crate) struct Watcher {
    /// Dropping it ends the watch.
    system: Option<RecommendedWatcher>,
    folders: Vec<PathBuf>,
    watched: Vec<PathBuf>,
    changes: mpsc::Receiver<()>,
}

impl Watcher {
    /// Begins to watch `folders` and what stands beside them.
    pub(crate) fn start(folders: &[PathBuf]) -> Self {
        let (sender, changes) = mpsc::channel(1);
        let told = move |_event| {
            // When one is waiting already, it says the same: "look again".
            sender.try_send(()).ok();
        };
        let system = notify::recommended_watcher(told);
        let system = system
            .inspect_err(|error| tracing::debug!(%error, "folders cannot be watched"))
            .ok();
        let beside = folders.iter().filter_map(|folder| folder.parent());
        let mut watcher = Self {
            system,
            folders: beside
                .chain(folders.iter().map(PathBuf::as_path))
                .map(Path::to_owned)
                .collect(),
            watched: Vec::new(),
            changes,
        };
        watcher.watch_more();
        watcher
    }

    /// Waits until something may have changed.
    pub(crate) async fn changed(&mut self) {
        if self.watch_more() {
            // What happened before the watch began is not told.
            return;
        }
        let is_complete = self.watched.len() == self.folders.len();
        tokio::select! {
            Some(()) = self.changes.recv() => {}
            () = tokio::time::sleep(POLL), if !is_complete => {}
            else => std::future::pending().await,
        }
    }

    /// Watches the folders that have appeared; says whether there was one.
    fn watch_more(&mut self) -> bool {
        let Some(system) = &mut self.system else {
            return false;
        };
        let n_before = self.watched.len();
        // A folder that is gone takes its watch with it.
        self.watched.retain(|folder| folder.is_dir());
        let missing: Vec<_> = self
            .folders
            .iter()
            .filter(|folder| !self.watched.contains(folder) && folder.is_dir())
            .cloned()
            .collect();
        for folder in missing {
            match system.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => self.watched.push(folder),
                Err(error) => {
                    tracing::debug!(folder = %folder.display(), %error, "a folder cannot be watched");
                }
            }
        }
        self.watched.len() > n_before
    }
}
