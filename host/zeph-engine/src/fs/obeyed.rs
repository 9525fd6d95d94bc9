//! What programs outside obey without asking (`zeph_core::obeyed`) is not made, changed, moved or removed without leave.
//!
//! Decided on real names, beneath the root: so a link, a rename or another case of a name gives the same result, and a grant of a
//! directory inside such a place includes its contents. Besides the names of the list there are the objects they lead
//! to: the target of a link with such a name, and the directory in which git is configured to find its hooks.

use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use zeph_core::obeyed;

use super::FsCtx;
use super::error::{Fail, FsOutcome};
use super::laid_open::GitParts;
use super::policy::{FsPolicy, RootId};

mod elsewhere;
mod git;
mod leads;

pub use self::leads::{LeadSources, Leads};

/// Names looked at before a directory is moved.
const ENTRIES_MAX: usize = 100_000;

/// Parts of the longest name on the list.
pub(super) const LISTED_PARTS_MAX: usize = 3;

/// How git's own files are named in a refusal.
pub(super) const GIT: &str = ".git";

/// An object that a call tried to change and that programs obey.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObeyedObject {
    /// Its real path.
    pub(super) path: String,
    /// The name on the list.
    pub(super) name: &'static str,
}

/// What a call does with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameUse {
    /// It makes an object of this name, or gives the name to one that it made: in a draft that is decided later.
    Make,
    /// It changes, moves or removes what stands there, or brings something there that it found.
    Change,
}

impl NameUse {
    /// The name is given to an object that is the call's own, or not.
    pub(super) fn given_to_own(is_own: bool) -> Self {
        match is_own {
            true => Self::Make,
            false => Self::Change,
        }
    }
}

impl FsCtx {
    /// Whether the object with the real path `name` may be changed, made, moved or removed.
    ///
    /// Errors: obeyed without leave.
    pub(super) fn may_obey(
        &mut self,
        policy: &FsPolicy,
        place: (RootId, &Path),
        name_use: NameUse,
    ) -> FsOutcome<()> {
        let (root, name) = place;
        self.may_fill(name)?;
        let top = Path::new(&policy.root(root).path);
        match self.leads.name_of(top, name) {
            Some(found) => self.with_leave(policy, place, found, name_use),
            None => Ok(()),
        }
    }

    fn with_leave(
        &self,
        policy: &FsPolicy,
        (root, name): (RootId, &Path),
        found: &'static str,
        name_use: NameUse,
    ) -> FsOutcome<()> {
        let top = Path::new(&policy.root(root).path);
        let is_later = || name_use == NameUse::Make && self.is_in_draft(top, name);
        match policy.leave().covers(name, found) || is_later() {
            true => Ok(()),
            false => Err(refused(name, found)),
        }
    }

    /// The name on the list that a link, or a directory under another name, may redirect.
    pub(super) fn may_lead(
        &mut self,
        policy: &FsPolicy,
        place: (RootId, &Path),
        name_use: NameUse,
    ) -> FsOutcome<()> {
        self.may_obey(policy, place, name_use)?;
        let (root, name) = place;
        let top = Path::new(&policy.root(root).path);
        let below = name.strip_prefix(top).unwrap_or(name);
        match obeyed::name_from(below).or_else(|| self.leads.below(top, name)) {
            Some(found) => self.with_leave(policy, place, found, name_use),
            None => Ok(()),
        }
    }

    /// Whether the directory `source`, which is the call's own or not, may take the name of `target`, for all that it holds: nothing of
    /// it is obeyed under its old name, or would be under the new one. Nothing is obeyed under a name in a draft; what the call brings
    /// into one from elsewhere is looked at all the same.
    pub(super) fn may_move_obeyed(
        &mut self,
        policy: &FsPolicy,
        source: (RootId, &Path),
        target: (RootId, &Path),
        is_own: bool,
    ) -> FsOutcome<()> {
        let top = |root: RootId| Path::new(&policy.root(root).path);
        let (old, new) = (source.1, target.1);
        let leaves_draft = self.is_in_draft(top(source.0), old) || self.is_draft(old);
        let stays_draft = is_own && self.is_in_draft(top(target.0), new);
        let ends = [(source, leaves_draft), (target, stays_draft)];
        let ends = ends.into_iter().filter(|(_, is_drafted)| !is_drafted);
        let ends: Vec<(&Path, &Path)> = ends.map(|((root, name), _)| (top(root), name)).collect();
        let mut wanting = ends
            .iter()
            .filter(|(_, name)| !policy.leave().covers(name, ""));
        let Some((_, wanting)) = wanting.next() else {
            return Ok(());
        };
        let led_to = ends
            .iter()
            .find_map(|(top, name)| self.leads.below(top, name));
        let held = || holds(old, &ends, true, ENTRIES_MAX).unwrap_or(Some(obeyed::TOO_MANY));
        match led_to.or_else(held) {
            None => Ok(()),
            Some(found) => Err(refused(wanting, found)),
        }
    }
}

/// A name on the list that the directory `top` contains, if any.
///
/// Shape: `names` are the real names that the directory has or is to get, each with its root. If `is_kept` is false, because the directory
/// is to be removed, directories of packages are skipped, whose contents nothing obeys, and what git obeys is told by its name alone.
/// Errors: [`TooMany`] if there are too many entries to look through, or some that cannot be looked at.
pub fn holds(
    top: &Path,
    names: &[(&Path, &Path)],
    is_kept: bool,
    entries_max: usize,
) -> Result<Option<&'static str>, TooMany> {
    // Below a name that is itself none of the list, each entry is one by its own last names or by none.
    let are_free = names.iter().all(|(root, name)| {
        let below = name.strip_prefix(root);
        below.is_ok_and(|below| obeyed::name_of(below).is_none())
    });
    let name_of = if are_free {
        name_at_end
    } else {
        obeyed::name_of
    };
    let mut left = entries_max;
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        let mut parts = GitParts::default();
        for entry in listed(&top.join(&below))? {
            left = left.checked_sub(1).ok_or(TooMany)?;
            let entry = entry.map_err(|_| TooMany)?;
            let leaf = entry.file_name();
            let kind = entry.file_type().map_err(|_| TooMany)?;
            let inner = below.join(&leaf);
            let found = names.iter().find_map(|(root, name)| {
                let whole = name.join(&inner);
                let whole = whole.strip_prefix(root).ok()?;
                let redirected = || obeyed::name_from(whole).filter(|_| is_kept);
                name_of(whole).or_else(|| kind.is_symlink().then(redirected).flatten())
            });
            if found.is_some() {
                return Ok(found);
            }
            parts.note(&leaf);
            if kind.is_dir() && (is_kept || !obeyed::is_fetched(&leaf)) {
                pending.push(inner);
            }
        }
        if is_kept && parts.are_laid_open() {
            return Ok(Some(GIT));
        }
    }
    Ok(None)
}

/// The entries of `directory`; none if it is gone, or another user's that cannot be listed.
///
/// Errors: [`TooMany`] if it cannot be listed although it is there: its path is too long, or a call took the right away.
fn listed(directory: &Path) -> Result<impl Iterator<Item = io::Result<DirEntry>>, TooMany> {
    let listed = match fs::read_dir(directory) {
        Ok(listed) => Some(listed),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => None,
            ErrorKind::PermissionDenied if !is_own(directory) => None,
            _ => return Err(TooMany),
        },
    };
    Ok(listed.into_iter().flatten())
}

fn is_own(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    path.symlink_metadata()
        .is_ok_and(|about| about.uid() == user)
}

/// The name on the list that `below` is, where no directory above it is one: of a deep path only the last names count.
pub(super) fn name_at_end(below: &Path) -> Option<&'static str> {
    let n_above = below.components().count().saturating_sub(LISTED_PARTS_MAX);
    if n_above == 0 {
        return obeyed::name_of(below);
    }
    // Not the first ones: some names are on the list only right below a root.
    let above = std::iter::once(Component::Normal("_".as_ref()));
    let end: PathBuf = above.chain(below.components().skip(n_above)).collect();
    obeyed::name_of(&end)
}

/// Whether the real path `path` is part of a directory of packages or products of its root, `top`. Where the root lies does not matter.
pub fn in_packages(top: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(top).unwrap_or(path);
    below.iter().any(obeyed::is_fetched)
}

/// More names than were to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

pub(super) fn refused(name: &Path, found: &'static str) -> Fail {
    Fail::Obeyed(Box::new(ObeyedObject {
        path: name.to_string_lossy().into_owned(),
        name: found,
    }))
}
