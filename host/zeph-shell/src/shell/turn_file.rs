//! The file in which a command finds what earlier outputs of its turn held: JSON, named in `ZEPH_TURN_STATE`.
//!
//! It is nobody else's, and gone with the command. In the full jail the inner stage makes it in a place that only this command has, and
//! nothing has the right to write to it: a shell would have to start another one for that. Elsewhere it has no place in any file system: it is sealed memory that the shell holds, and the descriptor
//! of that has a name for all that the command starts.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use zeph_jail::plan::MadeFile;

use crate::jail::JailLabel;
use crate::platform;

/// Where it is in the full jail.
const PATH: &str = "/tmp/.zeph-turn-state.json";

/// The descriptor of it in the shell of a command, elsewhere.
pub(super) const FD: i32 = 58;

/// Whether there is a place for it that only the command has: the full jail has a `/tmp` of its own, unless that of the machine is given.
pub(super) fn has_place(label: Option<JailLabel>, given: &[PathBuf]) -> bool {
    let is_given = |root: &PathBuf| Path::new(PATH).starts_with(root);
    label == Some(JailLabel::Full) && !given.iter().any(is_given)
}

/// What the shell reads before the command, where the file has no place.
pub(super) fn text() -> Vec<u8> {
    let names = platform::DESCRIPTORS_OF_SHELL;
    format!("export ZEPH_TURN_STATE={names}/{FD}\n").into_bytes()
}

/// One for the inner stage to make.
pub(super) fn made(state: &[u8]) -> MadeFile {
    MadeFile {
        path: PATH.into(),
        bytes: state.to_vec(),
        variable: format!("ZEPH_TURN_STATE={PATH}").into_bytes(),
    }
}

/// One for the shell to hold.
///
/// Errors: the system refuses it.
pub(super) fn held(state: &[u8]) -> io::Result<OwnedFd> {
    let file = platform::fillable_file()?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(0o444))?;
    platform::fill(&file, state)?;
    Ok(file.into())
}
