//! Taking a snapshot: a walk that notes every name and adds up sizes, then, within the limits, a second one that copies.
//!
//! What changes in between is taken as it is met: the copy belongs to the object that was opened, and a name that now leads to another
//! kind of thing is noted as not kept, which also means that it is not touched later.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, readlinkat};
use rustix::io::Errno;

use super::attributes;
use super::error::{SnapshotError, shown};
use super::handle::{self, DEPTH_MAX, ENTRIES_MAX, Walls, glance, open_directory};
use super::scope::ScopeMatch;
use super::snapshot::{Notes, Snapshot, SnapshotOptions, open_root};
use super::tree::{Clock, Directory, Link, Node, ObjectStamp, Reach, TreeFile, TreeNames};
use super::vault::{self, FileCopy, FillError, Filling};

/// Takes a snapshot of `root`, with the copies of `earlier` where they still hold.
pub(super) fn take(
    root: &Path,
    options: &SnapshotOptions,
    earlier: Option<&Snapshot>,
) -> Result<Snapshot, SnapshotError> {
    let at_root = |errno: Errno| SnapshotError::Root {
        source: errno.into(),
    };
    let at_place = |source| SnapshotError::Place { source };
    let handle = open_root(root).map_err(at_root)?;
    let place = vault::open_place(&options.place).map_err(|error| match error {
        Some(source) => at_place(source),
        None => SnapshotError::PlaceNotPrivate,
    })?;
    let place_id = vault::identity(&place).map_err(|errno| at_place(errno.into()))?;
    let filling = Filling::begin(&options.place, &place).map_err(at_place)?;
    let clock = Clock {
        began: filling.began().map_err(|errno| at_place(errno.into()))?,
        tells_writes: tells_writes(&handle).map_err(at_root)?,
    };
    let walls = Walls::around(&handle, place_id).map_err(at_root)?;
    let mut taking = Taking {
        options,
        walls,
        filling,
        earlier: earlier.map_or(
            Clock {
                began: (0, 0),
                tells_writes: false,
            },
            |it| it.clock,
        ),
        left: ENTRIES_MAX,
        path: PathBuf::new(),
        notes: Notes::default(),
        n_files: 0,
        bytes: 0,
        bytes_copied: 0,
    };
    let mut tree = taking.root(&handle)?;
    let earlier = earlier.filter(|it| it.tree.stamp.id == tree.stamp.id);
    taking.fill(&handle, &mut tree.names, earlier.map(|it| &it.tree.names))?;
    Ok(Snapshot {
        root: handle,
        path: root.to_path_buf(),
        options: options.clone(),
        walls,
        clock,
        tree,
        notes: taking.notes.finish(),
        n_files: taking.n_files,
        bytes: taking.bytes,
        bytes_copied: taking.bytes_copied,
    })
}

const REPLACED: &str = "was replaced while the snapshot was taken";

/// What the second walk found at a name.
enum SecondLook {
    Yes,
    Gone,
    /// It cannot be put back, so it is not touched either.
    Unkept(ObjectStamp),
}

struct Taking<'a> {
    options: &'a SnapshotOptions,
    walls: Walls,
    filling: Filling,
    /// The clock of the earlier snapshot; trusts nothing when there is none.
    earlier: Clock,
    /// Names that may still be looked at.
    left: usize,
    /// Where the walk is, below the root.
    path: PathBuf,
    notes: Notes,
    n_files: usize,
    bytes: u64,
    bytes_copied: u64,
}

/// The first walk.
impl Taking<'_> {
    fn root(&mut self, handle: &OwnedFd) -> Result<Directory, SnapshotError> {
        let stamp = handle::stamp_of(handle).map_err(|errno| self.unread(errno))?;
        let seen = self.options.scope.root();
        self.directory(handle, stamp, seen, 0)
    }

    fn directory(
        &mut self,
        handle: &OwnedFd,
        stamp: ObjectStamp,
        seen: ScopeMatch,
        depth: usize,
    ) -> Result<Directory, SnapshotError> {
        if depth > DEPTH_MAX {
            return Err(SnapshotError::TooDeep {
                path: shown(&self.path),
                depth_max: DEPTH_MAX,
            });
        }
        let mut names = TreeNames::new();
        let found = handle::names(handle, &mut self.left).map_err(|errno| match errno {
            Errno::OVERFLOW => SnapshotError::TooMany {
                entries_max: ENTRIES_MAX,
            },
            errno => self.unread(errno),
        })?;
        for name in found {
            self.path.push(text(&name));
            let node = self.node(handle, &name, seen, depth + 1)?;
            self.path.pop();
            if let Some(node) = node {
                names.insert(name, node);
            }
        }
        let covered = seen == ScopeMatch::Covered;
        Ok(Directory {
            stamp,
            reach: if covered {
                Reach::Covered
            } else {
                Reach::Passed
            },
            attributes: attributes::read(handle).map_err(|errno| self.unread(errno))?,
            names,
        })
    }

    fn node(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        above: ScopeMatch,
        depth: usize,
    ) -> Result<Option<Node>, SnapshotError> {
        self.check_stop()?;
        let seen = self.options.scope.sees(above, &self.path);
        if seen == ScopeMatch::Excluded {
            return Ok(None);
        }
        let Some(stamp) = glance(parent, name).map_err(|errno| self.unread(errno))? else {
            return Ok(None);
        };
        match stamp.kind {
            FileType::Directory => self.subdirectory(parent, name, stamp, seen, depth),
            _ if seen == ScopeMatch::Passed => Ok(None),
            FileType::RegularFile => {
                self.count(stamp.size)?;
                Ok(Some(Node::File(TreeFile {
                    stamp,
                    attributes: Vec::new(),
                    kept: None,
                })))
            }
            FileType::Symlink => match readlinkat(parent, name, Vec::new()) {
                Ok(target) => Ok(Some(Node::Link(Link { stamp, target }))),
                Err(Errno::NOENT) => Ok(None),
                Err(Errno::INVAL) => Ok(Some(self.replaced(stamp))),
                Err(errno) => Err(self.unread(errno)),
            },
            _ => {
                self.note("is a FIFO, a socket or a device");
                Ok(Some(Node::Unkept(stamp)))
            }
        }
    }

    fn subdirectory(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        stamp: ObjectStamp,
        seen: ScopeMatch,
        depth: usize,
    ) -> Result<Option<Node>, SnapshotError> {
        let sealed = |stamp| {
            Some(Node::Directory(Directory {
                stamp,
                reach: Reach::Sealed,
                attributes: Vec::new(),
                names: TreeNames::new(),
            }))
        };
        let handle = match open_directory(parent, name) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Some(self.replaced(stamp))),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.note("is a directory the host may not read");
                return Ok(sealed(stamp));
            }
            Err(errno) => return Err(self.unread(errno)),
        };
        let ours = self.walls.let_in(&handle);
        if !ours.map_err(|errno| self.unread(errno))? {
            self.note("is another file system, or the host's own");
            return Ok(sealed(stamp));
        }
        let stamp = handle::stamp_of(&handle).map_err(|errno| self.unread(errno))?;
        let directory = self.directory(&handle, stamp, seen, depth)?;
        // Only passed, with nothing in it that is kept: not a part of the snapshot.
        let is_bare = directory.reach == Reach::Passed && directory.names.is_empty();
        Ok((!is_bare).then_some(Node::Directory(directory)))
    }

    fn count(&mut self, size: u64) -> Result<(), SnapshotError> {
        self.bytes = self.bytes.saturating_add(size);
        let bytes_max = self.options.bytes_max;
        if bytes_max != 0 && self.bytes > bytes_max {
            return Err(SnapshotError::TooLarge {
                bytes: self.bytes,
                bytes_max,
            });
        }
        Ok(())
    }
}

/// The second walk.
impl Taking<'_> {
    fn fill(
        &mut self,
        handle: &OwnedFd,
        names: &mut TreeNames,
        earlier: Option<&TreeNames>,
    ) -> Result<(), SnapshotError> {
        let mut gone = Vec::new();
        for (name, node) in names.iter_mut() {
            self.path.push(text(name));
            let before = earlier.and_then(|names| names.get(name));
            if !self.fill_node(handle, name, node, before)? {
                gone.push(name.clone());
            }
            self.path.pop();
        }
        for name in &gone {
            names.remove(name);
        }
        Ok(())
    }

    /// False when the name is gone by now.
    fn fill_node(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        node: &mut Node,
        before: Option<&Node>,
    ) -> Result<bool, SnapshotError> {
        let filled = match node {
            Node::File(file) => {
                self.check_stop()?;
                self.file(parent, name, file, before)?
            }
            Node::Directory(directory) if directory.reach != Reach::Sealed => {
                let before = match before {
                    Some(Node::Directory(before)) => Some(&before.names),
                    _ => None,
                };
                self.enter(parent, name, directory, before)?
            }
            _ => SecondLook::Yes,
        };
        match filled {
            SecondLook::Yes => {}
            SecondLook::Gone => return Ok(false),
            SecondLook::Unkept(stamp) => *node = Node::Unkept(stamp),
        }
        Ok(true)
    }

    fn file(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        file: &mut TreeFile,
        before: Option<&Node>,
    ) -> Result<SecondLook, SnapshotError> {
        if let Some(kept) = self.still_kept(file, before) {
            (file.attributes, file.kept) = kept;
            self.n_files += 1;
            return Ok(SecondLook::Yes);
        }
        // Twice: editors replace the whole file when they save.
        for _ in 0..2 {
            match handle::open_file(parent, name, file.stamp.id) {
                Ok(source) => return self.fill_file(source, file).map(|()| SecondLook::Yes),
                Err(Errno::NOENT) => return Ok(SecondLook::Gone),
                Err(Errno::ACCESS | Errno::PERM) => {
                    self.note("is a file the host may not read");
                    return Ok(SecondLook::Unkept(file.stamp));
                }
                Err(Errno::LOOP | Errno::STALE | Errno::NXIO) => {}
                Err(errno) => return Err(self.unread(errno)),
            }
            match glance(parent, name).map_err(|errno| self.unread(errno))? {
                None => return Ok(SecondLook::Gone),
                Some(now) => file.stamp = now,
            }
        }
        self.note(REPLACED);
        Ok(SecondLook::Unkept(file.stamp))
    }

    fn enter(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        directory: &mut Directory,
        before: Option<&TreeNames>,
    ) -> Result<SecondLook, SnapshotError> {
        match open_directory(parent, name) {
            Ok(handle) if self.is_same(&handle, directory.stamp)? => {
                self.fill(&handle, &mut directory.names, before)?;
                return Ok(SecondLook::Yes);
            }
            Ok(_) | Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => {}
            Err(Errno::NOENT) => return Ok(SecondLook::Gone),
            Err(errno) => return Err(self.unread(errno)),
        }
        self.note(REPLACED);
        Ok(SecondLook::Unkept(directory.stamp))
    }

    fn is_same(&self, handle: &OwnedFd, stamp: ObjectStamp) -> Result<bool, SnapshotError> {
        let now = handle::stamp_of(handle).map_err(|errno| self.unread(errno))?;
        Ok(now.id == stamp.id)
    }

    /// The earlier copy of a file, if nothing has happened to the file since.
    fn still_kept(
        &self,
        file: &TreeFile,
        before: Option<&Node>,
    ) -> Option<(attributes::Attributes, Option<FileCopy>)> {
        let Some(Node::File(before)) = before else {
            return None;
        };
        let holds =
            before.stamp.is_untouched(&file.stamp) && self.earlier.trusts(file.stamp.changed);
        (holds && before.kept.is_some()).then(|| (before.attributes.clone(), before.kept.clone()))
    }

    fn fill_file(&mut self, source: OwnedFd, file: &mut TreeFile) -> Result<(), SnapshotError> {
        file.attributes = attributes::read(&source).map_err(|errno| self.unread(errno))?;
        let stamp = handle::stamp_of(&source).map_err(|errno| self.unread(errno))?;
        self.count(stamp.size.saturating_sub(file.stamp.size))?;
        file.stamp = stamp;
        let kept = self
            .filling
            .keep(source, stamp.size)
            .map_err(|error| match error {
                FillError::Read(source) => SnapshotError::Read {
                    path: shown(&self.path),
                    source,
                },
                FillError::Write(source) => SnapshotError::Store {
                    path: shown(&self.path),
                    source,
                },
                FillError::Full { bytes, available } => SnapshotError::NoSpace { bytes, available },
            })?;
        self.n_files += 1;
        self.bytes_copied += kept.size();
        file.kept = Some(kept);
        Ok(())
    }
}

impl Taking<'_> {
    fn check_stop(&self) -> Result<(), SnapshotError> {
        if self.options.stop.load(Ordering::Relaxed) {
            return Err(SnapshotError::Stopped);
        }
        Ok(())
    }

    fn unread(&self, errno: Errno) -> SnapshotError {
        SnapshotError::Read {
            path: shown(&self.path),
            source: errno.into(),
        }
    }

    fn replaced(&mut self, stamp: ObjectStamp) -> Node {
        self.note(REPLACED);
        Node::Unkept(stamp)
    }

    fn note(&mut self, why: &str) {
        let path = &self.path;
        self.notes
            .add(|| format!("{} {why}; it is not in the snapshot", shown(path)));
    }
}

/// A name as a part of a path.
pub(super) fn text(name: &CStr) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

/// Whether a write through a mapping moves a file's times. Not so in memory (tmpfs), where the kernel never sees the write.
#[cfg(target_os = "linux")]
fn tells_writes(root: &OwnedFd) -> Result<bool, Errno> {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let magic = u64::try_from(rustix::fs::fstatfs(root)?.f_type).unwrap_or_default();
    Ok(!matches!(magic, TMPFS | RAMFS))
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Linux")]
fn tells_writes(_root: &OwnedFd) -> Result<bool, Errno> {
    Ok(true)
}
