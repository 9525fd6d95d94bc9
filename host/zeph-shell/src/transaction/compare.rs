//! Whether a name is what it was. Reads, and changes nothing.

use std::ffi::CStr;
use std::fs;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, readlinkat};
use rustix::io::Errno;

use super::attributes;
use super::handle::{glance, open_file};
use super::tree::{Clock, Link, ObjectStamp, TreeFile};

/// How a file changed.
#[derive(Debug)]
pub(super) enum FileChange {
    Same,
    /// The bytes are there; permissions, owner, time or attributes differ.
    Marred {
        file: fs::File,
        stamp: ObjectStamp,
    },
    /// Other bytes, or another kind of thing.
    Changed,
    Gone,
}

/// Compares the file at `name` with what was kept of it.
pub(super) fn file(
    clock: Clock,
    parent: &OwnedFd,
    name: &CStr,
    then: &TreeFile,
) -> Result<FileChange, Errno> {
    let Some(stamp) = glance(parent, name)? else {
        return Ok(FileChange::Gone);
    };
    if then.stamp.is_untouched(&stamp) && clock.trusts(stamp.changed) {
        return Ok(FileChange::Same);
    }
    let Some(kept) = &then.kept else {
        return Ok(FileChange::Changed);
    };
    if stamp.kind != FileType::RegularFile || stamp.size != kept.size() {
        return Ok(FileChange::Changed);
    }
    // One that cannot be opened any more is as good as changed: it is replaced.
    let Ok(opened) = open_file(parent, name, stamp.id) else {
        return Ok(FileChange::Changed);
    };
    let opened = fs::File::from(opened);
    if !kept.equals(&opened).map_err(|error| errno_of(&error))? {
        return Ok(FileChange::Changed);
    }
    if then.stamp.has_face_of(&stamp) && attributes::read(&opened)? == then.attributes {
        return Ok(FileChange::Same);
    }
    Ok(FileChange::Marred {
        file: opened,
        stamp,
    })
}

/// Whether `name` is the link it was.
pub(super) fn is_same_link(parent: &OwnedFd, name: &CStr, then: &Link) -> Result<bool, Errno> {
    let Some(stamp) = glance(parent, name)? else {
        return Ok(false);
    };
    if !stamp.kind.is_symlink() || !is_near(&then.stamp, &stamp) {
        return Ok(false);
    }
    match readlinkat(parent, name, Vec::new()) {
        Ok(target) => Ok(target == then.target),
        Err(Errno::INVAL | Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Whether `name` is the very object it was, for what was not kept.
pub(super) fn is_same_object(
    parent: &OwnedFd,
    name: &CStr,
    then: &ObjectStamp,
) -> Result<bool, Errno> {
    let now = glance(parent, name)?;
    Ok(now.is_some_and(|now| (now.id, now.kind) == (then.id, then.kind)))
}

/// The permissions of links differ between systems and mean nothing.
fn is_near(then: &ObjectStamp, now: &ObjectStamp) -> bool {
    (then.owner, then.group, then.modified) == (now.owner, now.group, now.modified)
}

/// The error of the system behind `error`.
pub(super) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
