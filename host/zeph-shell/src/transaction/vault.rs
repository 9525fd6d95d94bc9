//! Where copies are kept: a private folder per snapshot, with one file that packs small copies and a file for each large one.
//!
//! The folder is locked while the snapshot lives and goes with it. What a host left behind that died is found by its missing lock.

use std::ffi::{CString, OsStr};
use std::fmt;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstatvfs, openat};
use rustix::io::Errno;
use tempfile::TempDir;

use super::handle;
use super::tree::{FileId, ObjectStamp, TreeTime};

/// Copies up to this size are packed into one file: making and removing a file costs more than copying so many bytes.
const PACKED_BYTES_MAX: u64 = 128 * 1024;

/// Bytes moved at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// How folders of snapshots are called.
const PREFIX: &str = "snapshot-";

/// The folder of one snapshot's copies, complete.
pub(super) struct Vault {
    /// Held for its lock.
    folder: OwnedFd,
    pack: File,
    /// Removes the folder when dropped. Last, so that the lock outlives it.
    _place: TempDir,
}

/// The copy of one file.
#[derive(Debug, Clone)]
pub(super) struct FileCopy {
    vault: Arc<Vault>,
    at: CopyPlace,
    size: u64,
}

#[derive(Debug, Clone, Copy)]
enum CopyPlace {
    Packed { offset: u64 },
    Own { number: u64 },
}

/// Fills a vault.
#[derive(Debug)]
pub(super) struct Filling {
    vault: Arc<Vault>,
    /// End of what is packed.
    offset: u64,
    n_own: u64,
    /// Bytes that may still be copied before the disk is too full.
    spare: u64,
    /// Whether files of the tree can share their blocks with copies; found out by the first large one.
    clones: bool,
    chunk: Vec<u8>,
}

/// Why a copy was not made.
#[derive(Debug)]
pub(super) enum FillError {
    /// The source cannot be read.
    Read(io::Error),
    /// The copy cannot be written.
    Write(io::Error),
    /// The disk would become too full.
    Full { bytes: u64, available: u64 },
}

/// Makes sure that `place` is a folder that only this user can change.
///
/// Errors: `None` when others can change it.
pub(super) fn open_place(place: &Path) -> Result<OwnedFd, Option<io::Error>> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(place)
        .map_err(Some)?;
    let folder = File::open(place).map_err(Some)?;
    let metadata = folder.metadata().map_err(Some)?;
    let own = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || metadata.uid() != own || metadata.mode() & 0o022 != 0 {
        return Err(None);
    }
    Ok(folder.into())
}

/// Removes the folders of snapshots below `place` whose host is gone, and says how many there were.
///
/// Call it once when a host starts. Folders of living hosts are locked and stay.
///
/// Errors: none; what cannot be removed stays for the next time.
pub fn clean_leftovers(place: &Path) -> usize {
    let Ok(lock) = File::open(place) else {
        return 0;
    };
    // A folder is made and locked under a shared lock of the place: none is half made now.
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return 0;
    }
    let Ok(entries) = fs::read_dir(place) else {
        return 0;
    };
    let mut removed = 0;
    for entry in entries.flatten() {
        let is_ours = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_ours && is_unlocked(&entry.path()) && fs::remove_dir_all(entry.path()).is_ok() {
            removed += 1;
        }
    }
    removed
}

fn is_unlocked(folder: &Path) -> bool {
    File::open(folder)
        .is_ok_and(|folder| flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok())
}

impl Filling {
    /// Makes an empty vault below the folder `place`.
    pub(super) fn begin(place: &Path, lock: &OwnedFd) -> io::Result<Self> {
        flock(lock, FlockOperation::LockShared)?;
        let made = make_folder(place);
        flock(lock, FlockOperation::Unlock)?;
        let (folder, temporary) = made?;
        let pack = File::from(handle::create_file(&folder, c"pack")?);
        let disk = fstatvfs(&folder)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // A twentieth of the disk is left to others, at most 1 GiB.
        let reserve = (disk.f_blocks.saturating_mul(disk.f_frsize) / 20).min(1 << 30);
        Ok(Self {
            vault: Arc::new(Vault {
                folder,
                pack,
                _place: temporary,
            }),
            offset: 0,
            n_own: 0,
            spare: free.saturating_sub(reserve),
            clones: true,
            chunk: vec![0; CHUNK_BYTES],
        })
    }

    /// The time at which it was begun, by the clock that stamps files.
    pub(super) fn began(&self) -> Result<TreeTime, Errno> {
        handle::stamp_of(&self.vault.pack).map(|stamp| stamp.modified)
    }

    /// Copies the first `size` bytes of `source`, or fewer when it has become shorter.
    pub(super) fn keep(&mut self, source: OwnedFd, size: u64) -> Result<FileCopy, FillError> {
        let source = File::from(source);
        if size <= PACKED_BYTES_MAX {
            return self.pack(&source, size);
        }
        let number = self.n_own;
        self.n_own += 1;
        let own = handle::create_file(&self.vault.folder, &own_name(number))
            .map(File::from)
            .map_err(|errno| FillError::Write(errno.into()))?;
        let kept_size = if self.clones && share_blocks(&own, &source) {
            own.metadata().map_err(FillError::Write)?.len()
        } else {
            self.clones = false;
            self.spend(data_bytes(&source, size).map_err(FillError::Read)?)?;
            copy_data(&source, &own, size)?
        };
        Ok(self.kept(CopyPlace::Own { number }, kept_size))
    }

    fn pack(&mut self, source: &File, size: u64) -> Result<FileCopy, FillError> {
        self.spend(size)?;
        let start = self.offset;
        let end = start + size;
        while self.offset < end {
            let wanted = usize::try_from(end - self.offset)
                .map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
            let read = source
                .read_at(&mut self.chunk[..wanted], self.offset - start)
                .map_err(FillError::Read)?;
            if read == 0 {
                break;
            }
            self.vault
                .pack
                .write_all_at(&self.chunk[..read], self.offset)
                .map_err(FillError::Write)?;
            self.offset += read as u64;
        }
        Ok(self.kept(CopyPlace::Packed { offset: start }, self.offset - start))
    }

    fn spend(&mut self, bytes: u64) -> Result<(), FillError> {
        self.spare = self.spare.checked_sub(bytes).ok_or(FillError::Full {
            bytes,
            available: self.spare,
        })?;
        Ok(())
    }

    fn kept(&self, at: CopyPlace, size: u64) -> FileCopy {
        FileCopy {
            vault: Arc::clone(&self.vault),
            at,
            size,
        }
    }
}

impl FileCopy {
    /// Bytes of the copy.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether `file` holds the very bytes of the copy.
    pub(super) fn equals(&self, file: &File) -> io::Result<bool> {
        if file.metadata()?.len() != self.size {
            return Ok(false);
        }
        let (copy, start) = self.open()?;
        let (mut ours, mut theirs) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        let mut done = 0;
        while done < self.size {
            let wanted =
                usize::try_from(self.size - done).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
            copy.read_exact_at(&mut ours[..wanted], start + done)?;
            match file.read_exact_at(&mut theirs[..wanted], done) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                read => read?,
            }
            if ours[..wanted] != theirs[..wanted] {
                return Ok(false);
            }
            done += wanted as u64;
        }
        Ok(true)
    }

    /// Writes the copy into the empty file `target`.
    pub(super) fn write_to(&self, target: &File) -> io::Result<()> {
        let (copy, start) = self.open()?;
        if matches!(self.at, CopyPlace::Own { .. }) {
            if share_blocks(target, &copy) {
                return Ok(());
            }
            return match copy_data(&copy, target, self.size) {
                Ok(_) => Ok(()),
                Err(FillError::Read(error) | FillError::Write(error)) => Err(error),
                Err(FillError::Full { .. }) => Err(Errno::NOSPC.into()),
            };
        }
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut done = 0;
        while done < self.size {
            let wanted =
                usize::try_from(self.size - done).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
            copy.read_exact_at(&mut chunk[..wanted], start + done)?;
            target.write_all_at(&chunk[..wanted], done)?;
            done += wanted as u64;
        }
        Ok(())
    }

    /// The file that holds the copy, and where it begins in it.
    fn open(&self) -> io::Result<(File, u64)> {
        match self.at {
            CopyPlace::Packed { offset } => Ok((self.vault.pack.try_clone()?, offset)),
            CopyPlace::Own { number } => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let own = openat(&self.vault.folder, own_name(number), flags, Mode::empty())?;
                Ok((File::from(own), 0))
            }
        }
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").finish_non_exhaustive()
    }
}

/// Makes a private folder and locks it.
fn make_folder(place: &Path) -> io::Result<(OwnedFd, TempDir)> {
    let temporary = tempfile::Builder::new()
        .prefix(OsStr::new(PREFIX))
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(place)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(rustix::fs::CWD, temporary.path(), flags, Mode::empty())?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok((folder, temporary))
}

fn own_name(number: u64) -> CString {
    CString::new(number.to_string()).expect("bug: digits hold no zero byte")
}

/// The identity of the folder behind `handle`.
pub(super) fn identity(handle: impl AsFd) -> Result<FileId, Errno> {
    handle::stamp_of(handle).map(|ObjectStamp { id, .. }| id)
}

/// Lets the empty `target` share the blocks of `source`, where the file system can: nothing is copied, and a later change of either is
/// not seen in the other.
#[cfg(target_os = "linux")]
fn share_blocks(target: &File, source: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn share_blocks(_target: &File, _source: &File) -> bool {
    false
}

/// Bytes that a copy takes on the disk; holes take none.
fn data_bytes(source: &File, size: u64) -> io::Result<u64> {
    Ok(source.metadata()?.blocks().saturating_mul(512).min(size))
}

/// Copies up to `size` bytes into the empty `target`, leaves holes as holes, and returns the size of the copy.
fn copy_data(mut source: &File, mut target: &File, size: u64) -> Result<u64, FillError> {
    let size = source.metadata().map_err(FillError::Read)?.len().min(size);
    target.set_len(size).map_err(FillError::Write)?;
    let mut at = 0;
    while at < size {
        let Some(extent) = next_data(source, at, size).map_err(FillError::Read)? else {
            break;
        };
        source
            .seek(SeekFrom::Start(extent.0))
            .map_err(FillError::Read)?;
        target
            .seek(SeekFrom::Start(extent.0))
            .map_err(FillError::Write)?;
        let length = extent.1 - extent.0;
        // The kernel copies by itself where it can. Which side failed is not told; a full disk is the likely one.
        let copied = io::copy(&mut source.take(length), &mut target).map_err(FillError::Write)?;
        if copied < length {
            break;
        }
        at = extent.1;
    }
    target.flush().map_err(FillError::Write)?;
    Ok(size)
}

/// The next stretch of `source` from `at` that holds data, cut at `size`.
#[cfg(target_os = "linux")]
fn next_data(source: &File, at: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    use rustix::fs::{SeekFrom, seek};

    let start = match seek(source, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL) => return Ok(Some((at, size))),
        Err(errno) => return Err(errno.into()),
    };
    let end = seek(source, SeekFrom::Hole(start))
        .unwrap_or(size)
        .min(size);
    Ok((start < end).then_some((start, end)))
}

#[cfg(not(target_os = "linux"))]
fn next_data(_source: &File, at: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    Ok(Some((at, size)))
}
