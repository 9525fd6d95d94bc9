//! The file in which a command finds what earlier outputs of its turn held: JSON, named in `ZEPH_TURN_STATE`.
//!
//! It is nobody else's, and gone with the command. In the full jail the shell makes it in a place that only this command has, and nothing
//! has the right to write to it. Elsewhere it has no place in any file system: it is sealed memory that the shell holds, and the descriptor
//! of that has a name for all that the command starts.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use crate::jail::JailLabel;
use crate::platform;
use crate::turn::rc;

/// Where it is in the full jail.
const PATH: &str = "/tmp/.zeph-turn-state.json";

/// The descriptor of it in the shell of a command, elsewhere.
pub(super) const FD: i32 = 58;

/// Whether there is a place for it that only the command has: the full jail has a `/tmp` of its own, unless that of the machine is given.
pub(super) fn has_place(label: Result<JailLabel, &str>, given: &[PathBuf]) -> bool {
    let is_given = |root: &PathBuf| Path::new(PATH).starts_with(root);
    label == Ok(JailLabel::Full) && !given.iter().any(is_given)
}

/// What the shell reads before the command.
pub(super) fn text(state: &[u8], has_place: bool) -> Vec<u8> {
    if !has_place {
        let names = platform::DESCRIPTORS_OF_SHELL;
        return format!("export ZEPH_TURN_STATE={names}/{FD}\n").into_bytes();
    }
    let mut text =
        format!("export ZEPH_TURN_STATE={PATH}\n(umask 0333; builtin printf %s ").into_bytes();
    rc::quote(state, &mut text);
    text.extend(format!(" >{PATH}) 2>/dev/null || unset -v ZEPH_TURN_STATE\n").as_bytes());
    text
}

/// One for the shell to hold.
///
/// Errors: the system refuses it.
pub(super) fn made(state: &[u8]) -> io::Result<OwnedFd> {
    let file = platform::fillable_file()?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(0o444))?;
    platform::fill(&file, state)?;
    Ok(file.into())
}
