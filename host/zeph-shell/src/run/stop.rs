//! The request that a run end, and who makes it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};

/// Why a run is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reason {
    /// The caller gave up, or went away.
    Cancelled = 1,
    /// `kill_run`.
    Killed = 2,
    /// The session ends.
    Shutdown = 3,
}

/// Whether a run has to end. The first reason stands.
#[derive(Debug)]
pub(crate) struct RunStop {
    reason: AtomicU8,
    /// Becomes readable when it has to end; nothing is read from it.
    event: OwnedFd,
    bell: OwnedFd,
}

impl RunStop {
    /// Of a run that nobody wants to end yet.
    ///
    /// Errors: no descriptor is free.
    pub(crate) fn new() -> io::Result<Self> {
        let (event, bell) = io::pipe()?;
        Ok(Self {
            reason: AtomicU8::new(0),
            event: event.into(),
            bell: bell.into(),
        })
    }

    /// Ends the run.
    pub(crate) fn stop(&self, reason: Reason) {
        let first =
            self.reason
                .compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire);
        if first.is_ok() {
            // One byte has room: it is the only one.
            let _ = rustix::io::write(&self.bell, b"!");
        }
    }

    /// Why it has to end, if it has to.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self.reason.load(Ordering::Acquire) {
            1 => Some(Reason::Cancelled),
            2 => Some(Reason::Killed),
            3 => Some(Reason::Shutdown),
            _ => None,
        }
    }

    /// Becomes readable, and stays so, when it has to end.
    pub(crate) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
