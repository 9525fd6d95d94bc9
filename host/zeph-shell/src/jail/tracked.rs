//! What git makes of files of a repository that the jail kept or put aside: to it they are changed or deleted, and the next commit would
//! hold that.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::git;
use crate::turn::rc::quote;

/// Most bytes of an index that are searched: some 100,000 files.
const INDEX_BYTES_MAX: u64 = 16 << 20;

/// Lengths of the names that git gives to contents: SHA-1 and SHA-256. No index says which of them it has.
const ID_BYTES: [usize; 2] = [20, 32];

/// Bytes before the first file of an index.
const HEAD_BYTES: usize = 12;

/// Bytes of a file before the name of its content: times, numbers, rights.
const FACTS_BYTES: usize = 40;

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

/// Whether an index names a file, or files in a directory of this name. One that cannot be read may.
fn names(index: &[u8], name: &[u8]) -> bool {
    let mut found = ID_BYTES.iter();
    let found = found.find_map(|id_bytes| names_with(index, name, *id_bytes));
    found.unwrap_or(true)
}

/// The same of an index with names of contents of this length; nothing where it is none.
///
/// Source: `gitformat-index`. Names that are shortened (version 4) or stand in another file (the extension `link`) are not read.
fn names_with(index: &[u8], name: &[u8], id_bytes: usize) -> Option<bool> {
    let (version, n_files) = (four_bytes(index, 4)?, four_bytes(index, 8)?);
    if !index.starts_with(b"DIRC") || !(2..=3).contains(&version) {
        return None;
    }
    let mut at = HEAD_BYTES;
    let mut is_named = false;
    for _ in 0..n_files {
        let flags_at = at + FACTS_BYTES + id_bytes;
        let flags = index.get(flags_at..flags_at + 2)?;
        let flags = usize::from(u16::from_be_bytes(flags.try_into().ok()?));
        let is_extended = version == 3 && flags & 0x4000 != 0;
        let start = flags_at + if is_extended { 4 } else { 2 };
        let rest = index.get(start..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        if flags & 0xfff != length.min(0xfff) {
            return None;
        }
        is_named |= is_of(&rest[..length], name);
        // At least one NUL, and up to a multiple of eight.
        at += (start + length - at + 8) & !7;
    }
    (!has_link(index.get(at..)?, id_bytes)).then_some(is_named)
}

/// Whether `file` of an index is `name` or lies in it. What ends with a slash is a whole directory.
fn is_of(file: &[u8], name: &[u8]) -> bool {
    let is_below = |file: &[u8], folder: &[u8]| {
        let rest = file.strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    let folder = file.strip_suffix(b"/");
    is_below(file, name) || folder.is_some_and(|folder| is_below(name, folder))
}

/// Whether the extensions of an index name another file of names.
fn has_link(extensions: &[u8], id_bytes: usize) -> bool {
    let mut rest = extensions;
    while rest.len() > id_bytes {
        let n_bytes = four_bytes(rest, 4).and_then(|n_bytes| usize::try_from(n_bytes).ok());
        let after = n_bytes.and_then(|n_bytes| rest.get(n_bytes.saturating_add(8)..));
        match after {
            Some(after) if !rest.starts_with(b"link") => rest = after,
            _ => return true,
        }
    }
    false
}

fn four_bytes(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
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
    use super::{FACTS_BYTES, ID_BYTES, names};

    /// An index as git writes it, with an extension behind the names.
    fn index(version: u32, id_bytes: usize, files: &[&str], extension: &[u8; 4]) -> Vec<u8> {
        let is_extended = version == 3;
        let mut index = b"DIRC".to_vec();
        index.extend(version.to_be_bytes());
        index.extend(u32::try_from(files.len()).unwrap().to_be_bytes());
        for file in files {
            let start = index.len();
            index.extend(vec![1; FACTS_BYTES + id_bytes]);
            let length = u16::try_from(file.len().min(0xfff)).unwrap();
            let flags = if is_extended { length | 0x4000 } else { length };
            index.extend(flags.to_be_bytes());
            index.extend(vec![0; if is_extended { 2 } else { 0 }]);
            index.extend(file.as_bytes());
            index.extend(vec![0; 8 - (index.len() - start) % 8]);
        }
        index.extend(extension);
        index.extend(4u32.to_be_bytes());
        index.extend(b"link");
        index.extend(vec![7; id_bytes]);
        index
    }

    #[test]
    fn an_index_names_files_and_directories_of_files() {
        let long = "x".repeat(5_000);
        let files = [
            "a/.npmrc",
            "b/.envrc",
            ".vscode/settings.json",
            "sparse/",
            &long,
        ];
        let versions = [2, 3].into_iter();
        for (version, id_bytes) in versions.flat_map(|version| ID_BYTES.map(|n| (version, n))) {
            let index = index(version, id_bytes, &files, b"TREE");
            for (name, expect) in [
                ("a/.npmrc", true),
                ("b/.envrc", true),
                (".vscode", true),
                (".vscode/settings.json", true),
                ("sparse/.npmrc", true),
                (long.as_str(), true),
                // The end of another name.
                (".npmrc", false),
                (".envrc", false),
                ("settings.json", false),
                // The begin of one.
                (".vs", false),
                ("b/.env", false),
                (".idea", false),
            ] {
                let found = names(&index, name.as_bytes());
                assert_eq!(found, expect, "version {version}, {id_bytes}: {name:.40}");
            }
        }
    }

    #[test]
    fn what_cannot_be_read_may_name_anything() {
        let sha1 = ID_BYTES[0];
        let whole = index(2, sha1, &["a", "b"], b"TREE");
        assert!(!names(&whole, b".idea"));
        assert!(names(&whole[..whole.len() / 2], b".idea"));
        assert!(names(b"", b".idea"));
        assert!(names(&index(4, sha1, &["a"], b"TREE"), b".idea"));
        assert!(names(&index(2, sha1, &["a"], b"link"), b".idea"));
    }
}
