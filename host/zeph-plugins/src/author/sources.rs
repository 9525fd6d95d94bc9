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

/// What the tools of the languages put into the folder of a project, besides names that start with a dot. Further down, these are names
/// like any other.
const NOT_SOURCES: [&str; 6] = [
    "Cargo.lock",
    "build",
    "dist",
    "package-lock.json",
    "target",
    "venv",
];

/// What they put into any folder.
const NEVER_SOURCES: [&str; 2] = ["__pycache__", "node_modules"];

/// What a folder holds that is made by cargo, or is a virtual environment of Python, wherever it is.
const MARKS: [&str; 2] = ["CACHEDIR.TAG", "pyvenv.cfg"];

/// The one folder whose name starts with a dot and that has sources: how cargo builds the project.
const CARGO_SETTINGS: &str = ".cargo";

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
fn look(project: &Path) -> Vec<SourceStamp> {
    let mut seen = Vec::new();
    let mut open = vec![project.to_owned()];
    while let Some(folder) = open.pop() {
        let is_top = folder == project;
        if !is_top && MARKS.iter().any(|mark| folder.join(mark).exists()) {
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            if !is_source(&entry.file_name().to_string_lossy(), is_top) {
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

/// Whether a file of this name is a source, and a folder may hold some; `is_top`: it stands in the folder of the project.
fn is_source(name: &str, is_top: bool) -> bool {
    match is_top {
        _ if NEVER_SOURCES.contains(&name) => false,
        true if name == CARGO_SETTINGS => true,
        true => !name.starts_with('.') && !NOT_SOURCES.contains(&name),
        false => !name.starts_with('.'),
    }
}

#[cfg(test)]
mod tests;
