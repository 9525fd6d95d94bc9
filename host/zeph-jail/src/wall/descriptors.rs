//! What the command keeps open: its standard streams and the files it was given, nothing else.

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use zeph_jail::PLACES_MAX;

/// Where files wait while their numbers are freed: above every number a job may ask for.
const ABOVE_ALL_JOBS: i32 = 64;

/// Takes over a descriptor of the plan.
#[expect(unsafe_code, reason = "the plan names descriptors by their numbers")]
pub(super) fn taken(number: i32) -> File {
    // SAFETY: the host passes a descriptor under this number and names it once in its plan; nobody else here owns it.
    unsafe { File::from_raw_fd(number) }
}

/// Hands the host at the other end of `channel` some descriptors, with a byte that says what they are.
///
/// Errors: there are more than [`PLACES_MAX`], or the host is gone.
pub(super) fn hand_over(channel: &File, word: u8, handed: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PLACES_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(handed)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let word = [IoSlice::new(std::slice::from_ref(&word))];
    rustix::net::sendmsg(channel, &word, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Gives the command's files their numbers and closes everything else, `status` at the moment the command begins.
pub(super) fn keep_only(files: &[(i32, i32)], status: &mut File) -> io::Result<()> {
    let mut waiting = Vec::with_capacity(files.len());
    for (now, then) in files {
        waiting.push((duplicate_above(*now)?, *then));
    }
    *status = taken(duplicate_above(status.as_raw_fd())?);
    // Everything in the range of jobs goes, then the files move in.
    close_range(3, ABOVE_ALL_JOBS.cast_unsigned() - 1)?;
    for (now, then) in &waiting {
        move_to(*now, *then)?;
    }
    set_close_on_exec(ABOVE_ALL_JOBS.cast_unsigned())
}

/// Closes everything but `status`, the standard streams too, and gives that back.
pub(super) fn only(status: &File) -> io::Result<File> {
    let kept = duplicate_above(status.as_raw_fd())?;
    close_range(0, kept.cast_unsigned() - 1)?;
    close_range(kept.cast_unsigned() + 1, u32::MAX)?;
    Ok(taken(kept))
}

#[expect(unsafe_code, reason = "no library takes descriptors by their numbers")]
fn duplicate_above(number: i32) -> io::Result<i32> {
    // SAFETY: the call touches no memory.
    match unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, ABOVE_ALL_JOBS) } {
        -1 => Err(io::Error::last_os_error()),
        copy => Ok(copy),
    }
}

#[expect(unsafe_code, reason = "no library takes descriptors by their numbers")]
fn move_to(now: i32, then: i32) -> io::Result<()> {
    // SAFETY: the call touches no memory; whatever had the number `then` was closed before.
    match unsafe { libc::dup2(now, then) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    range(first, last, 0)
}

fn set_close_on_exec(first: u32) -> io::Result<()> {
    range(first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// Kernels before 5.9 have no such call; nothing runs in the jail there, since Landlock is younger.
#[expect(unsafe_code, reason = "no library closes a range of descriptors")]
fn range(first: u32, last: u32, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the call touches no memory. The descriptors it closes are owned by nobody who lives on: `main` ends in the
    // command or in the end of the process.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
