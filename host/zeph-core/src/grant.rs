//! Grants of plugins: what the operator granted, and what remains of it after manifest and policy.
//!
//! Effective right = manifest ∩ grant ∩ policy. Everything here is a function over values; paths are absolute and
//! canonical.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::capability::{ANY_NAME, Capability, FsGrant, FsRights, FsRoot, LimitName};
use crate::limit::CallLimits;
use crate::manifest::problem;
use crate::network::HostAccess;
use crate::program;
use crate::secret::SecretUse;

/// What a plugin may do at most in one call: manifest ∩ grant ∩ policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Effective {
    /// Directory trees and the rights on each.
    pub directories: Vec<FsRoot>,
    /// Network hosts it may send requests to.
    pub hosts: Vec<HostAccess>,
    /// Programs it may start, each with what its arguments may be ([`program`]).
    pub programs: Vec<String>,
    /// Environment variables it may read.
    pub variables: Vec<String>,
    /// Raised limits.
    pub limits: Vec<(LimitName, u64)>,
    /// Secrets that the host program puts into its requests.
    pub secrets: Vec<SecretUse>,
    /// Providers of embeddings it may send texts to, by their names.
    pub embedders: Vec<String>,
    /// Tools of MCP servers it may call, each `SERVER/TOOL`.
    pub tools: Vec<String>,
}

impl Effective {
    /// Whether a call can change anything outside itself.
    pub fn can_change_something(&self) -> bool {
        let writes = |root: &FsRoot| root.rights != root.rights.intersect(FsRights::READ);
        self.directories.iter().any(writes)
            || self.hosts.iter().any(HostAccess::can_send)
            || !self.programs.is_empty()
    }

    /// `limits`, raised where the operator allowed it.
    pub fn raise(&self, mut limits: CallLimits) -> CallLimits {
        for (name, value) in &self.limits {
            name.raise(&mut limits, *value);
        }
        limits
    }
}

/// The part of `granted` that the manifest requests and the policy allows.
///
/// Shape: `wanted` and `granted` hold absolute, canonical directories; those of the manifest that named `.` stand once for each
/// root of `policy`.
pub fn effective(wanted: &[Capability], granted: &[Capability], policy: &FsGrant) -> Effective {
    let mut effective = Effective::default();
    // A grant names one: what names none gives nothing.
    for grant in granted.iter().filter(|grant| !grant.is_unnamed()) {
        for want in wanted {
            let Some(both) = want.intersect(grant) else {
                continue;
            };
            match both {
                Capability::Directory { path, rights } => {
                    let roots = policy.roots.iter();
                    let inside = roots.filter_map(|root| {
                        let path = inner(Path::new(&path), &root.path)?;
                        let rights = rights.intersect(root.rights);
                        Some(FsRoot { path, rights })
                    });
                    inside.for_each(|root| add_root(&mut effective.directories, root));
                }
                Capability::Host(access) => add(&mut effective.hosts, access),
                Capability::Program { name } => add(&mut effective.programs, name),
                Capability::Variable { name } => add(&mut effective.variables, name),
                Capability::Limit { name, value } => add(&mut effective.limits, (name, value)),
                Capability::Secret(secret) => add(&mut effective.secrets, secret),
                Capability::Embedder { name } => add(&mut effective.embedders, name),
                Capability::Tool { name } => add(&mut effective.tools, name),
            }
        }
    }
    effective
}

/// The part of `wanted` that `granted` does not cover, which the operator could still grant.
pub fn missing(wanted: &[Capability], granted: &[Capability]) -> Vec<Capability> {
    let uncovered = wanted.iter().filter_map(|want| match want {
        Capability::Directory { path, rights } => {
            let rights = granted.iter().fold(*rights, |left, grant| match grant {
                Capability::Directory {
                    path: granted,
                    rights,
                } if Path::new(path).starts_with(granted) => left.without(*rights),
                _ => left,
            });
            let path = path.clone();
            (rights != FsRights::default()).then_some(Capability::Directory { path, rights })
        }
        other => {
            // Of whichever the operator names, one is enough.
            let covers = |grant: &Capability| {
                let both = other.intersect(grant);
                both.as_ref() == Some(other) || other.is_unnamed() && both.is_some()
            };
            (!granted.iter().any(covers)).then(|| other.clone())
        }
    });
    uncovered.collect()
}

impl Capability {
    /// The capability that both allow; `None` if there is none.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (
                Self::Directory { path, rights },
                Self::Directory {
                    path: other_path,
                    rights: other_rights,
                },
            ) => {
                let path = inner(Path::new(path), Path::new(other_path))?;
                let rights = rights.intersect(*other_rights);
                (rights != FsRights::default()).then(|| Self::Directory {
                    path: path.to_string_lossy().into_owned(),
                    rights,
                })
            }
            (Self::Limit { name, value }, Self::Limit { name: n, value: v }) if name == n => {
                let value = *value.min(v);
                Some(Self::Limit { name: *name, value })
            }
            (Self::Host(access), Self::Host(other)) => access.intersect(other).map(Self::Host),
            (Self::Secret(one), Self::Secret(other)) => one.intersect(other).map(Self::Secret),
            (Self::Program { name }, Self::Program { name: other }) => {
                let name = program::narrower(name, other)?.to_owned();
                Some(Self::Program { name })
            }
            (Self::Embedder { name }, Self::Embedder { name: other }) => {
                let name = named_by_both(name, other)?;
                Some(Self::Embedder { name })
            }
            (Self::Tool { name }, Self::Tool { name: other }) => {
                let name = named_by_both(name, other)?;
                Some(Self::Tool { name })
            }
            (Self::Variable { .. }, Self::Variable { .. }) => (self == other).then(|| self.clone()),
            _ => None,
        }
    }

    /// Whether it stands for whichever embedder or tool the operator grants by its name.
    pub fn is_unnamed(&self) -> bool {
        matches!(self, Self::Embedder { name } | Self::Tool { name } if name == ANY_NAME)
    }

    /// Describes in one sentence what is wrong with the capability, if anything.
    pub fn problem(&self) -> Option<&'static str> {
        problem(self)
    }
}

/// The narrower of two names of which one may be [`ANY_NAME`].
fn named_by_both(one: &str, other: &str) -> Option<String> {
    match (one, other) {
        (ANY_NAME, name) | (name, ANY_NAME) => Some(name.to_owned()),
        _ => (one == other).then(|| one.to_owned()),
    }
}

/// The inner one of two trees of which one holds the other.
fn inner(one: &Path, other: &Path) -> Option<PathBuf> {
    if one.starts_with(other) {
        Some(one.to_owned())
    } else if other.starts_with(one) {
        Some(other.to_owned())
    } else {
        None
    }
}

/// Two grants of one directory give the rights of both.
fn add_root(roots: &mut Vec<FsRoot>, root: FsRoot) {
    match roots.iter_mut().find(|known| known.path == root.path) {
        Some(known) => known.rights = known.rights.union(root.rights),
        None => roots.push(root),
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if !list.contains(&value) {
        list.push(value);
    }
}

#[cfg(test)]
mod tests;
