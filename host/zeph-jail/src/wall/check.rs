//! Looks whether the mounts are what the host meant.
//!
//! Bubblewrap mounts by path. A command that runs at the same time in another jail can put a symbolic link in the way, between
//! the host's look and the mount. Here nothing of this run has begun yet and the mounts are made: what is right now stays
//! right.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxAttributes, StatxFlags,
};
use zeph_jail::plan::{MountCheck, MountMode};

use super::Failure;

/// Errors: some place is not what it must be.
pub(super) fn all_places(checks: &[MountCheck]) -> Result<(), Failure> {
    for check in checks {
        place(check).map_err(|reason| Failure {
            step: "checking the mounts",
            reason,
        })?;
    }
    Ok(())
}

fn place(check: &MountCheck) -> Result<(), String> {
    let path = OsStr::from_bytes(&check.path);
    let named = |what: &str| format!("`{}` {what}", path.display());
    let opened = rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    );
    let place = match opened {
        // What is not there cannot be seen.
        Err(_) if check.mount == MountMode::Covered => return Ok(()),
        opened => opened.map_err(|error| named(&format!("cannot be reached: {error}")))?,
    };
    let failed = |error: rustix::io::Errno| named(&error.to_string());
    let stat = rustix::fs::fstat(&place).map_err(failed)?;
    let is_same = (stat.st_dev, stat.st_ino) == (check.device, check.inode);
    match check.mount {
        MountMode::Covered if is_same => return Err(named("is not covered")),
        MountMode::Covered => return Ok(()),
        MountMode::Any | MountMode::ReadOnly if !is_same => {
            return Err(named("was exchanged while the jail was made"));
        }
        MountMode::Any | MountMode::ReadOnly => {}
    }
    // A mount goes when what it stands on is removed, and what is put there then has none.
    if !is_mount(&place).map_err(failed)? {
        return Err(named("is no mount of its own"));
    }
    let flags = rustix::fs::fstatvfs(&place).map_err(failed)?.f_flag;
    match check.mount {
        MountMode::ReadOnly if !flags.contains(StatVfsMountFlags::RDONLY) => {
            Err(named("can be written to"))
        }
        _ => Ok(()),
    }
}

fn is_mount(place: &OwnedFd) -> rustix::io::Result<bool> {
    let about = rustix::fs::statx(place, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())?;
    Ok(about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}
