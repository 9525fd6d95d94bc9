//! Looks whether the mounts are what the host meant.
//!
//! Bubblewrap mounts by path. A command that runs at the same time in another jail can put a symbolic link in the way, between
//! the host's look and the mount. Here nothing of this run has begun yet and the mounts are made: what is right now stays
//! right.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use zeph_jail::plan::{Check, Mounted};

use super::Failure;

/// Errors: some place is not what it must be.
pub(super) fn all_places(checks: &[Check]) -> Result<(), Failure> {
    for check in checks {
        place(check).map_err(|reason| Failure {
            step: "checking the mounts",
            reason,
        })?;
    }
    Ok(())
}

fn place(check: &Check) -> Result<(), String> {
    let path = OsStr::from_bytes(&check.path);
    let named = |what: &str| format!("`{}` {what}", path.display());
    let opened = rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    );
    let place = opened.map_err(|error| named(&format!("cannot be reached: {error}")))?;
    let stat = rustix::fs::fstat(&place).map_err(|error| named(&error.to_string()))?;
    if (stat.st_dev, stat.st_ino) != (check.device, check.inode) {
        return Err(named("was exchanged while the jail was made"));
    }
    let flags = rustix::fs::fstatvfs(&place)
        .map_err(|error| named(&error.to_string()))?
        .f_flag;
    match check.mount {
        Mounted::ReadOnly if !flags.contains(StatVfsMountFlags::RDONLY) => {
            Err(named("can be written to"))
        }
        Mounted::Any | Mounted::ReadOnly => Ok(()),
    }
}
