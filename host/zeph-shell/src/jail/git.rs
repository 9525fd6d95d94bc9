//! What of a git repository runs programs, and so must not be changed by a command: hooks and configuration, wherever git reads
//! them from. Everything a commit needs stays writable.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use zeph_core::git_config::{GitReader, settings};
use zeph_core::path::normal;

use super::place::{Hold, Places, links_of};

/// In a git directory: what git runs or obeys. `commondir` makes it read the others elsewhere; a file in `remotes` or `branches` is a remote
/// of its name, if the configuration has none.
const OBEYED: [&str; 6] = [
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "remotes",
    "branches",
];

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

/// Where repositories are held.
#[derive(Debug, Clone, Copy)]
pub(super) struct GitScope<'a> {
    /// The writable directories.
    pub(super) roots: &'a [PathBuf],
    /// Reads what configurations of git name.
    pub(super) reader: &'a GitReader,
}

impl<'a> GitScope<'a> {
    /// The writable directory that `path` lies in.
    fn root_of(self, path: &Path) -> Option<&'a Path> {
        let mut roots = self.roots.iter().map(PathBuf::as_path);
        roots.find(|root| path.starts_with(root))
    }
}

/// Holds what of the repository at `work` could run a program. `root` is the writable directory it lies in.
pub(super) fn hold(
    scope: GitScope<'_>,
    root: &Path,
    work: &Path,
    places: &mut Places,
) -> Option<OutsideGit> {
    let git = work.join(".git");
    let Ok(about) = git.symlink_metadata() else {
        if is_git_directory(work) {
            hold_directory(scope, (work, work), places);
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
        hold_directory(scope, (&git, work), places);
        return None;
    }
    let Some(target) = target_of(&git, &about) else {
        // Nothing is there yet, and what a command puts there would be obeyed.
        let named = small(&git).and_then(|content| named_by(&git, &content, "gitdir:"));
        let named = named.and_then(|named| Some((scope.root_of(&named)?, named)));
        if let Some((root, named)) = named {
            places.hold(root, &named, Hold::ReadOnly);
        }
        return None;
    };
    if scope.root_of(&target).is_some() {
        hold_directory(scope, (&target, work), places);
        return None;
    }
    hold_named(scope, (&target, work), places);
    let outside = linked_worktree(&git, &target).or_else(|| submodule(work, &target));
    places.guarded.push(target);
    places
        .guarded
        .extend(outside.iter().map(|outside| outside.common.clone()));
    outside
}

/// Holds what is obeyed in the writable directories because of what lies outside: start-up files that links in the user's home lead to, the
/// user's own configuration of git, and repositories that `given`, directories of the policy, lie in.
pub(super) fn hold_from_outside<'a>(
    scope: GitScope<'_>,
    given: impl Iterator<Item = &'a PathBuf>,
    places: &mut Places,
) {
    for path in scope.reader.everywhere() {
        hold_led_to(scope, path, places);
    }
    for link in scope.reader.home_links() {
        hold_led_to(scope, &link.path, places);
    }
    let above: BTreeSet<&Path> = given.flat_map(|path| path.ancestors()).collect();
    for work in above {
        if scope.root_of(work).is_some() {
            continue;
        }
        if let Some(git) = directory_of(work) {
            hold_named(scope, (&git, work), places);
        }
    }
}

/// The git directory of the repository at `work`, if its `.git` is one or leads to one.
pub(super) fn directory_of(work: &Path) -> Option<PathBuf> {
    let pointer = work.join(".git");
    let about = pointer.symlink_metadata().ok()?;
    match about.is_dir() {
        true => Some(pointer),
        false => target_of(&pointer, &about),
    }
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

/// Holds what git obeys of the git directory `git`, in the writable directories, and what it names.
fn hold_directory(scope: GitScope<'_>, (git, work): (&Path, &Path), places: &mut Places) {
    let Some(root) = scope.root_of(git) else {
        return;
    };
    hold_obeyed(root, git, places);
    let common = pointed(&git.join("commondir"), "").filter(|common| common != git);
    if let Some((root, common)) = common.and_then(|common| Some((scope.root_of(&common)?, common)))
    {
        hold_obeyed(root, &common, places);
    }
    hold_named(scope, (git, work), places);
    let mut left = INNER_MAX;
    hold_modules(scope, &git.join("modules"), places, &mut left);
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
    places.guarded.push(git.to_owned());
}

/// Holds what git obeys for the repository `git` with the working directory `work` wherever in the writable directories it lies: folders
/// of hooks and further configuration that its configuration names, and scripts of the project that its hooks are links to.
fn hold_named(scope: GitScope<'_>, (git, work): (&Path, &Path), places: &mut Places) {
    let common = pointed(&git.join("commondir"), "").unwrap_or_else(|| git.to_owned());
    for named in scope.reader.of_repository(git, &common, work) {
        if !git.starts_with(normal(&named)) {
            hold_led_to(scope, &named, places);
        }
    }
    let hooks = std::fs::read_dir(common.join("hooks"))
        .into_iter()
        .flatten();
    let links = hooks
        .flatten()
        .filter(|hook| hook.file_type().is_ok_and(|kind| kind.is_symlink()));
    for hook in links.take(HOOKS_MAX) {
        hold_led_to(scope, &hook.path(), places);
    }
}

/// Holds what `path` leads to, and watches the links on the way, where they lie in a writable directory. Such a directory itself stays
/// writable.
fn hold_led_to(scope: GitScope<'_>, path: &Path, places: &mut Places) {
    let (links, end) = links_of(path);
    for link in links.iter().filter(|link| scope.root_of(link).is_some()) {
        places.watch(link);
    }
    if let Some(root) = scope.root_of(&end).filter(|root| *root != end) {
        places.hold(root, &end, Hold::ReadOnly);
    }
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
fn hold_modules(scope: GitScope<'_>, folder: &Path, places: &mut Places, left: &mut usize) {
    for module in entries(folder) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        match is_git_directory(&module) {
            true => hold_directory(scope, (&module, &module), places),
            false => hold_modules(scope, &module, places, left),
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
    let content = small_bytes(path)?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

/// The same as it is.
pub(super) fn small_bytes(path: &Path) -> Option<Vec<u8>> {
    bytes_of(path, SMALL_MAX)
}

/// The same of a file of at most `n_max` bytes, as it is.
pub(super) fn bytes_of(path: &Path, n_max: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let file = File::from(file);
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > n_max {
        return None;
    }
    // In one piece, with room to see the end.
    let mut content = Vec::with_capacity(usize::try_from(about.len()).ok()? + 1);
    file.take(n_max).read_to_end(&mut content).ok()?;
    Some(content)
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
    let back = settings(&config).into_iter().rev();
    let mut back = back.filter(|setting| setting.name == "core.worktree");
    let back = git.join(back.next()?.value?).canonicalize().ok()?;
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
