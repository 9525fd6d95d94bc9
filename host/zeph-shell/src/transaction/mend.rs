//! Putting one name back: beside it first, then over it in one step.

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, Gid, Timespec, Timestamps, UTIME_OMIT, Uid, chownat, fchmod, fchown, futimens,
    renameat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::attributes::{self, Attributes};
use super::compare::{self, FileChange, errno_of};
use super::handle::{self, mode_of};
use super::remove::Removal;
use super::tree::{Clock, Link, ObjectStamp, TreeFile, TreeTime};

/// What it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MendReport {
    /// It was as it should be.
    Nothing,
    /// It is again.
    Restored,
    /// It is again, but belongs to the host's user: only root can give files away.
    NewOwner,
}

/// Set-user-id and set-group-id: rights of the owner, which a new owner must not lend.
const LENT_RIGHTS: u32 = 0o6000;

/// Makes `name` the file it was.
pub(super) fn file(
    clock: Clock,
    parent: &OwnedFd,
    name: &CStr,
    then: &TreeFile,
    removal: &mut Removal,
) -> Result<MendReport, Errno> {
    match compare::file(clock, parent, name, then)? {
        FileChange::Same => Ok(MendReport::Nothing),
        // Through another name, permissions of something elsewhere could be meant: such a file is replaced.
        FileChange::Marred { file, stamp } if stamp.id == then.stamp.id || stamp.links == 1 => {
            face(&file, &then.stamp, &then.attributes)
                .or_else(|_| replace(parent, name, then, removal))
        }
        FileChange::Marred { .. } | FileChange::Changed | FileChange::Gone => {
            replace(parent, name, then, removal)
        }
    }
}

/// Makes `name` the link it was.
pub(super) fn link(
    parent: &OwnedFd,
    name: &CStr,
    then: &Link,
    removal: &mut Removal,
) -> Result<MendReport, Errno> {
    if compare::is_same_link(parent, name, then)? {
        return Ok(MendReport::Nothing);
    }
    let temporary = handle::temporary_name();
    symlinkat(&then.target, parent, &temporary)?;
    let dressed = dress_link(parent, &temporary, &then.stamp);
    settle(parent, &temporary, name, removal)?;
    Ok(dressed)
}

/// Gives the object behind `handle` the owner, attributes, permissions and time it had.
pub(super) fn face(
    handle: impl AsFd,
    then: &ObjectStamp,
    attributes: &Attributes,
) -> Result<MendReport, Errno> {
    let now = handle::stamp_of(&handle)?;
    let is_owned = (now.owner, now.group) == (then.owner, then.group)
        || fchown(&handle, Some(uid(then)), Some(gid(then))).is_ok();
    attributes::apply(&handle, attributes)?;
    let mode = if is_owned {
        then.mode
    } else {
        then.mode & !LENT_RIGHTS
    };
    fchmod(&handle, mode_of(mode))?;
    futimens(&handle, &times(then.modified))?;
    Ok(if is_owned {
        MendReport::Restored
    } else {
        MendReport::NewOwner
    })
}

/// Writes the copy beside `name` and renames it over whatever stands there.
fn replace(
    parent: &OwnedFd,
    name: &CStr,
    then: &TreeFile,
    removal: &mut Removal,
) -> Result<MendReport, Errno> {
    let Some(kept) = &then.kept else {
        return Err(Errno::NODATA);
    };
    let temporary = handle::temporary_name();
    let file = fs::File::from(handle::create_file(parent, &temporary)?);
    let written = kept
        .write_to(&file)
        .map_err(|error| errno_of(&error))
        .and_then(|()| face(&file, &then.stamp, &then.attributes));
    match written {
        Ok(mended) => settle(parent, &temporary, name, removal).map(|()| mended),
        Err(errno) => {
            let _ = unlinkat(parent, &temporary, AtFlags::empty());
            Err(errno)
        }
    }
}

/// Renames `temporary` to `name`. A directory in the way goes first: nothing else does.
fn settle(
    parent: &OwnedFd,
    temporary: &CStr,
    name: &CStr,
    removal: &mut Removal,
) -> Result<(), Errno> {
    let renamed = match renameat(parent, temporary, parent, name) {
        Err(Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY) => removal
            .tree(parent, name)
            .and_then(|()| renameat(parent, temporary, parent, name)),
        renamed => renamed,
    };
    if renamed.is_err() {
        let _ = unlinkat(parent, temporary, AtFlags::empty());
    }
    renamed
}

fn dress_link(parent: &OwnedFd, name: &CStr, then: &ObjectStamp) -> MendReport {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let now = handle::look(parent, name);
    let is_owned = now.is_ok_and(|now| (now.owner, now.group) == (then.owner, then.group))
        || chownat(parent, name, Some(uid(then)), Some(gid(then)), flags).is_ok();
    // A file system without times of links loses nothing else.
    let _ = utimensat(parent, name, &times(then.modified), flags);
    if is_owned {
        MendReport::Restored
    } else {
        MendReport::NewOwner
    }
}

fn uid(stamp: &ObjectStamp) -> Uid {
    Uid::from_raw(stamp.owner)
}

fn gid(stamp: &ObjectStamp) -> Gid {
    Gid::from_raw(stamp.group)
}

/// The time of writing; the time of reading stays as it is.
pub(super) fn times(modified: TreeTime) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: modified.0,
            tv_nsec: modified.1,
        },
    }
}
