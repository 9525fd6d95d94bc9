//! What the guard asks of the operating system. The only place that differs between systems.
//!
//! `Kernel` holds what has to be opened once. Everything takes handles and single names; the one path that is resolved
//! is resolved beneath a handle. Nothing here knows grants.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
pub(super) use wasmtime_wasi::p2::bindings::sync::filesystem::types::Advice as Hint;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) use linux::{
    Kernel, Listing, advise, append, birth, born_at, is_local, open_directory, open_regular,
    rename_free, sync_data,
};
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub(super) use other::{
    Kernel, Listing, advise, append, birth, born_at, is_local, open_directory, open_regular,
    rename_free, sync_data,
};
pub(super) mod steps;

/// The identity of an object while it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    pub(super) dev: u64,
    pub(super) ino: u64,
}

/// The creation time of an object according to its file system: seconds and nanoseconds. It distinguishes a reused inode number from
/// the object that had the number before. Zero where the file system does not know.
pub(super) type Born = (i64, u32);

/// A point in time: seconds since the Unix epoch, and nanoseconds.
pub(super) type Moment = (i64, u32);

/// What the kernel says about an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta {
    pub(super) kind: FileType,
    pub(super) id: FileId,
    pub(super) links: u64,
    pub(super) size: u64,
    pub(super) mode: Mode,
    pub(super) owner: rustix::fs::Uid,
    pub(super) group: rustix::fs::Gid,
    pub(super) accessed: Moment,
    pub(super) modified: Moment,
    pub(super) changed: Moment,
}

impl Meta {
    /// Of the object behind a handle.
    pub(super) fn of(fd: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::fstat(fd).map(|stat| Self::from_stat(&stat))
    }

    /// Of the entry `leaf` of `parent`; a link is described itself.
    pub(super) fn at(parent: impl AsFd, leaf: impl rustix::path::Arg) -> Result<Self, Errno> {
        rustix::fs::statat(parent, leaf, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| Self::from_stat(&stat))
    }

    pub(super) fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }

    pub(super) fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub(super) fn is_link(&self) -> bool {
        self.kind == FileType::Symlink
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::unnecessary_cast,
        reason = "the widths and signs of these fields differ between systems; the values fit"
    )]
    fn from_stat(stat: &Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            id: FileId {
                dev: stat.st_dev as u64,
                ino: stat.st_ino as u64,
            },
            links: stat.st_nlink as u64,
            size: stat.st_size as u64,
            mode: Mode::from_raw_mode(stat.st_mode),
            owner: rustix::fs::Uid::from_raw(stat.st_uid),
            group: rustix::fs::Gid::from_raw(stat.st_gid),
            accessed: (stat.st_atime as i64, stat.st_atime_nsec as u32),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }
}

/// The permissions of a new file, less what the user's mask takes.
pub(super) const ORDINARY: Mode = Mode::from_raw_mode(0o666);

/// Makes the file `leaf` in `parent`. Fails if anything stands there, a dangling link included.
pub(super) fn create_file(
    parent: BorrowedFd<'_>,
    leaf: &str,
    access: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OPEN_ALWAYS;
    rustix::fs::openat(parent, leaf, flags, mode)
}

/// Flags of every open: the handle never reaches another program, never becomes a controlling terminal, and the open
/// never waits for the other side of anything.
const OPEN_ALWAYS: OFlags = OFlags::CLOEXEC
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);
