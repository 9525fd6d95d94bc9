//! What can go wrong with a snapshot. Texts name paths below the root and keys of the configuration, and no other place.

use std::io;
use std::path::PathBuf;

/// A snapshot that could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The directory to keep cannot be opened.
    #[error("cannot open the directory to snapshot")]
    Root {
        /// Why.
        source: io::Error,
    },
    /// Another directory stands at the path now.
    #[error(
        "the directory is not the one it was when the host started; restart the host if the new one is meant"
    )]
    RootReplaced,
    /// The private folder for copies cannot be made or used.
    #[error("cannot use the private folder for snapshots")]
    Place {
        /// Why.
        source: io::Error,
    },
    /// The private folder for copies can be written by others, who could change what is put back.
    #[error("the private folder for snapshots can be changed by other users")]
    PlaceNotPrivate,
    /// The tree has more bytes than allowed.
    #[error(
        "the directory holds {bytes} bytes or more, above the {bytes_max} of `tools.shell.max_snapshot_bytes`"
    )]
    TooLarge {
        /// Bytes counted when the limit was passed.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The copies would fill the disk.
    #[error("the snapshot needs {bytes} bytes and the disk has {available} to spare for it")]
    NoSpace {
        /// Bytes to copy.
        bytes: u64,
        /// Bytes that may be used.
        available: u64,
    },
    /// The tree has too many names.
    #[error(
        "the directory holds more than {entries_max} names; narrow `tools.shell.transaction_scope`"
    )]
    TooMany {
        /// The limit.
        entries_max: usize,
    },
    /// The tree is too deep.
    #[error("a directory lies deeper than {depth_max} levels: {path}")]
    TooDeep {
        /// Path below the root, shortened.
        path: String,
        /// The limit.
        depth_max: usize,
    },
    /// Something in the tree cannot be read for another reason than missing rights.
    #[error("cannot read {path}")]
    Read {
        /// Path below the root, shortened.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A copy cannot be written.
    #[error("cannot store the copy of {path}")]
    Store {
        /// Path below the root, shortened.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The call was ended while the snapshot was being taken.
    #[error("stopped while the snapshot was being taken")]
    Stopped,
}

/// A tree that could not be restored at all. Failures of single files are in [`super::RestoreReport`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The path of the root leads to another directory than the one that was kept.
    #[error("the directory is not the one that was kept")]
    RootReplaced,
    /// The tree cannot be listed.
    #[error("cannot read {path}")]
    Read {
        /// Path below the root, shortened.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// A pattern of a scope that does not compile.
#[derive(Debug, thiserror::Error)]
#[error("bad pattern `{pattern}`")]
pub struct ScopeError {
    /// The pattern as written.
    pub pattern: String,
    /// Why.
    pub source: globset::Error,
}

/// A path below the root as it may be shown: plain characters, at most 200.
pub(super) fn shown(path: &std::path::Path) -> String {
    const CHARS_MAX: usize = 200;
    let path = if path.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        path.to_path_buf()
    };
    let text: String = path.to_string_lossy().escape_debug().collect();
    if text.chars().count() <= CHARS_MAX {
        return format!("`{text}`");
    }
    let head: String = text.chars().take(CHARS_MAX).collect();
    format!("`{head}…`")
}
