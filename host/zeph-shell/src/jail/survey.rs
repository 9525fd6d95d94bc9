//! A bounded look through the writable directories for what a command could do harm with: repositories, files that programs
//! outside obey, files with other names elsewhere, sockets of the host.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, Metadata};
use std::os::unix::fs::{DirEntryExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};
use zeph_core::policy::PrivatePaths;

pub(super) use zeph_core::obeyed::is_fetched;

use super::new_repositories::{Extent, NewRepositories};
use super::private::PrivateFiles;
use super::{doors, git};

mod carried;

/// Most entries that are looked at, over all directories. It takes some 30 ms; the upper levels come first. What an earlier look found
/// beyond them stays known.
const ENTRIES_MAX: usize = 20_000;

/// Most names that are looked at for those that linked files have where the survey did not come: a tenth of a second.
const LINK_NAMES_MAX: usize = 200_000;

/// What was found.
#[derive(Debug, Clone)]
pub(super) struct Survey {
    /// The writable directories.
    pub(super) roots: Vec<PathBuf>,
    /// Directories with a `.git`.
    pub(super) repositories: Vec<PathBuf>,
    /// Those of them that no mount protects: in folders of packages, and those that commands made.
    pub(super) loose: Vec<PathBuf>,
    /// What commands made.
    pub(super) made: Arc<NewRepositories>,
    /// Files that programs outside obey, below the uppermost level.
    pub(super) doors: Vec<PathBuf>,
    /// Files that have another name outside the directories, or in a part of them that was not looked at; those among packages last.
    pub(super) linked: Vec<PathBuf>,
    /// Files with several names, and how many each has.
    pub(super) links: HashMap<FileKey, u64>,
    /// Files whose content is private; folders of packages are looked through last, and those that were not count as having none.
    pub(super) private: PrivateFiles,
    /// Named sockets.
    pub(super) sockets: Vec<PathBuf>,
    /// Whether everything was looked at.
    pub(super) complete: bool,
    /// Writable directories that were looked through, as they were just before.
    pub(super) folders: HashMap<PathBuf, DirectoryStamp>,
    /// The same of those that can only be read.
    pub(super) shown: HashMap<PathBuf, DirectoryStamp>,
    /// Writable directories that were not looked through.
    pub(super) unread: Vec<PathBuf>,
    /// The time of the file system's clock when it began.
    pub(super) clock: Timespec,
    /// When it began, and how long it took.
    pub(super) taken: Instant,
    pub(super) cost: Duration,
    /// How many entries were looked at.
    pub(super) n_entries: usize,
}

/// What changes when a name appears in a directory or vanishes from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectoryStamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl DirectoryStamp {
    /// Of a directory; `None` when it is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let about = path.symlink_metadata().ok().filter(Metadata::is_dir)?;
        Some(Self {
            device: about.dev(),
            inode: about.ino(),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }

    /// Whether it is the directory that `other` was taken of.
    fn is_of(self, other: Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether it changed since `then`, taken in a look that began at `clock`, as far as can be told.
    pub(super) fn differs(self, then: Self, clock: Timespec) -> bool {
        self != then || self.is_as_new_as(clock)
    }

    /// Whether it changed so late that another change right after `clock` might not show.
    pub(super) fn is_as_new_as(self, clock: Timespec) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let since = (seconds - clock.tv_sec) * 1_000_000_000 + nanoseconds - clock.tv_nsec;
        since >= -TICK
    }
}

/// Nanoseconds that the clock of a file system may stand still; twice the slowest tick of Linux.
pub(super) const TICK: i64 = 20_000_000;

/// Whether `path`, below one of `roots`, lies in such a folder.
pub(super) fn lies_in_fetched(path: &Path, roots: &[PathBuf]) -> bool {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    below.unwrap_or(path).iter().any(is_fetched)
}

/// Which file: the number of its file system, and its number there.
pub(super) type FileKey = (u64, u64);

/// One file with several names: the names seen, and how many there are.
type LinkNames = HashMap<FileKey, (BTreeSet<PathBuf>, u64)>;

/// A directory to be looked through.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) use_of: Use,
    pub(super) is_private: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Writable,
    ReadOnly,
}

/// A look that goes on.
struct Look<'a> {
    survey: Survey,
    names: LinkNames,
    private: &'a PrivatePaths,
    /// How many entries may still be looked at.
    left: usize,
}

/// Directories to be looked through, and what is known of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct SurveyScope<'a> {
    pub(super) writable: &'a [PathBuf],
    /// Those in which sockets and private files alone matter.
    pub(super) read_only: &'a [PathBuf],
    /// What commands made.
    pub(super) made: &'a Arc<NewRepositories>,
    pub(super) private: &'a PrivatePaths,
}

/// Looks through directories. What is beyond the limit is taken over from the look `before` this one; the first of all looks for it by name.
pub(super) fn take(scope: SurveyScope<'_>, before: Option<&Survey>) -> Survey {
    let mut look = Look {
        survey: Survey::empty(scope.writable, scope.made),
        names: LinkNames::new(),
        private: scope.private,
        left: ENTRIES_MAX,
    };
    let writable = scope.writable.iter().map(|path| (path, Use::Writable));
    let read_only = scope.read_only.iter().map(|path| (path, Use::ReadOnly));
    let folders = writable.chain(read_only);
    let folders = folders.map(|(path, use_of)| look.folder(path.clone(), use_of));
    let folders: VecDeque<Folder> = folders.collect();
    look.through(folders, |_| true);
    look.survey.n_entries = ENTRIES_MAX - look.left;
    if !look.survey.complete {
        let not_read = look.survey.unread.clone();
        match before {
            Some(before) => carried::over(&mut look, before),
            None => carried::look_for_places(&mut look.survey),
        }
        look_for_names(&mut look.names, &not_read, &look.survey.roots);
    }
    let Look {
        mut survey, names, ..
    } = look;
    survey.note_links(names, before);
    survey.cost = survey.taken.elapsed();
    survey
}

impl Look<'_> {
    fn folder(&self, path: PathBuf, use_of: Use) -> Folder {
        Folder {
            is_private: self.private.holds(&path),
            path,
            use_of,
        }
    }

    /// Looks through folders and those below them that are not known and that it `may_enter`; folders of packages come last.
    fn through(&mut self, mut next: VecDeque<Folder>, may_enter: impl Fn(&Path) -> bool) {
        let mut last = VecDeque::new();
        while let Some(folder) = next.pop_front().or_else(|| last.pop_front()) {
            for inner in self.list(folder) {
                let queue = match inner.path.file_name().is_some_and(is_fetched) {
                    true => &mut last,
                    false => &mut next,
                };
                let is_known = self.survey.folders.contains_key(&inner.path);
                if !is_known && may_enter(&inner.path) {
                    queue.push_back(inner);
                }
            }
        }
    }

    /// Looks through one folder and gives those in it.
    fn list(&mut self, folder: Folder) -> Vec<Folder> {
        if folder.is_private {
            self.survey.private.add(self.private, &folder.path);
        }
        let stamp = DirectoryStamp::of(&folder.path);
        let entries = std::fs::read_dir(&folder.path).into_iter().flatten();
        let (mut inner, mut of_git) = (Vec::new(), Vec::new());
        let mut whole = true;
        for entry in entries.flatten() {
            let Some(rest) = self.left.checked_sub(1) else {
                whole = false;
                break;
            };
            self.left = rest;
            inner.extend(self.look(&entry, &folder));
            let name = entry.file_name();
            if is_of_git(&name) {
                of_git.push(name);
            }
        }
        self.survey.complete &= whole;
        let may_hold_private = !whole && !self.private.is_empty();
        if may_hold_private && !lies_in_fetched(&folder.path, &self.survey.roots) {
            self.survey.private.missed(&folder.path);
        }
        self.survey.note(folder, stamp.filter(|_| whole), &of_git);
        inner
    }

    /// Notes what matters about an entry, and gives it back when it is a directory to go into.
    fn look(&mut self, entry: &DirEntry, folder: &Folder) -> Option<Folder> {
        let matter = Matter::of(entry, folder, self.private)?;
        let path = matter.path;
        if matter.is_private && !matter.is_directory && !folder.is_private {
            self.survey.private.add(self.private, &path);
        }
        if matter.is_socket {
            self.survey.sockets.push(path.clone());
        }
        if matter.makes_repository {
            self.survey.found_repository(&folder.path);
        } else if matter.is_door {
            self.survey.doors.push(path.clone());
        } else if matter.may_be_linked {
            note(&mut self.names, path.clone(), &entry.metadata().ok()?);
        }
        let inner = Folder {
            path,
            use_of: folder.use_of,
            is_private: matter.is_private,
        };
        matter.is_directory.then_some(inner)
    }
}

/// What of an entry a survey notes, and what is therefore news once a survey is older than the entry.
pub(super) struct Matter {
    pub(super) path: PathBuf,
    /// A directory to go into.
    pub(super) is_directory: bool,
    pub(super) is_private: bool,
    pub(super) is_socket: bool,
    pub(super) makes_repository: bool,
    /// A file that programs obey.
    pub(super) is_door: bool,
    /// A file that may have other names.
    pub(super) may_be_linked: bool,
}

impl Matter {
    /// Of an entry of `folder`; in one that can only be read, sockets and private files alone matter.
    pub(super) fn of(entry: &DirEntry, folder: &Folder, private: &PrivatePaths) -> Option<Self> {
        let kind = entry.file_type().ok()?;
        let path = entry.path();
        let is_git = entry.file_name() == ".git";
        let is_git_folder = is_git && kind.is_dir();
        let is_writable = folder.use_of == Use::Writable;
        let is_door = is_writable && !is_git && doors::is_door(&path);
        Some(Self {
            is_directory: kind.is_dir() && !is_git,
            is_private: !is_git_folder && (folder.is_private || private.names(&path)),
            is_socket: kind.is_socket(),
            makes_repository: is_git && is_writable,
            is_door,
            may_be_linked: is_writable && !is_git && !is_door && kind.is_file(),
            path,
        })
    }
}

/// Whether a name is one of those that make a directory a git directory.
pub(super) fn is_of_git(name: &OsStr) -> bool {
    LAID_OPEN.iter().any(|part| name == *part)
}

/// What a git directory may hold that has no working directory around it.
const LAID_OPEN: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

impl Survey {
    /// Notes a repository.
    fn found_repository(&mut self, work: &Path) {
        if lies_in_fetched(work, &self.roots) || self.made.extent(work).is_some() {
            self.loose.push(work.to_owned());
        }
        self.repositories.push(work.to_owned());
    }

    /// Whether a path lies in a repository that commands made with all that is in it.
    pub(super) fn is_made(&self, path: &Path) -> bool {
        let is_whole = |work: &Path| self.made.extent(work) == Some(Extent::Whole);
        let mut above = path.ancestors();
        above.any(|work| is_whole(work) && !self.roots.iter().any(|root| root == work))
    }

    /// A survey that has seen nothing yet.
    fn empty(roots: &[PathBuf], made: &Arc<NewRepositories>) -> Self {
        Self {
            roots: roots.to_vec(),
            repositories: Vec::new(),
            loose: Vec::new(),
            made: Arc::clone(made),
            doors: Vec::new(),
            linked: Vec::new(),
            links: HashMap::new(),
            private: PrivateFiles::default(),
            sockets: Vec::new(),
            complete: true,
            folders: HashMap::new(),
            shown: HashMap::new(),
            unread: Vec::new(),
            clock: clock_gettime(ClockId::Realtime),
            taken: Instant::now(),
            cost: Duration::ZERO,
            n_entries: 0,
        }
    }

    /// Notes a directory that was looked through, or was not.
    fn note(&mut self, folder: Folder, stamp: Option<DirectoryStamp>, of_git: &[OsString]) {
        let Folder { path, use_of, .. } = folder;
        if use_of == Use::ReadOnly {
            self.shown.extend(stamp.map(|stamp| (path, stamp)));
            return;
        }
        let is_laid_open = git::is_laid_open(|name| of_git.iter().any(|of| of == name));
        if is_laid_open && self.repositories.last() != Some(&path) {
            self.found_repository(&path);
        }
        match stamp {
            Some(stamp) => drop(self.folders.insert(path, stamp)),
            None => self.unread.push(path),
        }
    }

    /// Notes the files of which not every name was seen, those of the look `before` among them.
    fn note_links(&mut self, names: LinkNames, before: Option<&Self>) {
        self.links = names.iter().map(|(key, (_, n))| (*key, *n)).collect();
        let seen = names
            .iter()
            .filter(|(_, (seen, n))| seen.len() as u64 >= *n);
        let seen: HashSet<FileKey> = seen.map(|(key, _)| *key).collect();
        self.linked = elsewhere(names, &self.roots);
        if self.complete {
            return;
        }
        let is_linked = |path: &Path| {
            let about = path.symlink_metadata().ok();
            about.is_some_and(|about| {
                about.is_file() && n_names(&about) > 1 && !seen.contains(&key(&about))
            })
        };
        let linked = before.map_or(&[][..], |before| &before.linked);
        carried::keep(&mut self.linked, linked, is_linked);
        // Build tools link what they made; the other name is most likely where nothing was looked at.
        let roots = &self.roots;
        self.linked.retain(|file| !lies_in_fetched(file, roots));
    }
}

fn note(names: &mut LinkNames, path: PathBuf, about: &Metadata) {
    if n_names(about) > 1 {
        let (seen, total) = names.entry(key(about)).or_default();
        seen.insert(path);
        *total = n_names(about);
    }
}

pub(super) fn key(about: &Metadata) -> FileKey {
    (about.dev(), about.ino())
}

pub(super) fn n_names(about: &Metadata) -> u64 {
    about.nlink()
}

/// Looks for the other names of linked files below `unread`, which the survey did not read: a name that lies there leads nowhere else.
fn look_for_names(names: &mut LinkNames, unread: &[PathBuf], roots: &[PathBuf]) {
    let is_missing = |(seen, total): &(BTreeSet<PathBuf>, u64)| {
        (seen.len() as u64) < *total && !seen.iter().all(|path| lies_in_fetched(path, roots))
    };
    let missing = names.iter().filter(|(_, file)| is_missing(file));
    let missing: HashSet<u64> = missing.map(|((_, inode), _)| *inode).collect();
    if missing.is_empty() {
        return;
    }
    let mut left = LINK_NAMES_MAX;
    let mut pending = unread.to_vec();
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Some(rest) = left.checked_sub(1) else {
                return;
            };
            left = rest;
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && entry.file_name() != ".git" {
                pending.push(entry.path());
            } else if kind.is_file()
                && missing.contains(&entry.ino())
                && let Ok(about) = entry.metadata()
            {
                note(names, entry.path(), &about);
            }
        }
    }
}

/// Files of which not every name was seen; those among packages come last.
fn elsewhere(names: LinkNames, roots: &[PathBuf]) -> Vec<PathBuf> {
    let files = names.into_values();
    let outside = files.filter(|(seen, total)| (seen.len() as u64) < *total);
    let mut paths: Vec<PathBuf> = outside.flat_map(|(seen, _)| seen).collect();
    paths.sort_by_cached_key(|path| (lies_in_fetched(path, roots), depth(path), path.clone()));
    paths
}

fn depth(path: &Path) -> usize {
    path.components().count()
}
