//! A file that is made for the command.

use std::ffi::OsStr;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

use zeph_jail::plan::MadeFile;

/// All may read it, and none may write to it.
const MODE: u32 = 0o444;

/// Makes the file, and gives the variable that names it; nothing where it cannot be made whole.
pub(super) fn variable(made: &MadeFile) -> Option<Vec<u8>> {
    make(made).ok()?;
    Some(made.variable.clone())
}

fn make(made: &MadeFile) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(OsStr::from_bytes(&made.path))?;
    file.write_all(&made.bytes)?;
    // Whatever the mask of the host takes away.
    file.set_permissions(Permissions::from_mode(MODE))
}
