//! Whether the sources of a project have changed: their names, lengths and times, looked at again and again.
//!
//! Looking is a walk over some files and works on every disk. What tools put into a project is not looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Between two looks: as fast as a person turns from the editor to the terminal.
const POLL: Duration = Duration::from_millis(400);

/// Maximum number of files that are watched. Changes of further files are not noticed.
const FILES_MAX: usize = 20_000;

/// What the tools of the languages put into a project, besides names that start with a dot.
const NOT_SOURCES: [&str; 8] = [
    "Cargo.lock",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "package-lock.json",
    "target",
    "venv",
];

/// A file as it was seen.
type SourceStamp = (PathBuf, u64, Option<SystemTime>);

/// The sources of one project.
#[derive(Debug)]
pub struct Sources {
    folder: PathBuf,
    noted: Vec<SourceStamp>,
}

impl Sources {
    /// The sources in `folder`, as they are now.
    pub fn note(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            noted: look(folder),
        }
    }

    /// Waits until they are not as noted, and notes how they are then.
    pub async fn changed(&mut self) {
        loop {
            let now = look(&self.folder);
            if now != self.noted {
                self.noted = now;
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// Every source, in the order of their names. What cannot be read is not there.
fn look(folder: &Path) -> Vec<SourceStamp> {
    let mut seen = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || NOT_SOURCES.contains(&&*name) {
                continue;
            }
            // A link is looked at as a link: it could lead anywhere.
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => open.push(entry.path()),
                Ok(meta) => seen.push((entry.path(), meta.len(), meta.modified().ok())),
                Err(_) => {}
            }
            if seen.len() >= FILES_MAX {
                open.clear();
                break;
            }
        }
    }
    seen.sort();
    seen
}

#[cfg(test)]
mod tests;
