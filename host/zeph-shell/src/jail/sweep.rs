//! A bounded look, before and after a run, at the writable directories that changed since a survey: new repositories and new files
//! that programs outside obey.
//!
//! A name cannot appear in a directory without changing its time of change, which no command can set. So directories of the
//! survey are only asked for that time; those that changed are read, and what is new below them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use rustix::time::Timespec;
use zeph_core::draft;

use super::survey::{DirectoryStamp, Survey, is_fetched, lies_in_fetched};
use super::{doors, git};
use crate::held_object;

/// Most entries of changed and new directories that are read: a tenth of a second at most.
const ENTRIES_MAX: usize = if cfg!(test) { 25_000 } else { 100_000 };

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// Directories that git takes for repositories and the survey did not see as such.
    pub(super) repositories: Vec<PathBuf>,
    /// New files and folders that programs obey.
    pub(super) doors: Vec<NewDoor>,
    /// New ones that commands may make, and that are protected from now on.
    pub(super) permitted: Vec<PathBuf>,
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

/// A look at what changed that goes on.
struct Look<'a> {
    survey: &'a Survey,
    known: HashSet<&'a PathBuf>,
    doors: HashSet<&'a PathBuf>,
    unread: HashSet<&'a PathBuf>,
    sweep: Sweep,
    /// How many entries may still be read.
    left: usize,
    /// What is new in directories of the survey: after all of these, so that it keeps none of them from being read.
    new: VecDeque<Folder>,
    /// Folders of packages: after everything else.
    last: VecDeque<Folder>,
}

/// Looks at what changed since `survey`.
pub(super) fn since(survey: &Survey) -> Sweep {
    let mut look = Look {
        survey,
        known: survey.repositories.iter().collect(),
        doors: survey.doors.iter().collect(),
        unread: survey.unread.iter().collect(),
        sweep: Sweep::default(),
        left: ENTRIES_MAX,
        new: VecDeque::new(),
        last: VecDeque::new(),
    };
    for path in changed(&survey.folders, survey.clock) {
        let of = origin(path, &survey.roots);
        let folder = Folder {
            path: path.clone(),
            of,
        };
        match of {
            DirectoryOrigin::Fetched => look.last.push_back(folder),
            _ => look.read(folder),
        }
    }
    while let Some(folder) = look.new.pop_front().or_else(|| look.last.pop_front()) {
        look.read(folder);
    }
    let mut sweep = look.sweep;
    sweep.doors.sort();
    sweep.repositories.sort();
    sweep
}

impl Look<'_> {
    fn read(&mut self, folder: Folder) {
        if is_in_live_draft(&folder.path) {
            return;
        }
        let listed = std::fs::read_dir(&folder.path).into_iter().flatten();
        let entries: Vec<DirEntry> = listed.flatten().take(self.left + 1).collect();
        if entries.len() > self.left {
            self.left = 0;
            self.ask(&folder);
            let Folder { path, of } = folder;
            self.sweep.unread.push(Unread { path, of });
            return;
        }
        self.left -= entries.len();
        let is_repository = is_repository(&entries) && !self.known.contains(&folder.path);
        if is_repository {
            self.sweep.repositories.push(folder.path.clone());
        }
        let is_new = !self.survey.folders.contains_key(&folder.path);
        let of = match folder.of {
            DirectoryOrigin::Ordinary if is_repository && is_new => DirectoryOrigin::Repository,
            of => of,
        };
        for entry in entries {
            if entry.file_name() != ".git" {
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                self.look(entry.path(), is_directory, of);
            }
        }
    }

    /// Looks at one entry of a directory that is `of` this kind.
    fn look(&mut self, path: PathBuf, is_directory: bool, of: DirectoryOrigin) {
        if self.doors.contains(&path) {
            return;
        }
        if let Some(of) = door(&path, is_directory, of, &self.survey.roots) {
            self.sweep.doors.push(NewDoor { path, of });
            return;
        }
        if doors::is_permitted(&path) {
            self.sweep.permitted.push(path.clone());
        }
        let is_known = self.survey.folders.contains_key(&path) || self.unread.contains(&path);
        if is_directory && !is_known {
            let of = below(&path, of);
            let queue = match of {
                DirectoryOrigin::Fetched => &mut self.last,
                _ => &mut self.new,
            };
            queue.push_back(Folder { path, of });
        }
    }

    /// Asks for single names in a directory of the survey that is too full to be read: commands must not make them unseen by filling it.
    fn ask(&mut self, folder: &Folder) {
        if folder.of == DirectoryOrigin::Fetched || !self.survey.folders.contains_key(&folder.path)
        {
            return;
        }
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        if !self.known.contains(&folder.path) && is_there(&folder.path.join(".git")) {
            self.sweep.repositories.push(folder.path.clone());
        }
        let asked = doors::of_directory().map(|name| folder.path.join(name));
        let new = asked.filter(|path| !self.doors.contains(path) && is_there(path));
        let new = new.map(|path| NewDoor {
            path,
            of: folder.of,
        });
        self.sweep.doors.extend(new);
    }
}

/// Whether the real path `path` is, or lies in, a directory that a call of this process fills: the very one that the call made, not what
/// a command has put in its place.
pub(super) fn is_in_live_draft(path: &Path) -> bool {
    draft::is_in_live_draft(path, |directory| {
        let found = held_object::find(directory).ok()?;
        let stat = rustix::fs::fstat(found).ok()?;
        Some(held_object::id(&stat))
    })
}

/// Those of `folders`, stamped in a look that began at `clock`, that something appeared in or vanished from; the uppermost come first.
pub(super) fn changed(
    folders: &HashMap<PathBuf, DirectoryStamp>,
    clock: Timespec,
) -> Vec<&PathBuf> {
    let changed = folders.iter().filter(|(path, before)| {
        DirectoryStamp::of(path).is_some_and(|now| now.differs(**before, clock))
    });
    let mut paths: Vec<&PathBuf> = changed.map(|(path, _)| path).collect();
    paths.sort_by_cached_key(|path| (path.components().count(), path.as_path()));
    paths
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
