//! What a guest's descriptor stands for. Descriptors are ours from end to end: the types of the bindings only carry an
//! index into the resource table, so no stock implementation can be reached through one of them.

use std::sync::Arc;

use wasmtime::component::{Resource, ResourceTable, ResourceTableError};
use wasmtime_wasi::p2::bindings::sync::filesystem::types::{Descriptor, DescriptorFlags};

use super::allowance::HandleLease;
use super::error::Code;
use super::policy::{FsPolicy, RootId};
use super::sys::{FileId, Meta};
use super::touched::{Asked, Origin};

/// A descriptor.
#[derive(Debug, Clone)]
pub(super) enum Handle {
    File(FileHandle),
    Dir(DirHandle),
}

/// An open regular file. What may be done is fixed when it is opened and also enforced by the kernel's access mode.
#[derive(Debug, Clone)]
pub(super) struct FileHandle {
    pub(super) fd: Arc<HandleLease>,
    /// The root whose rights counted when it was opened.
    pub(super) root: RootId,
    /// `READ` and `WRITE` as granted, and the sync flags as asked.
    pub(super) flags: DescriptorFlags,
    /// Metadata may be read.
    pub(super) may_stat: bool,
    /// Times may be set.
    pub(super) may_touch: bool,
}

impl FileHandle {
    pub(super) fn readable(&self) -> Result<&Arc<HandleLease>, Code> {
        if self.flags.contains(DescriptorFlags::READ) {
            Ok(&self.fd)
        } else {
            Err(Code::BadDescriptor)
        }
    }

    pub(super) fn writable(&self) -> Result<&Arc<HandleLease>, Code> {
        if self.flags.contains(DescriptorFlags::WRITE) {
            Ok(&self.fd)
        } else {
            Err(Code::BadDescriptor)
        }
    }
}

/// An open directory: a place to start paths from. It holds no rights of its own; those are looked up for the object each
/// operation ends at.
#[derive(Debug, Clone)]
pub(super) struct DirHandle {
    pub(super) place: DirectoryHandle,
    /// The root through which it was reached.
    pub(super) root: RootId,
    /// The question that led here, when questions are written down; none of a root itself.
    pub(super) asked: Option<u32>,
}

impl DirHandle {
    /// A path that starts here, as a question.
    pub(super) fn asked<'a>(&self, path: &'a str, follow: bool) -> Asked<'a> {
        let origin = match self.place {
            DirectoryHandle::Root => Some(Origin::Root(self.root)),
            DirectoryHandle::Below(_) => self.asked.map(Origin::Found),
        };
        Asked {
            origin,
            path,
            follow,
        }
    }

    /// The top of a root.
    pub(super) fn top(root: RootId) -> Self {
        Self {
            place: DirectoryHandle::Root,
            root,
            asked: None,
        }
    }

    /// An open directory below.
    pub(super) fn below(held: HandleLease, root: RootId, asked: Option<u32>) -> Self {
        Self {
            place: DirectoryHandle::Below(Arc::new(held)),
            root,
            asked,
        }
    }
}

/// The handle behind a directory.
#[derive(Debug, Clone)]
pub(super) enum DirectoryHandle {
    /// The root's own handle, which the policy keeps open.
    Root,
    /// A directory below.
    Below(Arc<HandleLease>),
}

impl Handle {
    pub(super) fn file(&self) -> Result<&FileHandle, Code> {
        match self {
            Self::File(file) => Ok(file),
            Self::Dir(_) => Err(Code::IsDirectory),
        }
    }

    pub(super) fn dir(&self) -> Result<&DirHandle, Code> {
        match self {
            Self::Dir(dir) => Ok(dir),
            Self::File(_) => Err(Code::NotDirectory),
        }
    }

    /// Which object it is; none in a tree without rights.
    pub(super) fn id(&self, policy: &FsPolicy) -> Option<FileId> {
        let meta = match self {
            Self::File(file) => Meta::of(&*file.fd),
            Self::Dir(dir) => Meta::of(dir.fd(policy)?),
        };
        meta.ok().map(|meta| meta.id)
    }

    /// Whether both are the top of one root.
    pub(super) fn is_same_root(&self, other: &Self) -> bool {
        let top = |handle: &Self| match handle {
            Self::Dir(DirHandle {
                place: DirectoryHandle::Root,
                root,
                ..
            }) => Some(*root),
            _ => None,
        };
        top(self).is_some() && top(self) == top(other)
    }
}

/// The handle behind a guest's descriptor.
pub(super) fn get<'a>(
    table: &'a ResourceTable,
    descriptor: &Resource<Descriptor>,
) -> Result<&'a Handle, ResourceTableError> {
    table.get(&Resource::<Handle>::new_borrow(descriptor.rep()))
}

/// Gives the guest a descriptor for `handle`.
///
/// Errors: quota for a full table, which is the guest's doing: it may close something.
pub(super) fn push(
    table: &mut ResourceTable,
    handle: Handle,
) -> Result<Resource<Descriptor>, Code> {
    let owned = table.push(handle).map_err(|_| Code::Quota)?;
    Ok(Resource::new_own(owned.rep()))
}

/// Ends a guest's descriptor.
pub(super) fn delete(
    table: &mut ResourceTable,
    descriptor: &Resource<Descriptor>,
) -> wasmtime::Result<()> {
    table.delete(Resource::<Handle>::new_own(descriptor.rep()))?;
    Ok(())
}
