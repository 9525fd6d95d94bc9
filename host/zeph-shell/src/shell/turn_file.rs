//! The file in which a command finds what earlier outputs of its turn held: JSON, named in `ZEPH_TURN_STATE`.
//!
//! It has no place in any file system: the shell of the command holds it, and its descriptor has a name for all that the command starts.
//! So it is nobody else's, and gone with the command; it is sealed, so that nothing can change it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::Mode;

use crate::platform;

/// The descriptor of it in the shell of a command.
pub(super) const FD: i32 = 58;

/// What a turn without outputs has.
const NOTHING: &[u8] = br#"{"json":[],"paths":[],"urls":[]}"#;

/// One that is to be filled when its command is known.
///
/// Errors: the system refuses it.
pub(super) fn empty() -> io::Result<File> {
    platform::fillable_file()
}

/// Fills an empty one, for good.
///
/// Errors: the memory is full.
pub(super) fn fill(file: &File, state: Option<&[u8]>) -> io::Result<()> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(0o444))?;
    platform::fill(file, state.unwrap_or(NOTHING))
}

/// A full one.
///
/// Errors: the system refuses it.
pub(super) fn made(state: Option<&[u8]>) -> io::Result<OwnedFd> {
    let file = empty()?;
    fill(&file, state)?;
    Ok(file.into())
}

/// What the shell reads before the command.
pub(super) fn line() -> Vec<u8> {
    let names = platform::DESCRIPTORS_OF_SHELL;
    format!("export ZEPH_TURN_STATE={names}/{FD}\n").into_bytes()
}
