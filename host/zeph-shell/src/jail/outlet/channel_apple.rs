//! Commands under Seatbelt have no network of their own, so no socket is handed over: none is run that may reach hosts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// None.
///
/// Errors: always.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// None.
///
/// Errors: always.
pub(super) fn take(_: impl AsFd) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// None.
///
/// Errors: always.
pub(in crate::jail) fn receive(_: impl AsFd, _: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    Err(io::ErrorKind::Unsupported.into())
}
