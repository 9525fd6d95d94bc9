//! Objects that the operator named: found once, when the host starts, and held by descriptor from then on.
//!
//! A path is only a way to an object, and anyone who may write to a directory on the way can redirect it. So at each use, the object is
//! compared with the one its path leads to now, and a path that leads elsewhere gives no access.

use std::fs::ReadDir;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FileType, OFlags, Stat};

/// Most objects that are held for one name; older ones are given up first.
const FOLLOWED_MAX: usize = 8;

/// Which object: the number of its file system, and its number there. While a descriptor is held, no other object gets them.
pub(crate) type Id = (u64, u64);

/// An object and the path it was found at.
#[derive(Debug)]
pub struct HeldObject {
    path: PathBuf,
    handle: OwnedFd,
    id: Id,
    is_directory: bool,
}

impl HeldObject {
    /// Finds what is at `path`, which is resolved already.
    ///
    /// Errors: nothing is there, or a symbolic link stands in the way.
    pub fn open(path: &Path) -> io::Result<Self> {
        let handle = find(path)?;
        let stat = rustix::fs::fstat(&handle)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind.is_symlink() {
            return Err(rustix::io::Errno::LOOP.into());
        }
        Ok(Self {
            path: path.to_owned(),
            handle,
            id: id(&stat),
            is_directory: kind.is_dir(),
        })
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which object it is.
    pub(crate) fn id(&self) -> Id {
        self.id
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Whether the path still leads to it, and through no symbolic link.
    pub fn stands(&self) -> bool {
        Self::open(&self.path).is_ok_and(|now| now.id == self.id)
    }

    /// What is in it. The entries' paths are not those of the directory; their names are.
    ///
    /// Errors: it is not a directory, or cannot be read.
    pub fn list(&self) -> io::Result<ReadDir> {
        sys::list(&self.handle)
    }

    /// Where it is now; `None` when it has no name any more. What `found` says about a path is not looked at again.
    fn place_now(&self, found: (&Path, Option<Id>)) -> Option<PathBuf> {
        let place = sys::name(&self.handle)?;
        let now = match found {
            (path, Some(id)) if path == place => id,
            _ => Self::open(&place).ok()?.id,
        };
        (now == self.id).then_some(place)
    }

    fn is_gone(&self) -> bool {
        rustix::fs::fstat(&self.handle).map_or(true, |stat| stat.st_nlink == 0)
    }
}

/// A handle of what is at `path`, which leads through no symbolic link and is none. Nothing is opened for reading.
pub(crate) fn find(path: &Path) -> io::Result<OwnedFd> {
    sys::open(path, sys::FIND | OFlags::NOFOLLOW)
}

/// Opens what is at `path` for reading, which leads through no symbolic link and is none, without waiting for anybody.
///
/// Errors: nothing is there, or a symbolic link stands in the way.
pub fn open_to_read(path: &Path) -> io::Result<OwnedFd> {
    sys::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
}

/// Which object it is.
pub(crate) fn id(stat: &Stat) -> Id {
    #[allow(
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        reason = "the width and the sign differ between systems; only equality counts"
    )]
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// A name under which something must not be seen or changed, with all that was ever found there: what is moved away stays
/// what it is, and what takes its place is meant too.
#[derive(Debug)]
pub(crate) struct FollowedName {
    path: PathBuf,
    /// Protects the objects, for the moment of a look.
    seen: Mutex<Vec<HeldObject>>,
}

impl FollowedName {
    /// Looks at `path` for the first time.
    pub(crate) fn new(path: &Path) -> Self {
        let followed = Self {
            path: path.to_owned(),
            seen: Mutex::default(),
        };
        followed.take_in(&mut followed.seen());
        followed
    }

    /// The path itself, and where else what was found there is now.
    pub(crate) fn places(&self) -> Vec<PathBuf> {
        let mut seen = self.seen();
        let now = self.take_in(&mut seen);
        let places = seen
            .iter()
            .filter_map(|held| held.place_now((&self.path, now)));
        let moved = places.filter(|place| *place != self.path);
        std::iter::once(self.path.clone()).chain(moved).collect()
    }

    /// Holds what is at the path now, and tells which object that is.
    fn take_in(&self, seen: &mut Vec<HeldObject>) -> Option<Id> {
        seen.retain(|held| !held.is_gone());
        let now = HeldObject::open(&self.path).ok()?;
        let id = now.id;
        if !seen.iter().any(|held| held.id == id) {
            seen.push(now);
        }
        let n_over = seen.len().saturating_sub(FOLLOWED_MAX);
        seen.drain(..n_over);
        Some(id)
    }

    fn seen(&self) -> MutexGuard<'_, Vec<HeldObject>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(target_os = "linux")]
mod sys {
    use std::fs::ReadDir;
    use std::io;
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::path::{Path, PathBuf};

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

    pub(super) const FIND: OFlags = OFlags::PATH;

    pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve);
        Ok(opened?)
    }

    pub(super) fn name(handle: &OwnedFd) -> Option<PathBuf> {
        std::fs::read_link(link(handle)).ok()
    }

    pub(super) fn list(handle: &OwnedFd) -> io::Result<ReadDir> {
        std::fs::read_dir(link(handle))
    }

    fn link(handle: &OwnedFd) -> String {
        format!("/proc/self/fd/{}", handle.as_raw_fd())
    }
}

#[cfg(target_vendor = "apple")]
mod sys {
    use std::ffi::OsStr;
    use std::fs::ReadDir;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};

    use rustix::fs::{CWD, Mode, OFlags};

    /// For notices of the object only.
    pub(super) const FIND: OFlags = OFlags::from_bits_retain(libc::O_EVTONLY.cast_unsigned());

    /// Refuses a link anywhere on the way. It does not go together with the flag for the last part alone.
    const NO_LINKS: OFlags = OFlags::from_bits_retain(libc::O_NOFOLLOW_ANY.cast_unsigned());

    pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = (flags | NO_LINKS | OFlags::CLOEXEC) - OFlags::NOFOLLOW;
        Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
    }

    pub(super) fn name(handle: &OwnedFd) -> Option<PathBuf> {
        let name = rustix::fs::getpath(handle).ok()?;
        Some(OsStr::from_bytes(name.as_bytes()).into())
    }

    /// The system lists by name only.
    pub(super) fn list(handle: &OwnedFd) -> io::Result<ReadDir> {
        let name = name(handle).ok_or(io::ErrorKind::NotFound)?;
        std::fs::read_dir(name)
    }
}

#[cfg(test)]
mod tests;
