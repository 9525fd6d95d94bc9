//! Restoring a tree: what was there comes back first, then what is new goes. One thing that fails does not stop the rest.

use std::collections::HashSet;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;

use super::compare;
use super::error::{RestoreError, shown};
use super::handle::{self, DEPTH_MAX, enter, glance, open_directory, some_names};
use super::mend::{self, MendReport};
use super::relink;
use super::remove::{BATCH, Removal};
use super::scope::ScopeMatch;
use super::snapshot::{Notes, Snapshot, reopen};
use super::take::text;
use super::tree::{Directory, FileId, Node, ObjectStamp, Reach, TreeNames};

/// What a restoration did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
    /// Files, links and directories that were changed or missing and are as they were.
    pub restored: usize,
    /// Names that were new and are gone, with all they held.
    pub deleted: usize,
    /// Names that could not be put back or deleted. The tree is what it was but for these.
    pub failed: usize,
    /// What failed and why, a sentence each, the first few; paths are below the root.
    pub notes: Vec<String>,
}

/// Makes the tree what `snapshot` kept.
pub(super) fn restore(snapshot: &Snapshot) -> Result<RestoreReport, RestoreError> {
    snapshot.check_root()?;
    let root = reopen(&snapshot.root).map_err(|errno| RestoreError::Read {
        path: shown(&PathBuf::new()),
        source: errno.into(),
    })?;
    let seen = snapshot.options.scope.root();
    let mut first = Restoring::new(snapshot);
    first.directory(&root, &snapshot.tree, seen, DirectoryState::Before, 0);
    if !first.is_disk_full {
        first.join(&root);
        return Ok(first.finish());
    }
    // What is new has been deleted since, so there may be room now.
    let mut second = Restoring::new(snapshot);
    second.n_restored = first.n_restored;
    second.n_deleted = first.deleted();
    second.mended = first.mended;
    second.directory(&root, &snapshot.tree, seen, DirectoryState::Before, 0);
    second.join(&root);
    Ok(second.finish())
}

struct Restoring<'a> {
    snapshot: &'a Snapshot,
    removal: Removal,
    /// Where the walk is, below the root.
    path: PathBuf,
    n_restored: usize,
    n_deleted: usize,
    n_failed: usize,
    notes: Notes,
    is_disk_full: bool,
    /// Files with several names of which one was put back.
    mended: HashSet<FileId>,
}

/// Whether a directory was there, or had to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectoryState {
    Before,
    Now,
}

impl<'a> Restoring<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            removal: Removal::within(snapshot.walls),
            path: PathBuf::new(),
            n_restored: 0,
            n_deleted: 0,
            n_failed: 0,
            notes: Notes::default(),
            is_disk_full: false,
            mended: HashSet::new(),
        }
    }

    /// Gives files their several names back.
    fn join(&mut self, root: &OwnedFd) {
        let joined = relink::join(root, &self.snapshot.tree, &self.mended);
        for path in &joined.parted {
            self.notes.add(|| relink::parted(path));
        }
        for (path, errno) in joined.failed {
            self.path = path;
            self.tell(Err(errno));
        }
        self.path = PathBuf::new();
    }

    fn deleted(&self) -> usize {
        self.n_deleted + self.removal.n_deleted()
    }

    fn finish(self) -> RestoreReport {
        RestoreReport {
            restored: self.n_restored,
            deleted: self.deleted(),
            failed: self.n_failed,
            notes: self.notes.into_sentences(),
        }
    }

    fn directory(
        &mut self,
        handle: &OwnedFd,
        then: &Directory,
        seen: ScopeMatch,
        made: DirectoryState,
        depth: usize,
    ) {
        for (name, node) in &then.names {
            self.path.push(text(name));
            let done = self.node(handle, name, node, seen, depth + 1);
            self.tell(done);
            self.path.pop();
        }
        let done = self.newcomers(handle, &then.names, seen, depth);
        self.tell(done.map(|()| MendReport::Nothing));
        if then.reach == Reach::Covered {
            let dressed = dress(handle, then);
            self.tell(match (made, dressed) {
                // It counts once.
                (DirectoryState::Now, Ok(MendReport::Restored)) => Ok(MendReport::Nothing),
                (_, dressed) => dressed,
            });
        }
    }

    fn node(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        node: &Node,
        above: ScopeMatch,
        depth: usize,
    ) -> Result<MendReport, Errno> {
        match node {
            Node::File(then) => {
                let mended =
                    mend::file(self.snapshot.clock, parent, name, then, &mut self.removal)?;
                if then.stamp.links > 1 && mended != MendReport::Nothing {
                    self.mended.insert(then.stamp.id);
                }
                Ok(mended)
            }
            Node::Link(then) => mend::link(parent, name, then, &mut self.removal),
            Node::Unkept(stamp) => unkept(parent, name, stamp),
            Node::Directory(then) if then.reach == Reach::Sealed => {
                unkept(parent, name, &then.stamp)
            }
            Node::Directory(then) => self.subdirectory(parent, name, then, above, depth),
        }
    }

    fn subdirectory(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        then: &Directory,
        above: ScopeMatch,
        depth: usize,
    ) -> Result<MendReport, Errno> {
        let seen = self.snapshot.options.scope.sees(above, &self.path);
        let before = glance(parent, name)?;
        let made = match before {
            Some(stamp) if stamp.kind.is_dir() => DirectoryState::Before,
            // What is out of scope is not removed, even when it is in the way.
            Some(_) if then.reach == Reach::Passed => return Err(Errno::NOTDIR),
            before => {
                if before.is_some() {
                    self.removal.name(parent, name)?;
                }
                mkdirat(parent, name, Mode::RWXU)?;
                DirectoryState::Now
            }
        };
        let handle = enter(parent, name)?;
        if !self.snapshot.walls.let_in(&handle)? {
            return Err(Errno::XDEV);
        }
        self.directory(&handle, then, seen, made, depth);
        match (made, then.reach, before) {
            (DirectoryState::Now, Reach::Passed, _) => {
                mend::face(&handle, &then.stamp, &then.attributes)
            }
            (DirectoryState::Now, ..) => Ok(MendReport::Restored),
            (DirectoryState::Before, Reach::Passed, Some(before)) => {
                give_back_mode(&handle, &before)
            }
            (DirectoryState::Before, ..) => Ok(MendReport::Nothing),
        }
    }

    /// Deletes the names of a directory that are not among those it had.
    fn newcomers(
        &mut self,
        handle: &OwnedFd,
        known: &TreeNames,
        seen: ScopeMatch,
        depth: usize,
    ) -> Result<(), Errno> {
        loop {
            let batch = some_names(handle, BATCH, |name| !known.contains_key(name))?;
            let before = self.deleted();
            for name in &batch {
                self.path.push(text(name));
                let done = self.newcomer(handle, name, seen, depth + 1);
                self.tell(done.map(|()| MendReport::Nothing));
                self.path.pop();
            }
            if batch.len() < BATCH || self.deleted() == before {
                return Ok(());
            }
        }
    }

    fn newcomer(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        above: ScopeMatch,
        depth: usize,
    ) -> Result<(), Errno> {
        let scope = &self.snapshot.options.scope;
        let seen = scope.sees(above, &self.path);
        if seen == ScopeMatch::Excluded {
            return Ok(());
        }
        let Some(stamp) = glance(parent, name)? else {
            return Ok(());
        };
        match (stamp.kind.is_dir(), seen) {
            (false, ScopeMatch::Covered) => self.removal.name(parent, name),
            (true, ScopeMatch::Covered) if scope.excludes_nothing() || depth > DEPTH_MAX => {
                self.removal.tree(parent, name)
            }
            (true, _) if depth <= DEPTH_MAX => self.new_directory(parent, name, seen, depth),
            _ => Ok(()),
        }
    }

    /// Deletes of a new directory what is covered, and then the directory, if that was all.
    fn new_directory(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        seen: ScopeMatch,
        depth: usize,
    ) -> Result<(), Errno> {
        let handle = match seen {
            ScopeMatch::Covered => enter(parent, name)?,
            _ => open_directory(parent, name)?,
        };
        if !self.snapshot.walls.let_in(&handle)? {
            return Err(Errno::XDEV);
        }
        self.newcomers(&handle, &TreeNames::new(), seen, depth)?;
        if seen != ScopeMatch::Covered {
            return Ok(());
        }
        match self.removal.empty(parent, name) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            done => done,
        }
    }

    fn tell(&mut self, done: Result<MendReport, Errno>) {
        match done {
            Ok(MendReport::Nothing) => {}
            Ok(MendReport::Restored) => self.n_restored += 1,
            Ok(MendReport::NewOwner) => {
                self.n_restored += 1;
                let path = &self.path;
                self.notes.add(|| {
                    format!(
                        "{} is back, but its owner could not be restored",
                        shown(path)
                    )
                });
            }
            Err(errno) => {
                self.n_failed += 1;
                self.is_disk_full |= matches!(errno, Errno::NOSPC | Errno::DQUOT);
                let path = &self.path;
                self.notes
                    .add(|| format!("{} could not be restored: {}", shown(path), why(errno)));
            }
        }
    }
}

/// What was not kept is all right as long as it is there.
fn unkept(parent: &OwnedFd, name: &CStr, then: &ObjectStamp) -> Result<MendReport, Errno> {
    if compare::is_same_object(parent, name, then)? {
        Ok(MendReport::Nothing)
    } else {
        Err(Errno::NODATA)
    }
}

/// Gives a directory back its permissions and times, which the work in it has moved.
fn dress(handle: &OwnedFd, then: &Directory) -> Result<MendReport, Errno> {
    let now = handle::stamp_of(handle)?;
    if then.stamp.has_face_of(&now) && super::attributes::read(handle)? == then.attributes {
        return Ok(MendReport::Nothing);
    }
    let was_moved_only = now.mode == then.stamp.mode;
    match mend::face(handle, &then.stamp, &then.attributes)? {
        // A time alone is no news.
        MendReport::Restored if was_moved_only => Ok(MendReport::Nothing),
        mended => Ok(mended),
    }
}

/// Takes the rights back that were needed to work in a directory out of scope.
fn give_back_mode(handle: &OwnedFd, before: &ObjectStamp) -> Result<MendReport, Errno> {
    if handle::stamp_of(handle)?.mode != before.mode {
        rustix::fs::fchmod(handle, handle::mode_of(before.mode))?;
    }
    Ok(MendReport::Nothing)
}

/// An error as a user reads it.
fn why(errno: Errno) -> String {
    match errno {
        Errno::NODATA => "it was not kept, and is gone or another".to_owned(),
        Errno::XDEV => "it is another file system, or the host's own".to_owned(),
        errno => errno.to_string(),
    }
}
