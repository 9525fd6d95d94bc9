//! What no mount protects, compared before and after a run: files with another name elsewhere beyond the first ones, files that programs
//! outside obey where there are more of them than mounts, and all of these in the jail without namespaces.
//!
//! It prevents nothing. What is new in a directory that programs obey is held back; that something else was changed is told, so that it
//! is not hidden.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use zeph_core::text::plain_line;

use super::aftermath::AftermathFinding;
use super::gitruns::is_sample;

/// Most changed places that a finding names; the log has all of them.
const SHOWN_MAX: usize = 20;

/// Characters of the path of one of several.
const PATH_CHARS_MAX: usize = 160;

/// Most entries of one folder that are compared. Folders of hooks and settings have some twenty.
const ENTRIES_MAX: usize = 2_000;

/// A place as it was before the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlaceState {
    path: PathBuf,
    why: Why,
    /// It and what is in it, each with what changes when it does.
    entries: PlaceEntries,
}

type PlaceEntries = BTreeMap<PathBuf, EntryStamp>;

/// What changes when an entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct EntryStamp {
    hash: u64,
    /// Which directory it is, if it is one.
    directory: Option<(u64, u64)>,
}

/// Why a place should stay as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It has another name elsewhere: what changes here changes there.
    Linked,
    /// Programs outside the jail obey it, and there are no mounts.
    Obeyed,
    /// Programs outside the jail obey it, and there are more like it than mounts.
    OneOfMany,
}

impl PlaceState {
    /// The place as it is now; `None` when nothing is there.
    pub(super) fn now(path: &Path, why: Why) -> Option<Self> {
        Some(Self {
            path: path.to_owned(),
            why,
            entries: entries(path)?,
        })
    }

    /// Whether something that was there is another now. A name that is gone took nothing of a linked file with it.
    fn is_changed(&self) -> bool {
        match entries(&self.path) {
            Some(now) => self
                .entries
                .iter()
                .any(|(path, stamp)| now.get(path) != Some(stamp)),
            None => self.why != Why::Linked,
        }
    }

    /// What stands in a directory that programs obey and did not before, another directory in the place of one among it; of a new directory not
    /// what is in it.
    fn new_entries(&self) -> Vec<PathBuf> {
        if self.why == Why::Linked {
            return Vec::new();
        }
        let now = entries(&self.path).unwrap_or_default();
        // Examples of hooks never run, and `git init` makes a directory of them.
        let holds_more = |folder: &Path| {
            let inside = now.keys().filter(|path| path.parent() == Some(folder));
            let mut inside = inside.map(PathBuf::as_path);
            inside.any(|path| !is_sample(path))
        };
        let is_new = |path: &Path| match (self.entries.get(path), now.get(path)) {
            (None, _) => true,
            (Some(before), Some(now)) => {
                now.directory.is_some() && before.directory != now.directory && holds_more(path)
            }
            (Some(_), None) => false,
        };
        let new = now.keys().filter(|path| is_new(path));
        // The place itself has nothing above it that is compared.
        let topmost = new.filter(|path| {
            let above = path.parent().filter(|above| above.starts_with(&self.path));
            above.is_none_or(|above| !is_new(above))
        });
        topmost.filter(|path| !is_sample(path)).cloned().collect()
    }
}

/// What is new in places that programs obey.
pub(super) fn new_in(kept: &[PlaceState]) -> BTreeSet<PathBuf> {
    kept.iter().flat_map(PlaceState::new_entries).collect()
}

/// What was changed, one finding for each reason.
pub(super) fn told(kept: &[PlaceState]) -> Vec<AftermathFinding> {
    let changed: Vec<&PlaceState> = kept.iter().filter(|one| one.is_changed()).collect();
    let of = |why: Why, what: &str| {
        let paths = changed.iter().filter(|one| one.why == why);
        let paths: Vec<&Path> = paths.map(|one| one.path.as_path()).collect();
        let first = paths.first()?.to_path_buf();
        if paths.len() > SHOWN_MAX {
            tracing::warn!(?paths, "changed by a command");
        }
        let named = match paths.len() {
            1 => format!("`{}`", first.display()),
            n => {
                let shown = paths.iter().take(SHOWN_MAX);
                let shown =
                    shown.map(|path| plain_line(&path.display().to_string(), PATH_CHARS_MAX));
                let shown: Vec<String> = shown.map(|path| format!("`{path}`")).collect();
                let more = match n - shown.len() {
                    0 => String::new(),
                    more => format!(" (and {more} more, which the log names)"),
                };
                format!("each of {}{more}", shown.join(", "))
            }
        };
        let text = format!("{named} {what}");
        Some(AftermathFinding { path: first, text })
    };
    let findings = [
        of(
            Why::Obeyed,
            "was changed, which programs outside the jail obey; without namespaces that cannot be prevented: look at it before you go on",
        ),
        of(
            Why::OneOfMany,
            "was changed or moved, which programs outside the jail obey; there are too many such files to make each read-only: look at it \
             before you go on",
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
    entries(path)?.hash(&mut hash);
    Some(hash.finish())
}

/// A place and what is in it; nothing when nothing is there.
pub(super) fn paths(path: &Path) -> Vec<PathBuf> {
    let entries = entries(path).into_iter().flatten();
    entries.map(|(path, _)| path).collect()
}

/// A place and what is in it, each with what changes when it does; `None` when nothing is there.
fn entries(path: &Path) -> Option<PlaceEntries> {
    let mut found = PlaceEntries::new();
    let mut folders = vec![path.to_owned()];
    let mut left = ENTRIES_MAX;
    add(path, &mut found)?;
    while let Some(folder) = folders.pop() {
        let listed = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut listed: Vec<PathBuf> = listed.take(left).map(|entry| entry.path()).collect();
        listed.sort();
        left -= listed.len();
        for entry in listed {
            if add(&entry, &mut found) == Some(true) {
                folders.push(entry);
            }
        }
    }
    Some(found)
}

/// Adds one entry; says whether it is a directory. Of that, what changes with its names is left out: these are entries themselves.
fn add(path: &Path, found: &mut PlaceEntries) -> Option<bool> {
    let about = path.symlink_metadata().ok()?;
    let mut hash = DefaultHasher::new();
    (about.dev(), about.ino(), about.mode()).hash(&mut hash);
    if !about.is_dir() {
        (about.size(), about.ctime(), about.ctime_nsec()).hash(&mut hash);
    }
    let stamp = EntryStamp {
        hash: hash.finish(),
        directory: about.is_dir().then(|| (about.dev(), about.ino())),
    };
    found.insert(path.to_owned(), stamp);
    Some(about.is_dir())
}
