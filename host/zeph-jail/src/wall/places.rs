//! Handing the host the directories that only the command has, in which it looks for what was left there.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{Mode, OFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use zeph_jail::{PLACES, PLACES_MAX};

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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PLACES_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&handed)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let word = [IoSlice::new(&[PLACES])];
    rustix::net::sendmsg(status, &word, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}
