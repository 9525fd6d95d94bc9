//! Directories that calls of this process fill right now under a temporary name, before they give them the one they are for.
//!
//! The search for changes that commands made skips them, since they are half filled. The call that fills one inspects it if it stays
//! behind, and learns here whether the search skipped it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which directory: the number of its file system, and its number there. Who fills one holds it open, so that no other gets them.
pub type DirectoryId = (u64, u64);

static LIVE: Mutex<Vec<Arc<FilledDirectory>>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct FilledDirectory {
    path: PathBuf,
    id: DirectoryId,
    is_passed_over: AtomicBool,
}

/// A directory that is being filled, until this is dropped.
#[derive(Debug)]
pub struct LiveDraft(Arc<FilledDirectory>);

impl LiveDraft {
    /// Notes the directory `id` with the real path `path`.
    pub fn begin(path: PathBuf, id: DirectoryId) -> Self {
        let directory = Arc::new(FilledDirectory {
            path,
            id,
            is_passed_over: AtomicBool::new(false),
        });
        live().push(Arc::clone(&directory));
        Self(directory)
    }

    /// Ends it. Returns whether a search for changes may have skipped it, so that what others put into it was not inspected.
    pub fn end(self) -> bool {
        let directory = Arc::clone(&self.0);
        drop(self);
        directory.is_passed_over.load(Ordering::Relaxed)
    }
}

impl Drop for LiveDraft {
    fn drop(&mut self) {
        live().retain(|directory| !Arc::ptr_eq(directory, &self.0));
    }
}

/// Whether the real path `path` is a directory that is being filled, or lies in one. `id_at` tells which directory stands at a path:
/// one that has taken the place of another is none that is being filled.
pub fn is_in_live_draft(path: &Path, id_at: impl Fn(&Path) -> Option<DirectoryId>) -> bool {
    let mut above = Vec::new();
    for directory in live().iter() {
        if path.starts_with(&directory.path) {
            // Before it is looked at: the call may end meanwhile.
            directory.is_passed_over.store(true, Ordering::Relaxed);
            above.push(Arc::clone(directory));
        }
    }
    let mut above = above.iter();
    above.any(|directory| id_at(&directory.path) == Some(directory.id))
}

fn live() -> MutexGuard<'static, Vec<Arc<FilledDirectory>>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{LiveDraft, is_in_live_draft};
    use std::path::Path;

    #[test]
    fn a_draft_lives_as_long_as_its_calls() {
        let (draft, inner) = (Path::new("/drafts/one"), Path::new("/drafts/one/a"));
        let is_live = |path: &Path| is_in_live_draft(path, |_| Some((1, 2)));
        let lives = [
            LiveDraft::begin(draft.into(), (1, 2)),
            LiveDraft::begin(draft.into(), (1, 2)),
        ];
        for live in lives {
            assert!(is_live(draft) && is_live(inner));
            assert!(!is_live(Path::new("/drafts/one.more")));
            drop(live);
        }
        assert!(!is_live(draft));
    }

    #[test]
    fn what_takes_the_place_of_a_draft_is_none() {
        let path = Path::new("/drafts/two");
        for other in [None, Some((1, 3)), Some((2, 2))] {
            let live = LiveDraft::begin(path.into(), (1, 2));
            assert!(!is_in_live_draft(path, |_| other), "{other:?}");
            drop(live);
        }
    }

    #[test]
    fn the_call_is_told_that_others_left_its_draft_alone() {
        let path = Path::new("/drafts/three");
        for (looked_at, is_passed_over) in [(None, false), (Some("/drafts/three/a"), true)] {
            let live = LiveDraft::begin(path.into(), (1, 2));
            if let Some(inner) = looked_at {
                assert!(is_in_live_draft(Path::new(inner), |_| Some((1, 2))));
            }
            assert_eq!(live.end(), is_passed_over);
        }
    }
}
