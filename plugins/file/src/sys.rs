//! The file operations the tools are made of, in one place: raw WASI in the component, `std::fs` in native tests.
//!
//! Raw, because `std` on WASI pays several crossings for one `open` or `stat`, hides what kind of thing a special file
//! is, and cannot make a symbolic link. Errors are `io::Error` with a precise kind on both sides.

use zeph_plugin::walk::EntryKind;

#[cfg_attr(target_family = "wasm", path = "sys/wasi.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "sys/native.rs")]
mod platform;

pub use platform::{Directory, File, Root, Walk, copy_mode, make_private, working_directory};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// Something that is never opened, by its name in plain words.
    Special(&'static str),
}

/// What a look at a path tells.
#[derive(Debug, Clone, Copy)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Bytes, for a regular file.
    pub size: u64,
    /// How many names it has, hard links.
    pub links: u64,
}

/// One entry of a directory.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name in the directory.
    pub name: String,
    /// What it is, the link itself when it is one.
    pub kind: Kind,
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Look at what it points to.
    Follow,
    /// Look at the link itself.
    Keep,
}

/// Whether an entry of a walk is a directory that could not be entered.
pub fn is_closed(entry: &zeph_plugin::walk::Entry) -> bool {
    entry.kind == EntryKind::Directory && entry.path.ends_with('/')
}

/// Entries asked for in one crossing. Large enough to make crossings free, small enough to keep memory flat.
const WALK_BATCH: u32 = 1024;

impl From<EntryKind> for Kind {
    fn from(kind: EntryKind) -> Self {
        match kind {
            EntryKind::File => Self::File,
            EntryKind::Directory => Self::Directory,
            EntryKind::Symlink => Self::Symlink,
            EntryKind::Other => Self::Special("special file"),
        }
    }
}
