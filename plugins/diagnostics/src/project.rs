//! Which project a path belongs to, and which checkers are for it.

use std::path::{Path, PathBuf};

use crate::checker::{CHECKERS, Checker, Level, Marker};

/// Most bytes of a file that are searched for the settings of a checker.
const MARKER_BYTES_MAX: u64 = 1 << 20;

/// A directory to check, and with what.
#[derive(Debug)]
pub struct Project {
    /// Absolute.
    pub directory: PathBuf,
    /// The checkers, in the order of the table.
    pub checkers: Vec<&'static Checker>,
}

impl Project {
    /// The innermost project that `path`, a file or a directory, belongs to. What lies above the granted directories cannot be read, and
    /// so is not found.
    pub fn around(path: &Path, level: Level) -> Option<Self> {
        let directories = path.ancestors().filter(|directory| directory.is_dir());
        for directory in directories {
            let is_for = |checker: &&Checker| {
                let mut markers = checker.markers.iter();
                checker.levels.contains(&level) && markers.any(|marker| marker.is_in(directory))
            };
            let checkers: Vec<_> = CHECKERS.iter().filter(is_for).collect();
            if !checkers.is_empty() {
                let directory = directory.to_owned();
                return Some(Self {
                    directory,
                    checkers,
                });
            }
        }
        None
    }
}

impl Marker {
    fn is_in(&self, directory: &Path) -> bool {
        let path = directory.join(self.file);
        let Ok(found) = path.metadata() else {
            return false;
        };
        if self.mentions.is_empty() {
            return found.is_file();
        }
        found.len() <= MARKER_BYTES_MAX
            && std::fs::read_to_string(path).is_ok_and(|text| text.contains(self.mentions))
    }
}
