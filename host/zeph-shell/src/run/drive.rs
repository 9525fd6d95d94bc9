//! The loop of one run: waits for output, the end, the deadline and a request to stop, all at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions};

use super::capture::{Capture, StreamKind};
use super::end::First;
use super::listen::Teller;
use super::side::{Side, read};
use super::{
    CONTEXT_BYTES_MAX, Cause, DRAIN, ExitState, Plan, Reason, RunEnd, RunLimits, RunStart, RunStop,
    StreamEnd, Tree,
};
use crate::jail::Guard;
use crate::platform::Process;
use crate::spawn::Spawner;

/// Bytes taken from a pipe at once: a quarter of what a pipe holds, so that a busy stream needs few calls.
const READ_BYTES: usize = 256 * 1024;

/// Most reads of one pipe before the others are looked at; of a command, as long as each fills the buffer.
const READS_MAX: usize = 4;

/// How long what the shell tells of its state is left to gather: it comes line by line, and to wake up for each takes longer than
/// the shell takes to write it. Nothing needs it before the end, and the pipe has room for what a shell ordinarily tells.
const GATHER: Duration = Duration::from_millis(5);

/// How long the error stream of a service is left alone after as much was read of it at once as ever is: one that floods is slowed down,
/// and costs the host next to nothing.
const FLOOD_REST: Duration = Duration::from_millis(10);

/// A session that ends does not wait as long as a call: its caller is leaving.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

/// How far a run has come.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Until the deadline.
    Running { until: Instant },
    /// It was asked to end.
    Asked { until: Instant },
    /// It was killed and must be gone by then.
    Killed { until: Instant },
    /// The main process is gone; what is still in the pipes is read.
    Draining { until: Instant },
}

/// One run while it goes on.
struct RunDriver<'a> {
    pid: Pid,
    process: Process,
    tree: Tree,
    guard: Option<Guard>,
    limits: RunLimits,
    stop: &'a RunStop,
    pipes: Pipes,
    phase: Phase,
    cause: Cause,
    status: ExitState,
    /// Becomes readable when the last of a killed namespace is gone.
    last: Option<First>,
}

/// What is read, and what came of it.
struct Pipes {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    context: Side,
    capture: Capture,
    teller: Teller,
    stderr_end: Option<StreamEnd>,
    /// The error stream is left alone until then.
    stderr_rests_until: Option<Instant>,
    /// What was read last. Its pages are there once something fills them: a server that idles says little.
    buffer: Vec<u8>,
    n_read: u64,
}

/// Runs `plan` until nothing of it is left.
///
/// Errors: it could not be started, or not be waited for; nothing of it is left then either.
pub(super) fn drive(
    spawner: &Spawner,
    plan: Plan,
    limits: RunLimits,
    stop: &RunStop,
) -> io::Result<RunEnd> {
    let started = Instant::now();
    let (child, last) = match plan.begin {
        RunStart::Launch(launch) => (spawner.spawn(launch)?, None),
        // Its namespace stands already.
        RunStart::Child(child) => {
            let last = plan.tree.first(child.pid);
            (child, last)
        }
    };
    let mut context = Side::new(plan.context, CONTEXT_BYTES_MAX);
    context.rests_until = last.as_ref().map(|_| started + GATHER);
    let mut run = RunDriver {
        pid: child.pid,
        process: child.process,
        tree: plan.tree,
        guard: plan.guard,
        limits,
        stop,
        pipes: Pipes {
            stdout: Some(child.stdout),
            stderr: Some(child.stderr),
            context,
            capture: Capture::new(limits.output_bytes_max),
            teller: Teller::new(plan.listener),
            stderr_end: plan.stderr_end,
            stderr_rests_until: None,
            buffer: Vec::with_capacity(READ_BYTES),
            n_read: 0,
        },
        phase: Phase::Running {
            until: started + limits.timeout,
        },
        cause: Cause::Exited,
        status: ExitState::Unknown,
        last,
    };
    let ended = run.until_over();
    if ended.is_err() {
        run.kill(Instant::now());
        drop(run.wait());
    }
    run.pipes.teller.finish();
    ended?;
    let Side { bytes, is_over, .. } = run.pipes.context;
    Ok(RunEnd {
        cause: run.cause,
        status: run.status,
        capture: run.pipes.capture,
        context: (!is_over).then_some(bytes),
        guard: run.guard,
        duration: started.elapsed(),
    })
}

impl RunDriver<'_> {
    fn until_over(&mut self) -> io::Result<()> {
        loop {
            let Some(until) = self.advance(Instant::now()) else {
                return Ok(());
            };
            let is_ended = self.wait_and_read(until)?;
            if is_ended {
                self.main_ended()?;
            } else if self.pipes.n_read > self.limits.flood_bytes_max {
                self.flooded();
            }
        }
    }

    /// Goes to the phase that the time and the wishes of others want. Returns when to look again; nothing when it is over.
    fn advance(&mut self, now: Instant) -> Option<Instant> {
        match self.phase {
            Phase::Running { until } => match self.stop.reason() {
                Some(reason) => Some(self.ask(Cause::Stopped(reason), now)),
                None if now >= until => Some(self.ask(Cause::TimedOut, now)),
                None => Some(until),
            },
            Phase::Asked { until } if now >= until => Some(self.kill(now)),
            Phase::Killed { until } if now >= until => {
                tracing::warn!("a killed command did not end in time");
                None
            }
            Phase::Draining { until } if now >= until || self.is_all_read() => None,
            Phase::Asked { until } | Phase::Killed { until } | Phase::Draining { until } => {
                Some(until)
            }
        }
    }

    fn ask(&mut self, cause: Cause, now: Instant) -> Instant {
        self.cause = cause;
        self.last = self
            .last
            .take()
            .or_else(|| self.tree.look_for_first(self.pid));
        self.tree.ask(self.pid);
        let grace = match cause {
            Cause::Stopped(Reason::Shutdown) => self.limits.grace.min(SHUTDOWN_GRACE),
            _ => self.limits.grace,
        };
        let until = now + grace;
        self.phase = Phase::Asked { until };
        until
    }

    fn kill(&mut self, now: Instant) -> Instant {
        let first = self.tree.kill(self.pid);
        self.last = first.or(self.last.take());
        if let Some(guard) = &self.guard {
            guard.kill();
        }
        let until = now + DRAIN + DRAIN;
        self.phase = Phase::Killed { until };
        until
    }

    /// More than anybody can want: it is not asked first, since it would go on printing.
    fn flooded(&mut self) {
        if let Phase::Running { .. } = self.phase {
            self.cause = Cause::Flooded;
            self.kill(Instant::now());
        }
    }

    /// The main process is gone. What else there is of it goes before its number is given back.
    fn main_ended(&mut self) -> io::Result<()> {
        let is_whole = self.guard.as_mut().is_some_and(Guard::is_whole);
        if !is_whole {
            self.tree.sweep(self.pid);
        }
        if let Some(guard) = &self.guard {
            guard.kill();
        }
        self.status = self.wait()?;
        if self.last.as_ref().is_some_and(First::is_alone) {
            self.last = None;
            // What is in the pipes is all there will be: the first process writes nothing, and its own end is not waited for.
            self.pipes.finish();
        }
        self.phase = Phase::Draining {
            until: Instant::now() + DRAIN,
        };
        Ok(())
    }

    fn wait(&self) -> io::Result<ExitState> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let Some(status) = rustix::process::waitid(WaitId::Pid(self.pid), options)? else {
            return Ok(ExitState::Unknown);
        };
        let code = status.exit_status().map(ExitState::Code);
        let signal = || status.terminating_signal().map(ExitState::Signal);
        Ok(code.or_else(signal).unwrap_or(ExitState::Unknown))
    }

    fn is_all_read(&self) -> bool {
        self.last.is_none() && self.pipes.is_closed()
    }

    /// Waits until something happens, at most until then, and reads what is there. Says whether the main process has just
    /// ended.
    fn wait_and_read(&mut self, until: Instant) -> io::Result<bool> {
        let is_draining = matches!(self.phase, Phase::Draining { .. });
        let now = Instant::now();
        let rests_until = self.pipes.context.rests_until;
        let rests_until = rests_until.filter(|until| *until > now && !is_draining);
        let mut watched: Vec<(RunEvent, BorrowedFd<'_>)> = self.pipes.watched();
        let stderr_rests_until = self.pipes.stderr_rests_until;
        let stderr_rests_until = stderr_rests_until.filter(|until| *until > now && !is_draining);
        watched.retain(|(which, _)| match which {
            RunEvent::Context => rests_until.is_none(),
            RunEvent::Stderr => stderr_rests_until.is_none(),
            _ => true,
        });
        if !is_draining {
            watched.push((RunEvent::Main, self.process.as_fd()));
        }
        if let Phase::Running { .. } = self.phase {
            watched.push((RunEvent::Stop, self.stop.event()));
        }
        if let (true, Some(last)) = (is_draining, &self.last) {
            watched.push((RunEvent::Last, last.process.as_fd()));
        }
        let rests = rests_until.into_iter().chain(stderr_rests_until);
        let until = rests.fold(until, Instant::min);
        let ready = poll(&watched, until.saturating_duration_since(now))?;
        // What was printed comes before the end is looked at: a phase that ends the reading must not come first.
        self.pipes.read(&ready);
        if ready.contains(&RunEvent::Last) {
            self.last = None;
        }
        // The shell speaks before the command begins: from now on the namespace has a first process, and its end is the end of all.
        if ready.contains(&RunEvent::Context) && !is_draining {
            self.last = self.last.take().or_else(|| self.tree.first(self.pid));
            self.pipes.context.rests_until = Some(Instant::now() + GATHER);
        }
        Ok(ready.contains(&RunEvent::Main))
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunEvent {
    Stdout,
    Stderr,
    Context,
    Main,
    Stop,
    Last,
}

fn poll(watched: &[(RunEvent, BorrowedFd<'_>)], timeout: Duration) -> io::Result<Vec<RunEvent>> {
    let mut fds: Vec<PollFd<'_>> = watched
        .iter()
        .map(|(_, fd)| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    // A wait is never long enough for this to fail; a day is looked at again.
    let timeout = Timespec::try_from(timeout.min(Duration::from_secs(86_400)))
        .map_err(|_error| io::Error::other("a wait is too long"))?;
    match rustix::event::poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready = watched.iter().zip(&fds);
    Ok(ready
        .filter(|(_, fd)| !fd.revents().is_empty())
        .map(|((which, _), _)| *which)
        .collect())
}

impl Pipes {
    fn is_closed(&self) -> bool {
        self.watched().is_empty()
    }

    fn watched(&self) -> Vec<(RunEvent, BorrowedFd<'_>)> {
        let all = [
            (RunEvent::Stdout, &self.stdout),
            (RunEvent::Stderr, &self.stderr),
            (RunEvent::Context, &self.context.reader),
        ];
        all.into_iter()
            .filter_map(|(which, fd)| Some((which, fd.as_ref()?.as_fd())))
            .collect()
    }

    fn read(&mut self, ready: &[RunEvent]) {
        for which in ready {
            match which {
                RunEvent::Stdout => {
                    self.read_stream(StreamKind::Stdout);
                }
                RunEvent::Stderr => {
                    self.read_stream(StreamKind::Stderr);
                }
                RunEvent::Context => {
                    self.context.read(&mut self.buffer);
                }
                RunEvent::Main | RunEvent::Stop | RunEvent::Last => {}
            }
        }
    }

    /// Reads what is there, of both streams in turn, and closes them: nobody is left to write to them.
    fn finish(&mut self) {
        while self.read_stream(StreamKind::Stdout) | self.read_stream(StreamKind::Stderr) {}
        while self.context.read(&mut self.buffer) {}
        self.stdout = None;
        self.stderr = None;
        self.context.reader = None;
    }

    /// Reads some of what is there; says whether there may be more. A pipe that is nearly empty is not waited at: what is printed to the
    /// other one meanwhile would come behind what is printed to this one later.
    fn read_stream(&mut self, stream: StreamKind) -> bool {
        let reader = match stream {
            StreamKind::Stdout => &mut self.stdout,
            StreamKind::Stderr => &mut self.stderr,
        };
        for _ in 0..READS_MAX {
            if !read(reader, &mut self.buffer) {
                return false;
            }
            let bytes = self.buffer.as_slice();
            self.n_read += bytes.len() as u64;
            match &self.stderr_end {
                Some(end) if stream == StreamKind::Stderr => end.push(bytes),
                _ => self.capture.push(stream, bytes),
            }
            self.teller.tell(stream, bytes);
            // The error stream of a service stands alone: there is no order to keep, and one that floods is to rest.
            if self.stderr_end.is_none() && self.buffer.len() < self.buffer.capacity() {
                return true;
            }
        }
        if stream == StreamKind::Stderr && self.stderr_end.is_some() {
            self.stderr_rests_until = Some(Instant::now() + FLOOD_REST);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::pipe;

    /// What waits in one pipe does not come behind all that waits in the other.
    #[test]
    fn what_is_left_of_both_streams_is_read_in_turn() {
        let ((stdout, of_stdout), (stderr, of_stderr)) = (pipe().unwrap(), pipe().unwrap());
        rustix::io::ioctl_fionbio(&of_stdout, true).unwrap();
        let line = [b'o'; 64 * 1024];
        let mut n_written = 0;
        while n_written <= READS_MAX * READ_BYTES {
            match rustix::io::write(&of_stdout, &line) {
                Ok(n_bytes) => n_written += n_bytes,
                Err(error) => {
                    assert_eq!(error, Errno::AGAIN);
                    break;
                }
            }
        }
        rustix::io::write(&of_stderr, b"err").unwrap();
        drop((of_stdout, of_stderr));
        let mut pipes = Pipes {
            stdout: Some(stdout),
            stderr: Some(stderr),
            context: Side::new(None, 0),
            capture: Capture::new(8 * READS_MAX * READ_BYTES),
            teller: Teller::new(None),
            stderr_end: None,
            stderr_rests_until: None,
            buffer: Vec::with_capacity(32 * 1024),
            n_read: 0,
        };
        pipes.finish();
        assert!(pipes.is_closed());
        let captured = pipes.capture.finish();
        assert_eq!(captured.stdout.len(), n_written);
        let at = captured.text.find("err").unwrap();
        assert!(at <= READS_MAX * 32 * 1024, "{at} of {n_written}");
    }

    /// One read is enough where a pipe holds less than can be read at once.
    #[test]
    fn a_pipe_that_is_nearly_empty_is_read_once() {
        let ((stdout, of_stdout), (stderr, of_stderr)) = (pipe().unwrap(), pipe().unwrap());
        let mut pipes = Pipes {
            stdout: Some(stdout),
            stderr: Some(stderr),
            context: Side::new(None, 0),
            capture: Capture::new(READ_BYTES),
            teller: Teller::new(None),
            stderr_end: None,
            stderr_rests_until: None,
            buffer: Vec::with_capacity(READ_BYTES),
            n_read: 0,
        };
        rustix::io::write(&of_stdout, b"1").unwrap();
        rustix::io::write(&of_stderr, b"2").unwrap();
        drop((of_stdout, of_stderr));
        pipes.read(&[RunEvent::Stdout, RunEvent::Stderr]);
        // Their ends are seen at the next look.
        assert!(pipes.stdout.is_some() && pipes.stderr.is_some());
        pipes.read(&[RunEvent::Stdout, RunEvent::Stderr]);
        assert!(pipes.is_closed());
        assert_eq!(pipes.capture.finish().text, "12");
    }
}
