//! Which files a call changed, for the hooks `file_changed`: those below the roots whose inode changed since the call began.
//!
//! The kernel maintains that time, and it cannot be set back. Deleted files are not found, and changes of other programs are found,
//! too: a hook runs once too often rather than not at all. Nothing is examined unless there is a hook.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeph_shell::held_object::HeldObject;
use zeph_shell::hooks::ChangedFiles;

/// Entries looked at; a larger tree is looked at in part.
const ENTRIES_MAX: usize = 1_000_000;

/// How far the kernel's clock for files may lag behind: one tick of 100 Hz.
const TICK: Duration = Duration::from_millis(10);

/// The files below `roots` that changed at `since_ms` (Unix milliseconds) or later and that `is_wanted`, sorted. A root that was led
/// elsewhere has none. Blocks.
pub(crate) fn since(
    roots: &[HeldObject],
    since_ms: i64,
    is_wanted: impl FnMut(&Path) -> bool,
) -> ChangedFiles {
    let tick_ms = i64::try_from(TICK.as_millis()).unwrap_or(0);
    let mut search = ChangeSearch {
        since_ms: since_ms - tick_ms,
        left: ENTRIES_MAX,
        is_wanted,
        found: Vec::new(),
    };
    let standing = roots.iter().filter(|root| root.stands());
    let mut folders: Vec<PathBuf> = standing.map(|root| root.path().to_owned()).collect();
    while let Some(folder) = folders.pop() {
        search.folder(&folder, &mut folders);
    }
    search.found.sort();
    search.found.dedup();
    let missed = match search.left {
        0 => Some(format!(
            "more than {ENTRIES_MAX} entries lie below the allowed directories, and not all of them were looked at"
        )),
        _ => None,
    };
    ChangedFiles {
        paths: search.found,
        missed,
    }
}

/// What is known where the search itself failed.
pub(crate) fn unknown() -> ChangedFiles {
    ChangedFiles {
        paths: Vec::new(),
        missed: Some("the host could not look for changed files".to_owned()),
    }
}

struct ChangeSearch<F> {
    since_ms: i64,
    left: usize,
    is_wanted: F,
    found: Vec<PathBuf>,
}

impl<F: FnMut(&Path) -> bool> ChangeSearch<F> {
    /// Links are not followed: their targets are examined in their own place, if that is below a root.
    fn folder(&mut self, folder: &Path, folders: &mut Vec<PathBuf>) {
        // Through a handle: the name may be led elsewhere while the tree is looked at.
        let listed = HeldObject::open(folder).and_then(|held| held.list());
        for entry in listed.into_iter().flatten().flatten() {
            if self.left == 0 {
                folders.clear();
                return;
            }
            self.left -= 1;
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let changed_ms = metadata.ctime() * 1_000 + metadata.ctime_nsec() / 1_000_000;
            let path = folder.join(entry.file_name());
            if metadata.is_dir() {
                if !is_filled_by_tools(&path) {
                    folders.push(path);
                }
            } else if metadata.is_file() && changed_ms >= self.since_ms && (self.is_wanted)(&path) {
                self.found.push(path);
            }
        }
    }
}

/// Whether tools fill a folder by themselves: no hook waits for what is in it. A `target` is one of cargo's when it is marked as a cache.
fn is_filled_by_tools(folder: &Path) -> bool {
    let Some(name) = folder.file_name() else {
        return false;
    };
    match name.to_str() {
        Some(".git" | "node_modules") => true,
        Some("target") => folder.join("CACHEDIR.TAG").exists(),
        _ => false,
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
        let since = |roots: &[HeldObject], since_ms| since(roots, since_ms, |_| true).paths;
        let metadata = fs::metadata(root.join("src/new.rs")).unwrap();
        let written_ms = metadata.ctime() * 1_000 + metadata.ctime_nsec() / 1_000_000;
        let roots = [HeldObject::open(&root).unwrap()];
        assert!(since(&roots, written_ms + 60_000).is_empty());
        let sources = [root.join("old.rs"), root.join("src/new.rs")];
        let found = since(&roots, written_ms - 60_000);
        assert_eq!(found, [&sources[..], &[root.join("target/made")]].concat());
        fs::write(root.join("target/CACHEDIR.TAG"), "").unwrap();
        assert_eq!(since(&roots, written_ms - 60_000), sources);
        let (away, other) = (root.with_extension("away"), tempfile::tempdir().unwrap());
        fs::write(other.path().join("private.rs"), "x").unwrap();
        fs::rename(&root, &away).unwrap();
        std::os::unix::fs::symlink(other.path(), &root).unwrap();
        assert!(since(&roots, written_ms - 60_000).is_empty());
        fs::remove_file(&root).unwrap();
        fs::rename(&away, &root).unwrap();
    }
}
