//! What of a git repository runs programs, and so must not be changed by a command: hooks and configuration, wherever git reads
//! them from. Everything a commit needs stays writable.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use zeph_core::path::normal;

use super::place::{Hold, Places};

/// In a git directory: what git runs or obeys. `commondir` makes it read the others elsewhere.
const OBEYED: [&str; 4] = ["hooks", "config", "config.worktree", "commondir"];

/// In the common directory of a linked worktree: what a commit writes.
const WRITTEN: [&str; 5] = ["objects", "refs", "logs", "rr-cache", "lfs"];

/// Most repositories of submodules, and linked worktrees, that are looked at.
const INNER_MAX: usize = 256;

/// Most hooks that are links which are followed; git knows some thirty.
const HOOKS_MAX: usize = 64;

/// Most bytes of a configuration or a pointer of git; real ones have a few thousand.
const SMALL_MAX: u64 = 1 << 20;

/// A git directory outside the roots that a linked worktree or a submodule in them belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutsideGit {
    /// The common directory, to be read.
    pub(super) common: PathBuf,
    /// Directories in it to be written.
    pub(super) writable: Vec<PathBuf>,
}

/// Holds what of the repository at `work` could run a program. `root` is the one of the writable `roots` it lies in.
pub(super) fn hold(
    roots: &[PathBuf],
    root: &Path,
    work: &Path,
    places: &mut Places,
) -> Option<OutsideGit> {
    let git = work.join(".git");
    let Ok(about) = git.symlink_metadata() else {
        if is_git_directory(work) {
            hold_directory(root, work, places);
        }
        return None;
    };
    places.hold(
        root,
        &git,
        if about.is_dir() {
            Hold::Pinned
        } else {
            Hold::ReadOnly
        },
    );
    if about.is_dir() {
        hold_directory(root, &git, places);
        return None;
    }
    let Some(target) = target_of(&git, &about) else {
        // Nothing is there yet, and what a command puts there would be obeyed.
        let named = small(&git).and_then(|content| named_by(&git, &content, "gitdir:"));
        if let Some(named) = named.filter(|named| named.starts_with(root)) {
            places.hold(root, &named, Hold::ReadOnly);
        }
        return None;
    };
    if let Some(root) = roots.iter().find(|root| target.starts_with(root)) {
        hold_directory(root, &target, places);
        return None;
    }
    let outside = linked_worktree(&git, &target).or_else(|| submodule(work, &target));
    places.guarded.push(target);
    places
        .guarded
        .extend(outside.iter().map(|outside| outside.common.clone()));
    outside
}

/// The git directory that a `.git` leads to which is none itself.
pub(super) fn target_of(pointer: &Path, about: &Metadata) -> Option<PathBuf> {
    let target = match about.is_symlink() {
        true => pointer.canonicalize().ok()?,
        false => return pointed(pointer, "gitdir:"),
    };
    match target.is_dir() {
        true => Some(target),
        false => pointed(pointer, "gitdir:"),
    }
}

/// Whether git, started at `path`, takes it for a repository.
pub(super) fn is_repository(path: &Path) -> bool {
    path.join(".git").symlink_metadata().is_ok() || is_git_directory(path)
}

fn is_git_directory(path: &Path) -> bool {
    is_laid_open(|name| path.join(name).exists())
}

/// Whether git takes a directory with these names in it for a git directory. The common directory may hold the rest.
pub(super) fn is_laid_open(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

fn hold_directory(root: &Path, git: &Path, places: &mut Places) {
    hold_obeyed(root, git, places);
    let common = pointed(&git.join("commondir"), "");
    if let Some(common) = common.filter(|common| common.starts_with(root) && common != git) {
        hold_obeyed(root, &common, places);
    }
    for named in named_in(&git.join("config"), git) {
        if named.starts_with(root) && named != root && !git.starts_with(&named) {
            places.hold(root, &named, Hold::ReadOnly);
        }
    }
    let mut left = INNER_MAX;
    hold_modules(root, &git.join("modules"), places, &mut left);
    for worktree in worktrees(git).into_iter().take(left) {
        if places.made.extent(&worktree).is_some() {
            places.loose.push(worktree);
            continue;
        }
        for name in ["commondir", "gitdir", "config.worktree"] {
            places.hold(root, &worktree.join(name), Hold::ReadOnly);
        }
        places.guarded.push(worktree);
    }
}

fn hold_obeyed(root: &Path, git: &Path, places: &mut Places) {
    for name in OBEYED {
        places.hold(root, &git.join(name), Hold::ReadOnly);
    }
    // A hook may be a link to a script of the project.
    let hooks = std::fs::read_dir(git.join("hooks")).into_iter().flatten();
    let links = hooks
        .flatten()
        .filter(|hook| hook.file_type().is_ok_and(|kind| kind.is_symlink()));
    for hook in links.take(HOOKS_MAX) {
        places.hold(root, &hook.path(), Hold::ReadOnly);
    }
    places.guarded.push(git.to_owned());
}

/// Repositories of submodules of the git directory `git`, the first ones.
pub(super) fn modules(git: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![git.join("modules")];
    let mut left = INNER_MAX;
    while let Some(folder) = folders.pop() {
        for module in entries(&folder).take(left) {
            left -= 1;
            match is_git_directory(&module) {
                true => {
                    folders.push(module.join("modules"));
                    found.push(module);
                }
                false => folders.push(module),
            }
        }
    }
    found
}

/// Git directories of the linked worktrees of `git`, the first ones.
pub(super) fn worktrees(git: &Path) -> Vec<PathBuf> {
    entries(&git.join("worktrees")).take(INNER_MAX).collect()
}

/// Repositories of submodules. Their names may have slashes, so a directory that is none may hold some.
fn hold_modules(root: &Path, folder: &Path, places: &mut Places, left: &mut usize) {
    for module in entries(folder) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        match is_git_directory(&module) {
            true => hold_directory(root, &module, places),
            false => hold_modules(root, &module, places, left),
        }
    }
}

/// Real directories in `folder`.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let listed = std::fs::read_dir(folder).into_iter().flatten().flatten();
    listed
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

/// Directories of hooks and further configuration that a configuration names.
fn named_in(config: &Path, git: &Path) -> Vec<PathBuf> {
    let content = small(config).unwrap_or_default();
    let work = git.parent().unwrap_or(git);
    let lines = content.lines().filter_map(|line| line.split_once('='));
    lines
        .filter_map(|(key, value)| {
            let value = value.trim().trim_matches('"');
            match key.trim().to_ascii_lowercase().as_str() {
                "hookspath" => Some(normal(&work.join(value))),
                "path" => Some(normal(&git.join(value))),
                _ => None,
            }
        })
        .collect()
}

/// The path a small file of git points to, relative to the folder the file stands in.
pub(super) fn pointed(file: &Path, prefix: &str) -> Option<PathBuf> {
    let content = small(file)?;
    let path = content.lines().next()?.strip_prefix(prefix)?.trim();
    file.parent()?.join(path).canonicalize().ok()
}

/// The same of a content already read, by its words alone, whether it is there or not.
fn named_by(file: &Path, content: &str, prefix: &str) -> Option<PathBuf> {
    let path = content.lines().next()?.strip_prefix(prefix)?.trim();
    Some(normal(&file.parent()?.join(path)))
}

/// The content of a file that a command may have made: never waits for one that is a pipe, and reads no endless one.
pub(super) fn small(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let file = File::from(file);
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > SMALL_MAX {
        return None;
    }
    let mut content = Vec::new();
    file.take(SMALL_MAX).read_to_end(&mut content).ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

/// A command can write any pointer into its own root, so a pointer that leads outside is believed only if what it leads to
/// points back, as git itself writes it: that file no command could have written.
fn linked_worktree(pointer: &Path, git: &Path) -> Option<OutsideGit> {
    let back = pointed(&git.join("gitdir"), "")?;
    let common = pointed(&git.join("commondir"), "")?;
    let inside = git.parent()? == common.join("worktrees");
    if back != pointer || !inside || !is_git_directory(&common) {
        return None;
    }
    let mut writable: Vec<PathBuf> = WRITTEN
        .iter()
        .map(|name| common.join(name))
        .filter(|path| path.symlink_metadata().is_ok_and(|about| about.is_dir()))
        .collect();
    writable.push(git.to_owned());
    Some(OutsideGit { common, writable })
}

/// The same for a submodule whose superproject lies outside.
fn submodule(work: &Path, git: &Path) -> Option<OutsideGit> {
    let config = small(&git.join("config"))?;
    let back = config.lines().filter_map(|line| line.split_once('='));
    let mut back = back.filter(|(key, _)| key.trim().eq_ignore_ascii_case("worktree"));
    let back = git.join(back.next()?.1.trim()).canonicalize().ok()?;
    let of_superproject = git
        .ancestors()
        .any(|folder| folder.ends_with(".git/modules"));
    if back != work || !of_superproject || !is_git_directory(git) {
        return None;
    }
    Some(OutsideGit {
        common: git.to_owned(),
        writable: vec![git.to_owned()],
    })
}

/// What a pointer or a name leads to outside a root, with what must not be changed there.
pub(super) fn hold_outside(outside: &OutsideGit, places: &mut Places) {
    for writable in &outside.writable {
        places.hold(writable, writable, Hold::Writable);
        for name in OBEYED.iter().chain(&["gitdir"]) {
            let path = writable.join(name);
            if path.symlink_metadata().is_ok() || *name != "gitdir" {
                places.hold(writable, &path, Hold::ReadOnly);
            }
        }
    }
}
