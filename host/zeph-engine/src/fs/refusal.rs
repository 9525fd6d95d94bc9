//! A refusal because a right is missing: operations report it, and the host interface records it.
//!
//! Only what a grant would have allowed is one. What is refused for other reasons (outside every tree, hidden, a second
//! name of a file) is a plain error code, and nothing is noted of it.

use std::path::Path;

use zeph_core::capability::FsRights;

use super::error::Fail;
use super::policy::{FsPolicy, RootId};

/// No right at all.
pub(super) const NONE: FsRights = FsRights {
    read: false,
    write: false,
    create: false,
    delete: false,
};

/// To change existing files.
pub(super) const WRITE: FsRights = FsRights {
    write: true,
    ..NONE
};

/// To make new ones.
pub(super) const CREATE: FsRights = FsRights {
    create: true,
    ..NONE
};

/// To take away.
pub(super) const DELETE: FsRights = FsRights {
    delete: true,
    ..NONE
};

/// Rights that were missing, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissingRights {
    /// The tree for which they would have to be granted.
    pub(super) path: String,
    /// What was missing there.
    pub(super) missing: FsRights,
}

impl FsPolicy {
    /// Refuses an operation because `missing` is not held under `root`. `name` is the real name of the object, or as near as
    /// one may come to it without looking; without one the root is blamed.
    #[cold]
    pub(super) fn refuse(&self, root: RootId, missing: FsRights, name: Option<&Path>) -> Fail {
        let wanted = name.and_then(|name| self.wanted(name, missing));
        let path = wanted.unwrap_or(&self.root(root).path).to_owned();
        Fail::Refused(Box::new(MissingRights { path, missing }))
    }
}
