//! The files of the store on disk: private folders and files, identity, and the lock that start-ups take in turn.
//!
//! Nothing here opens an existing database file: closing any descriptor of it would drop the record locks that
//! SQLite holds in the same process.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::geteuid;
use uuid::Uuid;

use crate::error::{ErrorSource, StoreError, file};

/// Rights of a created folder: what is stored is nobody else's business.
const FOLDER_MODE: u32 = 0o700;

/// Rights of a created file.
const FILE_MODE: u32 = 0o600;

/// Links that lead to one another, at most. Linux follows as many.
const LINKS_MAX: usize = 40;

/// Pause between two tries for the start-up lock. Short beside a start, long beside a system call.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// Which file a path led to: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    /// The file `path` leads to now.
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::of(&metadata))
    }

    /// The file behind `metadata`.
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// The absolute path of the store at `path`, with a symbolic link at its end resolved: the lock, the log and the notes beside the store are
/// then the same for every name of it. Links among its folders are left, since they lead to the same folder anyway.
///
/// Errors: [`StoreError::DanglingLink`]; [`StoreError::File`] when the path cannot be looked at.
pub(crate) fn real(path: &Path) -> Result<PathBuf, StoreError> {
    let path = std::path::absolute(path).map_err(file("find the store", path))?;
    if !path.is_symlink() {
        return Ok(path);
    }
    fs::canonicalize(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => StoreError::DanglingLink {
            target: fs::read_link(&path).unwrap_or_default(),
            path,
        },
        _ => file("find the store", &path)(source),
    })
}

/// Where the symbolic link at `path` leads in the end, whether anything is there or not. None where it is no link, and where links lead in a
/// circle.
///
/// Shape: `path` is absolute.
pub(crate) fn link_target(path: &Path) -> Option<PathBuf> {
    let mut target = path.to_owned();
    for n_links in 0..=LINKS_MAX {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent()?.join(next),
            Err(_) => return (n_links > 0).then_some(target),
        }
    }
    None
}

/// The same for every name of the file at `path`, whether it is there yet or not.
pub(crate) fn by_any_name(path: &Path) -> PathBuf {
    let path = real(path).unwrap_or_else(|_| path.to_owned());
    let known = path.ancestors().find_map(|folder| {
        let missing = path.strip_prefix(folder).ok()?;
        let folder = folder.canonicalize().ok()?;
        Some(folder.components().chain(missing.components()).collect())
    });
    known.unwrap_or(path)
}

/// `path` with `suffix` appended to its last part.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates the folders above `path` that are missing, for the owner alone. Existing ones keep their rights.
pub(crate) fn create_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        None => Ok(()),
        Some(folder) if folder.as_os_str().is_empty() => Ok(()),
        Some(folder) => DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(folder),
    }
}

/// Refuses a path that leads to anything but a regular file or nothing: opening a FIFO would hang.
///
/// Errors: [`StoreError::NotAFile`]; [`StoreError::File`] when the path cannot be looked at.
pub(crate) fn check_regular(path: &Path) -> Result<(), StoreError> {
    let kind = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(metadata) if metadata.is_dir() => "directory",
        Ok(_) => "device, pipe or socket",
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(file("look at the store", path)(source)),
    };
    Err(StoreError::NotAFile {
        path: path.to_owned(),
        kind,
    })
}

/// Creates an empty database file for the owner alone, unless there is one.
pub(crate) fn create_private(path: &Path) -> Result<(), StoreError> {
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path);
    match created {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(file("create the store", path)(source)),
    }
}

/// The identity of a host that keeps its own things in `folder`: made with its first use, and the same for all its processes. One that is
/// there is only read: a folder that is full or cannot be written serves as well.
///
/// Errors: [`StoreError::HostId`].
pub fn host_id(folder: &Path) -> Result<String, StoreError> {
    let path = folder.join("host-id");
    let found = match known_host_id(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_host_id(&path).and_then(|()| known_host_id(&path))
        }
        found => found,
    };
    found.map_err(|source| StoreError::HostId { path, source })
}

/// The identity of the host that keeps its own things in `folder`, which may be another user's: made only in one of this user, since its host has to
/// read it. None where it cannot be had.
pub(crate) fn host_id_of(folder: &Path) -> Option<String> {
    match known_host_id(&folder.join("host-id")) {
        Ok(known) => Some(known),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_own =
                fs::metadata(folder).is_ok_and(|folder| folder.uid() == geteuid().as_raw());
            is_own.then(|| host_id(folder).ok()).flatten()
        }
        Err(_) => None,
    }
}

fn known_host_id(path: &Path) -> io::Result<String> {
    let known = fs::read_to_string(path)?;
    match Uuid::try_parse(known.trim()) {
        Ok(known) => Ok(known.to_string()),
        Err(_) => Err(io::Error::other("the file holds no identity")),
    }
}

/// Whole or not at all, and never in place of another's.
fn make_host_id(path: &Path) -> io::Result<()> {
    create_folder_of(path)?;
    let own = Uuid::new_v4().to_string();
    let draft = with_suffix(path, &format!(".{own}"));
    let written = open_append(&draft).and_then(|mut draft| draft.write_all(own.as_bytes()));
    let linked = written.and_then(|()| fs::hard_link(&draft, path));
    drop(fs::remove_file(&draft));
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Opens a file for appending and reading, creating it for the owner alone.
pub(crate) fn open_append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .read(true)
        .create(true)
        .mode(FILE_MODE)
        .open(path)
}

/// Takes the start-up lock of the store `path`; it is held until the returned file is dropped.
///
/// It serialises the start of hosts on one store: creation, migration and setting aside. Running hosts do not hold it.
///
/// Errors: [`StoreError::Busy`] when others hold it for longer than `timeout`; [`StoreError::File`] when the lock file
/// cannot be created.
pub(crate) fn lock_start(path: &Path, timeout: Duration) -> Result<File, StoreError> {
    const OPERATION: &str = "lock the start of the store";
    let lock_path = with_suffix(path, ".lock");
    let lock = open_append(&lock_path).map_err(file("create the lock file", &lock_path))?;
    let n_tries = timeout.as_millis() / LOCK_PAUSE.as_millis();
    for _ in 0..=n_tries {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(source)) => return Err(file(OPERATION, &lock_path)(source)),
        }
    }
    let source = ErrorSource::from(io::Error::from(io::ErrorKind::WouldBlock));
    Err(StoreError::Busy {
        operation: OPERATION,
        path: path.to_owned(),
        waited: timeout,
        source,
    })
}

#[cfg(test)]
mod tests;
