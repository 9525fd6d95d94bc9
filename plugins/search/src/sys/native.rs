use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::{FILES_MAX, SKIPPED, Seen};

/// Where relative paths start.
pub fn working_directory() -> PathBuf {
    PathBuf::from("/")
}

/// The granted directories: all there is.
pub fn roots() -> Vec<PathBuf> {
    vec![PathBuf::from("/")]
}

/// The files below `directory` whose names `wants` likes; `true`: there were more.
///
/// Errors: it is no directory, or may not be read.
pub fn walk(directory: &Path, wants: &dyn Fn(&str) -> bool) -> io::Result<(Vec<Seen>, bool)> {
    let mut files = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(below) = pending.pop() {
        for entry in directory.join(&below).read_dir()? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = match below.as_str() {
                "" => name.clone(),
                below => format!("{below}/{name}"),
            };
            let meta = entry.metadata()?;
            if meta.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                pending.push(path);
            } else if meta.is_file() && wants(&path) {
                let modified = meta.modified()?.duration_since(UNIX_EPOCH);
                let modified = modified.unwrap_or_default().as_millis();
                files.push(Seen {
                    path,
                    size: meta.len(),
                    modified_ms: u64::try_from(modified).unwrap_or(u64::MAX),
                });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let has_more = files.len() > FILES_MAX;
    files.truncate(FILES_MAX);
    Ok((files, has_more))
}
