//! The trees of a policy: each a handle that is opened once, or the name of one without rights.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use zeph_core::capability::{FsRights, FsRoot};

use crate::fs::error::FsPolicyError;
use crate::fs::refusal::NONE;
use crate::fs::sys::{FileId, Kernel, Meta};

/// The trees that plugins were given, each opened once: a tree that is exchanged later is not the one that was granted.
#[derive(Debug, Default)]
pub(super) struct HeldRoots(Mutex<HashMap<PathBuf, Root>>);

impl HeldRoots {
    /// The tree of `granted`, as it was when it was first asked for; none when nothing is there.
    ///
    /// Errors: as `open_root`, and something else stands there now.
    pub(super) fn open(
        &self,
        kernel: &Kernel,
        granted: &FsRoot,
    ) -> Result<Option<Root>, FsPolicyError> {
        let path = || granted.path.clone();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match open_root(kernel, granted) {
            Ok(now) => now,
            Err(FsPolicyError::OpenRoot { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(FsPolicyError::RootNotCanonical { .. }) if held.contains_key(&granted.path) => {
                return Err(FsPolicyError::RootReplaced { path: path() });
            }
            Err(error) => return Err(error),
        };
        let first = held.entry(path()).or_insert_with(|| now.clone());
        match first.id == now.id {
            true => Ok(Some(now)),
            false => Err(FsPolicyError::RootReplaced { path: path() }),
        }
    }
}

/// Which root of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fs) struct RootId(pub(super) usize);

/// A granted tree, or a wanted one without rights.
#[derive(Debug, Clone)]
pub(in crate::fs) struct Root {
    /// The absolute real path, under which the guest sees the tree too.
    pub(in crate::fs) path: String,
    pub(in crate::fs) rights: FsRights,
    pub(in crate::fs) dev: u64,
    /// Which object it is; none when there are no rights.
    pub(super) id: Option<FileId>,
    /// None when there are no rights.
    pub(super) dir: Option<Arc<Dir>>,
}

impl Root {
    /// A tree of which nothing but the name is known.
    pub(super) fn closed(path: String) -> Self {
        Self {
            path,
            rights: NONE,
            dev: 0,
            id: None,
            dir: None,
        }
    }

    /// The same tree under fewer rights. The handle goes with the last of them.
    pub(super) fn narrowed(&self, rights: FsRights) -> Self {
        let rights = self.rights.intersect(rights);
        if rights == NONE {
            return Self::closed(self.path.clone());
        }
        Self {
            rights,
            ..self.clone()
        }
    }

    /// The handle beneath which the tree is reached; none when there are no rights.
    pub(in crate::fs) fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.dir.as_ref().map(|dir| dir.as_fd())
    }
}

/// Whether a root is inside another one that has rights, so that both may apply to an object.
pub(super) fn is_nested(roots: &[Root]) -> bool {
    roots.iter().any(|root| is_inside_another(root, roots))
}

/// Whether a root without rights is inside one that has some.
pub(super) fn shuts(roots: &[Root]) -> bool {
    let mut closed = roots.iter().filter(|root| root.dir.is_none());
    closed.any(|root| is_inside_another(root, roots))
}

fn is_inside_another(root: &Root, roots: &[Root]) -> bool {
    roots.iter().any(|outer| {
        let is_inside = Path::new(&root.path).starts_with(&outer.path);
        outer.dir.is_some() && is_inside && root.path != outer.path
    })
}

/// The name of a tree that is never opened, if a guest can have one.
pub(super) fn closed_name(place: &Path) -> Option<String> {
    let name = place.to_str().filter(|name| name.starts_with('/'))?;
    Some(name.to_owned())
}

pub(super) fn open_kernel() -> Result<Kernel, FsPolicyError> {
    Kernel::open().map_err(|source| FsPolicyError::NoNames {
        source: source.into(),
    })
}

pub(super) fn open_root(kernel: &Kernel, granted: &FsRoot) -> Result<Root, FsPolicyError> {
    let path = || granted.path.clone();
    let name = granted.path.to_str().filter(|name| name.starts_with('/'));
    let name = name.ok_or_else(|| FsPolicyError::RootName { path: path() })?;
    let failed = |source| FsPolicyError::OpenRoot {
        path: path(),
        source,
    };
    let dir = Dir::open_ambient_dir(name, ambient_authority()).map_err(failed)?;
    let meta = Meta::of(&dir).map_err(|error| failed(error.into()))?;
    let real = kernel.name(&dir).map_err(|error| failed(error.into()))?;
    // Components are compared, so that a closing slash does no harm; the kernel's spelling is the one that is kept.
    if real != Path::new(name) {
        return Err(FsPolicyError::RootNotCanonical { path: path() });
    }
    if kernel
        .is_kernel_file(&dir)
        .map_err(|error| failed(error.into()))?
    {
        return Err(FsPolicyError::KernelFileSystem { path: path() });
    }
    let path = real
        .into_os_string()
        .into_string()
        .map_err(|_| FsPolicyError::RootName { path: path() })?;
    let opened = Root {
        path,
        rights: granted.rights,
        dev: meta.id.dev,
        id: Some(meta.id),
        dir: Some(Arc::new(dir)),
    };
    Ok(opened.narrowed(granted.rights))
}
