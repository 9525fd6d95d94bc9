use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use zeph_plugin::walk::{EntryKind, Options, WalkError, Walker};

use super::{FILES_MAX, SKIPPED, Seen};

/// What [`WalkError::Limit`] stands for.
const TOO_MUCH: &str = "one directory holds more names, or the call has more globs or open directories, than the host takes";

/// Entries asked for in one crossing.
const BATCH: u32 = 4_096;

/// Where relative paths start.
pub fn working_directory() -> PathBuf {
    wasip2::cli::environment::initial_cwd()
        .unwrap_or_default()
        .into()
}

/// The granted directories.
pub fn roots() -> Vec<PathBuf> {
    let all = wasip2::filesystem::preopens::get_directories();
    all.into_iter().map(|(_, path)| path.into()).collect()
}

/// The files below `directory` whose names `wants` likes; `true`: there were more.
///
/// Errors: it is no directory, or may not be read.
pub fn walk(directory: &Path, wants: &dyn Fn(&str) -> bool) -> io::Result<(Vec<Seen>, bool)> {
    let options = Options {
        max_depth: None,
        only: Vec::new(),
        skip: SKIPPED.iter().map(|name| (*name).to_owned()).collect(),
        standard_filters: true,
        sizes: true,
    };
    let walker = Walker::open(&directory.to_string_lossy(), &options).map_err(failed)?;
    let mut files = Vec::new();
    loop {
        let batch = walker.next(BATCH).map_err(failed)?;
        if batch.is_empty() {
            return Ok((files, false));
        }
        for entry in batch {
            if entry.kind != EntryKind::File || !wants(&entry.path) {
                continue;
            }
            if files.len() == FILES_MAX {
                return Ok((files, true));
            }
            files.push(Seen {
                path: entry.path,
                size: entry.size,
                modified_ms: entry.modified_ms.unwrap_or_default(),
            });
        }
    }
}

fn failed(error: WalkError) -> io::Error {
    match error {
        WalkError::NotFound => ErrorKind::NotFound.into(),
        WalkError::NotADirectory => ErrorKind::NotADirectory.into(),
        WalkError::Denied => ErrorKind::PermissionDenied.into(),
        WalkError::InvalidGlob => ErrorKind::InvalidInput.into(),
        WalkError::Limit => io::Error::other(TOO_MUCH),
    }
}
