//! From a path to the object it leads to. Every path of every guest goes through `reach` or `parent`.
//!
//! An object is first opened as a mere handle beneath the directory the path starts from; what it is, what it is called and
//! which root governs it is then asked of the kernel about that very handle. Nothing is decided on a path's text, so
//! nothing changes when the tree changes between the check and the use.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use zeph_core::capability::FsRights;

use super::error::{Code, Fail, FsOutcome};
use super::globs::normalize;
use super::handle::{DirHandle, DirectoryHandle};
use super::path::{GuestPath, Split};
use super::policy::{FsPolicy, RootId};
use super::refusal::NONE;
use super::sys::Meta;
use super::trace::Traced;

/// How often an object may lose its name between two looks at it.
const RACES_MAX: usize = 64;

/// An object a path led to: held by a handle that can be looked at, not read.
#[derive(Debug)]
pub(super) struct ResolvedObject {
    pub(super) fd: OwnedFd,
    pub(super) meta: Meta,
    /// The root whose rights count for it.
    pub(super) root: RootId,
    /// Its real name, when the policy needs names.
    pub(super) name: Option<PathBuf>,
}

/// A directory and a name in it, which may or may not be taken.
#[derive(Debug)]
pub(super) struct ResolvedName<'a> {
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

/// A directory that a path starts from, and what is about to be asked of the place the path leads to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'a> {
    dir: &'a DirHandle,
    rights: FsRights,
}

impl<'a> Asking<'a> {
    /// The handle `path` starts from.
    ///
    /// Errors: refused for a root without rights, before anything is looked at: there an absent file is like any other.
    pub(super) fn start(self, policy: &'a FsPolicy, path: &str) -> Result<BorrowedFd<'a>, Fail> {
        self.dir.fd(policy).ok_or_else(|| {
            let top = Path::new(&policy.root(self.dir.root).path);
            let name = normalize(&top.join(path));
            policy.refuse(self.dir.root, self.rights, Some(&name))
        })
    }
}

impl ResolvedObject {
    /// The refusal of an operation on it that needs the `missing` rights.
    #[cold]
    pub(super) fn refused(&self, policy: &FsPolicy, missing: FsRights) -> Fail {
        let name = self.name.clone().or_else(|| policy.name_to_blame(&self.fd));
        policy.refuse(self.root, missing, name.as_deref())
    }
}

impl ResolvedName<'_> {
    /// The refusal of an operation on it that needs the `missing` rights.
    #[cold]
    pub(super) fn refused(&self, policy: &FsPolicy, missing: FsRights) -> Fail {
        let found = || Some(policy.name_to_blame(&self.dir())?.join(self.leaf));
        let name = self.name.clone().or_else(found);
        policy.refuse(self.root, missing, name.as_deref())
    }

    /// The real path of the entry, whether anything stands there or not.
    pub(super) fn real_name(&self, policy: &FsPolicy) -> FsOutcome<PathBuf> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => Ok(policy.kernel().name(&self.dir())?.join(self.leaf)),
        }
    }

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
    /// The handle paths start from; none in a root without rights.
    pub(super) fn fd<'a>(&'a self, policy: &'a FsPolicy) -> Option<BorrowedFd<'a>> {
        match &self.place {
            DirectoryHandle::Root => policy.root(self.root).handle(),
            DirectoryHandle::Below(held) => Some(held.as_fd()),
        }
    }

    /// Starts a path in order to do something that needs `rights` where the path leads.
    pub(super) fn asking(&self, rights: FsRights) -> Asking<'_> {
        Asking { dir: self, rights }
    }
}

impl FsPolicy {
    /// The rights below the root `id`.
    pub(super) fn rights(&self, id: RootId) -> FsRights {
        self.root(id).rights
    }

    /// Opens what `path` leads to as a handle that wakes nothing.
    ///
    /// Errors: no-entry for what is absent or hidden, not-permitted for what is outside every root, refused for what is
    /// in a root without rights. Whether single rights suffice is for the caller to see.
    pub(super) fn reach(
        &self,
        from: Asking<'_>,
        path: GuestPath<'_>,
        follow: bool,
    ) -> FsOutcome<ResolvedObject> {
        let start = from.start(self, path.as_str())?;
        // The kernel does not tell which directories `hidden/../x` passed through; their existence must not show.
        if path.passes_through() {
            self.check_way(from, path, follow)?;
        }
        for _ in 0..RACES_MAX {
            match self.kernel().open_beneath(start, path.as_str(), follow) {
                Ok(fd) => match self.identify(fd, from.dir.root, from.rights)? {
                    Some(reached) => return Ok(reached),
                    None => continue,
                },
                Err(Errno::XDEV) => return self.redirect(from, path, follow),
                Err(Errno::NOENT) if !self.shuts() => return Err(Code::NoEntry.into()),
                // "Not a directory" and its like would betray that something hidden stands on the way.
                Err(errno) => {
                    self.check_way(from, path, follow)?;
                    return Err(errno.into());
                }
            }
        }
        Err(Code::Busy.into())
    }

    /// Opens the directory in which the last name of `path` stands or would stand.
    ///
    /// Errors: as `reach`; invalid when the last name is `.` or `..`.
    pub(super) fn entry<'a>(
        &'a self,
        from: Asking<'a>,
        path: GuestPath<'a>,
    ) -> FsOutcome<ResolvedName<'a>> {
        let split = path.split();
        if !split.names_entry() {
            return Err(Code::Invalid.into());
        }
        if split.parent == "." {
            let start = from.start(self, path.as_str())?;
            let name = if self.needs_names() {
                Some(self.kernel().name(&start)?)
            } else {
                None
            };
            let dir = EntryDir::Start(start);
            return self.entry_of((dir, name, from.dir.root), split, from.rights);
        }
        let parent = self.reach(from, GuestPath::parse(split.parent)?, true)?;
        if !parent.meta.is_dir() {
            return Err(Code::NotDirectory.into());
        }
        let dir = EntryDir::Opened(parent.fd);
        self.entry_of((dir, parent.name, parent.root), split, from.rights)
    }

    fn entry_of<'a>(
        &self,
        (dir, dir_name, root): (EntryDir<'a>, Option<PathBuf>, RootId),
        split: Split<'a>,
        asked: FsRights,
    ) -> FsOutcome<ResolvedName<'a>> {
        let Split { leaf, slash, .. } = split;
        let Some(dir_name) = dir_name else {
            return Ok(ResolvedName {
                dir,
                leaf,
                slash,
                root,
                name: None,
                hidden: false,
            });
        };
        let name = dir_name.join(leaf);
        let root = self.rule(&name, asked)?;
        Ok(ResolvedName {
            dir,
            leaf,
            slash,
            root,
            hidden: self.hides(&name),
            name: Some(name),
        })
    }

    /// The root whose rights count at the real path `name`.
    ///
    /// Errors: not-permitted outside every root, refused with the rights that were `asked` where none is held.
    pub(super) fn rule(&self, name: &Path, asked: FsRights) -> Result<RootId, Fail> {
        let root = self.governing(name).ok_or(Code::NotPermitted)?;
        if self.rights(root) == NONE {
            return Err(self.refuse(root, asked, Some(name)));
        }
        Ok(root)
    }

    /// Asks the kernel what the object behind `fd` is and whether it may be known of. None when it has lost its name meanwhile: another
    /// object may have it.
    pub(super) fn identify(
        &self,
        fd: OwnedFd,
        root: RootId,
        asked: FsRights,
    ) -> FsOutcome<Option<ResolvedObject>> {
        let meta = Meta::of(&fd)?;
        if meta.id.dev != self.root(root).dev && self.kernel().is_kernel_file(&fd)? {
            return Err(Code::NotPermitted.into());
        }
        if !self.needs_names() {
            return Ok(Some(ResolvedObject {
                fd,
                meta,
                root,
                name: None,
            }));
        }
        let name = match self.kernel().name(&fd) {
            Err(Errno::NOENT) => return Ok(None),
            named => named?,
        };
        let root = self.rule(&name, asked)?;
        if self.hides(&name) {
            return Err(Code::NoEntry.into());
        }
        Ok(Some(ResolvedObject {
            fd,
            meta,
            root,
            name: Some(name),
        }))
    }

    /// Second try for a path on which a link leads out of the starting directory: absolute links inside a root, and links
    /// from one root to another, are fine. The link's target is worked out as text, then opened beneath the root that
    /// holds it, under that root's rights.
    ///
    /// Errors: not-permitted for a target outside every root, and refused for one in a root without rights, whether or not
    /// it exists.
    fn redirect(
        &self,
        from: Asking<'_>,
        path: GuestPath<'_>,
        follow: bool,
    ) -> FsOutcome<ResolvedObject> {
        let start = from.start(self, path.as_str())?;
        let name = self.kernel().name(&start)?;
        // Links outside that lead in circles look like any other place outside.
        let traced = self
            .trace(&name, path.as_str(), follow)
            .map_err(|_| Code::NotPermitted)?;
        self.check_traced(&traced, from)?;
        let root = self.rule(&traced.end, from.rights)?;
        let handle = self.root(root).handle().ok_or(Code::NotPermitted)?;
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
        match self.kernel().open_beneath(handle, &below, follow) {
            Ok(fd) => {
                let reached = self.identify(fd, root, from.rights)?;
                reached.ok_or_else(|| Code::Busy.into())
            }
            Err(Errno::XDEV) => Err(Code::NotPermitted.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether the guest may learn how far `path` leads.
    fn check_way(&self, from: Asking<'_>, path: GuestPath<'_>, follow: bool) -> FsOutcome<()> {
        if self.patterns().is_empty() && !self.shuts() {
            return Ok(());
        }
        let start = from.start(self, path.as_str())?;
        let traced = self.trace(&self.kernel().name(&start)?, path.as_str(), follow)?;
        self.check_traced(&traced, from)
    }

    fn check_traced(&self, traced: &Traced, from: Asking<'_>) -> FsOutcome<()> {
        if let Some(root) = traced.through_shut {
            return Err(self.refuse(root, from.rights, Some(&traced.end)));
        }
        if traced.through_hidden {
            return Err(Code::NoEntry.into());
        }
        Ok(())
    }
}
