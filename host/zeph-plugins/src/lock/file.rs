//! The lock file on disk: read whole, changed by one process at a time, replaced in one step.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use super::{LOCK_BYTES_MAX, Lock, LockError, read, write};

/// Rights of a new file and of its companion: no other user may read or change the operator's choices.
/// A file that is there keeps its own.
const FILE_MODE: u32 = 0o600;

/// How long a change waits for another process. A change takes milliseconds.
const WAIT: Duration = Duration::from_secs(5);

/// Pause between two tries for the companion's lock.
const PAUSE: Duration = Duration::from_millis(2);

/// Changing a lock file.
#[derive(Debug)]
pub(crate) struct LockFile;

impl LockFile {
    /// Reads the lock file, lets `change` change it, and replaces it, while every other process that wants to change it waits.
    ///
    /// Nothing is written when `change` fails or changes nothing, or when what was to be written could not be read again. What `change` is given may differ from what was read
    /// before. After a success the change is on the disk; a death in the middle leaves the file as it was. A symbolic link
    /// stays, and the file it leads to is replaced.
    ///
    /// Errors: those of `change`, and [`LockError`]. Limits: it blocks, for up to 5 s when another process holds the file.
    pub(crate) fn edit<T, E: From<LockError>>(
        path: &Path,
        change: impl FnOnce(&mut Lock) -> Result<T, E>,
    ) -> Result<T, E> {
        Self::edit_then(path, change, || Ok(()))
    }

    /// Changes the lock file together with something beside it, which `commit` does: only after the new text lies on the disk and could be read
    /// again, so that a lock that cannot be written leaves both as they were. The text is moved into place last.
    ///
    /// Errors: those of [`edit`](Self::edit) and of `commit`; then the lock is as it was.
    pub(crate) fn edit_then<T, E: From<LockError>>(
        path: &Path,
        change: impl FnOnce(&mut Lock) -> Result<T, E>,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<T, E> {
        let path = target(path)?;
        let _only_one = hold(&path)?;
        let mut lock = match text(&path)? {
            Some(text) => read::lock(&text, &path)?,
            None => Lock::default(),
        };
        let before = write::text(&lock);
        let changed = change(&mut lock)?;
        let after = write::text(&lock);
        let written = (after != before).then(|| written(&path, &after));
        let written = written.transpose()?;
        commit()?;
        if let Some(written) = written {
            put_in_place(written, &path)?;
        }
        Ok(changed)
    }
}

/// The text of the file; none when there is no file.
pub(super) fn text(path: &Path) -> Result<Option<String>, LockError> {
    const OPERATION: &str = "read";
    // A pipe in its place must not be waited on.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_link(path) => return Ok(None),
        other => other.map_err(fault(OPERATION, path))?,
    };
    let metadata = file.metadata().map_err(fault(OPERATION, path))?;
    if !metadata.is_file() {
        let path = path.to_owned();
        return Err(LockError::NotAFile { path });
    }
    let mut bytes = Vec::new();
    let mut bounded = file.take(LOCK_BYTES_MAX + 1);
    bounded
        .read_to_end(&mut bytes)
        .map_err(fault(OPERATION, path))?;
    check_length(path, bytes.len() as u64)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        LockError::Broken {
            path: path.to_owned(),
            line: valid.iter().filter(|byte| **byte == b'\n').count() + 1,
            problem: "this is not UTF-8 text".to_owned(),
        }
    })?;
    Ok(Some(text))
}

/// The file itself, whatever links lead to it: a rename over a link would replace the link.
fn target(path: &Path) -> Result<PathBuf, LockError> {
    let found = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_link(path) => {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")));
            folder.map(|folder| folder.join(path.file_name().unwrap_or_default()))
        }
        other => other,
    };
    found.map_err(fault("find", path))
}

/// Waits for the companion's lock, which is held until the result is dropped.
///
/// The companion is never replaced; the lock file itself is, so a lock on it would be a lock on what is no longer there.
fn hold(path: &Path) -> Result<File, LockError> {
    let companion = sibling(path, ".guard");
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .custom_flags(flags.bits().cast_signed())
        .open(&companion)
        .map_err(fault("open", &companion))?;
    for _ in 0..=WAIT.as_millis() / PAUSE.as_millis() {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(source)) => return Err(fault("lock", &companion)(source)),
        }
    }
    Err(LockError::Held {
        path: path.to_owned(),
        waited_ms: WAIT.as_millis(),
    })
}

/// Writes `text` beside the file and makes it durable, if it can be read again: a lock that nobody can read switches every plugin off, and no
/// command could change it any more.
fn written(path: &Path, text: &str) -> Result<NamedTempFile, LockError> {
    read::lock(text, path).map_err(|source| LockError::Unreadable {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    check_length(path, text.len() as u64)?;
    let mode = match fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode() & 0o777,
        Err(_) => FILE_MODE,
    };
    let written = || {
        let mut file = tempfile::Builder::new()
            .prefix(".zeph.lock.")
            .tempfile_in(folder_of(path))?;
        file.write_all(text.as_bytes())?;
        file.as_file()
            .set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    written().map_err(fault("write", path))
}

fn put_in_place(written: NamedTempFile, path: &Path) -> Result<(), LockError> {
    let persisted = written.persist(path).map_err(|error| error.error);
    persisted
        .and_then(|_| File::open(folder_of(path))?.sync_all())
        .map_err(fault("write", path))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// `.NAME` and `suffix`, in the folder of `path`.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

fn check_length(path: &Path, n_bytes: u64) -> Result<(), LockError> {
    if n_bytes <= LOCK_BYTES_MAX {
        return Ok(());
    }
    Err(LockError::TooLong {
        path: path.to_owned(),
        n_bytes,
    })
}

fn fault(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LockError {
    let path = path.to_owned();
    move |source| LockError::File {
        operation,
        path,
        source,
    }
}
