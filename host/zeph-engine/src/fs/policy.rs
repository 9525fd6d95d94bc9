//! A compiled grant: root handles that are open, patterns that are compiled. Built once, shared by all calls.
//!
//! A tree that a plugin wants and does not have is a root without rights. A guest sees it, so that its paths lead here and
//! the refusal can be noted, but there is no handle behind it: nothing below is ever looked at through it.

mod root;

use std::hash::{BuildHasher, RandomState};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeph_core::capability::{FsGrant, FsRights, FsRoot};
use zeph_core::git_config::GitUser;
use zeph_core::policy::Leave;
use zeph_core::user::{ToolUser, run_as};

use super::error::FsPolicyError;
use super::globs::{Patterns, Shade};
use super::obeyed::LeadSources;
use super::refusal::NONE;
use super::rulings::Rulings;
use super::sys::Kernel;

pub(super) use self::root::{Root, RootId};

use self::root::{HeldRoots, closed_name, is_nested, open_kernel, open_root, shuts};

/// A file grant, ready to be enforced.
///
/// The roots are held as open handles, so a root that is renamed or replaced later is still the tree that was granted.
#[derive(Debug)]
pub struct FsPolicy {
    roots: Vec<Root>,
    /// What the plugin wants, innermost trees first. It gives no rights; it tells for which tree they are missing.
    wishes: Arc<[FsRoot]>,
    patterns: Arc<Patterns>,
    leave: Arc<Leave>,
    /// Other paths of roots or of directories above them, and what they lead to.
    spelled: Arc<[(PathBuf, PathBuf)]>,
    nested: bool,
    shuts: bool,
    kernel: Arc<Kernel>,
    /// What plugins were given since this policy was made.
    held: Arc<HeldRoots>,
    /// The plugin's own folder, which no pattern hides from it.
    own: Option<Arc<Path>>,
    seed: RandomState,
    /// Where links and hook settings that lead into the roots are searched for; the same for every plugin.
    lead_sources: Arc<LeadSources>,
    /// The user whose rights its files are reached with; none is the host's own.
    user: Option<ToolUser>,
}

impl FsPolicy {
    /// Opens the roots of `grant` and compiles its patterns.
    ///
    /// Errors: a root that is missing, not canonical or on a kernel file system; a pattern that does not compile or can
    /// never match. Nothing is skipped: half a grant would be a different grant.
    pub fn new(grant: &FsGrant) -> Result<Self, FsPolicyError> {
        Self::for_user(grant, None)
    }

    /// The same with the rights of `user` alone: its roots are opened, and the guests that hold it run, on threads of that user.
    ///
    /// Errors: as [`FsPolicy::new`]; the user cannot enter a root.
    pub fn for_user(grant: &FsGrant, user: Option<ToolUser>) -> Result<Self, FsPolicyError> {
        let opened = run_as(user.as_ref(), || Self::opened(grant));
        let opened = opened.map_err(|source| FsPolicyError::User { source })??;
        Ok(Self { user, ..opened })
    }

    fn opened(grant: &FsGrant) -> Result<Self, FsPolicyError> {
        let kernel = open_kernel()?;
        let mut roots: Vec<Root> = Vec::new();
        for granted in &grant.roots {
            let root = open_root(&kernel, granted)?;
            match roots.iter_mut().find(|known| known.path == root.path) {
                Some(known) => *known = known.narrowed(root.rights),
                None => roots.push(root),
            }
        }
        let tops = roots.iter().map(|root| PathBuf::from(&root.path));
        let lead_sources = LeadSources {
            roots: tops.collect(),
            user: GitUser::default(),
        };
        let anchors: Vec<&Path> = roots.iter().map(|root| Path::new(&root.path)).collect();
        let patterns = Patterns::compile(&grant.deny_read, &grant.allow_read, &anchors)?;
        Ok(Self {
            nested: is_nested(&roots),
            shuts: shuts(&roots),
            roots,
            wishes: Arc::default(),
            patterns: Arc::new(patterns),
            leave: Arc::default(),
            spelled: grant.spelled.clone().into(),
            kernel: Arc::new(kernel),
            held: Arc::default(),
            own: None,
            seed: RandomState::new(),
            lead_sources: Arc::new(lead_sources),
            user: None,
        })
    }

    /// The same policy that knows whose configuration of git counts.
    #[must_use]
    pub fn with_git_of(self, user: GitUser) -> Self {
        let roots = self.lead_sources.roots.clone();
        let lead_sources = Arc::new(LeadSources { roots, user });
        Self {
            lead_sources,
            ..self
        }
    }

    /// Where links and hook settings that lead into the roots are searched for.
    pub(super) fn lead_sources(&self) -> Arc<LeadSources> {
        Arc::clone(&self.lead_sources)
    }

    /// Opens what one plugin holds, within what this policy, the operator's, allows anybody.
    ///
    /// Shape: `granted` are the trees the operator gave this plugin, `wanted` those its manifest asks for, with the rights it
    /// wants; both absolute and canonical. The rights at a place are the union of all `granted` that hold it, cut by the
    /// innermost root of this policy that holds it. The patterns stay the operator's, and relative ones start where they
    /// did, whatever the plugin was granted.
    ///
    /// A wanted tree that no right reaches is a root on which every operation is refused and recorded. A request inside a tree with
    /// rights changes nothing there. The working directory (the first root) is the operator's first when the plugin holds or
    /// wants it, else the first of `wanted`.
    ///
    /// Errors: as [`FsPolicy::new`], but a granted tree that is not there any more is omitted. One that was exchanged since a plugin
    /// was given it first is refused.
    /// Limits: cheap enough for every call: it opens the granted trees and compiles nothing.
    pub fn for_plugin(&self, granted: &[FsRoot], wanted: &[FsRoot]) -> Result<Self, FsPolicyError> {
        let mut roots = Vec::new();
        for place in self.places(granted, wanted) {
            let rights = self.rights_at(place, granted);
            let granted = FsRoot {
                path: place.to_owned(),
                rights,
            };
            if rights == NONE {
                roots.extend(closed_name(place).map(Root::closed));
                continue;
            }
            roots.extend(self.open(&granted)?);
        }
        let mut wishes = wanted.to_vec();
        wishes.sort_by_key(|wish| std::cmp::Reverse(wish.path.as_os_str().len()));
        Ok(self.with(roots, wishes.into()))
    }

    /// The user whose rights its files are reached with; none is the host's own.
    pub(crate) fn user(&self) -> Option<&ToolUser> {
        self.user.as_ref()
    }

    /// Whether there is no tree in which anything is allowed: nothing that a guest does with it reaches a file.
    pub(crate) fn is_closed(&self) -> bool {
        self.roots.iter().all(|root| root.dir.is_none())
    }

    /// A tree of a plugin, behind the operator's own handle where it is a whole root.
    fn open(&self, granted: &FsRoot) -> Result<Option<Root>, FsPolicyError> {
        let mut own = self.roots.iter();
        match own.find(|root| Path::new(&root.path) == granted.path && root.dir.is_some()) {
            Some(root) => Ok(Some(Root {
                rights: granted.rights,
                ..root.clone()
            })),
            None => run_as(self.user(), || self.held.open(&self.kernel, granted))
                .map_err(|source| FsPolicyError::User { source })?,
        }
    }

    /// The same policy without any right but to read. Shares the open handles, and cannot fail.
    #[must_use]
    pub fn read_only(&self) -> Self {
        let narrow = |root: &Root| root.narrowed(FsRights::READ);
        let roots = self.roots.iter().map(narrow).collect();
        self.with(roots, Arc::clone(&self.wishes))
    }

    /// The same policy without the rights of `denied`, there and below, whatever else gives them. Shares the open handles, and cannot
    /// fail: where a directory cannot be opened with what is left, nothing is allowed.
    ///
    /// Shape: `denied` are absolute and canonical directories with the rights that are taken.
    #[must_use]
    pub fn withholding(&self, denied: &[FsRoot]) -> Self {
        let left = |place: &Path, rights: FsRights| {
            let of_place = denied.iter().filter(|one| place.starts_with(&one.path));
            of_place.fold(rights, |left, one| left.without(one.rights))
        };
        let narrow = |root: &Root| root.narrowed(left(Path::new(&root.path), root.rights));
        let mut roots: Vec<Root> = self.roots.iter().map(narrow).collect();
        for FsRoot { path, .. } in denied {
            let is_root = roots.iter().any(|root| Path::new(&root.path) == path);
            let Some(outer) = self.governing(path).filter(|_| !is_root) else {
                continue;
            };
            let inner = FsRoot {
                path: path.clone(),
                rights: left(path, self.rights(outer)),
            };
            let opened = match inner.rights {
                NONE => None,
                _ => run_as(self.user(), || open_root(&self.kernel, &inner).ok())
                    .ok()
                    .flatten(),
            };
            roots.extend(opened.or_else(|| closed_name(path).map(Root::closed)));
        }
        self.with(roots, Arc::clone(&self.wishes))
    }

    /// The same policy with what the rules hide from one call. Shares the open handles, and cannot fail.
    #[must_use]
    pub fn hiding(&self, rulings: &Arc<Rulings>) -> Self {
        Self {
            patterns: Arc::new(self.patterns.with(rulings)),
            ..self.with(self.roots.clone(), Arc::clone(&self.wishes))
        }
    }

    /// The same policy with leave to change some of what programs obey; by itself it gives none. Shares the open handles.
    #[must_use]
    pub fn leaving(&self, leave: &Leave) -> Self {
        let mut this = self.with(self.roots.clone(), Arc::clone(&self.wishes));
        this.leave = Arc::new(leave.clone());
        this
    }

    /// The same policy with a folder of the plugin's own. It may do everything there, whatever the patterns hide from others; what
    /// it keeps there is its memory, and no change of anybody's files.
    ///
    /// Errors: as [`FsPolicy::new`], about `folder`.
    pub fn with_own(&self, folder: &Path) -> Result<Self, FsPolicyError> {
        let granted = FsRoot {
            path: folder.to_owned(),
            rights: FsRights::ALL,
        };
        let mut roots = self.roots.clone();
        roots.push(open_root(&self.kernel, &granted)?);
        let mut this = self.with(roots, Arc::clone(&self.wishes));
        this.own = Some(folder.into());
        Ok(this)
    }

    /// Whether a call under `other`, cut from the same operator's policy, sees exactly what one under this sees.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_root = |(own, other): (&Root, &Root)| {
            own.path == other.path
                && own.rights == other.rights
                && own.dev == other.dev
                && own.id == other.id
        };
        Arc::ptr_eq(&self.held, &other.held)
            && self.patterns.is_same(&other.patterns)
            && self.roots.len() == other.roots.len()
            && self.roots.iter().zip(&other.roots).all(is_same_root)
    }

    /// The same kernel and patterns with other roots.
    fn with(&self, roots: Vec<Root>, wishes: Arc<[FsRoot]>) -> Self {
        Self {
            nested: is_nested(&roots),
            shuts: shuts(&roots),
            roots,
            wishes,
            patterns: Arc::clone(&self.patterns),
            leave: Arc::clone(&self.leave),
            spelled: Arc::clone(&self.spelled),
            kernel: Arc::clone(&self.kernel),
            held: Arc::clone(&self.held),
            own: self.own.clone(),
            seed: self.seed.clone(),
            lead_sources: Arc::clone(&self.lead_sources),
            user: self.user.clone(),
        }
    }

    /// Where the rights of a plugin begin or change, each once, in the order of its roots.
    fn places<'a>(&'a self, granted: &'a [FsRoot], wanted: &'a [FsRoot]) -> Vec<&'a Path> {
        let changes = self.roots.iter().map(|root| Path::new(&root.path));
        let changes =
            changes.filter(|place| granted.iter().any(|grant| place.starts_with(&grant.path)));
        let wishes = wanted.iter().map(|wish| wish.path.as_path());
        let wishes = wishes.filter(|place| self.rights_at(place, granted) == NONE);
        let granted = granted.iter().map(|grant| grant.path.as_path());
        let mut places: Vec<&Path> = Vec::new();
        for place in granted.chain(changes).chain(wishes) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let first = self.working_directory().map(Path::new);
        places.sort_by_key(|place| {
            let wish = wanted.iter().position(|wish| wish.path == *place);
            (Some(*place) != first, wish.unwrap_or(wanted.len()))
        });
        places
    }

    /// What `granted` gives at `place`, within this policy.
    fn rights_at(&self, place: &Path, granted: &[FsRoot]) -> FsRights {
        let given = granted.iter().filter(|root| place.starts_with(&root.path));
        let given = given.map(|root| root.rights).fold(NONE, FsRights::union);
        let allowed = self.governing(place).map_or(NONE, |root| self.rights(root));
        given.intersect(allowed)
    }

    /// The same policy on a kernel that cannot resolve beneath a handle.
    #[cfg(test)]
    pub(super) fn stepwise(mut self) -> Self {
        let kernel = Arc::get_mut(&mut self.kernel).expect("not shared yet");
        kernel.forget_openat2();
        self
    }

    /// The path of the first root, which serves as the guest's working directory. `None` when there are no roots.
    pub fn working_directory(&self) -> Option<&str> {
        self.roots.first().map(|root| root.path.as_str())
    }

    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub(super) fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    /// Every root under its other paths.
    pub(super) fn other_paths(&self) -> impl Iterator<Item = (RootId, String)> {
        let each = |(id, root): (RootId, &Root)| {
            let path = PathBuf::from(&root.path);
            let others = self.spelled.iter().filter_map(move |(written, real)| {
                let below = path.strip_prefix(real).ok()?;
                let other: PathBuf = written.join(below).components().collect();
                Some((id, other.into_os_string().into_string().ok()?))
            });
            others.collect::<Vec<_>>()
        };
        self.roots().flat_map(each)
    }

    /// What of what programs obey may be changed.
    pub(super) fn leave(&self) -> &Leave {
        &self.leave
    }

    /// Whether anything below the root `id` may be changed.
    pub(super) fn changes(&self, id: RootId) -> bool {
        let rights = self.rights(id);
        rights.write || rights.create || rights.delete
    }

    pub(super) fn root(&self, id: RootId) -> &Root {
        &self.roots[id.0]
    }

    /// Every root, those without rights too.
    pub(super) fn roots(&self) -> impl Iterator<Item = (RootId, &Root)> {
        self.roots
            .iter()
            .enumerate()
            .map(|(id, root)| (RootId(id), root))
    }

    /// The innermost tree that holds the real path `name` and on which the plugin wants any of `rights`.
    pub(super) fn wanted(&self, name: &Path, rights: FsRights) -> Option<&str> {
        let holds =
            |wish: &&FsRoot| name.starts_with(&wish.path) && wish.rights.intersect(rights) != NONE;
        self.wishes.iter().find(holds)?.path.to_str()
    }

    /// The real name of an object to which access was refused, if there are requests to compare it with.
    pub(super) fn name_to_blame(&self, handle: &impl AsFd) -> Option<PathBuf> {
        if self.wishes.is_empty() {
            return None;
        }
        self.kernel.name(handle).ok()
    }

    /// Whether decisions need the real name of an object: patterns speak about names, and with one root inside another
    /// the inner one governs whatever path led there.
    pub(super) fn needs_names(&self) -> bool {
        self.nested || !self.patterns.is_empty()
    }

    /// Whether a root is inside another one that has rights.
    pub(super) fn nested(&self) -> bool {
        self.nested
    }

    /// Whether a root without rights is inside another one that has some.
    pub(super) fn shuts(&self) -> bool {
        self.shuts
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

    /// Whether a root is `name` or below it: such a directory is never moved or removed.
    pub(super) fn holds_root(&self, name: &Path) -> bool {
        self.roots
            .iter()
            .any(|root| Path::new(&root.path).starts_with(name))
    }

    /// The verdict of the patterns on a real path.
    pub(super) fn shade(&self, name: &Path) -> Shade {
        match &self.own {
            Some(own) if name.starts_with(own) => Shade::default(),
            _ => self.patterns.shade(name),
        }
    }

    /// Whether the object with the real path `name` is to be as if it were not there.
    pub(super) fn hides(&self, name: &Path) -> bool {
        self.shade(name).hides()
    }

    /// A number that stays the same for equal `value`s under this policy and reveals nothing about them.
    pub(super) fn blur(&self, value: impl std::hash::Hash) -> u64 {
        self.seed.hash_one(value)
    }
}
