//! The audit file: one JSON object per line, appended with one system call, so that several hosts can share it.
//!
//! The file is rotated by size into one older generation, `<path>.1`. Each append takes a lock on the file, so that no
//! line goes to a file that another host is replacing. With keys, each line has a number and a code over the line before it (`line`); what
//! the chain has to say of itself, that it begins, that the file was rotated or that a torn line was taken out, is a line of it too.

pub(super) mod line;
mod tail;
pub(crate) mod verify;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use self::line::{CODE_LINE_BYTES, ChainedLine, FileMark, MarkReason};
use self::tail::{FileLink, FileTail, NO_LINK};
use crate::audit::checkpoint::FileHead;
use crate::audit::code::{NO_CODE, hex};
use crate::audit::record::AuditEvent;
use crate::error::StoreError;
use crate::lines::FileWait;
use crate::place::{self, FileId, with_suffix};
use crate::secrets::audit_keys::{AuditKey, AuditKeys};

/// Most times an append starts over because another host rotated the file meanwhile.
const TRIES_MAX: u32 = 16;

/// Characters of a torn line that are quoted.
const TORN_CHARS_MAX: usize = 1_000;

/// An open audit file.
#[derive(Debug)]
pub struct AuditFile {
    path: PathBuf,
    max_bytes: u64,
    /// What lines get codes with; none when they get none.
    keys: Option<AuditKeys>,
    /// Guards the descriptor, which a rotation replaces, and keeps the lines of this process whole.
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    file: File,
    id: FileId,
    /// Whether the last line was cut off by an error, so that the next one must begin on a line of its own.
    is_torn: bool,
    /// The newest line, and how long the file was behind it: when it is longer, another host has written.
    newest: Option<(FileLink, u64)>,
    /// The newest line this process knows of, in whatever file.
    known: FileLink,
}

impl AuditFile {
    /// Opens the file for appending, creating it (0600) and its folders (0700) when missing.
    ///
    /// Units:  `max_bytes` is the size at which the file becomes `<path>.1`, replacing the older one; 0 = never.
    /// Errors: [`StoreError::AuditFile`].
    pub fn open(path: &Path, max_bytes: u64) -> Result<Self, StoreError> {
        Self::check_place(path)?;
        let path = place_of(path).map_err(|source| fault("open", path, source))?;
        let opened = place::create_folder_of(&path).and_then(|()| Current::open(&path, NO_LINK));
        let current = opened.map_err(|source| fault("open", &path, source))?;
        Ok(Self {
            path,
            max_bytes,
            keys: None,
            current: Mutex::new(current),
        })
    }

    /// Whether the file can be opened by what is there, as far as that shows without opening or making anything: it is no directory, and no link,
    /// or link to a link, into a folder that is not there.
    ///
    /// Errors: [`StoreError::AuditFile`]; also where its place cannot be looked at.
    pub fn check_place(path: &Path) -> Result<(), StoreError> {
        let absolute = std::path::absolute(path).map_err(|source| fault("open", path, source))?;
        let found = match (fs::metadata(&absolute), place::link_target(&absolute)) {
            (Ok(there), _) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            (Ok(_), _) => Ok(()),
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => Err(error),
            // What the link leads to is made like a file, its folder is not.
            (Err(_), Some(target)) if !target.parent().is_some_and(Path::is_dir) => {
                Err(io::Error::other(format!(
                    "it is a link to `{}`, the folder of which is not there",
                    target.display()
                )))
            }
            (Err(_), _) => Ok(()),
        };
        found.map_err(|source| fault("open", path, source))
    }

    /// The same file; its lines are vouched for with the newest of `keys`.
    #[must_use]
    pub fn chained(self, keys: AuditKeys) -> Self {
        let keys = Some(keys);
        Self { keys, ..self }
    }

    /// Appends one event as one line.
    ///
    /// It blocks for a few system calls: the line goes to the page cache, not to the disk.
    ///
    /// Errors: [`StoreError::AuditFile`]; the line may then be there in part, and the next one starts on a new line.
    pub fn append(&self, event: &AuditEvent<'_>) -> Result<(), StoreError> {
        self.append_lines(&self.line_of(event)?, event.at_ms(), FileWait::Long)
    }

    /// The newest line; `None` when none has a code.
    ///
    /// Errors: [`StoreError::AuditFile`].
    pub fn head(&self) -> Result<Option<FileHead>, StoreError> {
        let fault = |source| fault("read", &self.path, source);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..TRIES_MAX {
            if FileId::of_path(&self.path).is_ok_and(|id| id == current.id) {
                break;
            }
            *current = Current::open(&self.path, current.known).map_err(fault)?;
        }
        current.file.lock_shared().map_err(fault)?;
        let link = current.read_newest();
        current.file.unlock().map_err(fault)?;
        let link = link.map_err(fault)?;
        Ok(link.map(|link| FileHead {
            count: link.seq,
            head: hex(&link.code),
        }))
    }

    /// The event and its line end. JSON escapes every line break inside strings.
    pub(crate) fn line_of(&self, event: &AuditEvent<'_>) -> Result<Vec<u8>, StoreError> {
        let line = serde_json::to_vec(event);
        let mut line = line.map_err(|source| fault("write", &self.path, source.into()))?;
        line.push(b'\n');
        Ok(line)
    }

    /// Appends whole lines, with one system call, at `at_ms`.
    ///
    /// Errors: [`StoreError::AuditFile`]; part of them may then be there, and the next one starts on a new line. Nothing is, where others hold
    /// the file and it may not wait for them.
    pub(crate) fn append_lines(
        &self,
        lines: &[u8],
        at_ms: i64,
        wait: FileWait,
    ) -> Result<(), StoreError> {
        let appended = self.locked(wait).and_then(|mut current| {
            let lines = (lines, at_ms);
            self.append_line(&mut current, lines, wait)
        });
        appended.map_err(|source| fault("write", &self.path, source))
    }

    fn locked(&self, wait: FileWait) -> io::Result<MutexGuard<'_, Current>> {
        // The descriptor stays usable whatever happened to a thread that held the lock.
        if wait == FileWait::Long {
            return Ok(self.current.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.current.try_lock() {
            Ok(current) => Ok(current),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn append_line(
        &self,
        current: &mut Current,
        (line, at_ms): (&[u8], i64),
        wait: FileWait,
    ) -> io::Result<()> {
        for _ in 0..TRIES_MAX {
            match wait {
                FileWait::Long => current.file.lock()?,
                FileWait::None => current.file.try_lock().map_err(io::Error::from)?,
            }
            let appended = self.append_locked(current, line, at_ms);
            current.file.unlock()?;
            if appended? {
                return Ok(());
            }
            *current = Current::open(&self.path, current.known)?;
        }
        Err(io::Error::other("it is replaced again and again"))
    }

    /// Appends the line, or says that the file has become an older one and the path has to be opened again.
    fn append_locked(&self, current: &mut Current, line: &[u8], at_ms: i64) -> io::Result<bool> {
        let is_current = FileId::of_path(&self.path).is_ok_and(|id| id == current.id);
        if !is_current {
            return Ok(false);
        }
        let len = current.file.metadata()?.len();
        if self.is_full(len, line) {
            fs::rename(&self.path, with_suffix(&self.path, ".1"))?;
            return Ok(false);
        }
        let Some(key) = self.keys.as_ref().and_then(AuditKeys::newest) else {
            return current.write_line(line).map(|()| true);
        };
        let (mut link, len, marks) = match current.newest {
            Some((link, known_len)) if known_len == len => (link, len, Vec::new()),
            _ => self.catch_up(current, len, key, at_ms)?,
        };
        let mut text = Vec::with_capacity(line.len() + CODE_LINE_BYTES * 2);
        let lines = marks.iter().map(Vec::as_slice);
        for line in lines.chain(line.split_inclusive(|byte| *byte == b'\n')) {
            link.seq += 1;
            link.code = line::put(&mut text, line, link.seq, &link.code, key);
        }
        current.write_chained(&text, link, len).map(|()| true)
    }

    /// Whether the line does not fit.
    fn is_full(&self, n_bytes: u64, line: &[u8]) -> bool {
        let n_added = match self.keys {
            Some(_) => line.len() + CODE_LINE_BYTES * line.iter().filter(|b| **b == b'\n').count(),
            None => line.len(),
        };
        let would_be = n_bytes.saturating_add(u64::try_from(n_added).unwrap_or(u64::MAX));
        self.max_bytes > 0 && n_bytes > 0 && would_be > self.max_bytes
    }

    /// Finds out where the chain stands in a file that others wrote to: the newest line, the length of what is whole, and the lines that
    /// have to come first.
    fn catch_up(
        &self,
        current: &Current,
        len: u64,
        key: &AuditKey,
        at_ms: i64,
    ) -> io::Result<(FileLink, u64, Vec<Vec<u8>>)> {
        if len == 0 {
            let (link, mark) = self.begin_file(current.known, key, at_ms)?;
            return Ok((link, 0, vec![mark.line()]));
        }
        let tail = tail::read(&current.file, len)?;
        let whole = len - tail.torn.len() as u64;
        let mark = |reason, link: FileLink| FileMark::new(reason, key, &link.code, at_ms);
        let Some(link) = tail.link else {
            let before_bytes = len;
            current.end_line(&tail)?;
            let mark = FileMark {
                before_bytes,
                ..mark(MarkReason::Start, NO_LINK)
            };
            return Ok((NO_LINK, current.file.metadata()?.len(), vec![mark.line()]));
        };
        let mut marks = Vec::new();
        if !is_of(&tail, key) {
            marks.push(mark(MarkReason::Key, link).line());
        }
        if tail.torn.is_empty() {
            return Ok((link, len, marks));
        }
        current.file.set_len(whole)?;
        let torn = String::from_utf8_lossy(&tail.torn);
        let mark = FileMark {
            torn_bytes: tail.torn.len() as u64,
            torn: torn.chars().take(TORN_CHARS_MAX).collect(),
            ..mark(MarkReason::Repair, link)
        };
        tracing::warn!(
            path = %self.path.display(),
            "the last line of the audit file was not whole, because a host died while it wrote it; it is quoted in the next one"
        );
        marks.push(mark.line());
        Ok((link, whole, marks))
    }

    /// The line that an empty file begins with.
    fn begin_file(
        &self,
        known: FileLink,
        key: &AuditKey,
        at_ms: i64,
    ) -> io::Result<(FileLink, FileMark)> {
        let older = tail::older(&with_suffix(&self.path, ".1"))?;
        let (link, reason, removed) = match older {
            Some((newest, removed)) if newest.seq >= known.seq => {
                (newest, MarkReason::Rotation, removed)
            }
            _ if known.seq > 0 => (known, MarkReason::Replaced, known),
            _ => (NO_LINK, MarkReason::Start, NO_LINK),
        };
        let mark = FileMark {
            removed: removed.seq,
            removed_code: hex(&removed.code),
            ..FileMark::new(reason, key, &link.code, at_ms)
        };
        Ok((link, mark))
    }
}

/// Where the file is that `path` names, which may be a link: a rotation renames that file and not the link, and what it becomes lies beside it,
/// by whatever name. Absolute, so that a rotation finds it when the process has changed its directory.
fn place_of(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    Ok(place::link_target(&path).unwrap_or(path))
}

/// Whether the last line of a file has a code by this key.
fn is_of(tail: &FileTail, key: &AuditKey) -> bool {
    let Some(line) = ChainedLine::parse(&tail.last) else {
        return false;
    };
    match (line.mark(), tail.before) {
        (Some(mark), _) => mark.key == key.id,
        (None, Some(before)) => line.follows(&before, key),
        (None, None) => line.follows(&NO_CODE, key),
    }
}

impl Current {
    fn open(path: &Path, known: FileLink) -> io::Result<Self> {
        let file = place::open_append(path)?;
        let id = FileId::of(&file.metadata()?);
        Ok(Self {
            file,
            id,
            is_torn: false,
            newest: None,
            known,
        })
    }

    /// The newest line with a code.
    fn read_newest(&self) -> io::Result<Option<FileLink>> {
        let len = self.file.metadata()?.len();
        match self.newest {
            Some((link, known_len)) if known_len == len => Ok(Some(link)),
            _ => Ok(tail::read(&self.file, len)?.link),
        }
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

    /// One write for lines with codes, of which the last is `link`, behind the first `len` bytes. What was written in part is taken back.
    fn write_chained(&mut self, text: &[u8], link: FileLink, len: u64) -> io::Result<()> {
        self.newest = None;
        let written = self.file.write_all(text);
        if written.is_err() {
            // The next writer finds what cannot be taken back.
            drop(self.file.set_len(len));
            return written;
        }
        self.newest = Some((link, len + text.len() as u64));
        self.known = link;
        Ok(())
    }

    /// Ends a line that is not whole, in a file without a chain.
    fn end_line(&self, tail: &FileTail) -> io::Result<()> {
        match tail.torn.is_empty() && !tail.has_no_line {
            true => Ok(()),
            false => (&self.file).write_all(b"\n"),
        }
    }
}

fn fault(operation: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::AuditFile {
        operation,
        path: path.to_owned(),
        source,
    }
}
