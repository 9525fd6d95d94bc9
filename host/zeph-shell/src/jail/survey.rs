//! A bounded look through the writable directories for what a command could do harm with: repositories, files that programs
//! outside obey, files with other names elsewhere, sockets of the host.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsString;
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

/// Most entries that are looked at, over all directories. It takes some 30 ms; the upper levels come first.
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
    /// Files that have another name outside the directories, or in a part of them that was not looked at.
    pub(super) linked: Vec<PathBuf>,
    /// Files whose content is private; folders of packages are looked through last, and those that were not count as having none.
    pub(super) private: PrivateFiles,
    /// Named sockets.
    pub(super) sockets: Vec<PathBuf>,
    /// Whether everything was looked at.
    pub(super) complete: bool,
    /// Writable directories that were looked through, as they were just before.
    pub(super) folders: HashMap<PathBuf, DirectoryStamp>,
    /// Writable directories that were not.
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

/// One file with several names: the names seen, and how many there are.
type LinkNames = HashMap<(u64, u64), (BTreeSet<PathBuf>, u64)>;

/// A directory to be looked through.
struct Folder {
    path: PathBuf,
    use_of: Use,
    is_private: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Writable,
    ReadOnly,
}

/// Looks through `writable`, and through `read_only` for sockets and private files alone.
pub(super) fn take(
    (writable, read_only): (&[PathBuf], &[PathBuf]),
    (made, private): (&Arc<NewRepositories>, &PrivatePaths),
) -> Survey {
    let taken = Instant::now();
    let mut survey = Survey {
        roots: writable.to_vec(),
        repositories: Vec::new(),
        loose: Vec::new(),
        made: Arc::clone(made),
        doors: Vec::new(),
        linked: Vec::new(),
        private: PrivateFiles::default(),
        sockets: Vec::new(),
        complete: true,
        folders: HashMap::new(),
        unread: Vec::new(),
        clock: clock_gettime(ClockId::Realtime),
        taken,
        cost: Duration::ZERO,
        n_entries: 0,
    };
    let mut names = LinkNames::new();
    let mut left = ENTRIES_MAX;
    let with = |paths: &[PathBuf], use_of| -> Vec<Folder> {
        let path = paths.iter().cloned();
        let folder = |path: PathBuf| Folder {
            is_private: private.holds(&path),
            path,
            use_of,
        };
        path.map(folder).collect()
    };
    let mut next: VecDeque<Folder> = with(writable, Use::Writable).into();
    next.extend(with(read_only, Use::ReadOnly));
    let mut last = VecDeque::new();
    while let Some(folder) = next.pop_front().or_else(|| last.pop_front()) {
        if folder.is_private {
            survey.private.add(private, &folder.path);
        }
        let stamp = DirectoryStamp::of(&folder.path);
        let entries = std::fs::read_dir(&folder.path).into_iter().flatten();
        let mut of_git = Vec::new();
        let mut whole = true;
        for entry in entries.flatten() {
            let Some(rest) = left.checked_sub(1) else {
                whole = false;
                break;
            };
            left = rest;
            let name = entry.file_name();
            if let Some(inner) = look(&entry, &folder, (&mut survey, &mut names), private) {
                let queue = match is_fetched(&name) {
                    true => &mut last,
                    false => &mut next,
                };
                queue.push_back(inner);
            }
            if LAID_OPEN.iter().any(|part| name == *part) {
                of_git.push(name);
            }
        }
        survey.complete &= whole;
        let may_hold_private = !whole && !private.is_empty();
        if may_hold_private && !lies_in_fetched(&folder.path, writable) {
            survey.private.missed(&folder.path);
        }
        if folder.use_of == Use::Writable {
            survey.note(folder.path, stamp.filter(|_| whole), &of_git);
        }
    }
    if !survey.complete {
        look_for_names(&mut names, &survey.unread, writable);
    }
    survey.linked = elsewhere(names);
    if !survey.complete {
        // Build tools link what they made; the other name is most likely where nothing was looked at.
        survey
            .linked
            .retain(|file| !lies_in_fetched(file, writable));
    }
    survey.cost = taken.elapsed();
    survey.n_entries = ENTRIES_MAX - left;
    survey
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
        let mut loose = self.loose.iter();
        loose.any(|work| {
            path.starts_with(work)
                && !self.roots.contains(work)
                && self.made.extent(work) == Some(Extent::Whole)
        })
    }

    /// Notes a directory that was looked through, or was not.
    fn note(&mut self, folder: PathBuf, stamp: Option<DirectoryStamp>, of_git: &[OsString]) {
        let is_laid_open = git::is_laid_open(|name| of_git.iter().any(|of| of == name));
        if is_laid_open && self.repositories.last() != Some(&folder) {
            self.found_repository(&folder);
        }
        match stamp {
            Some(stamp) => drop(self.folders.insert(folder, stamp)),
            None => self.unread.push(folder),
        }
    }
}

/// Notes what matters about an entry, and gives it back when it is a directory to go into.
fn look(
    entry: &DirEntry,
    folder: &Folder,
    (survey, names): (&mut Survey, &mut LinkNames),
    private: &PrivatePaths,
) -> Option<Folder> {
    let kind = entry.file_type().ok()?;
    let path = entry.path();
    let is_private = folder.is_private || private.names(&path);
    if is_private && !folder.is_private && !kind.is_dir() {
        survey.private.add(private, &path);
    }
    let git = entry.file_name() == ".git";
    if kind.is_socket() {
        survey.sockets.push(path.clone());
    }
    if folder.use_of == Use::Writable {
        if git {
            survey.found_repository(&folder.path);
        } else if doors::is_door(&path) {
            survey.doors.push(path.clone());
        } else if kind.is_file() {
            note(names, path.clone(), &entry.metadata().ok()?);
        }
    }
    let inner = Folder {
        path,
        use_of: folder.use_of,
        is_private,
    };
    (kind.is_dir() && !git).then_some(inner)
}

fn note(names: &mut LinkNames, path: PathBuf, about: &Metadata) {
    if about.nlink() > 1 {
        let key = (about.dev(), about.ino());
        let (seen, total) = names.entry(key).or_default();
        seen.insert(path);
        *total = about.nlink();
    }
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

/// Files of which not every name was seen.
fn elsewhere(names: LinkNames) -> Vec<PathBuf> {
    let files = names.into_values();
    let outside = files.filter(|(seen, total)| (seen.len() as u64) < *total);
    let mut paths: Vec<PathBuf> = outside.flat_map(|(seen, _)| seen).collect();
    paths.sort_by_key(|path| (depth(path), path.clone()));
    paths
}

fn depth(path: &Path) -> usize {
    path.components().count()
}
