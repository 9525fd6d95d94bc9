//! Places inside writable directories that a command must not change, see or move away.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_core::path::led_to;
use zeph_jail::plan::{MountCheck, MountMode};

use super::names::Names;
use super::new_repositories::NewRepositories;
use crate::held_object;

/// What is done about a place that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hold {
    /// It stays where it is; it is a mount of its own, which cannot be renamed or removed.
    Pinned,
    /// It can be written to although it lies in a place that is not.
    Writable,
    /// It can be read only.
    ReadOnly,
    /// It looks empty.
    Hidden,
}

/// A place that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MountPlace {
    pub(super) path: PathBuf,
    pub(super) hold: Hold,
    pub(super) kind: PlaceKind,
    pub(super) device: u64,
    pub(super) inode: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceKind {
    Directory,
    File,
}

/// A place that could not be mounted over; it is looked at after the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlaceWatch {
    pub(super) path: PathBuf,
    pub(super) before: Before,
}

/// What was there before the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Before {
    /// Nothing.
    Absent,
    /// A symbolic link to this.
    Link(PathBuf),
}

/// What stands at a path, without following a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Link,
    Object,
}

/// Places and watches, collected.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    pub(super) held: Vec<MountPlace>,
    pub(super) watched: Vec<PlaceWatch>,
    /// Git directories in which what git obeys is held or watched, or that lie outside.
    pub(super) guarded: Vec<PathBuf>,
    /// Files that programs obey and that are neither held nor watched, because there are too many.
    pub(super) compared: Vec<PathBuf>,
    /// The writable directories.
    pub(super) roots: Vec<PathBuf>,
    /// Repositories and git directories that are neither, because commands made them or they lie among packages.
    pub(super) loose: Vec<PathBuf>,
    /// What commands made.
    pub(super) made: Arc<NewRepositories>,
}

impl MountPlace {
    /// Looks at `path` without following links.
    pub(super) fn at(path: &Path, hold: Hold) -> Option<Self> {
        let stat = rustix::fs::fstat(held_object::find(path).ok()?).ok()?;
        let (device, inode) = held_object::id(&stat);
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        let kind = match kind {
            kind if kind.is_dir() => PlaceKind::Directory,
            kind if kind.is_symlink() => return None,
            _ => PlaceKind::File,
        };
        Some(Self {
            path: path.to_owned(),
            hold,
            kind,
            device,
            inode,
        })
    }

    /// What the inner stage makes sure of.
    pub(super) fn check(&self) -> MountCheck {
        use std::os::unix::ffi::OsStrExt as _;

        let mount = match self.hold {
            Hold::Hidden => MountMode::Covered,
            Hold::ReadOnly => MountMode::ReadOnly,
            Hold::Pinned | Hold::Writable => MountMode::Any,
        };
        MountCheck {
            path: self.path.as_os_str().as_bytes().to_vec(),
            device: self.device,
            inode: self.inode,
            mount,
        }
    }
}

impl Places {
    /// Holds `path`, which lies beneath `root`, and every directory between the two: a parent that could be renamed would take
    /// the place with it and leave room for another. Where it is a link, what it leads to beneath `root`, or in another writable
    /// directory, is held as well. What does not exist is watched.
    pub(super) fn hold(&mut self, root: &Path, path: &Path, hold: Hold) {
        if self.hold_here(root, path, hold) != Found::Link {
            return;
        }
        // What is made where it leads would be obeyed under its name.
        let target = match hold {
            Hold::ReadOnly => links_of(path).1,
            _ => path.canonicalize().unwrap_or_default(),
        };
        let roots = self.roots.iter().map(PathBuf::as_path);
        let holds = |root: &&Path| target.starts_with(root) && *root != target;
        let holding = roots.chain([root]).find(holds).map(Path::to_owned);
        if let Some(root) = holding.filter(|_| !path.starts_with(&target)) {
            self.hold_here(&root, &target, hold);
        }
    }

    /// Holds or watches `path`, which lies in a directory with these `names`.
    pub(super) fn hold_of(&mut self, root: &Path, names: &Names, path: &Path, hold: Hold) {
        match names.lacks(path) {
            true => self.watched.push(PlaceWatch {
                path: path.to_owned(),
                before: Before::Absent,
            }),
            false => self.hold(root, path, hold),
        }
    }

    /// The same for a name of the policy: while nothing is there, the directories on the way to it stay where they are.
    pub(super) fn hold_name(&mut self, root: &Path, path: &Path, hold: Hold) {
        self.pin_above(root, path);
        self.hold(root, path, hold);
    }

    fn hold_here(&mut self, root: &Path, path: &Path, hold: Hold) -> Found {
        let Some(place) = MountPlace::at(path, hold) else {
            return self.watch(path);
        };
        self.pin_above(root, path);
        self.held.push(place);
        Found::Object
    }

    fn pin_above(&mut self, root: &Path, path: &Path) {
        let above = path.ancestors().skip(1);
        let above = above.take_while(|parent| parent.starts_with(root) && *parent != root);
        self.held
            .extend(above.filter_map(|parent| MountPlace::at(parent, Hold::Pinned)));
    }

    /// Looks at `path` after the run.
    pub(super) fn watch(&mut self, path: &Path) -> Found {
        let (before, found) = match std::fs::read_link(path) {
            Ok(target) => (Before::Link(target), Found::Link),
            // Nearly all of some hundred names are not there: that is known without another look.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                (Before::Absent, Found::Nothing)
            }
            Err(_) if path.symlink_metadata().is_ok() => return Found::Object,
            Err(_) => (Before::Absent, Found::Nothing),
        };
        self.watched.push(PlaceWatch {
            path: path.to_owned(),
            before,
        });
        found
    }

    /// Parents first, each path once with its strictest hold.
    pub(super) fn sorted(mut self) -> Self {
        self.held.sort_by(|one, other| {
            let strictest_first = other.hold.cmp(&one.hold);
            one.path.cmp(&other.path).then(strictest_first)
        });
        self.held.dedup_by(|one, other| one.path == other.path);
        // Nothing can be mounted on what looks empty.
        let hidden = self.held.iter().filter(|place| place.hold == Hold::Hidden);
        let hidden: Vec<PathBuf> = hidden.map(|place| place.path.clone()).collect();
        self.held.retain(|place| {
            let mut above = place.path.ancestors().skip(1);
            !above.any(|above| hidden.iter().any(|hidden| hidden == above))
        });
        self.watched.sort();
        self.watched.dedup();
        self
    }
}

/// The symbolic links by which the absolute `path` leads, and where it leads at last, whether something is there or not.
pub(super) fn links_of(path: &Path) -> (Vec<PathBuf>, PathBuf) {
    let mut links = led_to(path, |path| std::fs::read_link(path).ok());
    let end = links.pop().unwrap_or_default();
    (links, end)
}
