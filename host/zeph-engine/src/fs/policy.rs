//! A compiled grant: root handles that are open, patterns that are compiled. Built once, shared by all calls.

use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use zeph_core::capability::{FsGrant, FsRights, FsRoot};

use super::error::FsPolicyError;
use super::globs::{Patterns, Shade};
use super::sys::{Kernel, Meta};

/// A file grant, ready to be enforced.
///
/// The roots are held as open handles, so a root that is renamed or replaced later is still the tree that was granted.
#[derive(Debug)]
pub struct FsPolicy {
    roots: Vec<Root>,
    patterns: Patterns,
    nested: bool,
    kernel: Kernel,
    seed: RandomState,
}

/// Which root of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RootId(usize);

/// A granted tree.
#[derive(Debug)]
pub(super) struct Root {
    /// The absolute real path, under which the guest sees the tree too.
    pub(super) path: String,
    pub(super) rights: FsRights,
    pub(super) dev: u64,
    dir: Dir,
}

impl Root {
    /// The handle beneath which the tree is reached.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

impl FsPolicy {
    /// Opens the roots of `grant` and compiles its patterns.
    ///
    /// Errors: a root that is missing, not canonical or on a kernel file system; a pattern that does not compile or can
    /// never match. Nothing is skipped: half a grant would be a different grant.
    pub fn new(grant: &FsGrant) -> Result<Self, FsPolicyError> {
        let kernel = Kernel::open().map_err(|source| FsPolicyError::NoNames {
            source: source.into(),
        })?;
        let mut roots: Vec<Root> = Vec::new();
        for granted in &grant.roots {
            let root = open_root(&kernel, granted)?;
            match roots.iter_mut().find(|known| known.path == root.path) {
                Some(known) => known.rights = known.rights.intersect(root.rights),
                None => roots.push(root),
            }
        }
        let paths: Vec<_> = roots.iter().map(|root| Path::new(&root.path)).collect();
        let patterns = Patterns::compile(&grant.deny_read, &grant.allow_read, &paths)?;
        let nested = paths.iter().any(|path| {
            paths
                .iter()
                .any(|other| other != path && path.starts_with(other))
        });
        Ok(Self {
            patterns,
            nested,
            kernel,
            seed: RandomState::new(),
            roots,
        })
    }

    /// The same policy on a kernel that cannot resolve beneath a handle.
    #[cfg(test)]
    pub(super) fn stepwise(mut self) -> Self {
        self.kernel.forget_openat2();
        self
    }

    /// The path of the first root, which serves as the guest's working directory. `None` when no files are granted.
    pub fn working_directory(&self) -> Option<&str> {
        self.roots.first().map(|root| root.path.as_str())
    }

    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub(super) fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    pub(super) fn root(&self, id: RootId) -> &Root {
        &self.roots[id.0]
    }

    pub(super) fn roots(&self) -> impl Iterator<Item = (RootId, &Root)> {
        self.roots
            .iter()
            .enumerate()
            .map(|(id, root)| (RootId(id), root))
    }

    /// Whether decisions need the real name of an object: patterns speak about names, and with one root inside another
    /// the inner one governs whatever path led there.
    pub(super) fn needs_names(&self) -> bool {
        self.nested || !self.patterns.is_empty()
    }

    /// Whether some root lies inside another.
    pub(super) fn nested(&self) -> bool {
        self.nested
    }

    /// The innermost root that holds the real path `name`.
    pub(super) fn governing(&self, name: &Path) -> Option<RootId> {
        let holding = self
            .roots()
            .filter(|(_, root)| name.starts_with(&root.path));
        holding
            .max_by_key(|(_, root)| root.path.len())
            .map(|(id, _)| id)
    }

    /// Whether a root is `name` or lies below it: such a directory is never moved or removed.
    pub(super) fn holds_root(&self, name: &Path) -> bool {
        self.roots
            .iter()
            .any(|root| Path::new(&root.path).starts_with(name))
    }

    /// The verdict of the patterns on a real path.
    pub(super) fn shade(&self, name: &Path) -> Shade {
        self.patterns.shade(name)
    }

    /// Whether the object with the real path `name` is to be as if it were not there.
    pub(super) fn hides(&self, name: &Path) -> bool {
        self.shade(name).hides()
    }

    /// A number that stays the same for equal `value`s under this policy and tells nothing about them.
    pub(super) fn blur(&self, value: impl std::hash::Hash) -> u64 {
        self.seed.hash_one(value)
    }
}

fn open_root(kernel: &Kernel, granted: &FsRoot) -> Result<Root, FsPolicyError> {
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
    Ok(Root {
        path,
        rights: granted.rights,
        dev: meta.id.dev,
        dir,
    })
}
