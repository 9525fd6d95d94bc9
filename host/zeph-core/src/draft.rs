//! Directories that calls of this process fill right now under a temporary name, before they give them the one they are for.
//!
//! What looks for changes of commands leaves them alone: half filled, they are nobody's result, and nothing obeys what stands in them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A directory that is being filled, until this is dropped.
#[derive(Debug)]
pub struct LiveDraft(PathBuf);

impl LiveDraft {
    /// Notes the directory with the real path `path`.
    pub fn begin(path: PathBuf) -> Self {
        live().push(path.clone());
        Self(path)
    }
}

impl Drop for LiveDraft {
    fn drop(&mut self) {
        let mut live = live();
        if let Some(at) = live.iter().position(|path| *path == self.0) {
            live.swap_remove(at);
        }
    }
}

/// Whether the real path `path` is a directory that is being filled, or lies in one.
pub fn is_in_live_draft(path: &Path) -> bool {
    live().iter().any(|draft| path.starts_with(draft))
}

fn live() -> MutexGuard<'static, Vec<PathBuf>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{LiveDraft, is_in_live_draft};
    use std::path::Path;

    #[test]
    fn a_draft_lives_as_long_as_its_calls() {
        let (draft, inner) = (Path::new("/drafts/one"), Path::new("/drafts/one/a"));
        let lives = [
            LiveDraft::begin(draft.into()),
            LiveDraft::begin(draft.into()),
        ];
        for live in lives {
            assert!(is_in_live_draft(draft) && is_in_live_draft(inner));
            assert!(!is_in_live_draft(Path::new("/drafts/one.more")));
            drop(live);
        }
        assert!(!is_in_live_draft(draft));
    }
}
