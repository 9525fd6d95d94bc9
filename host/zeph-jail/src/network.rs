//! The network that the commands of one session share, so that a server in the background can be reached by later commands.
//!
//! `hold` makes it: a namespace of users, which is needed to enter the other one without privilege, and a network that is nothing but
//! a loopback. The host keeps both by their descriptors; they end when nobody has them any more. `join` enters them and becomes
//! bubblewrap, which then builds a jail around the command that has everything of its own but the network.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;

use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use zeph_jail::READY;

/// Makes the namespaces, says so on standard output, and ends with standard input.
///
/// Errors: the kernel refuses a step.
pub(crate) fn hold() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    loopback_up()?;
    io::stdout().write_all(&[READY])?;
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// Enters the namespaces whose descriptors the first two words number, and becomes the program that the next one names. Comes back
/// only with what failed.
pub(crate) fn join(mut words: impl Iterator<Item = OsString>) -> io::Error {
    let mut enter = |kind| {
        let namespace = taken(words.next())?;
        move_into_link_name_space(namespace.as_fd(), Some(kind)).map_err(io::Error::from)
    };
    let entered = enter(LinkNameSpaceType::User).and_then(|()| enter(LinkNameSpaceType::Network));
    match (entered, words.next()) {
        (Err(error), _) => error,
        (Ok(()), None) => io::ErrorKind::InvalidInput.into(),
        (Ok(()), Some(program)) => become_program(program, words),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this program is made to become another one"
)]
fn become_program(program: OsString, words: impl Iterator<Item = OsString>) -> io::Error {
    std::process::Command::new(program).args(words).exec()
}

/// The descriptor that a word numbers; it is closed before the program begins.
#[expect(unsafe_code, reason = "the host names descriptors by their numbers")]
fn taken(word: Option<OsString>) -> io::Result<OwnedFd> {
    let number = word.and_then(|word| word.to_str()?.parse::<i32>().ok());
    let number = number.filter(|number| *number > 2);
    let number = number.ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: the host passes a descriptor under this number and names it once; nobody else here owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[expect(
    unsafe_code,
    reason = "the library's call is unsafe for what it does to descriptors"
)]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the table of descriptors stays shared; there is one thread.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

#[expect(
    unsafe_code,
    reason = "no library sets the flags of a network interface"
)]
fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    let socket = std::os::fd::AsRawFd::as_raw_fd(&socket);
    // The type of its number differs between C libraries.
    let set_flags = libc::SIOCSIFFLAGS as libc::Ioctl;
    // SAFETY: the request lives until the call has returned; the kernel only reads it.
    match unsafe { libc::ioctl(socket, set_flags, &raw const request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
