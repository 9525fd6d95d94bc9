//! Telling the host which paths the command asks for: a filter that refuses nothing, and the descriptor on which the kernel tells.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};

use zeph_jail::plan::Watch;
use zeph_jail::{READY, filter};

use super::descriptors;

/// Puts the filter on and hands the host the descriptor, or the reason why the kernel gives none.
///
/// Errors: the host is gone; from then on no call that takes a path would work.
pub(super) fn begin(watch: &Watch) -> io::Result<()> {
    let mut channel = descriptors::taken(watch.channel);
    match listener(&watch.filter) {
        Ok(listener) => descriptors::hand_over(&channel, READY, &[listener.as_fd()]),
        Err(error) => channel.write_all(error.to_string().as_bytes()),
    }
}

fn listener(filter: &[u8]) -> io::Result<OwnedFd> {
    let program = filter::from_bytes(filter).ok_or(io::ErrorKind::InvalidData)?;
    let mut instructions: Vec<libc::sock_filter> = program
        .iter()
        .map(|one| libc::sock_filter {
            code: one.code,
            jt: one.jt,
            jf: one.jf,
            k: one.k,
        })
        .collect();
    let length = u16::try_from(instructions.len()).map_err(|_error| io::ErrorKind::InvalidData)?;
    let program = libc::sock_fprog {
        len: length,
        filter: instructions.as_mut_ptr(),
    };
    // Without the second, which is of Linux 5.19, a signal makes a call that waits for the host begin anew.
    let told = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let undisturbed = told | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    match put_on(undisturbed, &program) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => put_on(told, &program),
        other => other,
    }
}

#[expect(unsafe_code, reason = "no library puts on a filter that tells")]
fn put_on(flags: libc::c_ulong, program: &libc::sock_fprog) -> io::Result<OwnedFd> {
    let program: *const libc::sock_fprog = program;
    // SAFETY: the program and its instructions live until the call has returned; the kernel only reads them.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            program,
        )
    };
    match i32::try_from(answer) {
        // SAFETY: the kernel has just made the descriptor, and nobody else knows it.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}
