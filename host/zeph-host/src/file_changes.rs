//! Which files a call changed, for the hooks `file_changed`: those below the roots whose inode changed since the call began.
//!
//! The kernel maintains that time, and it cannot be set back. Deleted files are not found, and changes of other programs are found,
//! too: a hook runs once too often rather than not at all. Nothing is examined unless there is a hook.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeph_shell::held_object::HeldObject;

/// Entries looked at; a larger tree is looked at in part.
const ENTRIES_MAX: usize = 200_000;

/// Files found; a hook that formats does not need more names.
const FOUND_MAX: usize = 1_000;

/// Folders that tools fill by themselves. No hook waits for them.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// How far the kernel's clock for files may lag behind: one tick of 100 Hz.
const TICK: Duration = Duration::from_millis(10);

/// The files below `roots` that changed at `since_ms` (Unix milliseconds) or later, sorted. A root that was led elsewhere has none.
/// Blocks.
pub(crate) fn since(roots: &[HeldObject], since_ms: i64) -> Vec<PathBuf> {
    let tick_ms = i64::try_from(TICK.as_millis()).unwrap_or(0);
    let mut search = ChangeSearch {
        since_ms: since_ms - tick_ms,
        left: ENTRIES_MAX,
        found: Vec::new(),
    };
    let standing = roots.iter().filter(|root| root.stands());
    let mut folders: Vec<PathBuf> = standing.map(|root| root.path().to_owned()).collect();
    while let Some(folder) = folders.pop() {
        search.folder(&folder, &mut folders);
    }
    search.found.sort();
    search.found.dedup();
    search.found
}

struct ChangeSearch {
    since_ms: i64,
    left: usize,
    found: Vec<PathBuf>,
}

impl ChangeSearch {
    /// Links are not followed: their targets are examined in their own place, if that is below a root.
    fn folder(&mut self, folder: &Path, folders: &mut Vec<PathBuf>) {
        // Through a handle: the name may be led elsewhere while the tree is looked at.
        let listed = HeldObject::open(folder).and_then(|held| held.list());
        for entry in listed.into_iter().flatten().flatten() {
            if self.left == 0 || self.found.len() == FOUND_MAX {
                folders.clear();
                return;
            }
            self.left -= 1;
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let changed_ms = metadata.ctime() * 1_000 + metadata.ctime_nsec() / 1_000_000;
            if metadata.is_dir() {
                if !SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                    folders.push(folder.join(entry.file_name()));
                }
            } else if metadata.is_file() && changed_ms >= self.since_ms {
                self.found.push(folder.join(entry.file_name()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::{HeldObject, since};

    #[test]
    fn what_changed_since_is_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["src", "target", ".git"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        for file in ["old.rs", "src/new.rs", "target/made", ".git/index"] {
            fs::write(root.join(file), "x").unwrap();
        }
        let metadata = fs::metadata(root.join("src/new.rs")).unwrap();
        let written_ms = metadata.ctime() * 1_000 + metadata.ctime_nsec() / 1_000_000;
        let roots = [HeldObject::open(&root).unwrap()];
        assert!(since(&roots, written_ms + 60_000).is_empty());
        assert_eq!(
            since(&roots, written_ms - 60_000),
            [root.join("old.rs"), root.join("src/new.rs")]
        );
        let (away, other) = (root.with_extension("away"), tempfile::tempdir().unwrap());
        fs::write(other.path().join("private.rs"), "x").unwrap();
        fs::rename(&root, &away).unwrap();
        std::os::unix::fs::symlink(other.path(), &root).unwrap();
        assert!(since(&roots, written_ms - 60_000).is_empty());
        fs::remove_file(&root).unwrap();
        fs::rename(&away, &root).unwrap();
    }
}
