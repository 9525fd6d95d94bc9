//! The filter of system calls: which of them a jailed command may make.
//!
//! Calls newer than this list are "not there", so is what a library tries first and does without, and the rest of what is refused is
//! "not permitted". A foreign architecture kills: its numbers mean other calls.
//!
//! When a filter is put on, the kernel runs it once for each number, to remember those that are allowed whatever their arguments, and
//! that is most of what a filter costs a command. So the number is searched for by halves (`search`), and only the few calls that are
//! judged by their arguments come to what `seccompiler` makes.

mod condition;
mod search;
mod table;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::watch;
use search::Answer;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch, sock_filter};

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
pub enum Reachable {
    /// Its own: it has namespaces.
    Nobody,
    /// The host's.
    Host,
}

/// Calls by number. One without rules is meant whatever its arguments; otherwise it is meant when one of its rules applies.
type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Makes the program.
///
/// Shape:  `struct sock_filter` after `struct sock_filter`, eight bytes each, at most 4,096 of them.
pub fn build(sockets: Sockets, around: Reachable) -> Vec<u8> {
    let absent = table::absent(around);
    let (always, judged): (SyscallRules, SyscallRules) = table::forbidden(sockets, around)
        .into_iter()
        .partition(|(_, rules)| rules.is_empty());
    let answer = |number: u32| {
        let number = i64::from(number);
        if absent.contains_key(&number) {
            Answer::Error(libc::ENOSYS)
        } else if always.contains_key(&number) {
            Answer::Error(libc::EPERM)
        } else if judged.contains_key(&number) {
            Answer::ByArguments
        } else {
            Answer::Allowed
        }
    };
    // What is newer than the tables covers the second x86-64 numbering too, which begins at 2^30.
    let newer = Answer::Error(libc::ENOSYS);
    let answers = (0..=NEWEST).map(answer).chain([newer]).collect();
    let mut program = vec![
        statement(LOAD_WORD, ARCHITECTURE_OF_THE_CALL),
        jump(JUMP_EQUAL, OWN_ARCHITECTURE, 1, 0),
        statement(RETURN, SeccompAction::KillProcess.into()),
        statement(LOAD_WORD, NUMBER_OF_THE_CALL),
    ];
    program.extend(search::program(answers));
    program.extend(refusing(judged, libc::EPERM));
    to_bytes(&program)
}

/// Makes the program that tells the host of the calls that take paths, and refuses none. What the other one refuses stays refused: its
/// answer is stricter, and such a call is not told.
///
/// `seccompiler` has no action that asks another process, so the program is written here.
///
/// Shape:  as of [`build`].
pub fn watching() -> Vec<u8> {
    let numbers: Vec<u32> = watch::calls()
        .filter_map(|call| u32::try_from(call.number).ok())
        .collect();
    let n_numbers = u8::try_from(numbers.len())
        .unwrap_or_else(|error| panic!("bug: a jump leads at most 255 instructions far: {error}"));
    // Behind the last comparison stand the two answers: to let pass, and to tell.
    let mut program = vec![
        statement(LOAD_WORD, ARCHITECTURE_OF_THE_CALL),
        jump(JUMP_EQUAL, OWN_ARCHITECTURE, 0, n_numbers + 1),
        statement(LOAD_WORD, NUMBER_OF_THE_CALL),
    ];
    let comparisons = numbers.iter().zip((1..=n_numbers).rev());
    program.extend(comparisons.map(|(number, left)| jump(JUMP_EQUAL, *number, left, 0)));
    program.push(statement(RETURN, SeccompAction::Allow.into()));
    program.push(statement(RETURN, libc::SECCOMP_RET_USER_NOTIF));
    to_bytes(&program)
}

/// Reads a program as [`build`] or [`watching`] wrote it.
///
/// Errors: `None` when the bytes are not whole instructions.
pub fn from_bytes(bytes: &[u8]) -> Option<BpfProgram> {
    let (instructions, rest) = bytes.as_chunks::<8>();
    let read = |&[code0, code1, jt, jf, k0, k1, k2, k3]: &[u8; 8]| sock_filter {
        code: u16::from_ne_bytes([code0, code1]),
        jt,
        jf,
        k: u32::from_ne_bytes([k0, k1, k2, k3]),
    };
    rest.is_empty()
        .then(|| instructions.iter().map(read).collect())
}

fn to_bytes(program: &BpfProgram) -> Vec<u8> {
    let instruction = |one: &sock_filter| {
        let [code0, code1] = one.code.to_ne_bytes();
        let [k0, k1, k2, k3] = one.k.to_ne_bytes();
        [code0, code1, one.jt, one.jf, k0, k1, k2, k3]
    };
    program.iter().flat_map(instruction).collect()
}

/// Answers `error` to `calls` and lets all others pass.
fn refusing(calls: SyscallRules, error: i32) -> BpfProgram {
    let architecture = TargetArch::try_from(std::env::consts::ARCH);
    architecture
        .and_then(|architecture| {
            let refused = SeccompAction::Errno(error.unsigned_abs());
            SeccompFilter::new(calls, SeccompAction::Allow, refused, architecture)
        })
        .and_then(BpfProgram::try_from)
        .unwrap_or_else(|error| panic!("bug: the filter of system calls cannot be made: {error}"))
}

/// The newest call the tables know (`removexattrat`, Linux 6.13).
const NEWEST: u32 = 466;

const LOAD_WORD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const NUMBER_OF_THE_CALL: u32 = 0;
const ARCHITECTURE_OF_THE_CALL: u32 = 4;

#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN_ARCHITECTURE: u32 = 0xc000_00b7;

fn statement(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

/// Goes on `jt` instructions later when the comparison holds, else `jf`.
fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}
