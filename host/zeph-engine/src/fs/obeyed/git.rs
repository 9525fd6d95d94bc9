//! What git obeys for a repository that is not in its own directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use zeph_core::git_config::GitReader;

use super::GIT;

/// Most bytes of a configuration or a pointer of git; real ones have a few thousand.
const GIT_FILE_BYTES_MAX: u64 = 1 << 20;

/// Most hooks that are links of which the target counts; git knows some thirty hooks.
const HOOKS_MAX: usize = 64;

/// For the working directory `work`: folders of hooks and further configuration that its configuration names, and scripts that its hooks
/// are links to.
pub(super) fn hooks_of(reader: &GitReader, work: &Path) -> BTreeSet<PathBuf> {
    let pointer = work.join(GIT);
    let own = match pointer.is_dir() {
        true => Some(pointer),
        false => pointed(&pointer, "gitdir:"),
    };
    let Some(own) = own else {
        return BTreeSet::new();
    };
    hooks_of_git(reader, &own, work)
}

/// The same of its git directory `own`.
pub(super) fn hooks_of_git(reader: &GitReader, own: &Path, work: &Path) -> BTreeSet<PathBuf> {
    let common = pointed(&own.join("commondir"), "").unwrap_or_else(|| own.to_owned());
    let named = reader.of_repository(own, &common, work);
    let mut found: BTreeSet<PathBuf> = named.iter().flat_map(|path| led_to(path)).collect();
    let hooks = fs::read_dir(common.join("hooks")).into_iter().flatten();
    let hooks = hooks.flatten();
    let links = hooks.filter(|hook| hook.file_type().is_ok_and(|kind| kind.is_symlink()));
    let links = links.take(HOOKS_MAX);
    found.extend(links.flat_map(|hook| led_to(&hook.path())));
    found
}

/// What the absolute `path` leads to, whether it is there or not, after the symbolic links on the way.
pub(super) fn led_to(path: &Path) -> Vec<PathBuf> {
    zeph_core::path::led_to(path, |path| fs::read_link(path).ok())
}

fn pointed(file: &Path, prefix: &str) -> Option<PathBuf> {
    let content = small(file)?;
    let path = content.lines().next()?.strip_prefix(prefix)?.trim();
    file.parent()?.join(path).canonicalize().ok()
}

/// The content of a regular file that is not large.
pub(super) fn small(path: &Path) -> Option<String> {
    let about = path.metadata().ok()?;
    let is_small = about.is_file() && about.len() <= GIT_FILE_BYTES_MAX;
    let bytes = is_small.then(|| fs::read(path).ok())??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
