//! Linux: descriptors of processes, files in memory.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Pid, PidfdFlags, Signal};

pub(super) const DESCRIPTORS: &str = "/proc/self/fd";

/// By the number of the shell: many programs close what they were not asked to hand on.
pub(super) const DESCRIPTORS_OF_SHELL: &str = "/proc/$$/fd";

/// Most bytes a pipe holds, if the kernel allows it: what an ordinary user may ask for. Large pipes mean few wake-ups.
const PIPE_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(super) struct Process(OwnedFd);

impl Process {
    pub(super) fn hold(pid: Pid) -> io::Result<Self> {
        Ok(Self(rustix::process::pidfd_open(pid, PidfdFlags::empty())?))
    }

    pub(super) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        rustix::process::pidfd_send_signal(&self.0, signal)
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(super) fn enlarge(pipe: impl AsFd) {
    // A smaller pipe works as well, only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}

pub(super) fn nameless_file() -> io::Result<File> {
    let file = rustix::fs::memfd_create("zeph", MemfdFlags::CLOEXEC)?;
    Ok(file.into())
}

pub(super) fn fillable_file() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    Ok(rustix::fs::memfd_create("zeph", flags)?.into())
}

pub(super) fn fill(file: &File, bytes: &[u8]) -> io::Result<()> {
    // It is read from its beginning.
    file.write_all_at(bytes, 0)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(file, seals)?;
    Ok(())
}
