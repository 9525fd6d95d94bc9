//! Deleting what is new, however deep, however many.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::handle::{Walls, enter, glance, some_names};

/// Names handled in one go, so that a huge directory takes little memory. Fewer in tests, which would make thousands of files.
pub(super) const BATCH: usize = if cfg!(test) { 100 } else { 10_000 };

/// Names deleted in one restoration. More than a jail's quota of time and disk makes; ends a race with a program that makes names
/// as fast as they are deleted.
const DELETED_MAX: usize = 20_000_000;

/// Deletes within the boundaries of the tree, and counts.
#[derive(Debug)]
pub(super) struct Removal {
    walls: Walls,
    n_deleted: usize,
    n_lifted: u64,
}

impl Removal {
    pub(super) fn within(walls: Walls) -> Self {
        Self {
            walls,
            n_deleted: 0,
            n_lifted: 0,
        }
    }

    /// Names deleted so far.
    pub(super) fn n_deleted(&self) -> usize {
        self.n_deleted
    }

    /// Deletes the name, which is not a directory.
    pub(super) fn name(&mut self, parent: &OwnedFd, name: &CStr) -> Result<(), Errno> {
        if self.n_deleted >= DELETED_MAX {
            return Err(Errno::BUSY);
        }
        unlinkat(parent, name, AtFlags::empty())?;
        self.n_deleted += 1;
        Ok(())
    }

    /// Deletes the empty directory `name`.
    pub(super) fn empty(&mut self, parent: &OwnedFd, name: &CStr) -> Result<(), Errno> {
        unlinkat(parent, name, AtFlags::REMOVEDIR)?;
        self.n_deleted += 1;
        Ok(())
    }

    /// Deletes the directory `name` with all it holds.
    ///
    /// Two handles are open at a time, whatever the depth: a directory two levels down is first moved up one, into `name`.
    ///
    /// Errors: `XDEV` when another file system or the host's own folder is met, which stays; whatever else stops a deletion.
    pub(super) fn tree(&mut self, parent: &OwnedFd, name: &CStr) -> Result<(), Errno> {
        let top = self.enter(parent, name)?;
        loop {
            let batch = some_names(&top, BATCH, |_| true)?;
            if batch.is_empty() {
                break;
            }
            let mut stuck = None;
            let mut is_moving = false;
            for leaf in &batch {
                match self.leaf(&top, leaf) {
                    Ok(()) => is_moving = true,
                    Err(errno) => stuck = Some(errno),
                }
            }
            if let (false, Some(errno)) = (is_moving, stuck) {
                return Err(errno);
            }
        }
        self.empty(parent, name)
    }

    /// Deletes one name in `top`; directories in it are moved to `top`.
    fn leaf(&mut self, top: &OwnedFd, leaf: &CStr) -> Result<(), Errno> {
        if !self.is_directory_left(top, leaf)? {
            return Ok(());
        }
        let inner = self.enter(top, leaf)?;
        loop {
            let batch = some_names(&inner, BATCH, |_| true)?;
            if batch.is_empty() {
                return self.empty(top, leaf);
            }
            for name in &batch {
                if self.is_directory_left(&inner, name)? {
                    self.lift(&inner, name, top)?;
                }
            }
        }
    }

    /// Deletes `name` unless it is a directory.
    fn is_directory_left(&mut self, parent: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
        match self.name(parent, name) {
            Ok(()) | Err(Errno::NOENT) => Ok(false),
            Err(Errno::ISDIR) => Ok(true),
            Err(errno) => match glance(parent, name)? {
                Some(stamp) if stamp.kind.is_dir() && errno == Errno::PERM => Ok(true),
                Some(_) => Err(errno),
                None => Ok(false),
            },
        }
    }

    /// Moves the directory `name` from `inner` to `top` under a free name.
    fn lift(&mut self, inner: &OwnedFd, name: &CStr, top: &OwnedFd) -> Result<(), Errno> {
        // Its own walls and rights are looked at before it is moved: what may not be deleted stays where it is.
        drop(self.enter(inner, name)?);
        loop {
            self.n_lifted += 1;
            let free = CString::new(format!(".zeph-lifted-{}", self.n_lifted))
                .expect("bug: digits hold no zero byte");
            match renameat_with(inner, name, top, &free, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    return renameat(inner, name, top, &free);
                }
                Err(Errno::NOENT) => return Ok(()),
                moved => return moved,
            }
        }
    }

    fn enter(&self, parent: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
        let handle = enter(parent, name)?;
        if !self.walls.let_in(&handle)? {
            return Err(Errno::XDEV);
        }
        Ok(handle)
    }
}
