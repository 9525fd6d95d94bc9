//! Where names lead that programs obey: links with such a name, and what configurations of git name. From anywhere in the allowed
//! directories, from the repositories that these lie in, from the user's own configuration of git, and from links in the user's home.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use zeph_core::git_config::{GitReader, GitUser};
use zeph_core::obeyed::{self, ANYWHERE, HOME, KEPT_BY_TOOLS, WHERE_PRESENT};

use super::GIT;
use super::elsewhere::leads_in;
use super::git::{hooks_of, led_to, small};
use crate::fs::laid_open::is_of_laid_open;

/// Where something leads, and the name on the list for which it is obeyed.
pub(super) type Lead = (PathBuf, &'static str);

/// Where leads are looked for.
#[derive(Debug, Default)]
pub struct LeadSources {
    /// All directories that file tools may touch, canonical.
    pub roots: Vec<PathBuf>,
    /// The user whose configuration of git counts.
    pub user: GitUser,
}

/// Where the names of directories lead, as far as a call asked.
#[derive(Debug)]
pub struct Leads {
    sources: Arc<LeadSources>,
    reader: OnceLock<GitReader>,
    /// By the directory that has them.
    of: HashMap<PathBuf, Vec<Lead>>,
    /// From outside the roots.
    outside: Option<Vec<Lead>>,
    /// From anywhere in a root and, after it, the others.
    inside: HashMap<PathBuf, Vec<Lead>>,
}

impl Leads {
    /// Looks at nothing yet.
    pub fn new(sources: Arc<LeadSources>) -> Self {
        Self {
            sources,
            reader: OnceLock::new(),
            of: HashMap::new(),
            outside: None,
            inside: HashMap::new(),
        }
    }

    /// The name on the list that the real path `path` is or is inside of; `top` is its root.
    pub fn name_of(&mut self, top: &Path, path: &Path) -> Option<&'static str> {
        let below = path.strip_prefix(top).ok()?;
        if let Some(name) = obeyed::name_of(below) {
            return Some(name);
        }
        if is_of_laid_open(path, top) {
            return Some(GIT);
        }
        self.find(top, path, |target| path.starts_with(target))
    }

    /// The name on the list that leads to something below the real path `path`; `top` is its root. Another directory or a link there would
    /// bring something else in its place.
    pub(super) fn below(&mut self, top: &Path, path: &Path) -> Option<&'static str> {
        self.find(top, path, |target| target.starts_with(path))
    }

    fn find(
        &mut self,
        top: &Path,
        path: &Path,
        is_meant: impl Fn(&Path) -> bool,
    ) -> Option<&'static str> {
        let sources = Arc::clone(&self.sources);
        let reader = self
            .reader
            .get_or_init(|| GitReader::new(sources.user.clone(), small));
        let directories = path.ancestors().skip(1);
        let mut directories = directories.take_while(|directory| directory.starts_with(top));
        let above = directories.find_map(|directory| {
            let known = self.of.entry(directory.to_owned());
            let leads = known.or_insert_with(|| leads_of(reader, directory, directory == top));
            let mut leads = leads
                .iter()
                .filter(|(target, _)| !directory.starts_with(target));
            let found = leads.find(|(target, _)| is_meant(target));
            found.map(|(_, name)| *name)
        });
        if above.is_some() {
            return above;
        }
        // The grant of a directory inside such a place includes its contents.
        let is_meant = |(target, _): &&Lead| is_meant(target) && !top.starts_with(target.as_path());
        let outside = self
            .outside
            .get_or_insert_with(|| leads_from_outside(reader, &sources.roots));
        let found = outside.iter().find(is_meant).or_else(|| {
            let known = self.inside.entry(top.to_owned());
            let leads = known.or_insert_with(|| leads_of_roots(reader, top, &sources.roots));
            leads.iter().find(is_meant)
        });
        found.map(|(_, name)| *name)
    }
}

/// Where repositories that `roots` lie in lead, the user's own configuration of git, and links in the user's home.
fn leads_from_outside(reader: &GitReader, roots: &[PathBuf]) -> Vec<Lead> {
    let own = reader.everywhere().flat_map(|path| led_to(path));
    let mut targets: Vec<PathBuf> = own.collect();
    let mut above: Vec<&Path> = roots
        .iter()
        .flat_map(|root| root.ancestors().skip(1))
        .collect();
    above.sort();
    above.dedup();
    targets.extend(
        above
            .iter()
            .flat_map(|directory| hooks_of(reader, directory)),
    );
    let of_git = targets.into_iter().map(|target| (target, GIT));
    let of_home = reader.home_links().iter().flat_map(|link| {
        let targets = led_to(&link.path).into_iter();
        targets.map(|target| (target, link.name))
    });
    // Whatever leads elsewhere matters to nobody here.
    let is_inside = |(target, _): &Lead| roots.iter().any(|root| target.starts_with(root));
    of_git.chain(of_home).filter(is_inside).collect()
}

/// Where repositories and links lead from anywhere in the root `top`, and from the other `roots`.
fn leads_of_roots(reader: &GitReader, top: &Path, roots: &[PathBuf]) -> Vec<Lead> {
    let is_other = |root: &&PathBuf| {
        let within = |outer: &Path| root.starts_with(outer) && root.as_path() != outer;
        !root.starts_with(top) && !roots.iter().any(|outer| within(outer))
    };
    let others: Vec<&Path> = roots
        .iter()
        .filter(is_other)
        .map(PathBuf::as_path)
        .collect();
    let mut leads = leads_in(reader, &[top]);
    leads.extend(leads_in(reader, &others));
    leads
}

/// Where names of the list in `directory` lead by symbolic links, and git by its configuration.
fn leads_of(reader: &GitReader, directory: &Path, is_top: bool) -> Vec<Lead> {
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
        if first_is_link || is_link(&path) == Some(true) {
            leads.extend(led_to(&path).into_iter().map(|target| (target, *name)));
        }
    }
    if matches!(known.get(GIT), Some(Some(_))) {
        let hooks = hooks_of(reader, directory).into_iter();
        leads.extend(hooks.map(|target| (target, GIT)));
    }
    leads
}
