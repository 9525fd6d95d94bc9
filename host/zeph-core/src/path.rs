//! Paths as words. What they lead to is another matter: nothing here looks at a file by itself.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links followed from one name, as on Linux.
const LINKS_MAX: usize = 40;

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

/// What the absolute `path` leads to, whether it is there or not, after the symbolic links on the way: another one in the place of
/// any of them leads elsewhere. `read_link` says where a link leads, and nothing of what is none.
pub fn led_to(path: &Path, read_link: impl Fn(&Path) -> Option<PathBuf>) -> Vec<PathBuf> {
    let parts = |path: &Path| -> Vec<OsString> {
        let parts = path.components().rev();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let (mut met, mut here, mut pending) = (Vec::new(), PathBuf::new(), parts(path));
    while let Some(part) = pending.pop() {
        if part == "." {
            continue;
        }
        if part == ".." {
            here.pop();
            continue;
        }
        here.push(part);
        let text = read_link(&here);
        if let Some(text) = text.filter(|_| met.len() < LINKS_MAX) {
            met.push(here.clone());
            here.pop();
            pending.extend(parts(&text));
        }
    }
    met.push(here);
    met
}
