//! Directories by handle and single names: the only ways into the tree. Nothing here follows a link or takes a path.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::tree::{FileId, ObjectStamp};

/// Names looked at in one snapshot or restoration. A large checkout with its dependencies has some hundred thousand; a node takes
/// some 200 bytes of memory.
pub(super) const ENTRIES_MAX: usize = 1_000_000;

/// Levels below the root. One handle is open per level; real trees have some thirty.
pub(super) const DEPTH_MAX: usize = 128;

/// Flags of every open: never a link, never another program's handle, never a terminal, and no waiting for the other side of anything.
const ALWAYS: OFlags = OFlags::NOFOLLOW
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

/// What stands at `name`; a link is described itself.
pub(super) fn look(parent: impl AsFd, name: &CStr) -> Result<ObjectStamp, Errno> {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| ObjectStamp::from_stat(&stat))
}

/// What stands at `name`, or nothing.
pub(super) fn glance(parent: impl AsFd, name: &CStr) -> Result<Option<ObjectStamp>, Errno> {
    match look(parent, name) {
        Ok(stamp) => Ok(Some(stamp)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The object behind a handle.
pub(super) fn stamp_of(handle: impl AsFd) -> Result<ObjectStamp, Errno> {
    rustix::fs::fstat(handle).map(|stat| ObjectStamp::from_stat(&stat))
}

/// Opens the directory `name`; anything else in its place is refused by the kernel before it is opened.
pub(super) fn open_directory(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | ALWAYS;
    openat(parent, name, flags, Mode::empty())
}

/// Opens the regular file `name` for reading, if it is still the object `id`.
///
/// Errors: `STALE` when something else stands there now.
pub(super) fn open_file(parent: impl AsFd, name: &CStr, id: FileId) -> Result<OwnedFd, Errno> {
    let file = openat(parent, name, OFlags::RDONLY | ALWAYS, Mode::empty())?;
    let found = stamp_of(&file)?;
    if found.id != id || !found.kind.is_file() {
        return Err(Errno::STALE);
    }
    Ok(file)
}

/// Makes the file `name` for its owner alone; fails when anything stands there.
pub(super) fn create_file(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | ALWAYS;
    openat(parent, name, flags, Mode::from_raw_mode(0o600))
}

/// Opens the directory `name` for listing and changing, and gives its owner the rights for it when they are missing.
pub(super) fn enter(parent: impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let opened = match open_directory(&parent, name) {
        Err(Errno::ACCESS) => {
            sys::unlock(&parent, name)?;
            open_directory(&parent, name)?
        }
        opened => opened?,
    };
    let mode = stamp_of(&opened)?.mode;
    if mode & 0o700 != 0o700 {
        // A user who is not its owner may be able to work in it nevertheless; if not, the work itself says so.
        let _ = rustix::fs::fchmod(&opened, mode_of(mode | 0o700));
    }
    Ok(opened)
}

/// Permission bits in the system's own width.
pub(super) fn mode_of(bits: u32) -> Mode {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::unnecessary_cast,
        reason = "the width differs between systems; permission bits fit in all"
    )]
    Mode::from_raw_mode((bits & 0o7777) as rustix::fs::RawMode)
}

/// The names in a directory but `.` and `..`, no more than `left`, which is counted down.
///
/// Errors: `OVERFLOW` when there are more.
pub(super) fn names(directory: &OwnedFd, left: &mut usize) -> Result<Vec<CString>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        *left = left.checked_sub(1).ok_or(Errno::OVERFLOW)?;
        found.push(name.to_owned());
    }
    Ok(found)
}

/// Some of the names in a directory: those `wanted`, no more than `n_max`.
pub(super) fn some_names(
    directory: &OwnedFd,
    n_max: usize,
    wanted: impl Fn(&CStr) -> bool,
) -> Result<Vec<CString>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." && wanted(name) {
            found.push(name.to_owned());
            if found.len() == n_max {
                break;
            }
        }
    }
    Ok(found)
}

/// A name for something half made, which nothing else bears.
pub(super) fn temporary_name() -> CString {
    CString::new(format!(".zeph-restore-{}", uuid::Uuid::new_v4().simple()))
        .expect("bug: the digits of a number hold no zero byte")
}

/// What may not be entered: other file systems, and the host's own copies should they lie below the root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walls {
    mount: Mount,
    place: FileId,
}

/// The mount that an object is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mount {
    /// The kernel's number of the mount; differs for a bind mount of the same file system.
    Number(u64),
    Device(u64),
}

impl Walls {
    /// The boundaries of the tree below `root`, with copies kept in the directory `place`.
    pub(super) fn around(root: impl AsFd, place: FileId) -> Result<Self, Errno> {
        Ok(Self {
            mount: Mount::of(root)?,
            place,
        })
    }

    /// Whether the directory behind `handle`, a child of the tree, belongs to it.
    pub(super) fn let_in(&self, handle: impl AsFd) -> Result<bool, Errno> {
        Ok(Mount::of(&handle)? == self.mount && stamp_of(&handle)?.id != self.place)
    }
}

impl Mount {
    fn of(handle: impl AsFd) -> Result<Self, Errno> {
        if let Some(number) = sys::mount_number(&handle) {
            return Ok(Self::Number(number));
        }
        Ok(Self::Device(stamp_of(handle)?.id.dev))
    }
}

#[cfg(target_os = "linux")]
mod sys {
    use std::ffi::CStr;
    use std::os::fd::{AsFd, AsRawFd};

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, chmodat, openat, statx};
    use rustix::io::Errno;

    /// Gives the owner of the directory `name` all rights in it.
    ///
    /// Through a handle and the kernel's own name of it, so that a link in its place changes nothing elsewhere.
    pub(super) fn unlock(parent: impl AsFd, name: &CStr) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(parent, name, flags, Mode::empty())?;
        let mode = super::stamp_of(&handle)?.mode | 0o700;
        let own_name = format!("/proc/self/fd/{}", handle.as_raw_fd());
        chmodat(CWD, own_name, super::mode_of(mode), AtFlags::empty())
    }

    /// The ID of the mount that the object is on, from Linux 5.8.
    pub(super) fn mount_number(handle: impl AsFd) -> Option<u64> {
        let found = statx(handle, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
        let known = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        known.then_some(found.stx_mnt_id)
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    use std::ffi::CStr;
    use std::os::fd::AsFd;

    use rustix::fs::{AtFlags, chmodat};
    use rustix::io::Errno;

    pub(super) fn unlock(parent: impl AsFd, name: &CStr) -> Result<(), Errno> {
        let mode = super::look(&parent, name)?.mode | 0o700;
        chmodat(
            parent,
            name,
            super::mode_of(mode),
            AtFlags::SYMLINK_NOFOLLOW,
        )
    }

    pub(super) fn mount_number(_handle: impl AsFd) -> Option<u64> {
        None
    }
}
