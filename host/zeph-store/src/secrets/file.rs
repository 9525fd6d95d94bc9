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
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{SecretsError, fault};

/// The names of one file in the folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileNames {
    /// The file itself.
    pub(crate) file: &'static str,
    /// Its next state, while it is written.
    next: &'static str,
    /// The file that is locked; it is never replaced.
    lock: &'static str,
    /// The error of a file that cannot be used, of its path and its problem.
    broken: fn(PathBuf, String) -> SecretsError,
}

/// The file of secrets.
pub(super) const SECRETS: FileNames = FileNames {
    file: "secrets.json",
    next: "secrets.next",
    lock: "secrets.lock",
    broken: |path, problem| SecretsError::Broken { path, problem },
};

/// The file of logins.
pub(crate) const LOGINS: FileNames = FileNames {
    file: "logins.json",
    next: "logins.next",
    lock: "logins.lock",
    broken: |path, problem| SecretsError::Broken { path, problem },
};

/// The file of the keys of the audit.
pub(super) const AUDIT_KEYS: FileNames = FileNames {
    file: "audit.json",
    next: "audit.next",
    lock: "audit.lock",
    broken: |path, problem| SecretsError::Keys { path, problem },
};

/// The file of the chains that were sealed.
pub(super) const AUDIT_CHAINS: FileNames = FileNames {
    file: "audit-chains.json",
    next: "audit-chains.next",
    lock: "audit-chains.lock",
    broken: |path, problem| SecretsError::Chains { path, problem },
};

/// Pause between two tries for the lock, and how many there are: 5 s.
const PAUSE: Duration = Duration::from_millis(2);
const TRIES_MAX: u32 = 2_500;

/// What is wrong with a folder that is none: its rights are not.
pub(super) const NO_DIRECTORY: &str = "it is not a directory, but a link or a file";

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// What a file of the folder holds, as JSON.
pub(crate) trait FileContent: Default + Serialize + DeserializeOwned {
    /// The one version that is read, and written.
    const VERSION: u32;
    /// Bytes of the file at most.
    const BYTES_MAX: u64;

    /// The version in the file.
    fn version(&mut self) -> &mut u32;
}

/// The folder, open and checked.
pub(crate) struct Folder {
    names: FileNames,
    handle: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder; `None` when there is none.
    pub(crate) fn open(path: &Path, names: FileNames) -> Result<Option<Self>, SecretsError> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let handle = match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            // Of a folder above it: then there is none.
            Err(Errno::NOTDIR | Errno::LOOP) if path.symlink_metadata().is_err() => {
                return Ok(None);
            }
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(exposed(path, NO_DIRECTORY)),
            other => other.map_err(fault("open", path))?,
        };
        let stat = rustix::fs::fstat(&handle).map_err(fault("look at", path))?;
        check(path, &stat, FileType::Directory)?;
        let path = path.to_owned();
        Ok(Some(Self {
            names,
            handle,
            path,
        }))
    }

    /// Opens the folder, and makes it and those above it when there is none.
    pub(crate) fn make(path: &Path, names: FileNames) -> Result<Self, SecretsError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        match (made, Self::open(path, names)?) {
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
    pub(crate) fn hold(&self) -> Result<OwnedFd, SecretsError> {
        for _ in 0..TRIES_MAX {
            match self.try_hold(self.names.lock)? {
                Some(lock) => return Ok(lock),
                None => thread::sleep(PAUSE),
            }
        }
        let path = self.path.join(self.names.lock);
        Err(SecretsError::Held { path })
    }

    /// The lock on the file `name`, which is made if there is none, unless another holds it.
    pub(crate) fn try_hold(&self, name: &str) -> Result<Option<OwnedFd>, SecretsError> {
        let path = self.path.join(name);
        let lock = self
            .open_file(name, OFlags::RDWR | OFlags::CREATE)
            .map_err(fault("open", &path))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(lock)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(fault("lock", &path)(error)),
        }
    }

    /// What the file holds; the default when there is no file.
    pub(crate) fn parsed<T: FileContent>(&self) -> Result<T, SecretsError> {
        let Some(text) = self.read(T::BYTES_MAX)? else {
            return Ok(T::default());
        };
        // The parser's own message may quote the content.
        let mut content: T = serde_json::from_slice(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            self.broken(format!("line {line}, column {column} makes no sense"))
        })?;
        let (version, known) = (*content.version(), T::VERSION);
        match version == known {
            true => Ok(content),
            false => Err(self.broken(format!("it has version {version}, not {known}"))),
        }
    }

    /// Replaces what the file holds, in one step and durably. Only while the lock is held.
    pub(crate) fn write<T: FileContent>(&self, content: &mut T) -> Result<(), SecretsError> {
        *content.version() = T::VERSION;
        let text = serde_json::to_vec_pretty(content);
        self.replace(&text.map_err(|error| self.broken(error.to_string()))?)
    }

    fn broken(&self, problem: String) -> SecretsError {
        (self.names.broken)(self.path.join(self.names.file), problem)
    }

    /// The content of the file; `None` when there is none.
    fn read(&self, bytes_max: u64) -> Result<Option<Vec<u8>>, SecretsError> {
        let path = self.path.join(self.names.file);
        let handle = match self.open_file(self.names.file, OFlags::RDONLY) {
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
            Ok(n_bytes) if n_bytes as u64 > bytes_max => {
                Err(self.broken(format!("it has more than {bytes_max} bytes")))
            }
            Ok(_) => Ok(Some(content)),
        }
    }

    /// Replaces the file in one step, durably. Only while the lock is held.
    fn replace(&self, content: &[u8]) -> Result<(), SecretsError> {
        let path = self.path.join(self.names.next);
        let fault = |error| fault("write", &path)(error);
        // What a crash left.
        match rustix::fs::unlinkat(&self.handle, self.names.next, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(fault(error)),
        }
        let next = self
            .open_file(
                self.names.next,
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
            )
            .map_err(fault)?;
        let mut next = File::from(next);
        let written = next.write_all(content).and_then(|()| next.sync_all());
        written.map_err(|source| SecretsError::File {
            operation: "write",
            path: path.clone(),
            source,
        })?;
        rustix::fs::renameat(&self.handle, self.names.next, &self.handle, self.names.file)
            .map_err(fault)?;
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
