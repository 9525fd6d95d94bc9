//! Says that something may have changed in the folders, not what: looking again is cheap.
//!
//! The system reports changes (inotify, FSEvents); where it cannot, because a directory does not exist yet or is on a network,
//! a clock takes its place. Folders are watched and the locks beside them, and not what else stands there: the store, for
//! one, is written with every call. What the system does not report either, since it happens elsewhere, is compared by the clock: which
//! folder stands at a path, and the files that links in a folder lead to.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use zeph_config::lock_of;

/// How often that is looked at which is not reported.
const POLL: Duration = Duration::from_secs(2);

/// Watches the folders of plugins and the locks beside them.
pub(crate) struct Watcher {
    /// Dropping it ends the watch.
    system: Option<RecommendedWatcher>,
    folders: Vec<PathBuf>,
    /// What is watched: which file or folder stood there when the watch began. Another one in its place needs a watch of its own.
    watched: BTreeMap<PathBuf, Identity>,
    /// The links in the folders, and what they led to at the last look.
    links: BTreeMap<PathBuf, LinkStamp>,
    changes: mpsc::Receiver<()>,
}

/// Device and inode.
type Identity = (u64, u64);

/// The file a link leads to, its length and its time; `None` when it leads nowhere.
type LinkStamp = Option<(Identity, u64, Option<SystemTime>)>;

impl Watcher {
    /// Prepares to watch; nothing is watched before [`changed`](Self::changed) is called.
    pub(crate) fn start(folders: &[PathBuf]) -> Self {
        let (sender, changes) = mpsc::channel(1);
        let told = move |event: notify::Result<Event>| {
            if is_change(&event) {
                // When one is waiting already, it says the same: "look again".
                sender.try_send(()).ok();
            }
        };
        let system = notify::recommended_watcher(told);
        let system = system
            .inspect_err(|error| tracing::debug!(%error, "folders cannot be watched"))
            .ok();
        Self {
            system,
            folders: folders.to_vec(),
            watched: BTreeMap::new(),
            links: BTreeMap::new(),
            changes,
        }
    }

    /// Waits until something may have changed. Returns at once when a watch begins: earlier changes are not reported.
    pub(crate) async fn changed(&mut self) {
        loop {
            let (has_begun, is_elsewhere) = (self.watch_more(), self.links_changed());
            if has_begun || is_elsewhere {
                return;
            }
            let is_watched = |folder: &PathBuf| self.watched.contains_key(folder);
            let is_complete = self.folders.iter().all(is_watched);
            tokio::select! {
                Some(()) = self.changes.recv() => return,
                () = tokio::time::sleep(POLL) => {}
            }
            if !is_complete {
                return;
            }
        }
    }

    /// Whether a link leads to another file than at the last look, or to a file that was written since.
    fn links_changed(&mut self) -> bool {
        let links: BTreeMap<_, _> = self.folders.iter().flat_map(|dir| links(dir)).collect();
        let are_changed = links != self.links;
        self.links = links;
        are_changed
    }

    /// Watches what has appeared or taken another's place; says whether there was anything.
    fn watch_more(&mut self) -> bool {
        let locks = self.folders.iter().map(|folder| lock_of(folder));
        let places: Vec<PathBuf> = self.folders.iter().cloned().chain(locks).collect();
        let mut has_begun = false;
        for place in places {
            let stands = identity(&place);
            if self.watched.get(&place) == stands.as_ref() {
                continue;
            }
            self.unwatch(&place);
            if let Some(identity) = stands
                && self.watch(&place)
            {
                self.watched.insert(place, identity);
                has_begun = true;
            }
        }
        has_begun
    }

    fn watch(&mut self, place: &Path) -> bool {
        let Some(system) = &mut self.system else {
            return false;
        };
        let watched = system.watch(place, RecursiveMode::NonRecursive);
        if let Err(error) = &watched {
            tracing::debug!(place = %place.display(), %error, "it cannot be watched");
        }
        watched.is_ok()
    }

    fn unwatch(&mut self, place: &Path) {
        let was_watched = self.watched.remove(place).is_some();
        if let (true, Some(system)) = (was_watched, &mut self.system) {
            // The system ends the watch of what is gone by itself.
            system.unwatch(place).ok();
        }
    }
}

/// Looking at a folder opens it: that must not be a reason to look again.
fn is_change(event: &notify::Result<Event>) -> bool {
    match event {
        Ok(event) => match event.kind {
            EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
            _ => true,
        },
        // Something was lost: better look.
        Err(_) => true,
    }
}

fn identity(place: &Path) -> Option<Identity> {
    let meta = fs::metadata(place).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// The links in a folder. One that cannot be read has none.
fn links(folder: &Path) -> Vec<(PathBuf, LinkStamp)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links
        .map(|link| (link.path(), link_stamp(&link.path())))
        .collect()
}

fn link_stamp(link: &Path) -> LinkStamp {
    let meta = fs::metadata(link).ok()?;
    let identity = (meta.dev(), meta.ino());
    Some((identity, meta.len(), meta.modified().ok()))
}

#[cfg(test)]
mod tests;
