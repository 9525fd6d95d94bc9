//! What of a git repository runs programs, and so must not be changed by a command: hooks and configuration, wherever git reads
//! them from. Everything a commit needs stays writable.

use std::path::{Component, Path, PathBuf};

use super::place::{Hold, Places};

/// In a git directory: what git runs or obeys. `commondir` makes it read the others elsewhere.
const OBEYED: [&str; 4] = ["hooks", "config", "config.worktree", "commondir"];

/// In the common directory of a linked worktree: what a commit writes.
const WRITTEN: [&str; 5] = ["objects", "refs", "logs", "rr-cache", "lfs"];

/// Most repositories of submodules, and linked worktrees, that are looked at.
const INNER_MAX: usize = 256;

/// A git directory outside the roots that a linked worktree or a submodule in them belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outside {
    /// The common directory, to be read.
    pub(super) common: PathBuf,
    /// Directories in it to be written.
    pub(super) writable: Vec<PathBuf>,
}

/// Holds what of the repository at `work` could run a program. `root` is the writable root it lies in.
pub(super) fn hold(root: &Path, work: &Path, places: &mut Places) -> Option<Outside> {
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
    let target = match about.is_symlink() {
        true => git.canonicalize().ok()?,
        false => pointed(&git, "gitdir:")?,
    };
    if target.starts_with(root) {
        hold_directory(root, &target, places);
        return None;
    }
    linked_worktree(&git, &target).or_else(|| submodule(work, &target))
}

fn is_git_directory(path: &Path) -> bool {
    ["HEAD", "objects", "refs"]
        .iter()
        .all(|name| path.join(name).exists())
}

fn hold_directory(root: &Path, git: &Path, places: &mut Places) {
    for name in OBEYED {
        places.hold(root, &git.join(name), Hold::ReadOnly);
    }
    for named in named_in(&git.join("config"), git) {
        if named.starts_with(root) && named != root && !git.starts_with(&named) {
            places.hold(root, &named, Hold::ReadOnly);
        }
    }
    let mut left = INNER_MAX;
    hold_modules(root, &git.join("modules"), places, &mut left);
    for worktree in entries(&git.join("worktrees")).take(left) {
        for name in ["commondir", "gitdir", "config.worktree"] {
            places.hold(root, &worktree.join(name), Hold::ReadOnly);
        }
    }
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
    let content = std::fs::read_to_string(config).unwrap_or_default();
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
fn pointed(file: &Path, prefix: &str) -> Option<PathBuf> {
    let content = std::fs::read_to_string(file).ok()?;
    let path = content.lines().next()?.strip_prefix(prefix)?.trim();
    file.parent()?.join(path).canonicalize().ok()
}

/// A command can write any pointer into its own root, so a pointer that leads outside is believed only if what it leads to
/// points back, as git itself writes it: that file no command could have written.
fn linked_worktree(pointer: &Path, git: &Path) -> Option<Outside> {
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
    Some(Outside { common, writable })
}

/// The same for a submodule whose superproject lies outside.
fn submodule(work: &Path, git: &Path) -> Option<Outside> {
    let config = std::fs::read_to_string(git.join("config")).ok()?;
    let back = config.lines().filter_map(|line| line.split_once('='));
    let mut back = back.filter(|(key, _)| key.trim().eq_ignore_ascii_case("worktree"));
    let back = git.join(back.next()?.1.trim()).canonicalize().ok()?;
    let of_superproject = git
        .ancestors()
        .any(|folder| folder.ends_with(".git/modules"));
    if back != work || !of_superproject || !is_git_directory(git) {
        return None;
    }
    Some(Outside {
        common: git.to_owned(),
        writable: vec![git.to_owned()],
    })
}

/// What a pointer or a name leads to outside a root, with what must not be changed there.
pub(super) fn hold_outside(outside: &Outside, places: &mut Places) {
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

/// Keys of a configuration whose values git runs, or that make it read another configuration. New repositories have none.
const RUN: [&str; 25] = [
    "alternaterefscommand",
    "askpass",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "helper",
    "hookspath",
    "packobjectshook",
    "pager",
    "path",
    "process",
    "program",
    "receivepack",
    "sequence.editor",
    "smudge",
    "sshcommand",
    "templatedir",
    "textconv",
    "uploadpack",
    "vcs",
];

/// What in a repository a command has made would run as soon as somebody uses git there: hooks, and a configuration that names
/// programs.
pub(super) fn runs_by_itself(work: &Path) -> Vec<PathBuf> {
    let git = work.join(".git");
    let git = match git.is_dir() {
        true => git,
        false => match pointed(&git, "gitdir:") {
            Some(target) => target,
            None => return Vec::new(),
        },
    };
    let hooks = std::fs::read_dir(git.join("hooks"))
        .into_iter()
        .flatten()
        .flatten();
    let hooks = hooks.map(|entry| entry.path());
    let mut found: Vec<PathBuf> = hooks
        .filter(|hook| {
            hook.extension()
                .is_none_or(|end| end != "sample" && !is_held_back(end))
        })
        .collect();
    let configs = [git.join("config"), git.join("config.worktree")];
    found.extend(configs.into_iter().filter(|config| names_programs(config)));
    found
}

fn is_held_back(extension: &std::ffi::OsStr) -> bool {
    extension.to_string_lossy().starts_with("held-back")
}

fn names_programs(config: &Path) -> bool {
    let content = std::fs::read(config).unwrap_or_default();
    let content = String::from_utf8_lossy(&content);
    content.lines().any(|line| {
        // A key may stand behind its section.
        let line = line.rsplit(']').next().unwrap_or(line);
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let switch = ["true", "false", "yes", "no"].contains(&value);
        (RUN.contains(&key.as_str()) && !switch) || value.trim_matches('"').starts_with('!')
    })
}

/// The path without `.` and `..`, by its words alone.
fn normal(path: &Path) -> PathBuf {
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
