//! From a path to the object it leads to. Every path of every guest goes through `reach` or `parent`.
//!
//! An object is first opened as a mere handle beneath the directory the path starts from; what it is, what it is called and
//! which root governs it is then asked of the kernel about that very handle. Nothing is decided on a path's text, so
//! nothing changes when the tree changes between the check and the use.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use zeph_core::capability::FsRights;

use super::error::{Code, Fail, FsOutcome};
use super::handle::{DirHandle, Place};
use super::path::{GuestPath, Split};
use super::policy::{FsPolicy, RootId};
use super::sys::Meta;

/// An object a path led to: held by a handle that can be looked at, not read.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) fd: OwnedFd,
    pub(super) meta: Meta,
    /// The root whose rights count for it.
    pub(super) root: RootId,
    /// Its real name, when the policy needs names.
    pub(super) name: Option<PathBuf>,
}

/// A directory and a name in it, which may or may not be taken.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    dir: EntryDir<'a>,
    pub(super) leaf: &'a str,
    /// The path ended in a slash, so that only a directory may stand there.
    pub(super) slash: bool,
    /// The root whose rights count for the entry.
    pub(super) root: RootId,
    /// The real name of the entry, when the policy needs names.
    pub(super) name: Option<PathBuf>,
    /// A pattern hides the entry, whether it exists or not.
    pub(super) hidden: bool,
}

#[derive(Debug)]
enum EntryDir<'a> {
    Start(BorrowedFd<'a>),
    Opened(OwnedFd),
}

impl Entry<'_> {
    /// The directory that holds the entry.
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        match &self.dir {
            EntryDir::Start(fd) => *fd,
            EntryDir::Opened(fd) => fd.as_fd(),
        }
    }

    /// What stands there; a link is described itself.
    ///
    /// Errors: no-entry for what is hidden, as if it were absent.
    pub(super) fn meta(&self) -> FsOutcome<Meta> {
        if self.hidden {
            return Err(Code::NoEntry.into());
        }
        let meta = Meta::at(self.dir(), self.leaf)?;
        if self.slash && !meta.is_dir() {
            return Err(Code::NotDirectory.into());
        }
        Ok(meta)
    }
}

impl DirHandle {
    /// The handle paths start from.
    pub(super) fn fd<'a>(&'a self, policy: &'a FsPolicy) -> BorrowedFd<'a> {
        match &self.place {
            Place::Root => policy.root(self.root).handle(),
            Place::Below(held) => held.as_fd(),
        }
    }
}

impl FsPolicy {
    /// The rights below the root `id`.
    pub(super) fn rights(&self, id: RootId) -> FsRights {
        self.root(id).rights
    }

    /// Opens what `path` leads to from `dir` as a handle that wakes nothing.
    ///
    /// Errors: no-entry for what is absent or hidden, not-permitted for what lies outside every root.
    pub(super) fn reach(
        &self,
        dir: &DirHandle,
        path: GuestPath<'_>,
        follow: bool,
    ) -> FsOutcome<Reached> {
        let start = dir.fd(self);
        // The kernel does not tell which directories `hidden/../x` passed through; their existence must not show.
        if path.passes_through() && self.leads_through_hidden(start, path, follow)? {
            return Err(Code::NoEntry.into());
        }
        match self.kernel().open_beneath(start, path.as_str(), follow) {
            Ok(fd) => self.identify(fd, dir.root),
            Err(Errno::NOENT) => Err(Code::NoEntry.into()),
            Err(Errno::XDEV) => self.redirect(start, path, follow),
            // "Not a directory" and its like would betray that something hidden stands on the way.
            Err(_) if self.leads_through_hidden(start, path, follow)? => Err(Code::NoEntry.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens the directory in which the last name of `path` stands or would stand.
    ///
    /// Errors: as `reach`; invalid when the last name is `.` or `..`.
    pub(super) fn entry<'a>(
        &'a self,
        dir: &'a DirHandle,
        path: GuestPath<'a>,
    ) -> FsOutcome<Entry<'a>> {
        let split = path.split();
        if !split.names_entry() {
            return Err(Code::Invalid.into());
        }
        if split.parent == "." {
            let start = dir.fd(self);
            let name = if self.needs_names() {
                Some(self.kernel().name(&start)?)
            } else {
                None
            };
            return self.entry_of(EntryDir::Start(start), name, dir.root, split);
        }
        let parent = self.reach(dir, GuestPath::parse(split.parent)?, true)?;
        if !parent.meta.is_dir() {
            return Err(Code::NotDirectory.into());
        }
        self.entry_of(EntryDir::Opened(parent.fd), parent.name, parent.root, split)
    }

    fn entry_of<'a>(
        &self,
        dir: EntryDir<'a>,
        dir_name: Option<PathBuf>,
        root: RootId,
        split: Split<'a>,
    ) -> FsOutcome<Entry<'a>> {
        let Split { leaf, slash, .. } = split;
        let Some(dir_name) = dir_name else {
            return Ok(Entry {
                dir,
                leaf,
                slash,
                root,
                name: None,
                hidden: false,
            });
        };
        let name = dir_name.join(leaf);
        let root = self.governing(&name).ok_or(Code::NotPermitted)?;
        Ok(Entry {
            dir,
            leaf,
            slash,
            root,
            hidden: self.hides(&name),
            name: Some(name),
        })
    }

    /// Asks the kernel what the object behind `fd` is and whether it may be known of.
    pub(super) fn identify(&self, fd: OwnedFd, root: RootId) -> FsOutcome<Reached> {
        let meta = Meta::of(&fd)?;
        if meta.id.dev != self.root(root).dev && self.kernel().is_kernel_file(&fd)? {
            return Err(Code::NotPermitted.into());
        }
        if !self.needs_names() {
            return Ok(Reached {
                fd,
                meta,
                root,
                name: None,
            });
        }
        let name = self.kernel().name(&fd)?;
        let root = self.governing(&name).ok_or(Code::NotPermitted)?;
        if self.hides(&name) {
            return Err(Code::NoEntry.into());
        }
        Ok(Reached {
            fd,
            meta,
            root,
            name: Some(name),
        })
    }

    /// Second try for a path on which a link leads out of the starting directory: absolute links inside a root, and links
    /// from one root to another, are fine. The link's target is worked out as text, then opened beneath the root that
    /// holds it, under that root's rights.
    ///
    /// Errors: not-permitted for a target outside every root, whether or not it exists.
    fn redirect(
        &self,
        start: BorrowedFd<'_>,
        path: GuestPath<'_>,
        follow: bool,
    ) -> FsOutcome<Reached> {
        let name = self.kernel().name(&start)?;
        // Links outside that lead in circles look like any other place outside.
        let traced = self
            .trace(&name, path.as_str(), follow)
            .map_err(|_| Code::NotPermitted)?;
        if traced.through_hidden {
            return Err(Code::NoEntry.into());
        }
        let root = self.governing(&traced.end).ok_or(Code::NotPermitted)?;
        let below = traced
            .end
            .strip_prefix(&self.root(root).path)
            .map_err(|_| Code::NotPermitted)?;
        let mut below = below.to_str().ok_or(Code::NotPermitted)?.to_owned();
        if below.is_empty() {
            below.push('.');
        }
        if path.as_str().ends_with('/') {
            below.push('/');
        }
        match self
            .kernel()
            .open_beneath(self.root(root).handle(), &below, follow)
        {
            Ok(fd) => self.identify(fd, root),
            Err(Errno::XDEV) => Err(Code::NotPermitted.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn leads_through_hidden(
        &self,
        start: BorrowedFd<'_>,
        path: GuestPath<'_>,
        follow: bool,
    ) -> Result<bool, Fail> {
        if self.patterns().is_empty() {
            return Ok(false);
        }
        Ok(self
            .trace(&self.kernel().name(&start)?, path.as_str(), follow)?
            .through_hidden)
    }
}
