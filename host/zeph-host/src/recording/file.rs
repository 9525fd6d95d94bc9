//! The record file: lines are appended by one or more hosts, and read one by one, whatever its size.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;

use super::record::{CallRecord, VERSION};

/// Bytes at which a file is full: nothing is added to it any more.
const FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Most bytes of a line. The longest that is written is smaller.
pub(super) const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A file to which lines are appended.
#[derive(Debug)]
pub(super) struct RecordFile {
    file: File,
    path: PathBuf,
}

impl RecordFile {
    /// Opens or makes it, readable by its owner alone.
    ///
    /// Errors: it is no regular file, is a symbolic link, or others may read it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .read(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if about.mode() & 0o077 != 0 {
            return Err(io::Error::other(
                "other users have access to it; `chmod 600` it, or name another file",
            ));
        }
        Ok(Self {
            file,
            path: path.canonicalize()?,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line, whole, whatever other hosts append; a line that a crash cut off is closed first.
    ///
    /// Errors: it cannot be written, or is full.
    pub(super) fn append(&self, line: &str) -> io::Result<()> {
        let _held = Held::take(&self.file)?;
        let n_bytes = self.file.metadata()?.len();
        if n_bytes + line.len() as u64 > FILE_BYTES_MAX {
            let message = format!("it has {FILE_BYTES_MAX} bytes, which is the limit");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let mut last = [b'\n'];
        if let Some(at) = n_bytes.checked_sub(1) {
            self.file.read_exact_at(&mut last, at)?;
        }
        let start = if last == [b'\n'] { "" } else { "\n" };
        (&self.file).write_all(format!("{start}{line}\n").as_bytes())
    }
}

/// The file, held against other hosts.
struct Held<'a>(&'a File);

impl<'a> Held<'a> {
    fn take(file: &'a File) -> io::Result<Self> {
        flock(file, FlockOperation::LockExclusive)?;
        Ok(Self(file))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // It goes with the file at the latest.
        flock(self.0, FlockOperation::Unlock).ok();
    }
}

/// What a line of a record file is.
#[derive(Debug)]
pub(crate) enum RecordLine {
    /// A call.
    Call(Box<CallRecord>),
    /// Not a record, and why.
    Bad(String),
}

/// Why a record file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// It cannot be read.
    #[error("the record file `{0}` cannot be read")]
    Read(PathBuf, #[source] io::Error),
    /// Another program wrote it.
    #[error("line {line} of `{}` has version {version}; this program reads version {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What stands there.
        version: u64,
    },
}

/// The lines of a record file, read one at a time.
#[derive(Debug)]
pub(crate) struct RecordLines {
    reader: BufReader<File>,
    path: PathBuf,
    line: u64,
}

/// What of a line says how to read it.
#[derive(Deserialize)]
struct LineVersion {
    version: u64,
}

impl RecordLines {
    /// Errors: [`RecordError::Read`].
    pub(crate) fn open(path: &Path) -> Result<Self, RecordError> {
        let failed = |error| RecordError::Read(path.to_owned(), error);
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        Ok(Self {
            reader: BufReader::new(file),
            path: path.to_owned(),
            line: 0,
        })
    }

    /// The number of the line that was read last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// The next line that is not empty; none at the end.
    ///
    /// Errors: the file cannot be read, or the line has another version.
    pub(crate) fn next(&mut self) -> Result<Option<RecordLine>, RecordError> {
        loop {
            let Some(bytes) = self.bytes()? else {
                return Ok(None);
            };
            self.line += 1;
            match bytes {
                Ok(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
                Ok(bytes) => return self.read(&bytes).map(Some),
                Err(problem) => return Ok(Some(RecordLine::Bad(problem))),
            }
        }
    }

    fn read(&self, bytes: &[u8]) -> Result<RecordLine, RecordError> {
        let read = serde_json::from_slice::<CallRecord>(bytes);
        // A line of another version may have any form.
        let version = match &read {
            Ok(record) => Some(u64::from(record.version)),
            Err(_) => {
                let version = serde_json::from_slice::<LineVersion>(bytes);
                version.ok().map(|line| line.version)
            }
        };
        match version {
            Some(version) if version != u64::from(VERSION) => Err(RecordError::Version {
                path: self.path.clone(),
                line: self.line,
                version,
            }),
            _ => Ok(match read {
                Ok(record) => RecordLine::Call(Box::new(record)),
                Err(error) => RecordLine::Bad(error.to_string()),
            }),
        }
    }

    /// The bytes of the next line, or why they are not read; none at the end.
    fn bytes(&mut self) -> Result<Option<Result<Vec<u8>, String>>, RecordError> {
        let failed = |error| RecordError::Read(self.path.clone(), error);
        let mut bytes = Vec::new();
        let mut reader = (&mut self.reader).take(LINE_BYTES_MAX as u64);
        if reader.read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            return Ok(None);
        }
        if bytes.len() < LINE_BYTES_MAX || bytes.ends_with(b"\n") {
            return Ok(Some(Ok(bytes)));
        }
        self.reader.skip_until(b'\n').map_err(failed)?;
        let problem = format!("it is longer than {LINE_BYTES_MAX} bytes");
        Ok(Some(Err(problem)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::{LINE_BYTES_MAX, RecordError, RecordFile, RecordLine, RecordLines};

    const GOOD: &str = r#"{"version":1,"call_id":"c","at_ms":1,"conversation_id":"v","tool":"t","decision":"allow","outcome":"ok","duration_ms":1,"result_sha256":"","result_bytes":0}"#;

    /// `c` for a call, `b` for what is none.
    fn kinds(text: &[u8]) -> Result<String, RecordError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, text).unwrap();
        let mut lines = RecordLines::open(&path)?;
        let mut kinds = String::new();
        while let Some(line) = lines.next()? {
            kinds.push(match line {
                RecordLine::Call(_) => 'c',
                RecordLine::Bad(_) => 'b',
            });
        }
        Ok(kinds)
    }

    #[test]
    fn torn_hostile_and_endless_lines_are_passed_over() {
        let long = "x".repeat(3 * LINE_BYTES_MAX);
        let torn = &GOOD[..40];
        for (text, expect) in [
            (String::new(), ""),
            ("\n \n".to_owned(), ""),
            (GOOD.to_owned(), "c"),
            (format!("{GOOD}\n{torn}"), "cb"),
            (format!("{torn}\n{GOOD}\n"), "bc"),
            (format!("{long}\n{GOOD}"), "bc"),
            (format!("{}\n{GOOD}\n", "[".repeat(100_000)), "bc"),
            (format!("null\n{}\n{GOOD}", r#"{"version":"1"}"#), "bbc"),
        ] {
            assert_eq!(kinds(text.as_bytes()).unwrap(), expect);
        }
        assert_eq!(kinds(b"\xff\xfe\x00\n").unwrap(), "b");
    }

    #[test]
    fn another_version_and_no_file_are_errors() {
        let error = kinds(b"{\"version\":2,\"what\":1}\n").unwrap_err();
        assert!(error.to_string().contains("has version 2"), "{error}");
        assert!(RecordLines::open("/nonexistent/f".as_ref()).is_err());
        assert!(RecordLines::open("/".as_ref()).is_err());
    }

    #[test]
    fn lines_of_two_hosts_stay_whole_behind_one_that_was_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let hosts = [
            RecordFile::open(&path).unwrap(),
            RecordFile::open(&path).unwrap(),
        ];
        fs::write(&path, &GOOD[..30]).unwrap();
        std::thread::scope(|scope| {
            for host in &hosts {
                scope.spawn(|| (0..200).for_each(|_| host.append(GOOD).unwrap()));
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| *line == GOOD).count(), 400);
        assert_eq!(text.lines().count(), 401);
    }

    #[test]
    fn the_file_is_the_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        drop(RecordFile::open(&path).unwrap());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(RecordFile::open(&path).is_err());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(RecordFile::open(&link).is_err());
        assert!(RecordFile::open(dir.path()).is_err());
    }
}
