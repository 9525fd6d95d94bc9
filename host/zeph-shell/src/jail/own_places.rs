//! The directories that only one command has: its home, `/tmp` and `/dev/shm`. Whatever program wrote something there, it ends with the command,
//! which is told.
//!
//! The inner stage hands them to the host before the command begins. Nothing below the uppermost new directory is looked at, nothing is kept.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Dir, Mode, OFlags};
use zeph_core::text::plain_line;

use super::aftermath::AftermathFinding;
use super::mount::Mount;
use super::view::View;

/// Most names that are looked at in one directory.
const NAMES_MAX: usize = 10_000;

/// Most paths that a note names.
const SHOWN_MAX: usize = 3;

/// Characters of a path in a note.
const PATH_CHARS_MAX: usize = 160;

/// The places of a run.
#[derive(Debug, Default)]
pub(super) struct OwnPlaces {
    places: Vec<PathBuf>,
    home: PathBuf,
    /// Where temporary files are put, if not in `/tmp`.
    temporary: Option<PathBuf>,
    /// What stands in them before the command begins.
    stands: HashMap<PathBuf, Standing>,
}

#[derive(Debug)]
enum Standing {
    /// A directory in which something stands.
    Directory,
    /// A file with these bytes.
    File(Arc<[u8]>),
    /// What is not of the command alone, or cannot be changed.
    Other,
}

/// What is usually put into a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnPlaceKind {
    /// Temporary files of programs.
    Temporary,
    /// What programs keep for themselves in a home.
    Settings,
    /// What belongs to a person: there it would stand beside the directories of the user.
    Beside,
}

impl OwnPlaces {
    /// Those of a command that sees `view`.
    pub(super) fn of(view: &View) -> Self {
        let mounts = view.mounts.iter();
        let own = mounts.filter_map(|mount| mount.filled().map(Path::to_owned));
        // The directory of the machine may be given in its place.
        let is_own = |place: &PathBuf| {
            let mut shown = view.mounts.iter().filter_map(Mount::of_host);
            shown.all(|shown| shown != place)
        };
        let places: Vec<PathBuf> = own.filter(is_own).take(zeph_jail::PLACES_MAX).collect();
        let mut stands = HashMap::new();
        for mount in view.mounts.iter().filter(|mount| !mount.is_fixed()) {
            let standing = match mount {
                Mount::File { bytes, .. } => Standing::File(Arc::clone(bytes)),
                Mount::Directory(_) => Standing::Directory,
                _ => Standing::Other,
            };
            let path = mount.path();
            for place in places.iter().filter(|place| path.starts_with(place)) {
                let above = path.ancestors().skip(1);
                for above in above.take_while(|above| *above != place && above.starts_with(place)) {
                    let entry = stands.entry(above.to_owned());
                    entry.or_insert(Standing::Directory);
                }
            }
            stands.insert(path.to_owned(), standing);
        }
        Self {
            places,
            home: view.home.clone(),
            temporary: view.temporary.clone(),
            stands,
        }
    }

    /// The private directory of a run without mounts, as it is now.
    pub(super) fn of_scratch(scratch: &Path) -> Self {
        let entries = std::fs::read_dir(scratch).into_iter().flatten().flatten();
        Self {
            places: Vec::new(),
            home: PathBuf::new(),
            temporary: Some(scratch.to_owned()),
            stands: entries
                .map(|entry| (entry.path(), Standing::Other))
                .collect(),
        }
    }

    /// The same with a file that is made for the command.
    pub(super) fn with(mut self, made: Option<&Path>) -> Self {
        let made = made.map(|path| (path.to_owned(), Standing::Other));
        self.stands.extend(made);
        self
    }

    /// The places that the inner stage hands over, in this order.
    pub(super) fn paths(&self) -> Vec<Vec<u8>> {
        let places = self.places.iter();
        places
            .map(|place| place.as_os_str().as_bytes().to_vec())
            .collect()
    }

    /// What kind of place `path` was left in.
    pub(super) fn kind(&self, path: &Path) -> OwnPlaceKind {
        let folder = path.parent();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(b"."));
        let is_top = |place: &PathBuf| folder == Some(place) && *place != self.home;
        match folder {
            Some(folder) if folder == self.home && is_hidden => OwnPlaceKind::Settings,
            Some(_) if self.places.iter().chain(&self.temporary).any(is_top) => {
                OwnPlaceKind::Temporary
            }
            _ => OwnPlaceKind::Beside,
        }
    }

    /// What the command left in its places, of which these were `handed` over, and in its `scratch` directory: the uppermost of it each.
    pub(super) fn left(&self, handed: &[OwnedFd], scratch: Option<&Path>) -> Vec<PathBuf> {
        let mut left = Vec::new();
        for (place, opened) in self.places.iter().zip(handed) {
            self.list(place, opened, &mut left);
        }
        let scratch = scratch.and_then(|path| Some((path, File::open(path).ok()?)));
        if let Some((path, opened)) = scratch {
            self.list(path, &opened, &mut left);
        }
        left.sort();
        left
    }

    /// Adds what is new in a directory. It ends at directories that stood there before, whose number is known.
    fn list(&self, folder: &Path, opened: impl AsFd, left: &mut Vec<PathBuf>) {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat(&opened, ".", flags, Mode::empty());
        let Ok(entries) = listed.and_then(Dir::new) else {
            return;
        };
        for entry in entries.take(NAMES_MAX).flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let path = folder.join(name);
            match self.stands.get(&path) {
                None => left.push(path),
                Some(Standing::File(bytes)) if !holds(&opened, name, bytes) => left.push(path),
                Some(Standing::File(_) | Standing::Other) => {}
                Some(Standing::Directory) => {
                    let flags = flags | OFlags::NOFOLLOW;
                    if let Ok(inner) = rustix::fs::openat(&opened, name, flags, Mode::empty()) {
                        self.list(&path, inner, left);
                    }
                }
            }
        }
    }
}

/// Whether the file of this name has these bytes.
fn holds(folder: impl AsFd, name: &OsStr, bytes: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else {
        return false;
    };
    let mut found = Vec::new();
    let read = File::from(file)
        .take(bytes.len() as u64 + 1)
        .read_to_end(&mut found);
    read.is_ok() && found == bytes
}

/// Whether `command` has the name of `path` once: then it writes there, and does not use it.
pub(super) fn is_named_once(path: &Path, command: &str) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    let is_part = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let named = command.match_indices(name).filter(|(at, name)| {
        let (before, behind) = (&command[..*at], &command[at + name.len()..]);
        !before.ends_with(is_part) && !behind.starts_with(is_part)
    });
    named.count() == 1
}

/// What is said of files that ended with a command.
pub(super) fn finding(lost: &[PathBuf]) -> Option<AftermathFinding> {
    let first = lost.first()?;
    let shown = lost.iter().take(SHOWN_MAX);
    let shown: Vec<String> = shown
        .map(|path| {
            format!(
                "`{}`",
                plain_line(&path.display().to_string(), PATH_CHARS_MAX)
            )
        })
        .collect();
    let more = match lost.len() - shown.len() {
        0 => String::new(),
        n_more => format!(" and {n_more} more"),
    };
    Some(AftermathFinding {
        path: first.clone(),
        text: format!(
            "{}{more} ended with the command: its home directory and its `/tmp` are its own; what is to stay belongs in the working directory",
            shown.join(", ")
        ),
    })
}
