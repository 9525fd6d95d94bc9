//! Files that had several names in the tree are one file under all of them again.
//!
//! Each name is put back by itself first, which leaves as many files with the same bytes. Those of one file are then joined: the
//! names lead to the object that was there before when it still has one of them, else to the first.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, futimens, linkat, renameat, unlinkat};
use rustix::io::Errno;

use super::handle::{self, enter, glance};
use super::mend::times;
use super::take::text;
use super::tree::{Directory, FileId, Node, ObjectStamp};

/// One file of the snapshot, with the names it had in the tree.
#[derive(Debug)]
struct LinkGroup {
    id: FileId,
    /// How many names it had in all.
    links: u64,
    /// Directories on the way, and the name.
    places: Vec<(Vec<CString>, CString)>,
}

/// A name as it is now.
struct LinkEnd {
    parent: OwnedFd,
    name: CString,
    path: PathBuf,
    stamp: ObjectStamp,
}

/// What came of joining names: sentences for the user.
#[derive(Debug, Default)]
pub(super) struct RelinkReport {
    /// Files that had more names elsewhere, which lead to another file now.
    pub(super) parted: Vec<PathBuf>,
    /// Names that could not be joined, and why.
    pub(super) failed: Vec<(PathBuf, Errno)>,
}

/// Joins the names of those files of `tree` whose numbers are in `mended`; `root` is the tree's directory.
pub(super) fn join(root: &OwnedFd, tree: &Directory, mended: &HashSet<FileId>) -> RelinkReport {
    let mut groups = HashMap::new();
    if !mended.is_empty() {
        gather(tree, &mut Vec::new(), mended, &mut groups);
    }
    let mut joined = RelinkReport::default();
    for group in groups.values() {
        group.join(root, &mut joined);
    }
    joined.parted.sort();
    joined
}

fn gather(
    directory: &Directory,
    way: &mut Vec<CString>,
    mended: &HashSet<FileId>,
    groups: &mut HashMap<FileId, LinkGroup>,
) {
    for (name, node) in &directory.names {
        match node {
            Node::Directory(inner) => {
                way.push(name.clone());
                gather(inner, way, mended, groups);
                way.pop();
            }
            Node::File(file) if mended.contains(&file.stamp.id) => {
                let group = groups.entry(file.stamp.id).or_insert_with(|| LinkGroup {
                    id: file.stamp.id,
                    links: file.stamp.links,
                    places: Vec::new(),
                });
                group.places.push((way.clone(), name.clone()));
            }
            _ => {}
        }
    }
}

impl LinkGroup {
    fn join(&self, root: &OwnedFd, joined: &mut RelinkReport) {
        let ends: Vec<LinkEnd> = self
            .places
            .iter()
            .filter_map(|place| LinkEnd::at(root, place))
            .collect();
        let kept = ends.iter().find(|end| end.stamp.id == self.id);
        let Some(first) = kept.or_else(|| ends.first()) else {
            return;
        };
        if kept.is_none() && self.links > self.places.len() as u64 {
            joined.parted.push(first.path.clone());
        }
        for end in ends.iter().filter(|end| end.stamp.id != first.stamp.id) {
            if let Err(errno) = first.also_at(end) {
                joined.failed.push((end.path.clone(), errno));
            }
        }
    }
}

impl LinkEnd {
    /// The regular file at a place; `None` when none is there.
    fn at(root: &OwnedFd, (way, name): &(Vec<CString>, CString)) -> Option<Self> {
        let mut parent = root.try_clone().ok()?;
        let mut path = PathBuf::new();
        for step in way {
            path.push(text(step));
            parent = enter(&parent, step).ok()?;
        }
        path.push(text(name));
        let stamp = glance(&parent, name).ok()??;
        stamp.kind.is_file().then(|| Self {
            parent,
            name: name.clone(),
            path,
            stamp,
        })
    }

    /// Makes the file here the one at `other` as well, when both are alike.
    fn also_at(&self, other: &Self) -> Result<(), Errno> {
        let alike = self.stamp.has_face_of(&other.stamp) && self.stamp.size == other.stamp.size;
        if !alike {
            return Err(Errno::BUSY);
        }
        let modified = handle::stamp_of(&other.parent)?.modified;
        let temporary = handle::temporary_name();
        let flags = AtFlags::empty();
        linkat(&self.parent, &self.name, &other.parent, &temporary, flags)?;
        // The name may have been given to another file a moment ago.
        let is_same =
            handle::look(&other.parent, &temporary).is_ok_and(|now| now.id == self.stamp.id);
        let renamed = match is_same {
            true => renameat(&other.parent, &temporary, &other.parent, &other.name),
            false => Err(Errno::BUSY),
        };
        if renamed.is_err() {
            let _ = unlinkat(&other.parent, &temporary, flags);
        }
        // The directory has its old time already. Where that cannot be given back, the names still are.
        let _ = futimens(&other.parent, &times(modified));
        renamed
    }
}

/// A sentence about a file that has names elsewhere.
pub(super) fn parted(path: &Path) -> String {
    format!(
        "{} had another name outside the tree; that name leads to the changed file, and this one to a file of its own",
        super::error::shown(path)
    )
}
