//! What a call really did with files: which rights it exercised below each root and, where that is recorded, on which objects.
//!
//! The first costs a moment under a lock that nobody else wants; the second a question to the kernel for the real name of each object.
//! Contents are never looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zeph_core::capability::{FsRights, FsRoot};
use zeph_core::execution::PRIVATE_FILES_MAX;
use zeph_core::policy::PrivatePaths;

use super::policy::{FsPolicy, RootId};

/// Most objects of one call that are recorded; of more the number is.
const OBJECTS_MAX: usize = 2_000;

/// Most bytes of their names.
const NAME_BYTES_MAX: usize = 256 * 1024;

/// What was done with one file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileUses {
    /// Its description was asked for, or whether it is there.
    pub look: bool,
    /// Its content was opened to be read.
    pub read: bool,
    /// Its content or description was opened to be changed, or replaced.
    pub write: bool,
    /// Its name was made.
    pub create: bool,
    /// Its name was removed.
    pub delete: bool,
    /// Its entries were listed.
    pub list: bool,
    /// Names were made in it which the call removed again.
    pub temporary: bool,
}

impl FileUses {
    pub(super) const LOOK: Self = Self::of(0);
    pub(super) const READ: Self = Self::of(1);
    pub(super) const WRITE: Self = Self::of(2);
    pub(super) const CREATE: Self = Self::of(3);
    pub(super) const DELETE: Self = Self::of(4);
    pub(super) const LIST: Self = Self::of(5);
    const TEMPORARY: Self = Self::of(6);

    const fn of(nth: u8) -> Self {
        Self {
            look: nth == 0,
            read: nth == 1,
            write: nth == 2,
            create: nth == 3,
            delete: nth == 4,
            list: nth == 5,
            temporary: nth == 6,
        }
    }

    /// What was done by either.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            look: self.look || other.look,
            read: self.read || other.read,
            write: self.write || other.write,
            create: self.create || other.create,
            delete: self.delete || other.delete,
            list: self.list || other.list,
            temporary: self.temporary || other.temporary,
        }
    }

    /// The rights that it takes.
    pub fn rights(self) -> FsRights {
        FsRights {
            read: self.look || self.read || self.list,
            write: self.write,
            create: self.create || self.temporary,
            delete: self.delete,
        }
    }
}

/// One file or directory that a call used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// The granted tree it lies in.
    pub root: PathBuf,
    /// Its real path below that; empty for the tree itself.
    pub path: PathBuf,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// What was done with it.
    pub uses: FileUses,
}

/// The files that a call used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsedFiles {
    /// The granted trees in which something was used, with the rights that were exercised there.
    pub roots: Vec<FsRoot>,
    /// The single objects by real path; empty where they are not recorded.
    pub objects: Vec<FileUse>,
    /// Objects that were used and are not among them.
    pub n_omitted: u64,
    /// The private files that were opened to be read, each once; at most one more than [`PRIVATE_FILES_MAX`].
    pub private: Vec<PathBuf>,
}

impl UsedFiles {
    /// Adds what another attempt of the same call used.
    pub fn add(&mut self, other: Self) {
        for root in other.roots {
            match self.roots.iter_mut().find(|own| own.path == root.path) {
                Some(own) => own.rights = own.rights.union(root.rights),
                None => self.roots.push(root),
            }
        }
        for object in other.objects {
            let is_same = |own: &&mut FileUse| own.root == object.root && own.path == object.path;
            match self.objects.iter_mut().find(is_same) {
                Some(own) => own.uses = own.uses.union(object.uses),
                None => self.objects.push(object),
            }
        }
        self.n_omitted += other.n_omitted;
        for path in other.private {
            add_private(&mut self.private, &path);
        }
    }
}

/// The log of one call, shared by what works for it.
#[derive(Debug, Clone, Default)]
pub(super) struct UseLog(Arc<Mutex<UseBook>>);

#[derive(Debug, Default)]
struct UseBook {
    roots: Vec<(RootId, FsRights)>,
    /// By real path; none where single objects are not recorded.
    objects: Option<BTreeMap<PathBuf, ObjectUse>>,
    name_bytes: usize,
    n_omitted: u64,
    /// Files whose content is private.
    marked: Arc<PrivatePaths>,
    /// Those of them that were opened to be read.
    private: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
struct ObjectUse {
    root: RootId,
    is_directory: bool,
    uses: FileUses,
}

impl UseLog {
    /// One that records single objects, too.
    pub(super) fn of_objects() -> Self {
        Self(Arc::new(Mutex::new(UseBook {
            objects: Some(BTreeMap::new()),
            ..UseBook::default()
        })))
    }

    /// The same that looks for files of `marked`.
    pub(super) fn marking(self, marked: Arc<PrivatePaths>) -> Self {
        self.book().marked = marked;
        self
    }

    /// An object below `root` was used; `name` finds its real path and is asked only where objects are recorded or marked ones read.
    pub(super) fn note(
        &self,
        (root, is_directory): (RootId, bool),
        uses: FileUses,
        name: impl FnOnce() -> Option<PathBuf>,
    ) {
        let mut book = self.book();
        book.exercise(root, uses.rights());
        let is_marking =
            uses.read && book.private.len() <= PRIVATE_FILES_MAX && !book.marked.is_empty();
        if book.objects.is_none() && !is_marking {
            return;
        }
        let used = ObjectUse {
            root,
            is_directory,
            uses,
        };
        let name = name();
        if is_marking {
            book.mark(name.as_deref());
        }
        match name {
            Some(name) => book.add(name, used),
            None => book.n_omitted += 1,
        }
    }

    /// A name that the call itself had made below `root` is gone: it is not worth a record, but its directory needs the right to create.
    pub(super) fn undo_creation(&self, root: RootId, name: impl FnOnce() -> Option<PathBuf>) {
        let mut book = self.book();
        let Some(name) = book.objects.is_some().then(name).flatten() else {
            return;
        };
        let gone = book.objects.as_mut().and_then(|all| all.remove(&name));
        if gone.is_some() {
            book.name_bytes -= name.as_os_str().len();
        }
        if let Some(parent) = name.parent() {
            let used = ObjectUse {
                root,
                is_directory: true,
                uses: FileUses::TEMPORARY,
            };
            book.add(parent.to_owned(), used);
        }
    }

    /// Takes what was used so far.
    pub(super) fn take(&self, policy: &FsPolicy) -> UsedFiles {
        let book = std::mem::take(&mut *self.book());
        let path = |root: RootId| PathBuf::from(&policy.root(root).path);
        let roots = book.roots.iter().map(|(root, rights)| FsRoot {
            path: path(*root),
            rights: *rights,
        });
        let objects = book.objects.into_iter().flatten().map(|(name, used)| {
            let root = path(used.root);
            FileUse {
                path: name.strip_prefix(&root).unwrap_or(&name).to_owned(),
                root,
                is_directory: used.is_directory,
                uses: used.uses,
            }
        });
        UsedFiles {
            roots: roots.collect(),
            objects: objects.collect(),
            n_omitted: book.n_omitted,
            private: book.private,
        }
    }

    fn book(&self) -> MutexGuard<'_, UseBook> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UseBook {
    fn exercise(&mut self, root: RootId, rights: FsRights) {
        match self.roots.iter_mut().find(|(known, _)| *known == root) {
            Some((_, known)) => *known = known.union(rights),
            None => self.roots.push((root, rights)),
        }
    }

    /// A file was opened to be read. One without a name may be any.
    fn mark(&mut self, name: Option<&Path>) {
        let is_private = name.is_none_or(|name| self.marked.holds(name));
        let name = name.unwrap_or(Path::new("a file without a name"));
        if is_private {
            add_private(&mut self.private, name);
        }
    }

    fn add(&mut self, name: PathBuf, used: ObjectUse) {
        let Some(objects) = &mut self.objects else {
            return;
        };
        if let Some(known) = objects.get_mut(&name) {
            known.uses = known.uses.union(used.uses);
            return;
        }
        let name_bytes = self.name_bytes + name.as_os_str().len();
        if objects.len() >= OBJECTS_MAX || name_bytes > NAME_BYTES_MAX {
            self.n_omitted += 1;
            return;
        }
        self.name_bytes = name_bytes;
        objects.insert(name, used);
    }
}

impl FsPolicy {
    /// Whether a call under this policy may read what has this real path: it lies in a tree with that right, and nothing hides it.
    pub fn sees(&self, path: &Path) -> bool {
        let root = self.governing(path);
        root.is_some_and(|root| self.rights(root).read) && !self.hides(path)
    }
}

/// Adds a private file, unless it is there or there are enough.
fn add_private(files: &mut Vec<PathBuf>, path: &Path) {
    if files.len() <= PRIVATE_FILES_MAX && !files.iter().any(|known| known == path) {
        files.push(path.to_owned());
    }
}
