//! What happens to a damaged database: it is kept under another name, so that nothing is silently lost.
//!
//! Every function here is called with the start-up lock held.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{StoreError, file};
use crate::place::with_suffix;

/// What SQLite keeps beside a database file.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// Most names tried for one moment. More would mean that something else is wrong.
const NAMES_MAX: u32 = 100;

/// Renames the database and its companions to `<path>.corrupt-<at_ms>`; gives back the new name.
///
/// Errors: [`StoreError::File`] when a rename fails; the files stay where they were, or the database has moved and a
/// companion has not.
pub(crate) fn set_aside(path: &Path, at_ms: i64) -> Result<PathBuf, StoreError> {
    let aside = free_name(path, at_ms);
    rename_if_there(path, &aside)?;
    for companion in COMPANIONS {
        rename_if_there(
            &with_suffix(path, companion),
            &with_suffix(&aside, companion),
        )?;
    }
    Ok(aside)
}

/// Whether a write-ahead log lies there without its database. SQLite would delete it unread.
pub(crate) fn has_orphan_log(path: &Path) -> bool {
    let log_bytes = fs::metadata(with_suffix(path, "-wal")).map_or(0, |metadata| metadata.len());
    log_bytes > 0 && !path.exists()
}

fn free_name(path: &Path, at_ms: i64) -> PathBuf {
    let name = with_suffix(path, &format!(".corrupt-{at_ms}"));
    let numbered = (1..NAMES_MAX).map(|number| with_suffix(&name, &format!("-{number}")));
    let is_free = |name: &PathBuf| !name.exists() && !with_suffix(name, "-wal").exists();
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(is_free).unwrap_or(name)
}

fn rename_if_there(from: &Path, to: &Path) -> Result<(), StoreError> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(file("set aside the damaged store", from)(error))
        }
        _ => Ok(()),
    }
}
