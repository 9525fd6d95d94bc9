//! A bounded look through the writable directories for what a command could do harm with: repositories, files that programs
//! outside obey, files with other names elsewhere, sockets of the host.

use std::collections::{HashMap, VecDeque};
use std::fs::{DirEntry, Metadata};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::doors;

/// Most entries that are looked at, over all directories. It takes some 30 ms; the upper levels come first.
const ENTRIES_MAX: usize = 20_000;

/// Folders full of what tools made or fetched: looked at last.
const LAST: [&str; 6] = [
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    "dist",
];

/// What was found.
#[derive(Debug, Clone)]
pub(super) struct Survey {
    /// The writable directories.
    pub(super) roots: Vec<PathBuf>,
    /// Directories with a `.git`.
    pub(super) repositories: Vec<PathBuf>,
    /// Files that programs outside obey, below the uppermost level.
    pub(super) doors: Vec<PathBuf>,
    /// Files that have another name outside the directories.
    pub(super) linked: Vec<PathBuf>,
    /// Whether a socket lies there.
    pub(super) sockets: bool,
    /// Whether everything was looked at.
    pub(super) complete: bool,
    /// When it began, and how long it took.
    pub(super) taken: Instant,
    pub(super) cost: Duration,
}

/// One file with several names: the names seen, and how many there are.
type Names = HashMap<(u64, u64), (Vec<PathBuf>, u64)>;

/// A directory to be looked through.
struct Folder {
    path: PathBuf,
    use_of: Use,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Writable,
    ReadOnly,
}

/// Looks through `writable`, and through `read_only` for sockets alone.
pub(super) fn take(writable: &[PathBuf], read_only: &[PathBuf]) -> Survey {
    let taken = Instant::now();
    let mut survey = Survey {
        roots: writable.to_vec(),
        repositories: Vec::new(),
        doors: Vec::new(),
        linked: Vec::new(),
        sockets: false,
        complete: true,
        taken,
        cost: Duration::ZERO,
    };
    let mut names = Names::new();
    let mut left = ENTRIES_MAX;
    let with = |paths: &[PathBuf], use_of| -> Vec<Folder> {
        let path = paths.iter().cloned();
        path.map(|path| Folder { path, use_of }).collect()
    };
    let mut next: VecDeque<Folder> = with(writable, Use::Writable).into();
    next.extend(with(read_only, Use::ReadOnly));
    let mut last = VecDeque::new();
    while let Some(folder) = next.pop_front().or_else(|| last.pop_front()) {
        let entries = std::fs::read_dir(&folder.path).into_iter().flatten();
        for entry in entries.flatten() {
            let Some(rest) = left.checked_sub(1) else {
                survey.complete = false;
                break;
            };
            left = rest;
            if let Some(inner) = look(&entry, &folder, &mut survey, &mut names) {
                let name = entry.file_name();
                let later = LAST.iter().any(|last| name == *last);
                if later { &mut last } else { &mut next }.push_back(inner);
            }
        }
    }
    survey.linked = elsewhere(names);
    survey.cost = taken.elapsed();
    survey
}

/// Notes what matters about an entry, and gives it back when it is a directory to go into.
fn look(
    entry: &DirEntry,
    folder: &Folder,
    survey: &mut Survey,
    names: &mut Names,
) -> Option<Folder> {
    let kind = entry.file_type().ok()?;
    let path = entry.path();
    let git = entry.file_name() == ".git";
    survey.sockets |= kind.is_socket();
    if folder.use_of == Use::Writable {
        if git {
            survey.repositories.push(folder.path.clone());
        } else if doors::is_door(&path) {
            survey.doors.push(path.clone());
        } else if kind.is_file() {
            note(names, path.clone(), &entry.metadata().ok()?);
        }
    }
    let inner = Folder {
        path,
        use_of: folder.use_of,
    };
    (kind.is_dir() && !git).then_some(inner)
}

fn note(names: &mut Names, path: PathBuf, about: &Metadata) {
    if about.nlink() > 1 {
        let key = (about.dev(), about.ino());
        let (seen, total) = names.entry(key).or_default();
        seen.push(path);
        *total = about.nlink();
    }
}

/// Files of which not every name was seen.
fn elsewhere(names: Names) -> Vec<PathBuf> {
    let files = names.into_values();
    let outside = files.filter(|(seen, total)| (seen.len() as u64) < *total);
    let mut paths: Vec<PathBuf> = outside.flat_map(|(seen, _)| seen).collect();
    paths.sort_by_key(|path| (depth(path), path.clone()));
    paths
}

fn depth(path: &Path) -> usize {
    path.components().count()
}
