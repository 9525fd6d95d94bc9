//! Handing the host the directories that only the command has, in which it looks for what was left there.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{Mode, OFlags};
use zeph_jail::PLACES;

use super::descriptors;

/// Opens `places` and hands them over.
///
/// Errors: one is not there, there are too many, the host is gone.
pub(super) fn hand_over(places: &[Vec<u8>], status: &File) -> io::Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let open = |path: &Vec<u8>| -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(OsStr::from_bytes(path), flags, Mode::empty())
    };
    let opened: Vec<OwnedFd> = places.iter().map(open).collect::<Result<_, _>>()?;
    let handed: Vec<_> = opened.iter().map(|place| place.as_fd()).collect();
    descriptors::hand_over(status, PLACES, &handed)
}
