//! Repositories that no mount protects: those that commands made since the host began, and those among packages and products. They
//! can be changed, moved and removed like everything else a command made; what git would obey in them is looked at after each run
//! that changed it.
//!
//! Also the files that commands may make although programs obey them: they are protected once they are there, the user's own before them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::gitruns::{self, ObeyedState};
use super::{git, place_state};

/// Most repositories, and most files, that are remembered; more are protected like the user's own.
const MADE_MAX: usize = 20_000;

/// What is obeyed in a git directory, with what leads to it.
const OBEYED: [&str; 7] = [
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "remotes",
    "branches",
];

/// What commands made, for as long as the host runs.
#[derive(Debug, Default)]
pub(super) struct NewRepositories {
    /// Protects what is known; held for a look at it.
    known: Mutex<HashMap<PathBuf, (Object, Extent)>>,
    /// Protects files that programs obey; held for a look at them.
    doors: Mutex<HashMap<PathBuf, Object>>,
}

/// Which object a name stood for.
type Object = (u64, u64);

/// How much of a repository is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The directory with all in it.
    Whole,
    /// The repository in a directory that was there.
    Git,
}

impl NewRepositories {
    /// Remembers a repository, by its working directory, or a git directory.
    pub(super) fn note(&self, path: &Path, extent: Extent) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = object(path).filter(|_| known.len() < MADE_MAX) {
            known.insert(path.to_owned(), (object, extent));
        }
    }

    /// How much of what stands at `path` commands made; `None` when commands made none of it.
    pub(super) fn extent(&self, path: &Path) -> Option<Extent> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, extent) = known.get(path)?;
        (object(path)? == *then).then_some(*extent)
    }

    /// Remembers a file that programs obey and that commands may make.
    pub(super) fn note_door(&self, path: &Path) {
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = object_at(path).filter(|_| doors.len() < MADE_MAX) {
            doors.insert(path.to_owned(), object);
        }
    }

    /// Whether commands made the file that programs obey at `path`.
    pub(super) fn is_made_door(&self, path: &Path) -> bool {
        let doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        let then = doors.get(path);
        then.is_some_and(|then| object_at(path) == Some(*then))
    }
}

fn object(path: &Path) -> Option<Object> {
    object_at(&path.join(".git")).or_else(|| object_at(path))
}

fn object_at(path: &Path) -> Option<Object> {
    let about = path.symlink_metadata().ok()?;
    Some((about.dev(), about.ino()))
}

/// A repository or git directory as it was before a run.
#[derive(Debug)]
pub(super) struct Loose {
    /// The working directory, or the git directory.
    pub(super) path: PathBuf,
    print: u64,
    object: Option<Object>,
    /// What git obeyed in it, or would if it named programs.
    obeyed: HashMap<PathBuf, ObeyedState>,
}

impl Loose {
    /// As it is now.
    pub(super) fn now(path: &Path) -> Self {
        let gits = directories(path);
        Self {
            path: path.to_owned(),
            print: print(path, &gits),
            object: object(path),
            obeyed: obeyed(path, &gits),
        }
    }

    /// Whether git would run of `obeyed`, a file of the repository, what it ran before.
    pub(super) fn had(&self, obeyed: &Path) -> bool {
        let then = self.obeyed.get(obeyed);
        let now = ObeyedState::now(obeyed);
        then.is_some_and(|then| now.is_some_and(|now| now.runs_what(then, obeyed)))
    }

    /// What `obeyed` was before, unless another repository stands here now.
    pub(super) fn before(&self, obeyed: &Path) -> Option<&ObeyedState> {
        let is_same = object(&self.path) == self.object;
        self.obeyed.get(obeyed).filter(|_| is_same)
    }

    /// Whether what is obeyed in it is another now.
    pub(super) fn is_changed(&self) -> bool {
        print(&self.path, &directories(&self.path)) != self.print
    }
}

/// The git directories of a repository: its own, those of its submodules and worktrees.
pub(super) fn directories(path: &Path) -> Vec<PathBuf> {
    let pointer = path.join(".git");
    let own = match pointer.symlink_metadata() {
        Ok(about) if about.is_dir() => Some(pointer),
        Ok(about) => git::target_of(&pointer, &about),
        Err(_) => Some(path.to_owned()),
    };
    let Some(own) = own else { return Vec::new() };
    let modules = git::modules(&own);
    let worktrees = git::worktrees(&own);
    std::iter::once(own)
        .chain(modules)
        .chain(worktrees)
        .collect()
}

fn obeyed(path: &Path, gits: &[PathBuf]) -> HashMap<PathBuf, ObeyedState> {
    let pointers = [path.join(".git"), path.join("commondir")];
    let files = gits.iter().flat_map(|git| gitruns::files_in(git));
    let files = files.chain(pointers);
    let states = files.filter_map(|file| ObeyedState::now(&file).map(|state| (file, state)));
    states.collect()
}

fn print(path: &Path, gits: &[PathBuf]) -> u64 {
    let mut hash = DefaultHasher::new();
    object(path).hash(&mut hash);
    // What a pointer says; a directory changes with every commit.
    let pointer = path.join(".git");
    if pointer
        .symlink_metadata()
        .is_ok_and(|about| !about.is_dir())
    {
        place_state::print(&pointer).hash(&mut hash);
    }
    for git in gits {
        git.hash(&mut hash);
        for name in OBEYED {
            place_state::print(&git.join(name)).hash(&mut hash);
        }
    }
    hash.finish()
}
