//! What a snapshot remembers: one node per name, with what the kernel said of it. Values only.

use std::collections::BTreeMap;
use std::ffi::CString;

use rustix::fs::{FileType, Stat};

use super::attributes::Attributes;
use super::vault::FileCopy;

/// The names of one directory, in order.
pub(super) type TreeNames = BTreeMap<CString, Node>;

/// A name below the root.
#[derive(Debug)]
pub(super) enum Node {
    Directory(Directory),
    File(TreeFile),
    Link(Link),
    /// A FIFO, socket or device, or a file whose bytes could not be read: known, not kept.
    Unkept(ObjectStamp),
}

/// A directory.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) stamp: ObjectStamp,
    pub(super) reach: Reach,
    pub(super) attributes: Attributes,
    pub(super) names: TreeNames,
}

/// How far a directory belongs to the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It is kept itself.
    Covered,
    /// Only some of what it holds is.
    Passed,
    /// It was not entered: another file system, or no right to list it.
    Sealed,
}

/// A regular file.
#[derive(Debug)]
pub(super) struct TreeFile {
    pub(super) stamp: ObjectStamp,
    pub(super) attributes: Attributes,
    /// `None` only while the snapshot is being taken.
    pub(super) kept: Option<FileCopy>,
}

/// A symbolic link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) stamp: ObjectStamp,
    pub(super) target: CString,
}

/// The identity of an object while it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    pub(super) dev: u64,
    pub(super) ino: u64,
}

/// A point in time: seconds since the Unix epoch, and nanoseconds.
pub(super) type TreeTime = (i64, i64);

/// What the kernel says about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ObjectStamp {
    pub(super) id: FileId,
    pub(super) kind: FileType,
    pub(super) links: u64,
    pub(super) size: u64,
    /// Permission bits, set-user-id and its like included.
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
    pub(super) modified: TreeTime,
    pub(super) changed: TreeTime,
}

impl ObjectStamp {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_lossless,
        clippy::unnecessary_cast,
        reason = "the widths and signs of these fields differ between systems; the values fit"
    )]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        Self {
            id: FileId {
                dev: stat.st_dev as u64,
                ino: stat.st_ino as u64,
            },
            kind: FileType::from_raw_mode(stat.st_mode),
            links: stat.st_nlink as u64,
            size: stat.st_size as u64,
            mode: (stat.st_mode & 0o7777) as u32,
            owner: stat.st_uid as u32,
            group: stat.st_gid as u32,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    /// Whether nothing of the object has been touched since `self` was noted, as far as stamps can tell.
    ///
    /// The number of names is no part of it: a new name elsewhere changes nothing here, and moves the time of change anyway.
    pub(super) fn is_untouched(&self, now: &Self) -> bool {
        Self {
            links: now.links,
            ..*self
        } == *now
    }

    /// Whether what can be put back without touching the bytes is as it was: permissions, owner, time of writing.
    pub(super) fn has_face_of(&self, now: &Self) -> bool {
        (self.mode, self.owner, self.group, self.modified)
            == (now.mode, now.owner, now.group, now.modified)
    }
}

/// When a snapshot began, by the clock of the file system, and how far its stamps can be believed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) began: TreeTime,
    /// Whether the root's file system moves a file's times whenever its bytes change. A file system in memory does not
    /// for bytes written through a mapping.
    pub(super) tells_writes: bool,
}

impl Clock {
    /// A stamp is taken at a tick of some milliseconds; what was changed within this time before the snapshot could be changed once
    /// more without a trace in its stamp.
    const TICK_NS: i64 = 100_000_000;

    /// Whether an unchanged stamp means unchanged bytes, for an object stamped at `changed` when the snapshot was taken.
    pub(super) fn trusts(&self, changed: TreeTime) -> bool {
        // Whole seconds: a file system that counts no finer, vfat in twos.
        let settled_ns = if changed.1 == 0 {
            2_000_000_000
        } else {
            Self::TICK_NS
        };
        let age_ns = i128::from(self.began.0 - changed.0) * 1_000_000_000
            + i128::from(self.began.1 - changed.1);
        self.tells_writes && age_ns > i128::from(settled_ns)
    }
}
