//! What the inner stage of the jail does for a shell, for one that runs without a jail because the operator switched it off:
//! gives the descriptors their numbers and has it read its first text.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::platform;
use crate::spawn::Launch;

/// What is put before the program.
const SHELL: &str = "/bin/bash";

/// Puts a shell before the one to be launched that hands `files` on under their numbers and names `rc` as the text to be read
/// first.
///
/// Errors: no descriptor is free.
pub(super) fn hand_on(
    launch: &mut Launch,
    files: Vec<(OwnedFd, RawFd)>,
    rc: &[u8],
) -> io::Result<()> {
    let mut file = platform::nameless_file()?;
    let number = file.as_raw_fd();
    io::Write::write_all(&mut file, rc)?;
    // Whatever the command starts need not have it.
    io::Write::write_all(&mut file, format!("exec {number}<&-\n").as_bytes())?;
    let mut script = String::new();
    for (file, number) in &files {
        let held = file.as_raw_fd();
        if held != *number {
            script.push_str(&format!("exec {number}>&{held} {held}>&-; "));
        }
    }
    script.push_str(&format!(
        "BASH_ENV={}/{number} exec \"$0\" \"$@\"",
        platform::DESCRIPTORS
    ));
    let mut arguments: Vec<OsString> = vec!["-c".into(), script.into()];
    let program = std::mem::replace(&mut launch.program, SHELL.into());
    arguments.push(program.into_os_string());
    arguments.append(&mut launch.arguments);
    launch.arguments = arguments;
    launch.inherited.push(file.into());
    launch
        .inherited
        .extend(files.into_iter().map(|(file, _)| file));
    Ok(())
}
