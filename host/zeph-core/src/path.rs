//! Paths as words. What they lead to is another matter: nothing here looks at a file.

use std::path::{Component, Path, PathBuf};

/// Removes `.` and `..` from `path` by its words alone: a symbolic link before a `..` may lead elsewhere.
///
/// Shape: `/a/b/../c` → `/a/c`; a `..` above the root or above the start of a relative path is dropped.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}
