//! The descriptor on which the kernel tells of calls, and the thread that answers each of them: go on.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use zeph_jail::watch;

use super::PathWatch;
use super::judge::Judge;
use super::process::StoppedThread;
use crate::jail::outlet::channel;

/// Most bytes of a reason.
const REASON_BYTES_MAX: usize = 200;

/// Answers for one run on a thread of its own, which ends with the last process of the run. `channel` is the host's end of what the inner
/// stage hands the descriptor over.
///
/// Errors: the kernel refuses another thread; no run may be started then.
pub(in crate::jail) fn begin(channel: OwnedFd, watch: PathWatch, judge: Judge) -> io::Result<()> {
    std::thread::Builder::new()
        .name("zeph-watch".to_owned())
        .stack_size(256 * 1024)
        .spawn(move || match handed(&channel) {
            Ok(Some(listener)) => Listener { listener, watch }.answer(judge),
            // Nothing was ever run.
            Ok(None) => {}
            Err(reason) => watch.fail(reason),
        })?;
    Ok(())
}

/// The descriptor that the inner stage hands over; none when it ended before.
///
/// Errors: why there is none.
fn handed(channel: &OwnedFd) -> Result<Option<OwnedFd>, String> {
    let mut text = [0; REASON_BYTES_MAX];
    let received = channel::receive(channel, &mut text);
    let (n_bytes, sent) = received.map_err(|error| error.to_string())?;
    match (sent.into_iter().next(), n_bytes) {
        (None, 0) => Ok(None),
        (None, length) => Err(format!(
            "the kernel tells of no calls: {}",
            String::from_utf8_lossy(&text[..length])
        )),
        (sent, _) => Ok(sent),
    }
}

struct Listener {
    listener: OwnedFd,
    watch: PathWatch,
}

impl Listener {
    fn answer(&self, mut judge: Judge) {
        while self.has_call() {
            let call = match self.receive() {
                Ok(call) => call,
                // The process was killed meanwhile.
                Err(error) if is_over(&error) => continue,
                Err(error) => {
                    self.watch.fail(format!("calls cannot be heard: {error}"));
                    return;
                }
            };
            self.look(&call, &mut judge);
            if let Err(error) = self.let_continue(&call)
                && !is_over(&error)
            {
                self.watch
                    .fail(format!("calls cannot be answered: {error}"));
                return;
            }
        }
    }

    /// Waits for a call. False when no process is left that could make one.
    fn has_call(&self) -> bool {
        loop {
            let mut watched = [PollFd::new(&self.listener, PollFlags::IN)];
            match rustix::event::poll(&mut watched, None) {
                Ok(_) if watched[0].revents().contains(PollFlags::IN) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) | Err(_) => return false,
            }
        }
    }

    /// Looks at the paths of a call that has not been made yet.
    fn look(&self, call: &libc::seccomp_notif, judge: &mut Judge) {
        let Some(known) = watch::call(call.data.nr.into()) else {
            return;
        };
        let thread = StoppedThread {
            id: call.pid,
            arguments: &call.data.args,
        };
        for argument in known.paths {
            let path = match thread.path(argument) {
                Ok(Some(path)) => path,
                Ok(None) => continue,
                Err(error) => {
                    if self.is_waiting(call) {
                        self.watch
                            .fail(format!("the paths of a process cannot be read: {error}"));
                    }
                    continue;
                }
            };
            // The number of a thread that has ended may be another's by now.
            if self.is_waiting(call) {
                judge.look(&thread, argument.wish, &path, &self.watch);
            }
        }
    }

    #[expect(unsafe_code, reason = "no library hears of calls")]
    fn receive(&self) -> io::Result<libc::seccomp_notif> {
        // SAFETY: the structure is plain numbers, for which zeros are valid, and the kernel wants it so.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one such structure, to which the pointer leads.
        answer_of(unsafe {
            libc::ioctl(
                self.listener.as_fd().as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut call,
            )
        })?;
        Ok(call)
    }

    #[expect(unsafe_code, reason = "no library hears of calls")]
    fn is_waiting(&self, call: &libc::seccomp_notif) -> bool {
        // SAFETY: the kernel reads one number, to which the pointer leads.
        answer_of(unsafe {
            libc::ioctl(
                self.listener.as_fd().as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const call.id,
            )
        })
        .is_ok()
    }

    #[expect(unsafe_code, reason = "no library answers calls")]
    fn let_continue(&self, call: &libc::seccomp_notif) -> io::Result<()> {
        let response = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: 0,
            flags: u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(1),
        };
        // SAFETY: the kernel reads one such structure, to which the pointer leads.
        answer_of(unsafe {
            libc::ioctl(
                self.listener.as_fd().as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const response,
            )
        })
    }
}

fn answer_of(answer: libc::c_int) -> io::Result<()> {
    match answer {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Whether the call is one that nobody waits for any more, or the wait for it was interrupted.
fn is_over(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::EINTR | libc::EAGAIN)
    )
}
