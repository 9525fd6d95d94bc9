//! A snapshot: what is remembered of a tree, and the options it was taken with.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::changes::{self, Changes};
use super::error::{RestoreError, SnapshotError};
use super::handle::{self, Walls};
use super::restore::{self, RestoreReport};
use super::scope::SnapshotScope;
use super::take;
use super::tree::{Clock, Directory, FileId};
use crate::held_object::HeldObject;

/// What a snapshot holds, and where.
#[derive(Debug, Clone)]
pub struct SnapshotOptions {
    /// Most bytes the files in scope may have together, by their sizes. 0: no limit but the disk's.
    pub bytes_max: u64,
    /// Which paths are kept. The host excludes its own files here.
    pub scope: SnapshotScope,
    /// The host's private directory for copies. Created if missing; never entered if it is below the root.
    pub place: PathBuf,
    /// Set to end a snapshot that is being taken. A restoration does not look at it: half of one is worse than none.
    pub stop: Arc<AtomicBool>,
}

/// What a tree held at one time. The copies are removed when the last snapshot that shares them is dropped.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) root: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) options: SnapshotOptions,
    pub(super) walls: Walls,
    pub(super) clock: Clock,
    pub(super) tree: Directory,
    pub(super) notes: Notes,
    pub(super) n_files: usize,
    pub(super) bytes: u64,
    pub(super) bytes_copied: u64,
}

impl Snapshot {
    /// Keeps what is below `root`.
    ///
    /// Shape:  regular files with bytes, permissions, owner, time of writing and users' attributes; symbolic links as links; directories,
    ///         empty ones too. Each name is a file of its own afterwards: names that shared one file do so only while it is unchanged.
    ///         FIFOs, sockets, devices and what the host may not read are known and not kept: see [`Snapshot::notes`].
    /// Limits: `options.bytes_max`, checked before anything is copied; 1,000,000 names; 128 levels; a twentieth of the disk stays free.
    /// Errors: every limit, a root or place that cannot be used, `stop`. Nothing is left behind.
    pub fn take(root: &Path, options: &SnapshotOptions) -> Result<Self, SnapshotError> {
        take::take(root, options, None)
    }

    /// Keeps what is below `root` and shares the copies of `earlier` for all that has not changed since: the cost is that of a walk and
    /// of what is new. `earlier` may be of another root, and is of no use then.
    ///
    /// Errors: as for [`Snapshot::take`].
    pub fn take_after(
        earlier: &Self,
        root: &Path,
        options: &SnapshotOptions,
    ) -> Result<Self, SnapshotError> {
        take::take(root, options, Some(earlier))
    }

    /// Makes the tree what it was: brings back what was changed or deleted, then deletes what is new. Files that are as they were are not
    /// touched; others are replaced in one step each, so that a reader sees the old file or the new one.
    ///
    /// It can be repeated, and interrupted: nothing that was kept is deleted on the way. Programs that still write to the
    /// tree are not held back: end them first.
    ///
    /// Errors: the root is gone or another one. Failures below it are counted in the result.
    pub fn restore(&self) -> Result<RestoreReport, RestoreError> {
        restore::restore(self)
    }

    /// What differs from the snapshot now, without touching anything. At most `paths_max` paths are named; all are counted.
    ///
    /// Errors: the root is gone or another one, or a directory cannot be read.
    pub fn changes(&self, paths_max: usize) -> Result<Changes, RestoreError> {
        changes::changes(self, paths_max)
    }

    /// Keeps what is below `root`, if the directory is still the one that was held; see [`Snapshot::take_after`].
    ///
    /// Errors: as for [`Snapshot::take`], and another directory stands there.
    pub fn take_held(
        root: &HeldObject,
        options: &SnapshotOptions,
        earlier: Option<&Self>,
    ) -> Result<Self, SnapshotError> {
        if !root.stands() {
            return Err(SnapshotError::RootReplaced);
        }
        let taken = take::take(root.path(), options, earlier)?;
        let FileId { dev, ino } = taken.tree.stamp.id;
        match (dev, ino) == root.id() {
            true => Ok(taken),
            false => Err(SnapshotError::RootReplaced),
        }
    }

    /// The root as it was given.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.path
    }

    /// What could not be kept, one sentence each, for the user and the model. Paths are below the root.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes.shown
    }

    /// Files kept.
    #[must_use]
    pub fn n_files(&self) -> usize {
        self.n_files
    }

    /// Bytes of the files kept, by their sizes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the files that were copied and not shared with an earlier snapshot.
    #[must_use]
    pub fn bytes_copied(&self) -> u64 {
        self.bytes_copied
    }

    /// Takes a snapshot of the same root with the same options.
    pub(super) fn again(&self) -> Result<Self, SnapshotError> {
        take::take(&self.path, &self.options, Some(self))
    }

    /// Whether its path still leads to the directory that was kept.
    pub(super) fn check_root(&self) -> Result<(), RestoreError> {
        let now = open_root(&self.path).and_then(handle::stamp_of);
        match now {
            Ok(now) if now.id == self.tree.stamp.id => Ok(()),
            _ => Err(RestoreError::RootReplaced),
        }
    }
}

/// Opens the root anew, to have a handle with a position of its own.
pub(super) fn reopen(root: &OwnedFd) -> Result<OwnedFd, Errno> {
    handle::open_directory(root, SELF)
}

/// Opens the directory an operator named; links in its own path are the operator's.
pub(super) fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

const SELF: &CStr = c".";

/// Sentences about single files: the first few, and how many more there are.
#[derive(Debug, Default)]
pub(super) struct Notes {
    shown: Vec<String>,
    n_more: usize,
}

impl Notes {
    /// Sentences kept; a model reads them.
    const SHOWN_MAX: usize = 8;

    pub(super) fn add(&mut self, note: impl FnOnce() -> String) {
        if self.shown.len() < Self::SHOWN_MAX {
            self.shown.push(note());
        } else {
            self.n_more += 1;
        }
    }

    /// All there is to say.
    pub(super) fn finish(mut self) -> Self {
        if self.n_more > 0 {
            self.shown
                .push(format!("{} more of the same kind", self.n_more));
            self.n_more = 0;
        }
        self
    }

    pub(super) fn into_sentences(self) -> Vec<String> {
        self.finish().shown
    }
}
