//! What files say without SQLite: whether one was ever a store, and whether somebody met damage in it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::schema::{APPLICATION_ID, newest_version};
use crate::error::StoreError;
use crate::place::with_suffix;

/// How a database of SQLite begins, and where it has the number of its application. Source: <https://www.sqlite.org/fileformat.html>, 1.3.
const MAGIC: &[u8] = b"SQLite format 3\0";
const APPLICATION_AT: usize = 68;
const HEADER_BYTES: usize = 100;

/// Where the header has the version of the schema, and where behind it the first page has its kind and the number of its entries.
const VERSION_AT: usize = 60;
const FIRST_PAGE_AT: std::ops::Range<usize> = HEADER_BYTES..HEADER_BYTES + 5;

/// That of a database without any table: a leaf, no free block, no entry.
const EMPTY_PAGE: &[u8] = &[13, 0, 0, 0, 0];

/// How the first table was made. SQLite keeps these words in the first pages, whatever became of the header.
const FIRST_TABLE: &[u8] =
    b"CREATE TABLE conversations (\n        id            TEXT PRIMARY KEY,\n        started_at_ms";

/// Bytes in which those words are looked for.
const SEARCHED_BYTES: u64 = 4 << 20;

/// Whether a file that SQLite cannot read was a store once: what never was one belongs to somebody else. In doubt it was one.
///
/// It opens the file by itself, so nothing in this process may have it open as a database that matters: closing it drops SQLite's locks.
pub(super) fn was_a_store(path: &Path) -> bool {
    let Ok(bytes) = beginning(path) else {
        return true;
    };
    let number = bytes.get(APPLICATION_AT..APPLICATION_AT + 4);
    let is_marked = number == Some(&APPLICATION_ID.to_be_bytes()[4..]);
    let has_header = bytes.len() >= HEADER_BYTES && bytes.starts_with(MAGIC);
    // What was written last is in the log alone.
    let log = beginning(&with_suffix(path, "-wal")).unwrap_or_default();
    (has_header && is_marked) || has_table(&bytes) || has_table(&log)
}

/// Whether the database at `path`, if there is one, can be used by this program, as its header says. In doubt it can.
///
/// Like [`was_a_store`] it opens the file by itself.
/// Errors: [`StoreError::Foreign`], [`StoreError::Newer`].
pub(crate) fn check_header(path: &Path) -> Result<(), StoreError> {
    let foreign = || StoreError::Foreign {
        path: path.to_owned(),
    };
    let header = match beginning(path) {
        Ok(bytes) if !bytes.is_empty() => bytes,
        _ => return Ok(()),
    };
    let number = |at: usize| {
        let bytes = header.get(at..at + 4)?.try_into().ok()?;
        Some(i64::from(i32::from_be_bytes(bytes)))
    };
    let log_bytes = fs::metadata(with_suffix(path, "-wal")).map_or(0, |log| log.len());
    match (number(APPLICATION_AT), number(VERSION_AT)) {
        _ if !header.starts_with(MAGIC) && !was_a_store(path) => Err(foreign()),
        // What was written last is in the log alone; damage is set aside.
        _ if !header.starts_with(MAGIC) || log_bytes > 0 => Ok(()),
        (Some(APPLICATION_ID), Some(found)) if found > newest_version() => Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known: newest_version(),
        }),
        (Some(APPLICATION_ID), _) => Ok(()),
        (Some(0), Some(0)) if header.get(FIRST_PAGE_AT) == Some(EMPTY_PAGE) => Ok(()),
        _ => Err(foreign()),
    }
}

fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(SEARCHED_BYTES)
        .read_to_end(&mut bytes)
        .map(|_| bytes)
}

/// Whether the words of the first table are in a database: a text has no zeros, whatever it is about.
fn has_table(bytes: &[u8]) -> bool {
    bytes.contains(&0) && bytes.windows(FIRST_TABLE.len()).any(|at| at == FIRST_TABLE)
}

/// The file that says that damage was met in the store `path`.
fn note_of(path: &Path) -> PathBuf {
    with_suffix(path, ".damaged")
}

/// Notes that damage was met: the next host that starts checks the whole file.
pub(super) fn note_damage(path: &Path) {
    let noted = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(note_of(path));
    if let Err(error) = noted
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        tracing::warn!(%error, path = %path.display(), "it cannot be noted that the store is damaged");
    }
}

/// Whether damage was met since the last check.
pub(super) fn has_damage_note(path: &Path) -> bool {
    note_of(path).exists()
}

/// Forgets that damage was met.
pub(super) fn forget_damage(path: &Path) {
    // One that stays makes the next start check once more.
    drop(fs::remove_file(note_of(path)));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rusqlite::Connection;

    use super::check_header;
    use crate::error::StoreError;

    fn made(path: &Path, sql: &str) {
        Connection::open(path).unwrap().execute_batch(sql).unwrap();
    }

    #[test]
    fn a_file_of_another_application_is_told_by_its_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("st.db");
        let said = || match check_header(&path) {
            Ok(()) => "ours",
            Err(StoreError::Foreign { .. }) => "foreign",
            Err(StoreError::Newer { .. }) => "newer",
            Err(_) => "other",
        };
        assert_eq!(said(), "ours", "there is none");
        for (content, expect) in [("", "ours"), ("notes of mine\n", "foreign")] {
            fs::write(&path, content).unwrap();
            assert_eq!(said(), expect, "{content:?}");
        }
        for (sql, expect) in [
            ("CREATE TABLE t (a)", "foreign"),
            ("CREATE TABLE t (a); DROP TABLE t", "ours"),
            ("PRAGMA user_version = 1", "foreign"),
            ("PRAGMA application_id = 7", "foreign"),
            (
                "PRAGMA application_id = 0x5A455048; CREATE TABLE t (a)",
                "ours",
            ),
            (
                "PRAGMA application_id = 0x5A455048; PRAGMA user_version = 99999",
                "newer",
            ),
        ] {
            fs::remove_file(&path).unwrap();
            made(&path, sql);
            assert_eq!(said(), expect, "{sql}");
        }
    }
}
