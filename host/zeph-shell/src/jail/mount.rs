//! The file system of a jail as a list of mounts, which later ones cover; nothing is there that is not in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a directory that is empty for good.
pub(super) const NOTHING: u64 = 4096;

/// One step of building the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mount {
    /// A path of the host at the same path, not to be changed.
    Read(PathBuf),
    /// A path of the host at the same path, to be changed.
    Write(PathBuf),
    /// A path of the host at another path, to be changed.
    WriteAt { source: PathBuf, path: PathBuf },
    /// A directory in memory.
    Memory {
        path: PathBuf,
        bytes: u64,
        mode: Mode,
    },
    /// A symbolic link.
    Link { path: PathBuf, target: PathBuf },
    /// A file with these bytes; it can be changed only where its directory can.
    File { path: PathBuf, bytes: Arc<[u8]> },
    /// A file that cannot be changed, with these bytes.
    FixedFile { path: PathBuf, bytes: Arc<[u8]> },
    /// A directory of the host at the same path, not to be changed, of which these are all entries.
    Copied {
        path: PathBuf,
        entries: Arc<[Mount]>,
    },
    /// An empty directory.
    Directory(PathBuf),
    /// The devices every program expects.
    Devices(PathBuf),
    /// What the kernel tells of processes, of this jail only.
    Processes(PathBuf),
    /// From here on nothing can be made directly in this mount.
    Fixed(PathBuf),
}

/// Permissions of a directory in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// For its owner.
    Own,
    /// For everybody, each their own files.
    Shared,
}

impl Mount {
    /// Where it stands.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Read(path)
            | Self::Write(path)
            | Self::WriteAt { path, .. }
            | Self::Memory { path, .. }
            | Self::Link { path, .. }
            | Self::File { path, .. }
            | Self::FixedFile { path, .. }
            | Self::Copied { path, .. }
            | Self::Directory(path)
            | Self::Devices(path)
            | Self::Processes(path)
            | Self::Fixed(path) => path,
        }
    }

    /// What of the host it shows or covers, if anything is there.
    pub(super) fn source(&self) -> &Path {
        match self {
            Self::WriteAt { source, .. } => source,
            other => other.path(),
        }
    }

    /// Whether it is made of what is said here alone: then it is the same whatever the host has there.
    pub(super) fn is_of_its_own(&self) -> bool {
        matches!(
            self,
            Self::File { .. } | Self::Link { .. } | Self::Copied { .. } | Self::Directory(_)
        )
    }

    /// Where it stands, if it is a directory in memory that can be filled.
    pub(super) fn filled(&self) -> Option<&Path> {
        match self {
            Self::Memory { path, bytes, .. } if *bytes != NOTHING => Some(path),
            _ => None,
        }
    }

    /// Whether it only changes what stands already.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    /// Where it stands, if it shows what the host has there.
    pub(super) fn of_host(&self) -> Option<&Path> {
        match self {
            Self::Read(path) | Self::Write(path) | Self::Copied { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// Whether `path` is `root` or lies beneath it.
pub(super) fn within(path: &Path, root: &Path) -> bool {
    path.starts_with(root)
}

/// Whether `path` is or lies beneath one of `roots`.
pub(super) fn within_any<'a>(path: &Path, roots: impl IntoIterator<Item = &'a PathBuf>) -> bool {
    roots.into_iter().any(|root| within(path, root))
}
