//! What no mount protects, compared before and after a run: files with another name elsewhere beyond the first ones, and, in the
//! jail without namespaces, everything that programs outside obey.
//!
//! It prevents nothing. That something was changed is told, so that it is not hidden.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::aftermath::AftermathFinding;

/// Most entries of one folder that are compared. Folders of hooks and settings have some twenty.
const ENTRIES_MAX: usize = 2_000;

/// A place as it was before the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlaceState {
    path: PathBuf,
    why: Why,
    print: u64,
}

/// Why a place should stay as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It has another name elsewhere: what changes here changes there.
    Linked,
    /// Programs outside the jail obey it.
    Obeyed,
}

impl PlaceState {
    /// The place as it is now; `None` when nothing is there.
    pub(super) fn now(path: &Path, why: Why) -> Option<Self> {
        let print = print(path)?;
        Some(Self {
            path: path.to_owned(),
            why,
            print,
        })
    }

    /// Whether it is another now. A name that is gone took nothing of a linked file with it.
    fn is_changed(&self) -> bool {
        match print(&self.path) {
            Some(now) => now != self.print,
            None => self.why == Why::Obeyed,
        }
    }
}

/// What was changed, one finding for each reason.
pub(super) fn told(kept: &[PlaceState]) -> Vec<AftermathFinding> {
    let changed: Vec<&PlaceState> = kept.iter().filter(|one| one.is_changed()).collect();
    let of = |why: Why, what: &str| {
        let mut paths = changed.iter().filter(|one| one.why == why);
        let first = paths.next()?.path.clone();
        let more = match paths.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let text = format!("`{}`{more} {what}", first.display());
        Some(AftermathFinding { path: first, text })
    };
    let findings = [
        of(
            Why::Obeyed,
            "was changed, which programs outside the jail obey; without namespaces that cannot be prevented: look at it before you go on",
        ),
        of(
            Why::Linked,
            "was changed, which is a hard link: the file has another name outside the directories of commands, and is changed there too",
        ),
    ];
    findings.into_iter().flatten().collect()
}

/// What changes when a place, or anything in it, does. The time of change cannot be set by anybody.
pub(super) fn print(path: &Path) -> Option<u64> {
    let mut hash = DefaultHasher::new();
    let mut folders = vec![path.to_owned()];
    let mut left = ENTRIES_MAX;
    add(path, &mut hash)?;
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .take(left)
            .map(|entry| entry.path())
            .collect();
        entries.sort();
        left -= entries.len();
        for entry in entries {
            let is_directory = add(&entry, &mut hash);
            if is_directory == Some(true) {
                folders.push(entry);
            }
        }
    }
    Some(hash.finish())
}

/// Adds one entry; says whether it is a directory.
fn add(path: &Path, hash: &mut DefaultHasher) -> Option<bool> {
    let about = path.symlink_metadata().ok()?;
    path.hash(hash);
    (about.dev(), about.ino(), about.size()).hash(hash);
    (about.ctime(), about.ctime_nsec()).hash(hash);
    Some(about.is_dir())
}
