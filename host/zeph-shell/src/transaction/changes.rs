//! What differs from a snapshot, without touching it: for notes to the model, for hooks, and to know whether there is anything to undo.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::io::Errno;

use super::compare::{self, FileChange};
use super::error::{RestoreError, shown};
use super::handle::{self, DEPTH_MAX, ENTRIES_MAX, glance, open_directory};
use super::scope::ScopeMatch;
use super::snapshot::{Snapshot, reopen};
use super::take::text;
use super::tree::{Directory, Node, ObjectStamp, Reach, TreeNames};

/// The differences between a tree and a snapshot of it. Times of directories are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths below the root that are new, changed or gone, the first of them, in no order that means anything.
    pub paths: Vec<PathBuf>,
    /// Files, links and directories that are not what they were.
    pub changed: usize,
    /// Names that are new, the contents of new directories included.
    pub new: usize,
    /// Names that are gone, the contents of directories that are gone included.
    pub deleted: usize,
}

impl Changes {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changed + self.new + self.deleted == 0
    }
}

/// Compares the tree with `snapshot`.
pub(super) fn changes(snapshot: &Snapshot, paths_max: usize) -> Result<Changes, RestoreError> {
    snapshot.check_root()?;
    let mut comparing = Comparing {
        snapshot,
        path: PathBuf::new(),
        paths_max,
        left: ENTRIES_MAX,
        found: Changes::default(),
    };
    let seen = snapshot.options.scope.root();
    reopen(&snapshot.root)
        .and_then(|root| comparing.directory(&root, &snapshot.tree, seen, 0))
        .map_err(|errno| RestoreError::Read {
            path: shown(&comparing.path),
            source: errno.into(),
        })?;
    Ok(comparing.found)
}

struct Comparing<'a> {
    snapshot: &'a Snapshot,
    path: PathBuf,
    paths_max: usize,
    left: usize,
    found: Changes,
}

impl Comparing<'_> {
    fn directory(
        &mut self,
        handle: &OwnedFd,
        then: &Directory,
        seen: ScopeMatch,
        depth: usize,
    ) -> Result<(), Errno> {
        if then.reach == Reach::Covered {
            let now = handle::stamp_of(handle)?;
            if !is_same_directory(&then.stamp, &now) {
                self.changed();
            }
        }
        for (name, node) in &then.names {
            self.path.push(text(name));
            self.node(handle, name, node, seen, depth + 1)?;
            self.path.pop();
        }
        for name in handle::names(handle, &mut self.left)? {
            if !then.names.contains_key(&name) {
                self.newcomer(handle, &name, seen, depth + 1)?;
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        node: &Node,
        above: ScopeMatch,
        depth: usize,
    ) -> Result<(), Errno> {
        let Some(now) = glance(parent, name)? else {
            self.gone(node);
            return Ok(());
        };
        let is_same = match node {
            Node::File(then) => {
                let now = compare::file(self.snapshot.clock, parent, name, then)?;
                matches!(now, FileChange::Same)
            }
            Node::Link(then) => compare::is_same_link(parent, name, then)?,
            Node::Unkept(then) => compare::is_same_object(parent, name, then)?,
            Node::Directory(then) if then.reach == Reach::Sealed => {
                compare::is_same_object(parent, name, &then.stamp)?
            }
            Node::Directory(then) if now.kind.is_dir() => {
                let seen = self.snapshot.options.scope.sees(above, &self.path);
                let handle = open_directory(parent, name)?;
                return self.directory(&handle, then, seen, depth);
            }
            Node::Directory(_) => false,
        };
        if !is_same {
            self.changed();
        }
        Ok(())
    }

    fn newcomer(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        above: ScopeMatch,
        depth: usize,
    ) -> Result<(), Errno> {
        self.path.push(text(name));
        let seen = self.snapshot.options.scope.sees(above, &self.path);
        if seen == ScopeMatch::Covered {
            self.found.new += 1;
            self.name_path();
        }
        if seen != ScopeMatch::Excluded && depth <= DEPTH_MAX {
            // What is not a directory, or may not be entered, counts by its name alone.
            if let Ok(handle) = open_directory(parent, name)
                && self.snapshot.walls.let_in(&handle)?
            {
                for inner in handle::names(&handle, &mut self.left)? {
                    self.newcomer(&handle, &inner, seen, depth + 1)?;
                }
            }
        }
        self.path.pop();
        Ok(())
    }

    fn changed(&mut self) {
        self.found.changed += 1;
        self.name_path();
    }

    fn gone(&mut self, node: &Node) {
        self.found.deleted += n_names(node);
        self.name_path();
    }

    fn name_path(&mut self) {
        if self.found.paths.len() < self.paths_max {
            self.found.paths.push(self.path.clone());
        }
    }
}

fn n_names(node: &Node) -> usize {
    let below: fn(&TreeNames) -> usize = |names| names.values().map(n_names).sum();
    1 + match node {
        Node::Directory(directory) => below(&directory.names),
        _ => 0,
    }
}

fn is_same_directory(then: &ObjectStamp, now: &ObjectStamp) -> bool {
    (then.mode, then.owner, then.group) == (now.mode, now.owner, now.group)
}
