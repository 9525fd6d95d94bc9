//! The folder and its file on disk, through handles: what was checked is what is read.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{SecretsError, fault};

/// The file in the folder.
pub(super) const NAME: &str = "secrets.json";

/// The next state of the file, while it is written.
const NEXT: &str = "secrets.next";

/// The file that is locked; it is never replaced.
const LOCK: &str = "secrets.lock";

/// Pause between two tries for the lock, and how many there are: 5 s.
const PAUSE: Duration = Duration::from_millis(2);
const TRIES_MAX: u32 = 2_500;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The folder, open and checked.
pub(super) struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder; `None` when there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, SecretsError> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let handle = match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(exposed(path, "it is not a directory, but a link or a file"));
            }
            other => other.map_err(fault("open", path))?,
        };
        let stat = rustix::fs::fstat(&handle).map_err(fault("look at", path))?;
        check(path, &stat, FileType::Directory)?;
        let path = path.to_owned();
        Ok(Some(Self { handle, path }))
    }

    /// Opens the folder, and makes it and those above it when there is none.
    pub(super) fn make(path: &Path) -> Result<Self, SecretsError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        match (made, Self::open(path)?) {
            (_, Some(folder)) => Ok(folder),
            (made, None) => {
                let source = made.err().unwrap_or_else(|| io::ErrorKind::NotFound.into());
                Err(SecretsError::File {
                    operation: "create",
                    path: path.to_owned(),
                    source,
                })
            }
        }
    }

    /// Waits for the lock, which is held until the result is dropped.
    pub(super) fn hold(&self) -> Result<OwnedFd, SecretsError> {
        let path = self.path.join(LOCK);
        let lock = self
            .open_file(LOCK, OFlags::RDWR | OFlags::CREATE)
            .map_err(fault("open", &path))?;
        for _ in 0..TRIES_MAX {
            match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(lock),
                Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(PAUSE),
                Err(error) => return Err(fault("lock", &path)(error)),
            }
        }
        Err(SecretsError::Held { path })
    }

    /// The content of the file; `None` when there is none.
    pub(super) fn read(&self, bytes_max: u64) -> Result<Option<Vec<u8>>, SecretsError> {
        let path = self.path.join(NAME);
        let handle = match self.open_file(NAME, OFlags::RDONLY) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(exposed(&path, "it is a symbolic link")),
            other => other.map_err(fault("open", &path))?,
        };
        let stat = rustix::fs::fstat(&handle).map_err(fault("look at", &path))?;
        check(&path, &stat, FileType::RegularFile)?;
        if stat.st_nlink != 1 {
            return Err(exposed(&path, "it has a second name (a hard link)"));
        }
        let mut content = Vec::new();
        let read = File::from(handle)
            .take(bytes_max + 1)
            .read_to_end(&mut content);
        match read {
            Err(source) => Err(SecretsError::File {
                operation: "read",
                path,
                source,
            }),
            Ok(n_bytes) if n_bytes as u64 > bytes_max => Err(SecretsError::Broken {
                path,
                problem: format!("it has more than {bytes_max} bytes"),
            }),
            Ok(_) => Ok(Some(content)),
        }
    }

    /// Replaces the file in one step, durably. Only while the lock is held.
    pub(super) fn replace(&self, content: &[u8]) -> Result<(), SecretsError> {
        let path = self.path.join(NEXT);
        let fault = |error| fault("write", &path)(error);
        // What a crash left.
        match rustix::fs::unlinkat(&self.handle, NEXT, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(fault(error)),
        }
        let next = self
            .open_file(NEXT, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
            .map_err(fault)?;
        let mut next = File::from(next);
        let written = next.write_all(content).and_then(|()| next.sync_all());
        written.map_err(|source| SecretsError::File {
            operation: "write",
            path: path.clone(),
            source,
        })?;
        rustix::fs::renameat(&self.handle, NEXT, &self.handle, NAME).map_err(fault)?;
        rustix::fs::fsync(&self.handle).map_err(fault)
    }

    /// A pipe in its place is not waited on, and no link is followed.
    fn open_file(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::openat(&self.handle, name, flags, PRIVATE)
    }
}

/// Whether this is of the kind it should be, and its owner's alone.
fn check(path: &Path, stat: &Stat, kind: FileType) -> Result<(), SecretsError> {
    if FileType::from_raw_mode(stat.st_mode) != kind {
        return Err(exposed(path, "it is not a regular file"));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(exposed(path, "it belongs to another user"));
    }
    match stat.st_mode & 0o077 {
        0 => Ok(()),
        _ => Err(exposed(path, "other users have rights on it")),
    }
}

fn exposed(path: &Path, problem: &'static str) -> SecretsError {
    SecretsError::Exposed {
        path: path.to_owned(),
        problem,
    }
}
