//! macOS: a queue of the kernel tells the end of a process, and files without a name lie in the temporary folder.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::kqueue::{self, Event, EventFilter, EventFlags, ProcessEvents};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

pub(super) const DESCRIPTORS: &str = "/dev/fd";

pub(super) const DESCRIPTORS_OF_SHELL: &str = DESCRIPTORS;

#[derive(Debug)]
pub(super) struct Process {
    pid: Pid,
    /// Readable once it has ended.
    end: OwnedFd,
}

impl Process {
    pub(super) fn hold(pid: Pid) -> io::Result<Self> {
        let end = match watch(pid) {
            // It has ended and is waited for by nobody yet.
            Err(Errno::SRCH) => ended()?,
            watched => watched?,
        };
        Ok(Self { pid, end })
    }

    /// A process ID is reused only after its end was reported.
    pub(super) fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match self.has_ended()? {
            true => Err(Errno::SRCH),
            false => rustix::process::kill_process(self.pid, signal),
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            pid: self.pid,
            end: self.end.try_clone()?,
        })
    }

    fn has_ended(&self) -> rustix::io::Result<bool> {
        const NOW: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut end = [PollFd::new(&self.end, PollFlags::IN)];
        Ok(rustix::event::poll(&mut end, Some(&NOW))? > 0)
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

#[expect(
    unsafe_code,
    reason = "descriptors in events are not checked by the library"
)]
fn watch(pid: Pid) -> Result<OwnedFd, Errno> {
    let queue = kqueue::kqueue()?;
    let flags = ProcessEvents::EXIT;
    let event = Event::new(
        EventFilter::Proc { pid, flags },
        EventFlags::ADD,
        std::ptr::null_mut(),
    );
    let mut none: [Event; 0] = [];
    // SAFETY: the event names a process and no descriptor.
    unsafe { kqueue::kevent(&queue, &[event], &mut none, None) }?;
    Ok(queue)
}

/// What is readable at once: a pipe that nobody writes to.
fn ended() -> Result<OwnedFd, Errno> {
    let (reader, _writer) = rustix::pipe::pipe()?;
    Ok(reader)
}

pub(super) fn enlarge(_pipe: impl AsFd) {}

pub(super) fn nameless_file() -> io::Result<File> {
    tempfile::tempfile()
}

pub(super) fn fillable_file() -> io::Result<File> {
    nameless_file()
}

pub(super) fn fill(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut file, bytes)?;
    rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0))?;
    Ok(())
}
