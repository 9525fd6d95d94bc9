//! The audit file: one JSON object per line, appended with one system call, so that several hosts can share it.
//!
//! The file is rotated by size into one older generation, `<path>.1`. Each append takes a lock on the file, so that no
//! line goes to a file that another host is replacing.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::audit::record::AuditEvent;
use crate::error::StoreError;
use crate::place::{self, FileId, with_suffix};

/// Most times an append starts over because another host rotated the file meanwhile.
const TRIES_MAX: u32 = 16;

/// An open audit file.
#[derive(Debug)]
pub struct AuditFile {
    path: PathBuf,
    max_bytes: u64,
    /// Guards the descriptor, which a rotation replaces, and keeps the lines of this process whole.
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    file: File,
    id: FileId,
    /// Whether the last line was cut off by an error, so that the next one must begin on a line of its own.
    is_torn: bool,
}

impl AuditFile {
    /// Opens the file for appending, creating it (0600) and its folders (0700) when missing.
    ///
    /// Units:  `max_bytes` is the size at which the file becomes `<path>.1`, replacing the older one; 0 = never.
    /// Errors: [`StoreError::AuditFile`].
    pub fn open(path: &Path, max_bytes: u64) -> Result<Self, StoreError> {
        // Absolute, so that a rotation finds the file when the process has changed its directory.
        let path = std::path::absolute(path).map_err(|source| fault("open", path, source))?;
        let opened = place::create_folder_of(&path).and_then(|()| Current::open(&path));
        let current = opened.map_err(|source| fault("open", &path, source))?;
        Ok(Self {
            path,
            max_bytes,
            current: Mutex::new(current),
        })
    }

    /// Appends one event as one line.
    ///
    /// It blocks for a few system calls: the line goes to the page cache, not to the disk.
    ///
    /// Errors: [`StoreError::AuditFile`]; the line may then be there in part, and the next one starts on a new line.
    pub fn append(&self, event: &AuditEvent<'_>) -> Result<(), StoreError> {
        self.append_lines(&self.line_of(event)?)
    }

    /// The event and its line end. JSON escapes every line break inside strings.
    pub(crate) fn line_of(&self, event: &AuditEvent<'_>) -> Result<Vec<u8>, StoreError> {
        let line = serde_json::to_vec(event);
        let mut line = line.map_err(|source| fault("write", &self.path, source.into()))?;
        line.push(b'\n');
        Ok(line)
    }

    /// Appends whole lines, with one system call.
    ///
    /// Errors: [`StoreError::AuditFile`]; part of them may then be there, and the next one starts on a new line.
    pub(crate) fn append_lines(&self, lines: &[u8]) -> Result<(), StoreError> {
        // The descriptor stays usable whatever happened to a thread that held the lock.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let appended = self.append_line(&mut current, lines);
        appended.map_err(|source| fault("write", &self.path, source))
    }

    fn append_line(&self, current: &mut Current, line: &[u8]) -> io::Result<()> {
        for _ in 0..TRIES_MAX {
            current.file.lock()?;
            let appended = self.append_locked(current, line);
            current.file.unlock()?;
            if appended? {
                return Ok(());
            }
            *current = Current::open(&self.path)?;
        }
        Err(io::Error::other("it is replaced again and again"))
    }

    /// Appends the line, or says that the file has become an older one and the path has to be opened again.
    fn append_locked(&self, current: &mut Current, line: &[u8]) -> io::Result<bool> {
        let is_current = FileId::of_path(&self.path).is_ok_and(|id| id == current.id);
        if !is_current {
            return Ok(false);
        }
        if self.is_full(current, line)? {
            fs::rename(&self.path, with_suffix(&self.path, ".1"))?;
            return Ok(false);
        }
        current.write_line(line).map(|()| true)
    }

    fn is_full(&self, current: &Current, line: &[u8]) -> io::Result<bool> {
        let n_bytes = current.file.metadata()?.len();
        let would_be = n_bytes.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
        Ok(self.max_bytes > 0 && n_bytes > 0 && would_be > self.max_bytes)
    }
}

impl Current {
    fn open(path: &Path) -> io::Result<Self> {
        let file = place::open_append(path)?;
        let id = FileId::of(&file.metadata()?);
        Ok(Self {
            file,
            id,
            is_torn: false,
        })
    }

    /// One write for the whole line; more only when the system took less.
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.write_all(b"\n")?;
        }
        let written = self.file.write_all(line);
        self.is_torn = written.is_err();
        written
    }
}

fn fault(operation: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::AuditFile {
        operation,
        path: path.to_owned(),
        source,
    }
}
