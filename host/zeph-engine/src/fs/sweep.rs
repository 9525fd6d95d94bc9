//! Looks at every name below a directory, within a budget: for the few decisions that need to know what a tree holds.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::error::FsOutcome;
use super::path::PATH_BYTES_MAX;
use super::stop::StopSwitch;
use super::sys::{Kernel, Listing, Meta};

/// How a sweep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SweepEnd {
    /// Everything was looked at.
    All,
    /// A visit had seen enough.
    Finished,
    /// Something could not be looked at: the budget is used up, or a directory is too deep to be named.
    Incomplete,
}

/// A budgeted look at trees.
#[derive(Debug)]
pub(super) struct Sweep<'a> {
    kernel: &'a Kernel,
    stop: &'a StopSwitch,
    entries_left: usize,
    /// Directories the host may not list.
    unseen: usize,
}

/// A name that a sweep came by.
#[derive(Debug)]
pub(super) struct Sight<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) leaf: &'a Path,
    /// Relative to the start of the sweep.
    pub(super) path: &'a Path,
    pub(super) kind: FileType,
}

impl<'a> Sweep<'a> {
    /// Prepares to look at no more than `entries_max` names.
    pub(super) fn new(kernel: &'a Kernel, stop: &'a StopSwitch, entries_max: usize) -> Self {
        Self {
            kernel,
            stop,
            entries_left: entries_max,
            unseen: 0,
        }
    }

    /// Whether every directory could be listed.
    pub(super) fn saw_all(&self) -> bool {
        self.unseen == 0
    }

    /// Visits every name below `start`, never through a link, until a visit breaks. Directories the host may not list are passed over.
    ///
    /// Holds one handle at a time: a directory is opened anew from `start` when its turn comes.
    pub(super) fn run(
        &mut self,
        start: BorrowedFd<'_>,
        mut visit: impl FnMut(&Sight<'_>) -> ControlFlow<()>,
    ) -> FsOutcome<SweepEnd> {
        let mut pending = vec![PathBuf::from(".")];
        while let Some(below) = pending.pop() {
            if below.as_os_str().len() > PATH_BYTES_MAX {
                return Ok(SweepEnd::Incomplete);
            }
            let dir = match self.list(start, &below) {
                Ok(Some(dir)) => dir,
                Ok(None) => continue,
                Err(Errno::ILSEQ) => return Ok(SweepEnd::Incomplete),
                Err(errno) => return Err(errno.into()),
            };
            let mut names = Vec::new();
            let mut listing = Listing::new(dir);
            while listing.batch(|name, kind| names.push((OsString::from(name), kind)))? {
                self.stop.check()?;
                if names.len() > self.entries_left {
                    return Ok(SweepEnd::Incomplete);
                }
            }
            self.entries_left -= names.len();
            for (name, kind) in &names {
                let leaf = Path::new(name);
                let kind = known(&listing, leaf, *kind);
                let path = if below == Path::new(".") {
                    leaf.to_path_buf()
                } else {
                    below.join(leaf)
                };
                if visit(&Sight {
                    dir: listing.dir(),
                    leaf,
                    path: &path,
                    kind,
                })
                .is_break()
                {
                    return Ok(SweepEnd::Finished);
                }
                if kind == FileType::Directory {
                    pending.push(path);
                }
            }
        }
        Ok(SweepEnd::All)
    }

    fn list(&mut self, start: BorrowedFd<'_>, below: &Path) -> Result<Option<OwnedFd>, Errno> {
        let opened = self
            .kernel
            .open_any_beneath(start, below)
            .and_then(|handle| {
                self.kernel
                    .reopen(&handle, OFlags::RDONLY | OFlags::DIRECTORY)
            });
        match opened {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.unseen += 1;
                Ok(None)
            }
            Err(errno) => Err(errno),
        }
    }
}

fn known(listing: &Listing<OwnedFd>, leaf: &Path, kind: FileType) -> FileType {
    if kind != FileType::Unknown {
        return kind;
    }
    Meta::at(listing.dir(), leaf).map_or(kind, |meta| meta.kind)
}
