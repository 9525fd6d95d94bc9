//! A bounded look, before and after a run, at the writable directories that changed since a survey: new repositories and new files
//! that programs outside obey.
//!
//! A name cannot appear in a directory without changing its time of change, which no command can set. So directories of the
//! survey are only asked for that time; those that changed are read, and what is new below them.

use std::collections::HashSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use super::survey::{DirectoryStamp, Survey, is_fetched, lies_in_fetched};
use super::{doors, git};

/// Most entries of changed and new directories that are read: a tenth of a second at most.
const ENTRIES_MAX: usize = 100_000;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// Directories that git takes for repositories and the survey did not see as such.
    pub(super) repositories: Vec<PathBuf>,
    /// New files and folders that programs obey.
    pub(super) doors: Vec<NewDoor>,
    /// Directories that were not looked through.
    pub(super) unread: Vec<Unread>,
}

/// A new file or folder that programs obey.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NewDoor {
    pub(super) path: PathBuf,
    pub(super) of: DirectoryOrigin,
}

/// A directory that was not looked through.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) path: PathBuf,
    pub(super) of: DirectoryOrigin,
}

/// What a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DirectoryOrigin {
    /// The user's, or new in one that is.
    Ordinary,
    /// A new repository in a new directory: its content is a whole project.
    Repository,
    /// Below a folder of packages and products.
    Fetched,
    /// In a place where start-up files mean nothing unless it is a home.
    PerhapsHome,
}

struct Folder {
    path: PathBuf,
    of: DirectoryOrigin,
}

/// Whether something came since `survey` that a new one would name: it must be protected in the next run, which did not make it.
pub(super) fn has_news(survey: &Survey) -> bool {
    let Sweep {
        repositories,
        doors,
        unread,
    } = since(survey);
    !(repositories.is_empty() && doors.is_empty() && unread.is_empty())
}

/// Looks at what changed since `survey`.
pub(super) fn since(survey: &Survey) -> Sweep {
    let mut sweep = Sweep::default();
    let known: HashSet<&PathBuf> = survey.repositories.iter().collect();
    let doors: HashSet<&PathBuf> = survey.doors.iter().collect();
    let unread: HashSet<&PathBuf> = survey.unread.iter().collect();
    let mut next: Vec<Folder> = changed(survey);
    // Folders of packages come after everything else.
    let mut last = Vec::new();
    let mut left = ENTRIES_MAX;
    while let Some(folder) = next.pop().or_else(|| last.pop()) {
        let listed = std::fs::read_dir(&folder.path).into_iter().flatten();
        let entries: Vec<DirEntry> = listed.flatten().take(left + 1).collect();
        if entries.len() > left {
            let Folder { path, of } = folder;
            left = 0;
            sweep.unread.push(Unread { path, of });
            continue;
        }
        left -= entries.len();
        let is_repository = is_repository(&entries) && !known.contains(&folder.path);
        if is_repository {
            sweep.repositories.push(folder.path.clone());
        }
        let is_new = !survey.folders.contains_key(&folder.path);
        let of = match folder.of {
            DirectoryOrigin::Ordinary if is_repository && is_new => DirectoryOrigin::Repository,
            of => of,
        };
        for entry in entries {
            let path = entry.path();
            if doors.contains(&path) || entry.file_name() == ".git" {
                continue;
            }
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if let Some(of) = door(&path, is_directory, of, &survey.roots) {
                sweep.doors.push(NewDoor { path, of });
            } else if is_directory && !survey.folders.contains_key(&path) && !unread.contains(&path)
            {
                let of = below(&path, of);
                let folder = Folder { path, of };
                if of == DirectoryOrigin::Fetched {
                    &mut last
                } else {
                    &mut next
                }
                .push(folder);
            }
        }
    }
    sweep.doors.sort();
    sweep.repositories.sort();
    sweep
}

/// Directories of the survey that something appeared in or vanished from.
fn changed(survey: &Survey) -> Vec<Folder> {
    let folders = survey.folders.iter();
    let changed = folders.filter(|(path, before)| {
        DirectoryStamp::of(path)
            .is_some_and(|now| now != **before || now.is_as_new_as(survey.clock))
    });
    let mut paths: Vec<&PathBuf> = changed.map(|(path, _)| path).collect();
    // The uppermost come first, from the end.
    paths.sort_by_key(|path| std::cmp::Reverse((path.components().count(), *path)));
    let folders = paths.into_iter().map(|path| Folder {
        path: path.clone(),
        of: origin(path, &survey.roots),
    });
    folders.collect()
}

fn origin(path: &Path, roots: &[PathBuf]) -> DirectoryOrigin {
    match lies_in_fetched(path, roots) {
        true => DirectoryOrigin::Fetched,
        false => DirectoryOrigin::Ordinary,
    }
}

fn below(path: &Path, of: DirectoryOrigin) -> DirectoryOrigin {
    match path.file_name().is_some_and(is_fetched) {
        true => DirectoryOrigin::Fetched,
        false => of,
    }
}

/// Whether git, started there, would take it for a repository: one with a `.git`, or one that is laid open.
fn is_repository(entries: &[DirEntry]) -> bool {
    let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
    has(".git") || git::is_laid_open(has)
}

fn door(
    path: &Path,
    is_directory: bool,
    of: DirectoryOrigin,
    roots: &[PathBuf],
) -> Option<DirectoryOrigin> {
    // A folder by another name, which holds a door by its real one.
    let leads = || !is_directory && doors::inside(path).any(|door| door.exists());
    if doors::is_door_when_new(path) || leads() {
        return Some(of);
    }
    let of_root = path
        .parent()
        .is_some_and(|parent| roots.iter().any(|root| root == parent));
    // In a root itself they are watched one by one.
    (of == DirectoryOrigin::Ordinary && !of_root && doors::is_start_up(path))
        .then_some(DirectoryOrigin::PerhapsHome)
}
