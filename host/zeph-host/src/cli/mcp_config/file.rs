//! A configuration file of another program: read whole, replaced whole, with a copy of the old one beside it.
//!
//! What is changed by several of these commands at once is changed by one after the other: each holds a lock on the folder from reading to
//! writing. Other programs do not know it; what they write meanwhile stays.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::{Errno, retry_on_intr};
use tempfile::{Builder, NamedTempFile};

use crate::cli::error::CliError;

/// Largest file that is read, in bytes.
const SIZE_MAX: u64 = 16 << 20;

/// Most copies of old files beside one file.
const BACKUPS_MAX: u32 = 1_000;

/// What a new file may be used for, before the user's mask.
const MODE: u32 = 0o666;

/// A file as it was found.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// The file itself, behind all symbolic links.
    pub(super) path: PathBuf,
    /// Its text without a mark of its byte order; empty if there is no file.
    pub(super) text: String,
    /// The mark before it, which editors of some systems write and no parser of JSON reads.
    mark: &'static str,
    /// Its permissions, if there is one.
    permissions: Option<Permissions>,
    /// Held while the file is changed.
    _lock: Option<File>,
}

/// What a copy that holds secrets may be used for.
const SECRET_MODE: u32 = 0o600;

/// The mark of the byte order in UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Where the old file is kept when it is replaced.
#[derive(Debug, Clone, Copy)]
pub(super) enum Backup<'a> {
    /// At the first free of `NAME.bak`, `NAME.bak1`, `NAME.bak2`…, with the permissions of the file.
    Numbered,
    /// At this path, readable by its owner alone. A file with the same text may be there already.
    At(&'a Path),
    /// Nowhere.
    Omitted,
}

/// What came of a replacement.
#[derive(Debug)]
pub(super) enum Written {
    /// The text was the old one.
    Unchanged,
    /// There was no file.
    New,
    /// It is another file now.
    Changed {
        /// The old one.
        backup: Option<PathBuf>,
    },
}

impl ConfigFile {
    /// Reads the file at `path` to change it: others that do wait until this is dropped.
    ///
    /// Errors: as [`open`](Self::open).
    pub(super) fn open_to_change(path: &Path) -> Result<Self, CliError> {
        let real = path.canonicalize().or_else(|_| beneath_existing(path));
        let folder = real.ok().and_then(|real| File::open(real.parent()?).ok());
        // Where it cannot be had (no folder yet, some network file systems), what was written meanwhile is still noticed.
        let lock = folder.filter(|folder| {
            retry_on_intr(|| flock(folder, FlockOperation::LockExclusive)).is_ok()
        });
        Ok(Self {
            _lock: lock,
            ..Self::open(path)?
        })
    }

    /// Reads the file at `path`. One that does not exist is empty.
    ///
    /// Errors: it is not a regular file, not UTF-8 or too large; a symbolic link leads nowhere; it cannot be read.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let fails = |error| cannot(path, "read", error);
        if path
            .symlink_metadata()
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            return Ok(Self {
                path: beneath_existing(path).map_err(fails)?,
                text: String::new(),
                mark: "",
                permissions: None,
                _lock: None,
            });
        }
        let real = path.canonicalize().map_err(fails)?;
        let metadata = real.metadata().map_err(fails)?;
        if !metadata.is_file() || metadata.len() > SIZE_MAX {
            let problem = format!(
                "`{}` is not a file of at most {SIZE_MAX} bytes",
                path.display()
            );
            return Err(CliError::user(problem));
        }
        let mut text = fs::read_to_string(&real).map_err(fails)?;
        let mark = match text.starts_with(BYTE_ORDER_MARK) {
            true => BYTE_ORDER_MARK,
            false => "",
        };
        text.drain(..mark.len());
        Ok(Self {
            text,
            mark,
            path: real,
            permissions: Some(metadata.permissions()),
            _lock: None,
        })
    }

    /// What is said where nothing is changed, because of `why` or because there is no file.
    pub(super) fn unchanged(&self, why: &str) -> String {
        let path = self.path.display();
        match self.permissions {
            Some(_) => format!("`{path}`: {why}"),
            None => format!("`{path}` does not exist; --file names another file"),
        }
    }

    /// Puts `text` in the place of the old one, whole or not at all.
    ///
    /// Errors: it cannot be written; it was changed since it was read.
    pub(super) fn replace(&self, text: &str, backup: Backup<'_>) -> Result<Written, CliError> {
        let fails = |error| cannot(&self.path, "written", error);
        if self.permissions.is_some() && text == self.text {
            return Ok(Written::Unchanged);
        }
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(fails)?;
        let new = self.beside(folder, text).map_err(fails)?;
        let Some(_) = self.permissions else {
            return match new.persist_noclobber(&self.path) {
                Ok(_) => Ok(Written::New),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                    Err(self.changed_meanwhile())
                }
                Err(error) => Err(fails(error.error)),
            };
        };
        let (backup, is_new) = match backup {
            Backup::Numbered => (Some(self.back_up(folder).map_err(fails)?), true),
            Backup::At(path) => (Some(path.to_owned()), self.keep(folder, path)?),
            Backup::Omitted => (None, false),
        };
        if !self.exchange(new).map_err(fails)? {
            if let Some(backup) = backup.filter(|_| is_new) {
                drop(fs::remove_file(backup));
            }
            return Err(self.changed_meanwhile());
        }
        Ok(Written::Changed { backup })
    }

    fn changed_meanwhile(&self) -> CliError {
        let problem = format!("`{}` was changed meanwhile", self.path.display());
        CliError::internal(problem).hint("run the command again")
    }

    /// Puts `new` in the place of the file, if that is the one that was read: what is taken away is looked at, and put back if it is
    /// another.
    fn exchange(&self, new: NamedTempFile) -> io::Result<bool> {
        let exchange = || renameat_with(CWD, new.path(), CWD, &self.path, RenameFlags::EXCHANGE);
        match exchange() {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(false),
            // A file system that cannot exchange two files.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let is_same = self.is_at(&self.path);
                return match is_same {
                    true => new
                        .persist(&self.path)
                        .map(|_| true)
                        .map_err(|error| error.error),
                    false => Ok(false),
                };
            }
            Err(error) => return Err(error.into()),
        }
        if self.is_at(new.path()) {
            return Ok(true);
        }
        // Put back, unless a newer one took our place meanwhile: then that stays.
        let ours = new.as_file().metadata()?;
        exchange()?;
        let taken = new.path().symlink_metadata()?;
        if (taken.dev(), taken.ino()) != (ours.dev(), ours.ino()) {
            exchange()?;
        }
        Ok(false)
    }

    /// Whether a file with the text that was read is at `path`.
    fn is_at(&self, path: &Path) -> bool {
        let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
        is_file
            && fs::read(path)
                .is_ok_and(|bytes| bytes == [self.mark, &self.text].concat().as_bytes())
    }

    /// Keeps the old text at `path`, for its owner alone. Returns whether it was not there.
    fn keep(&self, folder: &Path, path: &Path) -> Result<bool, CliError> {
        let fails = |error| cannot(path, "written", error);
        if self.is_at(path) {
            return Ok(false);
        }
        let copy = self.beside(folder, &self.text).map_err(fails)?;
        let mode = Permissions::from_mode(SECRET_MODE);
        copy.as_file().set_permissions(mode).map_err(fails)?;
        match copy.persist_noclobber(path) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                let problem = format!("`{}` is there, with another text", path.display());
                Err(CliError::user(problem).hint("move it away"))
            }
            Err(error) => Err(fails(error.error)),
        }
    }

    /// A file with this text, with the mark and the permissions of the old one, on the disk, under a name that nothing reads.
    fn beside(&self, folder: &Path, text: &str) -> io::Result<NamedTempFile> {
        let mut builder = Builder::new();
        // The mask of the user takes its part of these; a copy has exactly those of the original.
        let mut file = builder
            .permissions(Permissions::from_mode(MODE))
            .tempfile_in(folder)?;
        if let Some(permissions) = &self.permissions {
            file.as_file().set_permissions(permissions.clone())?;
        }
        file.write_all(self.mark.as_bytes())?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    /// Copies the old text to the first free of `NAME.bak`, `NAME.bak1`, `NAME.bak2`…
    fn back_up(&self, folder: &Path) -> io::Result<PathBuf> {
        let mut copy = self.beside(folder, &self.text)?;
        let name = self.path.file_name().unwrap_or_default();
        for number in 0..BACKUPS_MAX {
            let mut name = name.to_owned();
            name.push(".bak");
            if number > 0 {
                name.push(number.to_string());
            }
            let path = folder.join(name);
            match copy.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                    copy = error.file;
                }
                Err(error) => return Err(error.error),
            }
        }
        Err(io::Error::other(format!(
            "{BACKUPS_MAX} copies of old files lie beside it"
        )))
    }
}

/// A path that does not exist, with the links of the part that does resolved.
fn beneath_existing(path: &Path) -> io::Result<PathBuf> {
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let mut rest = Vec::new();
    let mut above = path;
    loop {
        // A link that leads nowhere is there, and is not followed.
        match above.symlink_metadata() {
            Ok(_) => {
                let real = above.canonicalize()?;
                return Ok(rest.iter().rev().fold(real, |path, name| path.join(name)));
            }
            Err(error) if missing(&error) => {}
            Err(error) => return Err(error),
        }
        let (Some(parent), Some(name)) = (above.parent(), above.file_name()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        rest.push(name);
        above = parent;
    }
}

fn cannot(path: &Path, done: &str, error: io::Error) -> CliError {
    CliError::internal(format!("`{}` cannot be {done}", path.display())).because(error)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn changes_at_once_are_made_one_after_the_other() {
        const WRITERS: usize = 6;
        const LINES: usize = 10;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "").unwrap();
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let path = &path;
                scope.spawn(move || {
                    for line in 0..LINES {
                        let file = ConfigFile::open_to_change(path).unwrap();
                        let text = format!("{}{writer} {line}\n", file.text);
                        file.replace(&text, Backup::Omitted).unwrap();
                    }
                });
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), WRITERS * LINES, "{text}");
    }

    #[test]
    fn what_another_program_writes_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        for text in [Some("old"), None] {
            drop(fs::remove_file(&path));
            text.into_iter()
                .for_each(|text| fs::write(&path, text).unwrap());
            let file = ConfigFile::open_to_change(&path).unwrap();
            fs::write(&path, "theirs").unwrap();
            let error = file.replace("ours", Backup::Numbered).unwrap_err();
            let error = format!("{error:?}");
            assert!(error.contains("was changed meanwhile"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
