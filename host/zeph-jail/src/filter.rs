//! The filter of system calls: which of them a jailed command may make.
//!
//! Written as a program for the kernel's classic packet filter, by hand, since one filter with several answers is needed: a
//! foreign architecture kills (its numbers mean other calls), what a library tries first and does without is "not there", and
//! the rest of what is refused is "not permitted". Calls newer than this list are "not there". The kernel remembers which
//! numbers are allowed whatever their arguments, so the length of the filter costs nothing for those.

mod assemble;
mod table;

#[cfg(test)]
mod tests;

use assemble::Program;

/// Which kinds of sockets a command may make. Pairs of connected sockets are always allowed: they lead nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sockets {
    /// Internet sockets: where the command has a network of its own, or may use the host's.
    pub internet: Family,
    /// Sockets with a name: only where no socket of the host can be seen.
    pub unix: Family,
}

/// Whether sockets of one family may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Yes.
    Allowed,
    /// No.
    Refused,
}

/// Whose processes and kernel objects a command could reach without a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// Its own: it has namespaces.
    Nobody,
    /// The host's.
    Host,
}

/// Makes the filter.
///
/// Shape:  `struct sock_filter` after `struct sock_filter`, eight bytes each, at most 4,096 of them.
pub fn build(sockets: Sockets, around: Around) -> Vec<u8> {
    let mut program = Program::start();
    for number in table::absent() {
        program.refuse(number, libc::ENOSYS);
    }
    for number in table::forbidden() {
        program.refuse(number, libc::EPERM);
    }
    table::conditional(&mut program, sockets);
    if around == Around::Host {
        table::shared(&mut program);
    }
    program.finish()
}
