//! What a guest may touch.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The four separate rights on a directory tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsRights {
    /// Read contents, names and metadata.
    pub read: bool,
    /// Change existing files: contents, length, times.
    pub write: bool,
    /// Make new files, directories and links.
    pub create: bool,
    /// Remove or rename away.
    pub delete: bool,
}

impl FsRights {
    /// All four.
    pub const ALL: Self = Self {
        read: true,
        write: true,
        create: true,
        delete: true,
    };

    /// Reading only.
    pub const READ: Self = Self {
        read: true,
        write: false,
        create: false,
        delete: false,
    };

    /// The rights held by both.
    pub fn intersect(self, other: Self) -> Self {
        Self {
            read: self.read && other.read,
            write: self.write && other.write,
            create: self.create && other.create,
            delete: self.delete && other.delete,
        }
    }
}

impl fmt::Display for FsRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = [
            (self.read, "read"),
            (self.write, "write"),
            (self.create, "create"),
            (self.delete, "delete"),
        ];
        let names: Vec<_> = held.iter().filter(|(on, _)| *on).map(|(_, n)| *n).collect();
        f.write_str(&names.join("+"))
    }
}

/// A granted directory tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FsRoot {
    /// Absolute and canonical; the guest sees the tree under this same path.
    pub path: PathBuf,
    /// What may be done below it.
    pub rights: FsRights,
}

/// The file side of a grant: which trees, and which names inside them stay hidden.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FsGrant {
    /// The first root is the guest's working directory.
    pub roots: Vec<FsRoot>,
    /// Globs over absolute canonical paths that are as if they were not there.
    pub deny_read: Vec<String>,
    /// Exceptions to `deny_read`.
    pub allow_read: Vec<String>,
}
