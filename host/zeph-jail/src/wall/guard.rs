//! Where no namespace ends with the command: a process that stays behind, to which all that the command leaves comes back, and that
//! ends it.
//!
//! Orphans come to the nearest ancestor that asked for them, whatever session, group or environment they have made for
//! themselves. Where the kernel keeps signals within the run, one signal reaches everything in it at once, and nothing can be born
//! meanwhile; elsewhere children are ended one generation after the other, until there are none.

use std::fs::File;
use std::io::{self, Write as _};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use zeph_jail::WHOLE;
use zeph_jail::plan::Plan;

use super::{Failure, descriptors, failed, landlock, process};

const STEP: &str = "leaving the host's session";

/// Splits in two: the one that comes back becomes the command; the other waits for its end, ends the rest, and ends like it.
///
/// Asked to end, by the signal `TERM` or by the end of the host, it ends everything at once.
pub(super) fn stay_behind(plan: &Plan, status: &mut File) -> Result<(), Failure> {
    let system = |error: rustix::io::Errno| failed(STEP)(error.into());
    let signals = Signals::take().map_err(failed(STEP))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(system)?;
    end_with_the_parent(Signal::TERM)?;
    process::drop_privileges()?;
    let keeps_signals = plan.keeps_signals && keep_signals()?;
    let guard = rustix::process::getpid();
    match fork().map_err(failed(STEP))? {
        Some(command) => {
            let mut status = descriptors::only(status).unwrap_or_else(|_| end(1));
            let ended = wait(command, &signals);
            end_everything(keeps_signals);
            drop(status.write_all(&[WHOLE]));
            end_like(ended)
        }
        None => {
            signals.give_back().map_err(failed(STEP))?;
            end_with_the_parent(Signal::KILL)?;
            if rustix::process::getppid() != Some(guard) {
                return Err(Failure {
                    step: STEP,
                    reason: "the guard has ended".to_owned(),
                });
            }
            rustix::process::setsid().map_err(system)?;
            Ok(())
        }
    }
}

/// Keeps signals within the run; says whether that holds, seen by one that must not arrive.
fn keep_signals() -> Result<bool, Failure> {
    landlock::keep_signals()?;
    let host = rustix::process::getppid();
    let reached = host.map(rustix::process::test_kill_process);
    Ok(reached == Some(Err(rustix::io::Errno::PERM)))
}

fn end_with_the_parent(signal: Signal) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(signal))
        .map_err(|error| failed(STEP)(error.into()))?;
    match rustix::process::getppid() {
        Some(_) => Ok(()),
        None => Err(Failure {
            step: STEP,
            reason: "the host has ended".to_owned(),
        }),
    }
}

/// The child's number; nothing in the child.
#[expect(unsafe_code, reason = "no library splits a process in two")]
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this program has one thread, so nothing in the child is half done.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// How the command ended; nothing when the host wants it to.
fn wait(command: Pid, signals: &Signals) -> Option<WaitStatus> {
    loop {
        while let Ok(Some((ended, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if ended == command {
                return Some(status);
            }
        }
        if signals.next() == libc::SIGTERM {
            return None;
        }
    }
}

/// Ends all that is left, until there is no child.
fn end_everything(keeps_signals: bool) {
    loop {
        match keeps_signals {
            true => end_all_at_once(),
            false => end_children(),
        }
        // Every child was told to end, so this does not wait long.
        let ended = rustix::process::wait(WaitOptions::empty());
        if ended.is_err_and(|errno| errno == rustix::io::Errno::CHILD) {
            return;
        }
    }
}

/// The signal goes to all that this process may reach, and that is the run.
#[expect(unsafe_code, reason = "no library signals everything")]
fn end_all_at_once() {
    // SAFETY: the call touches no memory.
    let _ = unsafe { libc::kill(-1, libc::SIGKILL) };
}

fn end_children() {
    let own = rustix::process::getpid().as_raw_nonzero();
    let children = format!("/proc/{own}/task/{own}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let numbers = children.split_ascii_whitespace().map(str::parse);
    for child in numbers.flatten().filter_map(Pid::from_raw) {
        // A child that was not waited for keeps its number.
        let _ = rustix::process::kill_process(child, Signal::KILL);
    }
}

/// Ends as the command did, so that the parent process sees it.
fn end_like(status: Option<WaitStatus>) -> ! {
    let Some(status) = status else {
        end_by(libc::SIGKILL)
    };
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => end(code),
        (None, Some(signal)) => end_by(signal),
        (None, None) => end(1),
    }
}

#[expect(unsafe_code, reason = "no library puts a signal back")]
fn end_by(signal: i32) -> ! {
    // SAFETY: the calls touch no memory but a set on the stack.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::signal(signal, libc::SIG_DFL);
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, signal);
        libc::raise(signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut());
    }
    end(128 + signal)
}

#[expect(clippy::exit, reason = "the guard ends as the command did")]
fn end(code: i32) -> ! {
    std::process::exit(code)
}

/// Every signal held back, to be taken one at a time.
struct Signals {
    all: libc::sigset_t,
    before: libc::sigset_t,
}

#[expect(unsafe_code, reason = "no library waits for a signal")]
impl Signals {
    fn take() -> io::Result<Self> {
        // SAFETY: the sets are written by the calls before they are read.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            match libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before) {
                0 => Ok(Self { all, before }),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    fn give_back(&self) -> io::Result<()> {
        // SAFETY: the set was filled by `take`.
        let answer = unsafe {
            libc::sigprocmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                std::ptr::null_mut(),
            )
        };
        match answer {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The next signal.
    fn next(&self) -> i32 {
        // SAFETY: the set was filled by `take`, and nothing is asked to be written.
        unsafe { libc::sigwaitinfo(&raw const self.all, std::ptr::null_mut()) }
    }
}
