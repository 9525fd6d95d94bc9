//! What differs between Linux and macOS about processes and descriptors.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Pid, Signal};

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_vendor = "apple")]
use apple as system;
#[cfg(target_os = "linux")]
use linux as system;

/// Where the descriptors of a process have names.
pub(crate) const DESCRIPTORS: &str = system::DESCRIPTORS;

/// The same, for what a shell starts; as a shell reads it.
pub(crate) const DESCRIPTORS_OF_SHELL: &str = system::DESCRIPTORS_OF_SHELL;

/// A hold on one process: no other is ever meant by it. Becomes readable when it ends.
#[derive(Debug)]
pub(crate) struct Process(system::Process);

impl Process {
    /// A hold on a process that has not been waited for, or is known to live.
    ///
    /// Errors: it has ended and was waited for; no descriptor is free.
    pub(crate) fn hold(pid: Pid) -> io::Result<Self> {
        system::Process::hold(pid).map(Self)
    }

    /// Sends it a signal.
    ///
    /// Errors: the process has ended, or belongs to another user.
    pub(crate) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        self.0.signal(signal)
    }

    /// Another hold on the same process.
    ///
    /// Errors: no descriptor is free.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A pipe whose reading end never blocks and holds as much as the system allows. Both ends are closed in every program that is started
/// without being given one.
///
/// Errors: no descriptor is free.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    system::enlarge(&reader);
    Ok((reader.into(), writer.into()))
}

/// A file without a name, closed in every program that is started without being given it.
///
/// Errors: the system refuses one, for example because too many files are open.
pub(crate) fn nameless_file() -> io::Result<File> {
    system::nameless_file()
}

/// A file without a name that is to be filled once.
///
/// Errors: the system refuses one, for example because too many files are open.
pub(crate) fn fillable_file() -> io::Result<File> {
    system::fillable_file()
}

/// Writes `bytes` to a file that is to be filled, for who reads it from its beginning. Where the system can do that, nobody can change it
/// afterwards.
///
/// Errors: the memory is full, or the file was filled before.
pub(crate) fn fill(file: &File, bytes: &[u8]) -> io::Result<()> {
    system::fill(file, bytes)
}
