//! A folder of plugins by its handle: listed, read and changed beneath it, wherever its path leads meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use zeph_config::lock_of;
use zeph_core::id::Digest;
use zeph_engine::{COMPONENT_BYTES_MAX, ComponentBytes};

use super::Files;
use crate::folder::{self, FILES_MAX};
use crate::manage::ManageError;
use crate::signature::SignatureFile;

/// Most bytes of a file of signatures.
const SIGNATURES_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// The file that says who works on a folder, beside its lock.
const GUARD: &str = ".zeph.sync.guard";

/// How the temporary files begin. Their names do not end in `.wasm`, so that no host takes one for a plugin.
const TEMPORARY: &str = ".adding-";

/// How the names of the temporary files end.
const TEMPORARY_END: &str = ".part";

/// How long a command waits for another one that changes the folder. Writing a component takes a second at most.
const WAIT: Duration = Duration::from_secs(10);

/// How long a host waits for a command that changes the folder, before it says that a plugin is not what was accepted.
const LOOK_WAIT: Duration = Duration::from_secs(1);

/// Pause between two tries for the guard.
const PAUSE: Duration = Duration::from_millis(10);

/// A folder that was looked at and stays open.
#[derive(Debug)]
pub(super) struct HeldFolder {
    path: PathBuf,
    dir: File,
}

/// A component that was written and is not in its place yet. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Written<'a> {
    held: &'a HeldFolder,
    temporary: OsString,
    target: OsString,
    is_placed: bool,
}

impl HeldFolder {
    /// Errors: `Folder` for one that other users may change, `File`.
    pub(super) fn open(path: &Path) -> Result<Self, ManageError> {
        let fault = |operation| move |source| fault(operation, path, source);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(path)
            .map_err(fault("make"))?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = File::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(fault("open"))?;
        let metadata = dir.metadata().map_err(fault("open"))?;
        folder::check(&metadata).map_err(|problem| ManageError::Folder {
            folder: path.to_owned(),
            problem,
        })?;
        let path = path.to_owned();
        Ok(Self { path, dir })
    }

    /// The names of all `*.wasm` in it.
    ///
    /// Errors: `Folder` for too many, `File`.
    pub(super) fn components(&self) -> Result<Files, ManageError> {
        let is_component = |name: &OsStr| Path::new(name).extension() == Some(OsStr::new("wasm"));
        let files = self.names(is_component)?;
        match files.len() > FILES_MAX {
            true => Err(ManageError::Folder {
                folder: self.path.clone(),
                problem: format!("it holds more than {FILES_MAX} plugins"),
            }),
            false => Ok(files),
        }
    }

    /// That there is room for this component: with one too many, none would be used.
    ///
    /// Errors: `Full`, and those of [`components`](Self::components).
    pub(super) fn check_room(&self, file: &OsStr) -> Result<(), ManageError> {
        let files = self.components()?;
        match files.contains(file) || files.len() < FILES_MAX {
            true => Ok(()),
            false => Err(ManageError::Full(self.path.clone())),
        }
    }

    /// Removes what commands wrote that were killed. Only for who keeps the others out.
    ///
    /// Errors: `File`.
    pub(super) fn remove_leftovers(&self) -> Result<(), ManageError> {
        let is_left = |name: &OsStr| {
            let name = name.as_bytes();
            name.starts_with(TEMPORARY.as_bytes()) && name.ends_with(TEMPORARY_END.as_bytes())
        };
        let left = self.names(is_left)?;
        left.iter().try_for_each(|name| self.remove(name))
    }

    fn names(&self, is_meant: impl Fn(&OsStr) -> bool) -> Result<Files, ManageError> {
        let fault = |error: rustix::io::Errno| self.fault("read", None, error.into());
        let mut files = Files::new();
        for entry in Dir::read_from(&self.dir).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if is_meant(name) {
                files.insert(name.to_owned());
            }
        }
        Ok(files)
    }

    /// The component in this file: only a regular one, bounded, without waiting for the other end of a pipe.
    pub(super) fn read(&self, file: &OsStr) -> io::Result<ComponentBytes> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let opened = File::from(rustix::fs::openat(&self.dir, file, flags, Mode::empty())?);
        let metadata = opened.metadata()?;
        if !metadata.is_file() || metadata.len() > COMPONENT_BYTES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        let n_read = opened
            .take(COMPONENT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        match n_read as u64 <= COMPONENT_BYTES_MAX {
            true => Ok(bytes.into()),
            false => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    /// What lies beside a component; `None` where nothing does.
    ///
    /// Errors: one sentence; what cannot be read is not the same as nothing.
    pub(super) fn beside(
        &self,
        file: &OsStr,
        kind: SignatureFile,
    ) -> Result<Option<Vec<u8>>, String> {
        let name = kind.beside(Path::new(file));
        match self.read(name.as_os_str()) {
            Ok(bytes) if bytes.len() as u64 <= SIGNATURES_BYTES_MAX => Ok(Some(bytes.to_vec())),
            Ok(_) => Err(format!(
                "`{}` has more than {SIGNATURES_BYTES_MAX} bytes",
                name.display()
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("`{}` cannot be read: {error}", name.display())),
        }
    }

    /// The digest of this file; `None` for what cannot be read.
    pub(super) fn digest(&self, file: &OsStr) -> Option<Digest> {
        let bytes = self.read(file).ok()?;
        Some(zeph_engine::digest(&bytes))
    }

    /// Writes a component beside its place, durably.
    ///
    /// Errors: `File`; then nothing is left.
    pub(super) fn write(&self, file: &OsStr, bytes: &[u8]) -> Result<Written<'_>, ManageError> {
        let written = Written {
            held: self,
            temporary: self.temporary_name(file),
            target: file.to_owned(),
            is_placed: false,
        };
        let write = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o644);
            let opened = rustix::fs::openat(&self.dir, &written.temporary, flags, mode)?;
            let mut opened = File::from(opened);
            opened.write_all(bytes)?;
            opened.sync_all()
        };
        write().map_err(|source| self.fault("write", Some(file), source))?;
        Ok(written)
    }

    /// What lies in a place, under a temporary name until it is put back or dropped; `None` where nothing does.
    ///
    /// Errors: `File`.
    pub(super) fn kept(&self, file: &OsStr) -> Result<Option<Written<'_>>, ManageError> {
        let mut before = file.to_owned();
        before.push(".before");
        let kept = Written {
            held: self,
            temporary: self.temporary_name(&before),
            target: file.to_owned(),
            is_placed: false,
        };
        // A link stays one.
        let flags = AtFlags::empty();
        match rustix::fs::linkat(&self.dir, file, &self.dir, &kept.temporary, flags) {
            Ok(()) => return Ok(Some(kept)),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            // Some file systems have no second names.
            Err(_) => drop(kept),
        }
        let bytes = self.read(file);
        let bytes = bytes.map_err(|source| self.fault("read", Some(file), source))?;
        let mut copy = self.write(&before, &bytes)?;
        file.clone_into(&mut copy.target);
        Ok(Some(copy))
    }

    /// Unique among processes by the number of this one, and within it by the file: one command changes a folder at a time.
    fn temporary_name(&self, file: &OsStr) -> OsString {
        let mut name = OsString::from(format!("{TEMPORARY}{}-", std::process::id()));
        name.push(file);
        name.push(TEMPORARY_END);
        // Left by a process of this number that was killed.
        let _gone = rustix::fs::unlinkat(&self.dir, &name, AtFlags::empty());
        name
    }

    /// Removes a file, or a link and not what it leads to.
    ///
    /// Errors: `File`. One that is gone is no error.
    pub(super) fn remove(&self, file: &OsStr) -> Result<(), ManageError> {
        match rustix::fs::unlinkat(&self.dir, file, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(self.fault("delete", Some(file), error.into())),
        }
    }

    fn fault(
        &self,
        operation: &'static str,
        file: Option<&OsStr>,
        source: io::Error,
    ) -> ManageError {
        let path = match file {
            Some(file) => self.path.join(file),
            None => self.path.clone(),
        };
        fault(operation, &path, source)
    }
}

impl Written<'_> {
    /// Moves it into its place: who looks sees the old or the new, whole.
    ///
    /// Errors: `File`; then the old one is there.
    pub(super) fn put_in_place(mut self) -> Result<(), ManageError> {
        let dir = &self.held.dir;
        let moved = rustix::fs::renameat(dir, &self.temporary, dir, &self.target);
        self.is_placed = moved.is_ok();
        moved
            .map_err(io::Error::from)
            .and_then(|()| dir.sync_all())
            .map_err(|source| self.held.fault("write", Some(&self.target), source))
    }
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            let dir = &self.held.dir;
            let _gone = rustix::fs::unlinkat(dir, &self.temporary, AtFlags::empty());
        }
    }
}

/// Keeps other commands that change the folder out, until the result is dropped. Waits for one that is at it.
///
/// Errors: `Busy` when it does not end, `File`. Limits: it blocks, for up to 10 s.
pub(in crate::manage) fn only_one(folder: &Path) -> Result<File, ManageError> {
    let path = lock_of(folder).with_file_name(GUARD);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(&path)
        .map_err(|source| fault("open", &path, source))?;
    for _ in 0..=WAIT.as_millis() / PAUSE.as_millis() {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(source)) => return Err(fault("lock", &path, source)),
        }
    }
    Err(ManageError::Busy(folder.to_owned()))
}

/// Waits until no command changes the folder, and keeps them out until the result is dropped. `None` where none ever did, or where one does
/// not end.
///
/// Limits: it blocks, for up to 1 s.
pub(crate) fn undisturbed(folder: &Path) -> Option<File> {
    let path = lock_of(folder).with_file_name(GUARD);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    for _ in 0..=LOOK_WAIT.as_millis() / PAUSE.as_millis() {
        match file.try_lock_shared() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(_)) => return None,
        }
    }
    None
}

fn fault(operation: &'static str, path: &Path, source: io::Error) -> ManageError {
    ManageError::File {
        operation,
        path: path.to_owned(),
        source,
    }
}
