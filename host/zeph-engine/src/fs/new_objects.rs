//! The objects a call has made itself.
//!
//! A call may undo its own work with the right to create alone: this is what makes "write a temporary file, rename it over
//! the target" possible without the right to delete.

use std::collections::HashMap;
use std::os::fd::AsFd;

use super::sys::{self, Born, FileId, Meta};

/// Maximum number of objects remembered per call (some 4 MB). Further ones are treated as if the call had not created them.
const CREATED_MAX: usize = 65_536;

/// The set of objects made in one call.
///
/// An inode number alone is not enough: when the object is removed, a file of another process may get its number.
/// The time of birth tells them apart where the file system keeps one.
#[derive(Debug, Default)]
pub(super) struct Created {
    made: HashMap<FileId, Born>,
}

impl Created {
    /// Remembers a file by the handle that made it.
    pub(super) fn note(&mut self, handle: impl AsFd) {
        if let (Ok(meta), Ok(born)) = (Meta::of(&handle), sys::birth(&handle)) {
            self.insert(meta.id, born);
        }
    }

    /// Remembers the entry `leaf` of `parent`, made a moment ago.
    pub(super) fn note_at(&mut self, parent: impl AsFd, leaf: &str) {
        if let (Ok(meta), Ok(born)) = (Meta::at(&parent, leaf), sys::born_at(&parent, leaf)) {
            self.insert(meta.id, born);
        }
    }

    /// Whether the object behind `handle`, described by `meta`, was made in this call.
    pub(super) fn has(&self, handle: impl AsFd, meta: &Meta) -> bool {
        self.made
            .get(&meta.id)
            .is_some_and(|born| sys::birth(&handle) == Ok(*born))
    }

    /// Whether the entry `leaf` of `parent`, described by `meta`, was made in this call.
    pub(super) fn has_at(&self, parent: impl AsFd, leaf: &str, meta: &Meta) -> bool {
        self.made
            .get(&meta.id)
            .is_some_and(|born| sys::born_at(parent, leaf) == Ok(*born))
    }

    /// Forgets an object that is gone.
    pub(super) fn forget(&mut self, id: FileId) {
        self.made.remove(&id);
    }

    fn insert(&mut self, id: FileId, born: Born) {
        if self.made.len() < CREATED_MAX || self.made.contains_key(&id) {
            self.made.insert(id, born);
        }
    }
}
