//! How a socket goes from the inner stage to the host.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};

/// Two connected sockets.
///
/// Errors: there are too many open files.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let ends = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(ends)
}

/// The descriptor that was sent over `channel`.
///
/// Errors: `WouldBlock` when it was not sent yet; the other end is gone.
pub(super) fn take(channel: impl AsFd) -> io::Result<OwnedFd> {
    let mut word = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut words = [IoSliceMut::new(&mut word)];
    rustix::net::recvmsg(channel, &mut words, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let sent = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    sent.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
