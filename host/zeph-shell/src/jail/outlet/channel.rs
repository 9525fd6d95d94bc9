//! How a socket goes from the inner stage to the host.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};
use zeph_jail::PLACES_MAX;

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
    let (_, sent) = receive(channel, &mut [0])?;
    let first = sent.into_iter().next();
    first.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// How many bytes of `words` came over `channel` at once, and the descriptors that came with them.
///
/// Errors: `WouldBlock` when nothing came yet.
pub(in crate::jail) fn receive(
    channel: impl AsFd,
    words: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PLACES_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut words = [IoSliceMut::new(words)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(channel, &mut words, &mut control, flags)?;
    let sent = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => files.collect(),
        _ => Vec::new(),
    });
    Ok((received.bytes, sent.collect()))
}
