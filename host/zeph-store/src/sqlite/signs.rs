//! What files say without SQLite: whether one was ever a store, and whether somebody met damage in it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::schema::APPLICATION_ID;
use crate::place::with_suffix;

/// How a database of SQLite begins, and where it has the number of its application. Source: <https://www.sqlite.org/fileformat.html>, 1.3.
const MAGIC: &[u8] = b"SQLite format 3\0";
const APPLICATION_AT: usize = 68;
const HEADER_BYTES: usize = 100;

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
