//! Git directories that have no working directory around them: git takes any directory for one that has the right entries, and runs what
//! its configuration and its hooks name.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use super::sys::Meta;

/// What is obeyed, and what makes a directory one.
const PARTS: [&str; 7] = [
    "config",
    "config.worktree",
    "hooks",
    "commondir",
    "HEAD",
    "objects",
    "refs",
];

/// How many of [`PARTS`], the first ones, are obeyed.
const N_OBEYED: usize = 4;

/// Which of [`PARTS`] a directory has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GitParts([bool; PARTS.len()]);

impl GitParts {
    /// Notes an entry of the directory.
    pub(super) fn note(&mut self, leaf: &OsStr) {
        if let Some(part) = part(leaf) {
            self.0[part] = true;
        }
    }

    /// Whether git takes the directory for one of its own, and finds something in it that it obeys.
    pub(super) fn are_laid_open(self) -> bool {
        let [.., commondir, head, objects, refs] = self.0;
        let is_whole = head && (commondir || (objects && refs));
        is_whole && self.0[..N_OBEYED].contains(&true)
    }

    /// Those of `directory`, and `with`.
    fn of(directory: &Path, with: usize) -> Self {
        let mut parts = Self(PARTS.map(|name| directory.join(name).symlink_metadata().is_ok()));
        parts.0[with] = true;
        parts
    }
}

/// Whether git takes the directory `dir` for one of its own that has no working directory around it, and finds something in it that it
/// obeys. Without what [`is_head`] says, it does not.
pub(super) fn is_laid_open(dir: BorrowedFd<'_>) -> bool {
    GitParts(PARTS.map(|name| Meta::at(dir, name).is_ok())).are_laid_open()
}

/// Whether a file of this name makes a directory one of git's.
pub(super) fn is_head(leaf: &Path) -> bool {
    leaf.as_os_str().eq_ignore_ascii_case("HEAD")
}

/// Whether the last name of `path` is, or with others would make, part of a git directory that has no working directory around it; or
/// the path lies among the hooks of one.
pub(super) fn is_of_laid_open(path: &Path, top: &Path) -> bool {
    let mut inner = path.ancestors().take_while(|path| path.starts_with(top));
    inner.any(|path| {
        let part = path.file_name().and_then(part);
        let (Some(part), Some(directory)) = (part, path.parent()) else {
            return false;
        };
        // Its objects and references are data.
        let is_obeyed = !matches!(PARTS[part], "objects" | "refs");
        GitParts::of(directory, part).are_laid_open()
            && (is_obeyed || path.symlink_metadata().is_err())
    })
}

fn part(leaf: &OsStr) -> Option<usize> {
    PARTS
        .iter()
        .position(|part| leaf.eq_ignore_ascii_case(part))
}
