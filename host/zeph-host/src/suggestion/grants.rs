//! The smallest grant of a plugin: what its recorded calls used, within what its manifest requests and what it is granted now.
//!
//! Grants of files are grants of directories. A file stands for the directory it lies in, and never for one above; what such a grant gives
//! besides is told (`siblings`), and rules can take it away again (`policy suggest`).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use zeph_core::capability::{Capability, FsRights};
use zeph_core::network::HostAccess;
use zeph_core::program;

use super::siblings::{self, UnseenSiblings};
use crate::recording::{CallRecord, FileUseName, RecordedFile, RecordedHost};

/// Most directories, hosts or programs that are told apart; a person reads the suggestion.
const KEPT_MAX: usize = 5_000;

/// What recorded calls of one plugin used, put together. Its size depends on what differs, not on the number of calls.
#[derive(Debug, Default)]
pub(crate) struct PluginUses {
    directories: BTreeMap<PathBuf, FsRights>,
    /// Every object that was used, by its path.
    objects: BTreeSet<PathBuf>,
    /// By host and whether plain HTTP is spoken there.
    hosts: BTreeMap<(String, bool), HostAccess>,
    programs: BTreeSet<Vec<String>>,
    variables: BTreeSet<String>,
    embedders: BTreeSet<String>,
    tools: BTreeSet<String>,
    /// Directories with rights that were refused.
    denied: BTreeSet<(String, String)>,
    /// Names beyond [`KEPT_MAX`] of one kind.
    n_omitted: u64,
}

/// What an operator is advised to grant.
#[derive(Debug, Default)]
pub(crate) struct GrantSuggestion {
    /// The grants, with absolute paths.
    pub(crate) grants: Vec<Capability>,
    /// What the directories among them give besides what was used.
    pub(crate) unseen: Vec<UnseenSiblings>,
    /// What calls tried and were refused, below them.
    pub(crate) denied: Vec<(String, String)>,
    /// What was recorded and is not suggested, because it is not granted or not requested.
    pub(crate) outside: Vec<Capability>,
    /// What cannot be known from records, one sentence each.
    pub(crate) notes: Vec<String>,
}

impl PluginUses {
    /// Adds what a call used.
    pub(crate) fn add(&mut self, call: &CallRecord) {
        call.files.iter().for_each(|file| self.add_file(file));
        for host in call.hosts.iter().filter(|host| host.requests > 0) {
            for access in accesses(host) {
                self.add_host(access);
            }
        }
        for words in &call.programs {
            match self.programs.len() < KEPT_MAX {
                true => drop(self.programs.insert(words.clone())),
                false => self.n_omitted += 1,
            }
        }
        self.variables.extend(call.variables.iter().cloned());
        self.embedders.extend(call.embedders.iter().cloned());
        self.tools.extend(call.tools.iter().cloned());
        let denied = call.refused.iter();
        self.denied
            .extend(denied.map(|one| (one.path.clone(), one.rights.clone())));
    }

    fn add_host(&mut self, access: HostAccess) {
        let key = (access.name.to_string(), access.plain_http);
        if !self.hosts.contains_key(&key) && self.hosts.len() >= KEPT_MAX {
            self.n_omitted += 1;
            return;
        }
        match self.hosts.entry(key) {
            Entry::Occupied(mut known) => known.get_mut().widen(access),
            Entry::Vacant(free) => {
                free.insert(access);
            }
        }
    }

    fn add_file(&mut self, file: &RecordedFile) {
        let Some(path) = place(file) else { return };
        let rights = rights(&file.uses);
        let directory = match (file.directory, path.parent()) {
            // Its own name is made or removed in the directory above.
            (true, Some(above)) if !file.path.is_empty() && changes_name(file) => above,
            (true, _) | (false, None) => &path,
            (false, Some(above)) => above,
        };
        // What is not there has no directory of its own either.
        let there = directory
            .ancestors()
            .find(|place| place.is_dir() || *place == Path::new(&file.root));
        if let Some(there) = there {
            let is_known = self.directories.contains_key(there);
            if !is_known && self.directories.len() >= KEPT_MAX {
                self.n_omitted += 1;
                return;
            }
            let known = self.directories.entry(there.to_owned()).or_default();
            *known = known.union(rights);
        }
        self.objects.insert(path);
    }

    /// The smallest grant for all of it within `allowed`: what is granted now, or what the manifest requests.
    pub(crate) fn suggestion(self, allowed: &[Capability]) -> GrantSuggestion {
        let mut suggestion = GrantSuggestion::default();
        // First what may be granted: a directory that may not must not stand for those below it.
        let mut directories = BTreeMap::new();
        for (path, rights) in &self.directories {
            let given = suggestion.rights_within(path, *rights, allowed);
            if given != FsRights::default() {
                directories.insert(path.clone(), given);
            }
        }
        suggestion
            .grants
            .extend(smallest(&directories).map(|(path, rights)| directory(path, rights)));
        for access in self.hosts.values() {
            suggestion.add_within(Capability::Host(access.clone()), allowed);
        }
        for words in &self.programs {
            suggestion.add_program(words, allowed);
        }
        for name in &self.variables {
            let name = name.clone();
            suggestion.add_within(Capability::Variable { name }, allowed);
        }
        for name in &self.embedders {
            let name = name.clone();
            suggestion.add_within(Capability::Embedder { name }, allowed);
        }
        for name in &self.tools {
            let name = name.clone();
            suggestion.add_within(Capability::Tool { name }, allowed);
        }
        for secret in allowed {
            let Capability::Secret(used) = secret else {
                continue;
            };
            let is_reached = |access: &HostAccess| used.host.covers(&access.name);
            if self.hosts.values().any(is_reached) && !suggestion.grants.contains(secret) {
                suggestion.grants.push(secret.clone());
            }
        }
        for limit in allowed {
            if matches!(limit, Capability::Limit { .. }) && !suggestion.grants.contains(limit) {
                suggestion.grants.push(limit.clone());
                suggestion.notes.push(format!(
                    "{limit} is kept: a record does not tell how much of a limit a call used"
                ));
            }
        }
        if !self.variables.is_empty() {
            suggestion.notes.push(
                "variables are kept that calls were given: a record does not tell whether the plugin read them"
                    .to_owned(),
            );
        }
        if self.n_omitted > 0 {
            suggestion.notes.push(format!(
                "the records name more than {KEPT_MAX} directories, hosts or programs; {} uses are not part of the suggestion",
                self.n_omitted
            ));
        }
        let granted: Vec<PathBuf> = suggestion.directories().map(Path::to_owned).collect();
        suggestion.unseen = siblings::unseen(granted.iter().map(PathBuf::as_path), &self.objects);
        suggestion.denied = self.denied.into_iter().collect();
        suggestion
    }
}

impl GrantSuggestion {
    /// The directories among the grants.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &Path> {
        self.grants.iter().filter_map(|grant| match grant {
            Capability::Directory { path, .. } => Some(Path::new(path)),
            _ => None,
        })
    }

    /// Those of `rights` on a directory that `allowed` covers; the others are told.
    fn rights_within(&mut self, path: &Path, rights: FsRights, allowed: &[Capability]) -> FsRights {
        let given = allowed
            .iter()
            .fold(FsRights::default(), |sum, one| match one {
                Capability::Directory {
                    path: above,
                    rights,
                } if path.starts_with(above) => sum.union(*rights),
                _ => sum,
            });
        let missing = rights.without(given);
        if missing != FsRights::default() {
            self.outside.push(directory(path, missing));
        }
        rights.intersect(given)
    }

    /// Adds the part of `wanted`, which is no directory, that `allowed` covers; what is not covered at all is told.
    fn add_within(&mut self, wanted: Capability, allowed: &[Capability]) {
        let parts = allowed.iter().filter_map(|one| wanted.intersect(one));
        let parts: Vec<Capability> = parts.collect();
        if parts.is_empty() {
            self.outside.push(wanted);
        }
        for part in parts {
            if !self.grants.contains(&part) {
                self.grants.push(part);
            }
        }
    }

    /// The very line where a grant can say it, else the pattern that allowed it.
    fn add_program(&mut self, words: &[String], allowed: &[Capability]) {
        let Some((name, arguments)) = words.split_first() else {
            return;
        };
        let exact = Capability::Program {
            name: words.join(" "),
        };
        let covering = allowed.iter().find(|one| match one {
            Capability::Program { name: pattern } => program::allows(pattern, name, arguments),
            _ => false,
        });
        let is_exact = match &exact {
            Capability::Program { name: line } => {
                program::allows(line, name, arguments) && exact.problem().is_none()
            }
            _ => false,
        };
        let grant = match covering {
            None => return self.outside.push(exact),
            Some(_) if is_exact => exact,
            Some(pattern) => pattern.clone(),
        };
        if !self.grants.contains(&grant) {
            self.grants.push(grant);
        }
    }
}

fn directory(path: &Path, rights: FsRights) -> Capability {
    let path = path.to_string_lossy().into_owned();
    Capability::Directory { path, rights }
}

/// Directories without those whose rights another above them gives anyway.
fn smallest(
    directories: &BTreeMap<PathBuf, FsRights>,
) -> impl Iterator<Item = (&PathBuf, FsRights)> {
    let is_needed = move |(path, rights): &(&PathBuf, FsRights)| {
        let above = path.ancestors().skip(1);
        let given = above.filter_map(|place| directories.get(place));
        let given = given.fold(FsRights::default(), |sum, rights| sum.union(*rights));
        rights.without(given) != FsRights::default()
    };
    let each = directories.iter().map(|(path, rights)| (path, *rights));
    each.filter(is_needed)
}

/// The absolute path of a recorded file; none when it would lead elsewhere.
pub(crate) fn place(file: &RecordedFile) -> Option<PathBuf> {
    let is_plain = !file.path.starts_with('/') && !file.path.split('/').any(|name| name == "..");
    let root = Path::new(&file.root);
    let is_root = root.is_absolute() && !file.root.split('/').any(|name| name == "..");
    (is_plain && is_root).then(|| match file.path.is_empty() {
        true => root.to_owned(),
        false => root.join(&file.path),
    })
}

fn changes_name(file: &RecordedFile) -> bool {
    let uses = &file.uses;
    uses.contains(&FileUseName::Create) || uses.contains(&FileUseName::Delete)
}

fn rights(uses: &[FileUseName]) -> FsRights {
    let mut rights = FsRights::default();
    for used in uses {
        match used {
            FileUseName::Look | FileUseName::Read | FileUseName::List => rights.read = true,
            FileUseName::Write => rights.write = true,
            FileUseName::Create | FileUseName::Temporary => rights.create = true,
            FileUseName::Delete => rights.delete = true,
        }
    }
    rights
}

/// What has to be granted for the requests to a host.
fn accesses(host: &RecordedHost) -> Vec<HostAccess> {
    let scheme = if host.plain_http { "http://" } else { "" };
    let methods = host.methods.iter();
    let accesses = methods.map(|method| format!("{scheme}{}:{method}", host.host).parse());
    accesses.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests;
