//! macOS: no handle that only names an object, so an entry is looked at before it is opened, and is opened for reading.
//!
//! Weaker than Linux in two places. Between look and open another program may put a pipe in the place of a file; the open
//! does not wait for it, but may wake the other side. And what must be done by name (open anew, link) goes through the
//! kernel's present name of the handle, checked to be the same object right after. Other systems are refused when a grant
//! is compiled, because their kernels do not tell the name of a handle.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Timestamps, Uid};
use rustix::io::Errno;

use super::{Born, Hint, Meta, OPEN_ALWAYS, steps};

/// Opens a symbolic link itself.
const O_SYMLINK: OFlags = OFlags::from_bits_retain(0x0020_0000);

/// Names handed out per batch.
const BATCH_NAMES: usize = 512;

/// Nothing has to be kept open.
#[derive(Debug)]
pub(in super::super) struct Kernel;

impl Kernel {
    pub(in super::super) fn open() -> Result<Self, Errno> {
        if cfg!(target_vendor = "apple") {
            Ok(Self)
        } else {
            Err(Errno::NOSYS)
        }
    }

    pub(in super::super) fn open_beneath(
        &self,
        dir: BorrowedFd<'_>,
        path: &str,
        follow: bool,
    ) -> Result<OwnedFd, Errno> {
        steps::open_beneath(dir, path, follow, peek)
    }

    /// Like [`open_beneath`](Self::open_beneath), for a path that may not be UTF-8; guests cannot name such a path.
    ///
    /// Errors: `ILSEQ` when it is not UTF-8.
    pub(in super::super) fn open_any_beneath(
        &self,
        dir: BorrowedFd<'_>,
        path: &Path,
    ) -> Result<OwnedFd, Errno> {
        let path = path.to_str().ok_or(Errno::ILSEQ)?;
        self.open_beneath(dir, path, false)
    }

    pub(in super::super) fn reopen(
        &self,
        handle: &impl AsFd,
        flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        let cut = flags & OFlags::TRUNC;
        let flags = flags.difference(OFlags::TRUNC) | OFlags::NOFOLLOW | OPEN_ALWAYS;
        let opened = rustix::fs::openat(CWD, &self.name(&handle)?, flags, Mode::empty())?;
        if Meta::of(&opened)?.id != Meta::of(&handle)?.id {
            return Err(Errno::NOENT);
        }
        // Only now: the name may have led to another file.
        if !cut.is_empty() {
            rustix::fs::ftruncate(&opened, 0)?;
        }
        Ok(opened)
    }

    #[cfg(target_vendor = "apple")]
    pub(in super::super) fn name(&self, handle: &impl AsFd) -> Result<PathBuf, Errno> {
        let name = rustix::fs::getpath(handle)?;
        Ok(PathBuf::from(std::ffi::OsString::from_vec(
            name.into_bytes(),
        )))
    }

    #[cfg(not(target_vendor = "apple"))]
    pub(in super::super) fn name(&self, _handle: &impl AsFd) -> Result<PathBuf, Errno> {
        Err(Errno::NOSYS)
    }

    pub(in super::super) fn link(
        &self,
        handle: &impl AsFd,
        parent: BorrowedFd<'_>,
        leaf: &str,
    ) -> Result<(), Errno> {
        let name = self.name(&handle)?;
        rustix::fs::linkat(CWD, &name, parent, leaf, AtFlags::empty())?;
        if Meta::at(parent, leaf)?.id == Meta::of(&handle)?.id {
            return Ok(());
        }
        rustix::fs::unlinkat(parent, leaf, AtFlags::empty())?;
        Err(Errno::NOENT)
    }

    pub(in super::super) fn set_mode(&self, handle: &impl AsFd, mode: Mode) -> Result<(), Errno> {
        rustix::fs::fchmod(handle, mode)
    }

    pub(in super::super) fn set_owner(
        &self,
        handle: &impl AsFd,
        owner: Option<Uid>,
        group: Option<Gid>,
    ) -> Result<(), Errno> {
        rustix::fs::fchown(handle, owner, group)
    }

    pub(in super::super) fn set_times(
        &self,
        handle: &impl AsFd,
        times: &Timestamps,
    ) -> Result<(), Errno> {
        rustix::fs::futimens(handle, times)
    }

    /// macOS has no file system whose regular files act.
    pub(in super::super) fn is_kernel_file(&self, _handle: &impl AsFd) -> Result<bool, Errno> {
        Ok(false)
    }
}

fn peek(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = match Meta::at(dir, name)?.kind {
        FileType::Symlink => OFlags::RDONLY | O_SYMLINK,
        FileType::Directory => OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW,
        FileType::RegularFile => OFlags::RDONLY | OFlags::NOFOLLOW,
        _ => return Err(Errno::PERM),
    };
    rustix::fs::openat(dir, name, flags | OPEN_ALWAYS, Mode::empty())
}

/// Whether the object behind `handle` is on a file system that is known to tell of every change by this machine's clock: nothing is
/// known here.
pub(in super::super) fn is_local(_handle: impl AsFd) -> bool {
    false
}

pub(in super::super) fn open_directory(parent: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OPEN_ALWAYS;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

pub(in super::super) fn open_regular(
    _kernel: &Kernel,
    parent: BorrowedFd<'_>,
    name: &str,
) -> Result<OwnedFd, Errno> {
    let handle = peek(parent, name)?;
    if Meta::of(&handle)?.is_file() {
        Ok(handle)
    } else {
        Err(Errno::NOENT)
    }
}

/// Renames onto a free name, and onto nothing else.
pub(in super::super) fn rename_free<P: rustix::path::Arg + Copy>(
    from: BorrowedFd<'_>,
    old: P,
    to: BorrowedFd<'_>,
    new: P,
) -> Result<(), Errno> {
    #[cfg(target_vendor = "apple")]
    match rustix::fs::renameat_with(from, old, to, new, rustix::fs::RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        done => return done,
    }
    rustix::fs::renameat(from, old, to, new)
}

pub(in super::super) fn sync_data(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fsync(file)
}

/// Does nothing on this platform.
pub(in super::super) fn advise(_: BorrowedFd<'_>, _: u64, _: u64, _: Hint) -> Result<(), Errno> {
    Ok(())
}

/// Two steps: what another program appends in between is overwritten.
pub(in super::super) fn append(file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::io::pwrite(file, bytes, Meta::of(file)?.size)
}

pub(in super::super) fn birth(handle: &impl AsFd) -> Result<Born, Errno> {
    rustix::fs::fstat(handle).map(|stat| born(&stat))
}

pub(in super::super) fn born_at(parent: impl AsFd, leaf: &str) -> Result<Born, Errno> {
    rustix::fs::statat(parent, leaf, AtFlags::SYMLINK_NOFOLLOW).map(|stat| born(&stat))
}

#[cfg(target_vendor = "apple")]
fn born(stat: &rustix::fs::Stat) -> Born {
    (
        stat.st_birthtime,
        u32::try_from(stat.st_birthtime_nsec).unwrap_or(0),
    )
}

#[cfg(not(target_vendor = "apple"))]
fn born(_stat: &rustix::fs::Stat) -> Born {
    (0, 0)
}

/// Reads the names of a directory in batches.
#[derive(Debug)]
pub(in super::super) struct Listing<D> {
    dir: D,
    reader: Option<Dir>,
}

impl<D: AsFd> Listing<D> {
    pub(in super::super) fn new(dir: D) -> Self {
        Self { dir, reader: None }
    }

    pub(in super::super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(in super::super) fn batch(
        &mut self,
        mut take: impl FnMut(&OsStr, FileType),
    ) -> Result<bool, Errno> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            empty => empty.insert(Dir::read_from(&self.dir)?),
        };
        for seen in 0..BATCH_NAMES {
            let Some(entry) = reader.read() else {
                return Ok(seen > 0);
            };
            let entry = entry?;
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                name => take(OsStr::from_bytes(name), entry.file_type()),
            }
        }
        Ok(true)
    }
}
