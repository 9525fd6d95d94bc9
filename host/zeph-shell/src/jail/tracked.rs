//! What git makes of files of a repository that the jail kept or put aside: to it they are changed or deleted, and the next commit would
//! hold that.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::git;
use crate::turn::rc::quote;

/// Most bytes of an index that are searched: some 100,000 files.
const INDEX_BYTES_MAX: u64 = 16 << 20;

/// Where an index says how its names are written, and the way that cannot be searched.
const VERSION: std::ops::Range<usize> = 4..8;
const COMPRESSED: [u8; 4] = [0, 0, 0, 4];

/// Whether git may track `path`, or something in it, in the repository it lies in. Where the index cannot be searched, it may.
pub(super) fn may_be_tracked(path: &Path) -> bool {
    let is_of_git = path.components().any(|part| part.as_os_str() == ".git");
    let mut above = path.ancestors().skip(1);
    let work = above.find(|work| work.join(".git").symlink_metadata().is_ok());
    let Some(work) = work.filter(|_| !is_of_git) else {
        return false;
    };
    let (Some(git), Ok(name)) = (git::directory_of(work), path.strip_prefix(work)) else {
        return false;
    };
    let index = git.join("index");
    match git::bytes_of(&index, INDEX_BYTES_MAX) {
        Some(index) => names(&index, name.as_os_str().as_bytes()),
        None => index.symlink_metadata().is_ok(),
    }
}

/// Whether an index names a file, or files in a directory of this name.
fn names(index: &[u8], name: &[u8]) -> bool {
    if index.get(VERSION) == Some(COMPRESSED.as_slice()) {
        return true;
    }
    let mut places = index.windows(name.len() + 1);
    places.any(|place| place.starts_with(name) && matches!(place.last(), Some(0 | b'/')))
}

/// How a commit is kept from holding what git makes of `paths`: the end of a sentence for a model.
pub(super) fn left_out_of_commits(paths: &[PathBuf]) -> String {
    let mut words = Vec::new();
    for path in paths {
        words.push(b' ');
        quote(path.as_os_str().as_bytes(), &mut words);
    }
    format!(
        "do not commit that, as `git commit -a` and `git add -A` would; git leaves it out after \
         `git ls-files -z --{} | git update-index -z --skip-worktree --stdin` (and no longer after the same with `--no-skip-worktree`)",
        String::from_utf8_lossy(&words)
    )
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn an_index_names_files_and_directories_of_files() {
        let index = b"DIRC\0\0\0\x02...\0\x06.envrc\0\0...\0\x15.vscode/settings.json\0";
        for (name, expect) in [
            (".envrc", true),
            (".vscode", true),
            (".vscode/settings.json", true),
            (".env", false),
            (".idea", false),
        ] {
            assert_eq!(names(index, name.as_bytes()), expect, "{name}");
        }
        assert!(names(b"DIRC\0\0\0\x04...", b".idea"));
    }
}
