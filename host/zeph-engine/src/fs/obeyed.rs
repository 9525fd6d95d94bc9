//! What programs outside obey without asking (`zeph_core::obeyed`) is not made, changed, moved or removed without leave.
//!
//! Decided on real names, beneath the root: so a link, a rename or another case of a name gives the same result, and a grant of a
//! directory inside such a place includes its contents. Besides the names of the list there are the objects they lead
//! to: the target of a link with such a name, and the directory in which git is configured to find its hooks.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use zeph_core::obeyed::{self, ANYWHERE, HOME, KEPT_BY_TOOLS, WHERE_PRESENT};

use super::FsCtx;
use super::error::{Fail, FsOutcome};
use super::policy::{FsPolicy, RootId};
use super::resolve::ResolvedName;

/// Names looked at before a directory is moved.
const ENTRIES_MAX: usize = 100_000;

/// Most bytes of a configuration or a pointer of git; real ones have a few thousand.
const GIT_FILE_BYTES_MAX: u64 = 1 << 20;

/// Most hooks that are looked at for links; git knows some thirty.
const HOOKS_MAX: usize = 64;

/// Parts of the longest name on the list.
pub(super) const LISTED_PARTS_MAX: usize = 3;

/// How git's own files are named in a refusal.
const GIT: &str = ".git";

/// In a git directory: what is obeyed, and what makes a directory one.
const GIT_PARTS: [&str; 7] = [
    "config",
    "config.worktree",
    "hooks",
    "commondir",
    "HEAD",
    "objects",
    "refs",
];

/// An object that a call tried to change and that programs obey.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObeyedObject {
    /// Its real path.
    pub(super) path: String,
    /// The name on the list.
    pub(super) name: &'static str,
}

/// Where the names of directories lead, as far as a call asked.
#[derive(Debug, Default)]
pub struct Leads(HashMap<PathBuf, Vec<(PathBuf, &'static str)>>);

impl Leads {
    /// The name on the list that the real path `path` is or is inside of; `top` is its root.
    pub fn name_of(&mut self, top: &Path, path: &Path) -> Option<&'static str> {
        let below = path.strip_prefix(top).ok()?;
        if let Some(name) = obeyed::name_of(below) {
            return Some(name);
        }
        if is_of_laid_open(path, top) {
            return Some(GIT);
        }
        let directories = path.ancestors().skip(1);
        let mut directories = directories.take_while(|directory| directory.starts_with(top));
        directories.find_map(|directory| {
            let leads = self.of(directory, directory == top).iter();
            let mut leads = leads.filter(|(target, _)| !directory.starts_with(target));
            let found = leads.find(|(target, _)| path.starts_with(target));
            found.map(|(_, name)| *name)
        })
    }

    fn of(&mut self, directory: &Path, is_top: bool) -> &[(PathBuf, &'static str)] {
        let known = self.0.entry(directory.to_owned());
        known.or_insert_with(|| leads_of(directory, is_top))
    }
}

impl FsCtx {
    /// Whether the object with the real path `name` may be changed, made, moved or removed.
    ///
    /// Errors: obeyed without leave.
    pub(super) fn may_obey(
        &mut self,
        policy: &FsPolicy,
        root: RootId,
        name: &Path,
    ) -> FsOutcome<()> {
        let top = Path::new(&policy.root(root).path);
        match self.leads.name_of(top, name) {
            Some(found) => self.with_leave(policy, name, found),
            None => Ok(()),
        }
    }

    fn with_leave(&mut self, policy: &FsPolicy, name: &Path, found: &'static str) -> FsOutcome<()> {
        match policy.leave().covers(name, found) || self.drafts.postpone(name, found) {
            true => Ok(()),
            false => Err(refused(name, found)),
        }
    }

    /// The name on the list that a link, or a directory under another name, may redirect.
    pub(super) fn may_lead(
        &mut self,
        policy: &FsPolicy,
        root: RootId,
        name: &Path,
    ) -> FsOutcome<()> {
        self.may_obey(policy, root, name)?;
        let below = name.strip_prefix(&policy.root(root).path).unwrap_or(name);
        match obeyed::name_from(below) {
            Some(found) => self.with_leave(policy, name, found),
            None => Ok(()),
        }
    }

    /// Whether the directory `source` may take the name of `target`, for all that it holds: nothing of it is obeyed under its old name,
    /// or would be under the new one. A name in a draft is none that anything is obeyed under.
    pub(super) fn may_move_obeyed(
        &self,
        policy: &FsPolicy,
        source: &ResolvedName<'_>,
        target: &ResolvedName<'_>,
    ) -> FsOutcome<()> {
        let (old, new) = (source.real_name(policy)?, target.real_name(policy)?);
        let ends: Vec<(RootId, &Path)> = [(source.root, &*old), (target.root, &*new)]
            .into_iter()
            .filter(|(_, name)| !self.drafts.contain(name))
            .collect();
        let mut wanting = ends
            .iter()
            .filter(|(_, name)| !policy.leave().covers(name, ""));
        let Some((_, wanting)) = wanting.next() else {
            return Ok(());
        };
        if let Some(found) = self.drafts.postponed(&old) {
            return Err(refused(wanting, found));
        }
        let tops: Vec<(&Path, &Path)> = ends
            .iter()
            .map(|(root, name)| (Path::new(&policy.root(*root).path), *name))
            .collect();
        match holds(&old, &tops, true, ENTRIES_MAX) {
            Ok(None) => Ok(()),
            Ok(Some(found)) => Err(refused(wanting, found)),
            Err(TooMany) => Err(refused(wanting, obeyed::TOO_MANY)),
        }
    }
}

/// A name on the list that the directory `top` contains, if any.
///
/// Shape: `names` are the real names that the directory has or is to get, each with its root. Directories of packages are skipped if
/// `in_packages` is false, because nothing obeys their contents.
/// Errors: [`TooMany`] if there are too many entries to look through.
pub fn holds(
    top: &Path,
    names: &[(&Path, &Path)],
    in_packages: bool,
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
        let listed = fs::read_dir(top.join(&below)).into_iter().flatten();
        for entry in listed.flatten() {
            left = left.checked_sub(1).ok_or(TooMany)?;
            let inner = below.join(entry.file_name());
            let found = names.iter().find_map(|(root, name)| {
                let whole = name.join(&inner);
                name_of(whole.strip_prefix(root).ok()?)
            });
            if found.is_some() {
                return Ok(found);
            }
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_fetched = obeyed::is_fetched(&entry.file_name());
            if is_directory && (in_packages || !is_fetched) {
                pending.push(inner);
            }
        }
    }
    Ok(None)
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

/// Whether the last name of `path` is, or with others would make, part of a git directory that has no working directory around it; or
/// the path lies among the hooks of one.
fn is_of_laid_open(path: &Path, top: &Path) -> bool {
    let part = |path: &Path| {
        let leaf = path.file_name()?.to_str()?;
        GIT_PARTS
            .into_iter()
            .find(|part| part.eq_ignore_ascii_case(leaf))
    };
    let mut inner = path.ancestors().take_while(|path| path.starts_with(top));
    inner.any(|path| {
        let (Some(leaf), Some(directory)) = (part(path), path.parent()) else {
            return false;
        };
        let has = |name: &str| name == leaf || directory.join(name).symlink_metadata().is_ok();
        let is_whole = has("HEAD") && (has("commondir") || (has("objects") && has("refs")));
        // Its objects and references are data.
        let is_obeyed = !matches!(leaf, "objects" | "refs");
        is_whole
            && (GIT_PARTS[..4].iter().any(|part| has(part))
                && (is_obeyed || path.symlink_metadata().is_err()))
    })
}

/// Where names of the list in `directory` lead by symbolic links, and git by its configuration.
fn leads_of(directory: &Path, is_top: bool) -> Vec<(PathBuf, &'static str)> {
    let mut leads = Vec::new();
    let names = ANYWHERE.iter().chain(&WHERE_PRESENT).chain(&KEPT_BY_TOOLS);
    let at_home = HOME.iter().filter(|_| is_top);
    let mut known: HashMap<&str, Option<bool>> = HashMap::new();
    let is_link = |path: &Path| Some(path.symlink_metadata().ok()?.is_symlink());
    for name in names.chain(at_home).filter(|name| !name.contains('*')) {
        let first = name.split('/').next().unwrap_or(name);
        let first_is_link = *known
            .entry(first)
            .or_insert_with(|| is_link(&directory.join(first)));
        let Some(first_is_link) = first_is_link else {
            continue;
        };
        let path = directory.join(name);
        if (first_is_link || is_link(&path) == Some(true))
            && let Ok(target) = path.canonicalize()
        {
            leads.push((target, *name));
        }
    }
    if matches!(known.get(GIT), Some(Some(_))) {
        leads.extend(hooks_of(directory).into_iter().map(|target| (target, GIT)));
    }
    leads
}

/// What git obeys for the working directory `work` that is not in its own directory: folders of hooks and further configuration that its
/// configuration names, and scripts that its hooks are links to.
fn hooks_of(work: &Path) -> BTreeSet<PathBuf> {
    let pointer = work.join(GIT);
    let own = match pointer.is_dir() {
        true => Some(pointer),
        false => pointed(&pointer, "gitdir:"),
    };
    let Some(own) = own else {
        return BTreeSet::new();
    };
    let common = pointed(&own.join("commondir"), "").unwrap_or_else(|| own.clone());
    let mut found = BTreeSet::new();
    for config in [common.join("config"), own.join("config.worktree")] {
        found.extend(named_in(&config, work));
    }
    let hooks = fs::read_dir(common.join("hooks")).into_iter().flatten();
    let hooks = hooks.flatten().take(HOOKS_MAX);
    let links = hooks.filter(|hook| hook.file_type().is_ok_and(|kind| kind.is_symlink()));
    found.extend(links.filter_map(|hook| hook.path().canonicalize().ok()));
    found
}

fn named_in(config: &Path, work: &Path) -> Vec<PathBuf> {
    let content = small(config).unwrap_or_default();
    let beside = config.parent().unwrap_or(work);
    let lines = content.lines().filter_map(|line| line.split_once('='));
    let named = lines.filter_map(|(key, value)| {
        // A key may stand behind its section.
        let key = key.rsplit(']').next().unwrap_or(key).trim();
        let value = value.trim().trim_matches('"');
        match key.to_ascii_lowercase().as_str() {
            "hookspath" => Some(work.join(value)),
            "path" => Some(beside.join(value)),
            _ => None,
        }
    });
    let named = named.map(|path| {
        path.canonicalize()
            .unwrap_or_else(|_| super::globs::normalize(&path))
    });
    named.collect()
}

fn pointed(file: &Path, prefix: &str) -> Option<PathBuf> {
    let content = small(file)?;
    let path = content.lines().next()?.strip_prefix(prefix)?.trim();
    file.parent()?.join(path).canonicalize().ok()
}

/// The content of a regular file that is not large.
fn small(path: &Path) -> Option<String> {
    let about = path.metadata().ok()?;
    let is_small = about.is_file() && about.len() <= GIT_FILE_BYTES_MAX;
    let bytes = is_small.then(|| fs::read(path).ok())??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
