//! A command that a person runs through the host, as if it were typed without it: no jail, no limits, the person's own
//! environment and input. Only what it prints goes through the host.
//!
//! It is for the command line; no call of a tool comes here.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::platform::{self, Process};

use crate::run::StreamKind;

/// Bytes taken from a pipe at once.
const READ_BYTES: usize = 256 * 1024;

/// How long the output of what a command left running is still waited for once it has ended itself.
const DRAIN: Duration = Duration::from_secs(2);

/// Where a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Into pipes of ours, heard by [`PlainRun::until_over`].
    Heard,
    /// Where this process prints: we hear nothing.
    Own,
}

/// The command that was started.
#[derive(Debug)]
pub struct PlainRun {
    child: Child,
    process: Process,
    pipes: [Option<OwnedFd>; 2],
}

/// A hold on the command while another thread waits for it. It never means another process.
#[derive(Debug)]
pub struct PlainHandle(Process);

impl PlainHandle {
    /// Asks it to end, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.send(Signal::INT);
    }

    /// Asks it to end, as kill(1) does.
    pub fn terminate(&self) {
        self.send(Signal::TERM);
    }

    fn send(&self, signal: Signal) {
        // One that has ended already needs no signal.
        let _ = self.0.signal(signal);
    }
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainEnd {
    /// With this code.
    Code(u8),
    /// By this signal.
    Signal(i32),
}

impl PlainEnd {
    /// As a shell says it: a signal is 128 and its number.
    pub fn shell_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }

    /// The code of a command that ended by itself.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code.into()),
            Self::Signal(_) => None,
        }
    }
}

/// Starts `words`, the first of which is looked for on the `PATH`. It shares the terminal, the input and the process group.
///
/// Errors: the system's; `NotFound` and `PermissionDenied` are about the program. `InvalidInput` without any word.
#[expect(
    clippy::disallowed_methods,
    reason = "the person's own command is started here, and nothing else"
)]
pub fn start(words: &[OsString], streams: Streams) -> io::Result<PlainRun> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::inherit());
    let mut pipes = [None, None];
    if streams == Streams::Heard {
        let (stdout, stdout_writer) = platform::pipe()?;
        let (stderr, stderr_writer) = platform::pipe()?;
        command.stdout(stdout_writer).stderr(stderr_writer);
        pipes = [Some(stdout), Some(stderr)];
    }
    let child = command.spawn()?;
    // It holds our ends of the pipes, which would keep them open.
    drop(command);
    // Nobody has waited for it yet, so the number is still its own.
    let process = Process::hold(Pid::from_child(&child))?;
    Ok(PlainRun {
        child,
        process,
        pipes,
    })
}

impl PlainRun {
    /// A hold on it, for signals.
    ///
    /// Errors: no descriptor is free.
    pub fn handle(&self) -> io::Result<PlainHandle> {
        self.process.try_clone().map(PlainHandle)
    }

    /// Hands on what it prints, in the order of arrival, until it has ended and its pipes are empty. Blocks.
    ///
    /// If `take` breaks because the reader is gone, the pipes are closed, as for any command whose output is no longer read, and
    /// its end is waited for.
    /// Errors: the system's.
    /// Limits: 256 KiB at a time. What it leaves running in the background is heard for 2 seconds.
    pub fn until_over(
        mut self,
        mut take: impl FnMut(StreamKind, &[u8]) -> ControlFlow<()>,
    ) -> io::Result<PlainEnd> {
        let mut buffer = vec![0; READ_BYTES];
        let mut ended: Option<(ExitStatus, Instant)> = None;
        while self.pipes.iter().any(Option::is_some) {
            let left = ended.map(|(_, at)| DRAIN.saturating_sub(at.elapsed()));
            if left == Some(Duration::ZERO) {
                break;
            }
            self.wait(left)?;
            for (idx, stream) in [StreamKind::Stdout, StreamKind::Stderr]
                .into_iter()
                .enumerate()
            {
                let flow = read(&mut self.pipes[idx], &mut buffer, |bytes| {
                    take(stream, bytes)
                })?;
                if flow.is_break() {
                    self.pipes = [None, None];
                    break;
                }
            }
            if ended.is_none() {
                let status = self.child.try_wait()?;
                ended = status.map(|status| (status, Instant::now()));
            }
        }
        let status = match ended {
            Some((status, _)) => status,
            None => self.child.wait()?,
        };
        Ok(end_of(status))
    }

    /// Until there is something to read or to know.
    fn wait(&self, left: Option<Duration>) -> io::Result<()> {
        let mut waits: Vec<PollFd<'_>> = self
            .pipes
            .iter()
            .flatten()
            .map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
            .collect();
        let timeout = match left {
            // It has ended; its end would be known at once, for ever.
            Some(left) => Some(Timespec::try_from(left).map_err(io::Error::other)?),
            None => {
                waits.push(PollFd::from_borrowed_fd(
                    self.process.as_fd(),
                    PollFlags::IN,
                ));
                None
            }
        };
        match rustix::event::poll(&mut waits, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Takes what there is now; a pipe at its end is closed.
fn read(
    pipe: &mut Option<OwnedFd>,
    buffer: &mut [u8],
    mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<ControlFlow<()>> {
    let Some(reader) = pipe else {
        return Ok(ControlFlow::Continue(()));
    };
    match rustix::io::read(reader.as_fd(), &mut *buffer) {
        Ok(0) => {
            *pipe = None;
            Ok(ControlFlow::Continue(()))
        }
        Ok(n_bytes) => Ok(take(&buffer[..n_bytes])),
        Err(Errno::AGAIN | Errno::INTR) => Ok(ControlFlow::Continue(())),
        Err(error) => Err(error.into()),
    }
}

fn end_of(status: ExitStatus) -> PlainEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => PlainEnd::Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        (None, signal) => PlainEnd::Signal(signal.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests;
